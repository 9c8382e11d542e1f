//! Follows the sources of the cloud configuration, and puts each change into force.

use std::time::Duration;

use async_trait::async_trait;
use command_line::StartRefusal;
use program::in_one_line;
use telemetry::metrics::azure::Reload;
use tokio::time::Instant;

use crate::configuration::Reading;

/// Interval between readings. File and Secret are small, links may be swapped anywhere on the file's path, and reading
/// the Secret needs no other right than `get` on this one object.
const READ_INTERVAL: Duration = Duration::from_secs(5);

/// The pauses before a configuration that Azure does not accept yet is tried again: a new secret may take a minute to
/// be known everywhere.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(120);

/// How long a problem that persists stays unreported.
const REPORT_INTERVAL: Duration = Duration::from_secs(3600);

/// A program whose configuration may change while it runs.
#[async_trait]
pub trait Reloading: Send + Sync {
    /// The sources in messages.
    fn sources(&self) -> String;

    /// Reads the sources; `running` is the configuration in force. `None` if they hold no configuration.
    ///
    /// # Errors
    /// A document cannot be read, or is refused ([`StartRefusal`]).
    async fn read(&self, running: Option<&Reading>) -> anyhow::Result<Option<Reading>>;

    /// Puts a configuration into force.
    ///
    /// # Errors
    /// Azure does not accept it: the previous one stays in force.
    async fn apply(&mut self, reading: &Reading) -> anyhow::Result<()>;

    /// Counts a change, or an attempt at one.
    fn reloaded(&self, result: Reload);
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

/// Compares the sources with the configuration in force, for ever. The task can be dropped at any time: it writes nothing.
pub async fn follow(mut program: impl Reloading, mut running: Option<Reading>) {
    let (mut rejected, mut report): (Option<Rejected>, Report) = Default::default();
    let sources = program.sources();
    let sources = sources.as_str();
    loop {
        tokio::time::sleep(READ_INTERVAL).await;
        let reading = match program.read(running.as_ref()).await {
            Ok(Some(reading)) => reading,
            Ok(None) => continue,
            Err(error) => {
                let is_refused = error.is::<StartRefusal>();
                program.reloaded(if is_refused { Reload::Refused } else { Reload::Unreadable });
                report.problem(sources, &in_one_line(&error));
                continue;
            }
        };
        if let Some(running) = running.as_mut().filter(|running| reading.has_effect_of(running)) {
            if reading.document != running.document {
                tracing::info!(
                    sources,
                    "The cloud configuration has changed, but not in effect: variables of the environment go before some \
                     keys, and some have no effect"
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
        let moved = running.as_ref().map(|running| running.config.changed_identity(&reading.config));
        if let Some(moved) = moved.filter(|moved| !moved.is_empty()) {
            let problem = moved.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            report.problem(sources, &problem);
            program.reloaded(Reload::NeedsRestart);
            rejected = Some(Rejected { reading, problem, retry: None });
            continue;
        }
        match program.apply(&reading).await {
            Ok(()) => {
                program.reloaded(Reload::Applied);
                report = Report::default();
                running = Some(reading);
            }
            Err(error) => {
                let problem = in_one_line(&error);
                report.problem(sources, &problem);
                program.reloaded(Reload::Refused);
                let retry = Some((Instant::now() + pause, pause));
                rejected = Some(Rejected { reading, problem, retry });
            }
        }
    }
}
