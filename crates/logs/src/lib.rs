//! Log lines.
//!
//! Text goes to standard error in the form of Kubernetes' own components,
//! `I0131 12:00:00.000000 4242 service.rs:12] "Message" key="value"`; JSON goes to standard output, one object per line.

#[cfg(any(test, feature = "test-util"))]
pub mod captured;

use std::fmt;

use clock::Clock;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::{Identity, Layer, Layered, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::util::SubscriberInitExt;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Text for people and for the tooling of Kubernetes' components, to standard error.
    Text,
    /// One JSON object per line, to standard output.
    Json,
}

/// Levels of libraries in an ordinary run: warnings, because HTTP clients log headers (and so tokens) at their lowest
/// levels. The Kubernetes client logs an error for each failed request; it is dropped because the caller logs the
/// failure with more context.
pub fn of_libraries() -> Targets {
    Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("kube_client::client::builder", LevelFilter::OFF)
}

/// The crates of the programs themselves.
const OWN: [&str; 17] = [
    "arm",
    "azure_cloud_controller_manager",
    "azure_cloud_node_manager",
    "capz",
    "capz_controller_manager",
    "cerulean",
    "cloud_controller_manager",
    "cloud_node_manager",
    "command_line",
    "controllers",
    "csi",
    "imds",
    "manager",
    "program",
    "provider",
    "telemetry",
    "traces",
];

/// The base of a layer that receives spans beside the log.
pub type Filtered = Layered<Targets, Registry>;

/// Starts logging for the whole process; later calls change nothing.
///
/// `verbosity` is the number of the `-v` flag: up to 3, changes and errors; 4 adds debugging; 5 and more add everything
/// that this program's own crates log. Libraries stay at [`of_libraries`], and log all of their warnings from 4 on.
pub fn start(format: Format, verbosity: u8, clock: Clock) {
    start_beside(format, verbosity, clock, None, Identity::new());
}

/// Like [`start`], with a layer beside the log that receives all log events and the spans of the target `spans` (those
/// at [`Level::INFO`] or above). The log's lines are the same as without the layer: spans do not show in them.
pub fn start_beside<L>(format: Format, verbosity: u8, clock: Clock, spans: Option<&'static str>, layer: L)
where
    L: Layer<Filtered> + Send + Sync + 'static,
{
    let registry = tracing_subscriber::registry().with(filter(verbosity, spans)).with(layer);
    // A second start (several programs in one process, as in the demo) keeps the first one's settings.
    let _already_started = match format {
        Format::Text => registry.with(text_lines(clock, std::io::stderr)).try_init(),
        Format::Json => registry.with(json_lines(std::io::stdout)).try_init(),
    };
}

/// The levels of all targets.
fn filter(verbosity: u8, spans: Option<&'static str>) -> Targets {
    let all_warnings = || Targets::new().with_default(LevelFilter::WARN);
    let (own, libraries) = match verbosity {
        0..=3 => (LevelFilter::INFO, of_libraries()),
        4 => (LevelFilter::DEBUG, all_warnings()),
        _ => (LevelFilter::TRACE, all_warnings()),
    };
    let spans = spans.map(|target| (target, LevelFilter::INFO));
    libraries.with_targets(OWN.map(|name| (name, own))).with_targets(spans)
}

fn text_lines<S, W>(clock: Clock, writer: W) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt::layer().with_writer(writer).event_format(Line { clock })
}

fn json_lines<S, W>(writer: W) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    tracing_subscriber::fmt::layer()
        .json()
        .flatten_event(true)
        .without_time()
        .with_file(true)
        .with_line_number(true)
        .with_current_span(false)
        .with_span_list(false)
        .with_writer(writer)
}

/// A log line in the format of Kubernetes' components.
struct Line {
    clock: Clock,
}

