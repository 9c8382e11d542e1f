//! Captures the log of a thread as text, for tests that run side by side.

use std::io::Write;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// With a single subscriber in the process, tracing decides once per log line whether it is wanted, by asking the first
/// thread that reaches the line. In parallel tests that thread often has no subscriber, and the line is lost for all
/// threads. With a second, permanent subscriber tracing asks each thread.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// Collects what is written to it as text. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    /// Captures what this thread logs, on all levels, until the guard is dropped.
    pub fn of_this_thread() -> (Self, DefaultGuard) {
        LazyLock::force(&SECOND);
        let captured = Self::default();
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(LevelFilter::TRACE)
            .with_ansi(false)
            .with_writer(captured.clone())
            .finish();
        (captured, set_default(subscriber))
    }

    /// The text written so far.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock()).into_owned()
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().write(bytes)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn line() {
        tracing::info!("a line that two threads come to");
    }

    /// The first thread that reaches the line has no subscriber; the second thread's subscriber still gets it.
    #[test]
    fn a_line_that_a_deaf_thread_came_to_first_is_captured() {
        let (captured, _guard) = Captured::of_this_thread();
        std::thread::scope(|scope| scope.spawn(line).join()).unwrap();
        line();
        assert_eq!(captured.text().matches("two threads").count(), 1, "{}", captured.text());
    }
}
