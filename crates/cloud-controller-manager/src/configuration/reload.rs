//! Follows the sources of the configuration, and prepares a generation for each change.

use std::sync::Arc;
use std::time::Duration;

use command_line::StartRefusal;
use kube::Client;
use telemetry::metrics::azure::Reload;
use tokio::sync::watch;
use tokio::time::Instant;

use super::generation::Generation;
use super::sources::{Reading, Sources, certificate_of};
use crate::environment::ProcessEnvironment;
use crate::flags::CommandLine;
use crate::in_one_line;
use crate::observe::Meter;

/// Interval between readings. File and Secret are small, links may be swapped anywhere on the file's path, and reading
/// the Secret needs no other right than `get` on this one object.
pub(crate) const READ_INTERVAL: Duration = Duration::from_secs(5);

/// The pauses before a configuration that Azure does not accept yet is tried again: a new secret may take a minute to
/// be known everywhere.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// How long a problem that persists stays unreported.
const REPORT_INTERVAL: Duration = Duration::from_secs(3600);

/// Everything that a new generation is made of.
pub(crate) struct Reloader {
    pub line: CommandLine,
    pub sources: Sources,
    pub client: Client,
    pub environment: ProcessEnvironment,
    pub meter: Arc<Meter>,
}

/// A configuration that was not accepted.
struct Rejected {
    reading: Reading,
    problem: String,
    /// When it is tried again; `None` if only another configuration helps.
    retry: Option<(Instant, Duration)>,
}

/// The last reported problem, and when it was reported.
#[derive(Default)]
struct Report(Option<(String, Instant)>);

impl Report {
    /// Logs a problem, unless it was logged within [`REPORT_INTERVAL`].
    fn problem(&mut self, sources: &str, problem: &str) {
        let is_known = |(text, at): &(String, Instant)| text == problem && at.elapsed() < REPORT_INTERVAL;
        if self.0.as_ref().is_some_and(is_known) {
            return;
        }
        tracing::warn!(
            sources,
            "The cloud configuration cannot be used as it is now; the previous one stays in force: {problem}"
        );
        self.0 = Some((problem.to_owned(), Instant::now()));
    }

    /// Ends a problem.
    fn solved(&mut self, sources: &str) {
        if self.0.take().is_some() {
            tracing::info!(sources, "The cloud configuration is again the one in force");
        }
    }
}

impl Reloader {
    /// Compares the sources with the configuration in force until `generations` has no receiver. The task can be dropped
    /// at any time: it writes nothing.
    pub async fn follow(self, mut running: Reading, generations: watch::Sender<Arc<Generation>>) {
        let (mut rejected, mut report): (Option<Rejected>, Report) = Default::default();
        let sources = self.sources.shown();
        let sources = sources.as_str();
        while !generations.is_closed() {
            tokio::time::sleep(READ_INTERVAL).await;
            let reading = match self.read(&running).await {
                Ok(reading) => reading,
                Err(error) => {
                    self.reloaded(if error.is::<StartRefusal>() {
                        Reload::Refused
                    } else {
                        Reload::Unreadable
                    });
                    report.problem(sources, &in_one_line(&error));
                    continue;
                }
            };
            if reading.has_effect_of(&running) {
                if reading.document != running.document {
                    tracing::info!(
                        sources,
                        "The cloud configuration has changed, but not in effect: variables of the environment go before \
                         some keys, and some have no effect"
                    );
                    running.document = reading.document;
                }
                rejected = None;
                report.solved(sources);
                continue;
            }
            let earlier = rejected.take().filter(|earlier| earlier.reading.has_effect_of(&reading));
            let pause = match earlier {
                None => FIRST_PAUSE,
                Some(Rejected { retry: Some((due, pause)), .. }) if due <= Instant::now() => {
                    (2 * pause).min(LONGEST_PAUSE)
                }
                Some(too_early) => {
                    report.problem(sources, &too_early.problem);
                    rejected = Some(too_early);
                    continue;
                }
            };
            let moved = running.config.changed_identity(&reading.config);
            if !moved.is_empty() {
                let problem = moved.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                report.problem(sources, &problem);
                self.reloaded(Reload::NeedsRestart);
                rejected = Some(Rejected { reading, problem, retry: None });
                continue;
            }
            let number = generations.borrow().number + 1;
            match self.prepare(number, &reading).await {
                Ok(generation) => {
                    self.sources.warn(&reading);
                    for warning in &generation.warnings {
                        tracing::warn!("{warning}");
                    }
                    tracing::info!(
                        sources,
                        generation = number,
                        "The changed cloud configuration takes effect"
                    );
                    generation.show(&self.meter);
                    self.reloaded(Reload::Applied);
                    report = Report::default();
                    running = reading;
                    generations.send_replace(Arc::new(generation));
                }
                Err(error) => {
                    let problem = in_one_line(&error);
                    report.problem(sources, &problem);
                    self.reloaded(Reload::Refused);
                    let retry = Some((Instant::now() + pause, pause));
                    rejected = Some(Rejected { reading, problem, retry });
                }
            }
        }
    }

    /// Reads the sources, or, without `--enable-dynamic-reloading`, the state of the client certificate alone: it expires
    /// whether or not the configuration may change.
    async fn read(&self, running: &Reading) -> anyhow::Result<Reading> {
        if self.line.flags.enable_dynamic_reloading {
            return self.sources.read(&self.client, &self.environment).await;
        }
        let config = running.config.clone();
        let certificate = certificate_of(&config);
        Ok(Reading { document: running.document.clone(), config, certificate })
    }

    fn reloaded(&self, result: Reload) {
        self.meter.configuration.reloaded(result);
    }

    async fn prepare(&self, number: u64, reading: &Reading) -> anyhow::Result<Generation> {
        let cluster = self.line.cluster(reading.config.clone());
        let (line, environment) = (&self.line, &self.environment);
        Generation::prepare(number, line, cluster, environment, &self.meter).await?.with_zones().await
    }
}
