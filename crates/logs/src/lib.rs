//! Log lines.
//!
//! Text goes to standard error in the form of Kubernetes' own components,
//! `I0131 12:00:00.000000 4242 service.rs:12] "Message" key="value"`; JSON goes to standard output, one
//! object a line.

use std::fmt;

use clock::Clock;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For people and for the tooling of Kubernetes' components, to standard error.
    Text,
    /// One JSON object a line, to standard output.
    Json,
}

/// What the libraries below say in an ordinary run: warnings, because HTTP clients write headers (and so tokens)
/// at their lowest levels. The Kubernetes client writes an error for each request that fails, and so does whoever
/// made the request, who knows more of it.
pub fn of_libraries() -> Targets {
    Targets::new()
        .with_default(LevelFilter::WARN)
        .with_target("kube_client::client::builder", LevelFilter::OFF)
}

/// The crates of the programs themselves.
const OWN: [&str; 15] = [
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
    "imds",
    "manager",
    "program",
    "provider",
    "telemetry",
];

/// Starts logging for the whole process; later calls change nothing.
///
/// `verbosity` is the number of the `-v` flag: up to 3 what changes and what went wrong, 4 adds debugging,
/// 5 and more adds everything that this program's own crates say. Libraries below stay at [`of_libraries`], from 4
/// on at all of their warnings.
pub fn start(format: Format, verbosity: u8, clock: Clock) {
    let all_warnings = || Targets::new().with_default(LevelFilter::WARN);
    let (own, libraries) = match verbosity {
        0..=3 => (LevelFilter::INFO, of_libraries()),
        4 => (LevelFilter::DEBUG, all_warnings()),
        _ => (LevelFilter::TRACE, all_warnings()),
    };
    let filter = libraries.with_targets(OWN.map(|name| (name, own)));
    let registry = tracing_subscriber::registry().with(filter);
    // A second start (several programs in one process, as in the demo) keeps the first one's settings.
    let _already_started = match format {
        Format::Text => registry
            .with(tracing_subscriber::fmt::layer().with_writer(std::io::stderr).event_format(Line { clock }))
            .try_init(),
        Format::Json => registry
            .with(
                tracing_subscriber::fmt::layer()
                    .json()
                    .flatten_event(true)
                    .without_time()
                    .with_file(true)
                    .with_line_number(true),
            )
            .try_init(),
    };
}

/// One log line as Kubernetes' components write it.
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
    use std::sync::Arc;

    use parking_lot::Mutex;
    use tracing_subscriber::fmt::MakeWriter;

    use super::*;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Captured {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

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
        let line = String::from_utf8(captured.0.lock().clone()).unwrap();
        let (head, rest) = line.split_once("] ").unwrap();
        assert!(head.starts_with("I1114 22:13:20.000000 "), "{head}");
        assert!(head.contains(" lib.rs:"), "{head}");
        assert_eq!(rest, "\"Wrote load balancer\" service=\"shop/web\" calls=3 why=\"two words\"\n");
    }
}
