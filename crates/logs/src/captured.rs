//! What a thread logs, as text, for tests that run beside others.

use std::io::Write;
use std::sync::{Arc, LazyLock};

use parking_lot::Mutex;
use tracing::Dispatch;
use tracing::subscriber::{DefaultGuard, NoSubscriber, set_default};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

/// While a process has one subscriber alone, whether a log line is wanted is asked once, of the thread that comes to it
/// first. Where tests run side by side that is often one without a subscriber, and the line is lost for all of them.
/// With a second subscriber, which stays, all are asked.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::new()));

/// Takes what is written to it, and shows it as text. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    /// Keeps what this thread logs, on all levels, until the guard is dropped.
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

    /// What was written until now.
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

    /// The first who comes to a line has no subscriber; the second is listened to all the same.
    #[test]
    fn a_line_that_a_deaf_thread_came_to_first_is_captured() {
        let (captured, _guard) = Captured::of_this_thread();
        std::thread::scope(|scope| scope.spawn(line).join()).unwrap();
        line();
        assert_eq!(captured.text().matches("two threads").count(), 1, "{}", captured.text());
    }
}