impl<S, N> FormatEvent<S, N> for Line
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let metadata = event.metadata();
        let letter = match *metadata.level() {
            Level::ERROR => 'E',
            Level::WARN => 'W',
            Level::INFO => 'I',
            Level::DEBUG | Level::TRACE => 'D',
        };
        let time = self.clock.now().to_zoned(jiff::tz::TimeZone::UTC);
        let file = metadata.file().map_or("", |path| path.rsplit(['/', '\\']).next().unwrap_or(path));
        write!(
            writer,
            "{letter}{:02}{:02} {:02}:{:02}:{:02}.{:06} {} {file}:{}]",
            time.month(),
            time.day(),
            time.hour(),
            time.minute(),
            time.second(),
            time.subsec_nanosecond() / 1000,
            std::process::id(),
            metadata.line().unwrap_or_default(),
        )?;
        let mut fields = Fields::default();
        event.record(&mut fields);
        write!(writer, " {:?}{}", fields.message, fields.rest)?;
        writeln!(writer)
    }
}

/// Collects the message and the other fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    rest: String,
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        if field.name() == "message" {
            value.clone_into(&mut self.message);
        } else {
            self.rest += &format!(" {}={value:?}", field.name());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = format!("{value:?}");
        if field.name() == "message" {
            self.message = text;
        } else if text.starts_with('"')
            || text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
        {
            self.rest += &format!(" {}={text}", field.name());
        } else {
            self.rest += &format!(" {}={text:?}", field.name());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::captured::Captured;
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_line_has_the_form_that_cluster_tooling_parses() {
        let captured = Captured::default();
        let clock = Clock::following_tokio(std::time::Duration::from_secs(1_700_000_000));
        let subscriber = tracing_subscriber::registry().with(
            tracing_subscriber::fmt::layer().with_writer(captured.clone()).event_format(Line { clock }),
        );
        tracing::subscriber::with_default(subscriber, || {
            tracing::info!(service = "shop/web", calls = 3, why = %"two words", "Wrote load balancer");
        });
        let line = captured.text();
        let (head, rest) = line.split_once("] ").unwrap();
        assert!(head.starts_with("I1114 22:13:20.000000 "), "{head}");
        assert!(head.contains(" lib.rs:"), "{head}");
        assert_eq!(rest, "\"Wrote load balancer\" service=\"shop/web\" calls=3 why=\"two words\"\n");
    }

    /// The log of this crate, as in a program, written inside a span of this target.
    fn lines(format: Format, spans: Option<&'static str>) -> String {
        let captured = Captured::default();
        let clock = Clock::following_tokio(std::time::Duration::from_secs(1_700_000_000));
        let registry = tracing_subscriber::registry().with(filter(0, spans)).with(Identity::new());
        let log = || {
            let span =
                tracing::info_span!(target: "spans::test", "Reconcile", name = "c-1", result = "success");
            assert_eq!(span.is_disabled(), spans.is_none());
            span.in_scope(|| {
                tracing::info!(target: "capz", cluster = "c-1", "Wrote");
                tracing::debug!(target: "capz", "not shown");
                tracing::info!(target: "h2", "not shown");
            });
        };
        match format {
            Format::Text => {
                tracing::subscriber::with_default(registry.with(text_lines(clock, captured.clone())), log)
            }
            Format::Json => {
                tracing::subscriber::with_default(registry.with(json_lines(captured.clone())), log);
            }
        }
        captured.text()
    }

    #[tokio::test(start_paused = true)]
    async fn spans_change_no_line() {
        for format in [Format::Text, Format::Json] {
            let plain = lines(format, None);
            assert_eq!(plain.lines().count(), 1, "{plain}");
            assert_eq!(lines(format, Some("spans")), plain);
        }
        assert!(lines(Format::Text, Some("spans")).ends_with("] \"Wrote\" cluster=\"c-1\"\n"));
        let json = "\"level\":\"INFO\",\"message\":\"Wrote\",\"cluster\":\"c-1\"";
        assert!(lines(Format::Json, Some("spans")).contains(json), "{}", lines(Format::Json, Some("spans")));
    }
}
