//! The lifecycle of a process: one thread, until it is stopped.

use std::io;

use tokio_util::sync::CancellationToken;

/// Runs `future` to its end, and waits for nothing else.
///
/// # Errors
/// The system cannot create a runtime.
pub fn block_on<T>(future: impl Future<Output = T>) -> io::Result<T> {
    // One thread: our programs are idle nearly all of the time, and a second thread's memory pools would double their
    // memory.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(future);
    // The system's resolver blocks a thread until its name servers answer, which may take minutes. Dropping a runtime
    // waits for such threads.
    runtime.shutdown_background();
    Ok(outcome)
}

/// Cancels `stop` at SIGTERM or SIGINT.
///
/// # Errors
/// The system refuses the signal handler.
pub fn stop_on_signal(stop: CancellationToken) -> io::Result<()> {
    let signal = ::process::stop_signal()?;
    tokio::spawn(async move {
        signal.await;
        tracing::info!("Stopping");
        stop.cancel();
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_look_up_that_never_ends_does_not_hold_up_the_end() {
        let (answer, resolver) = mpsc::channel::<()>();
        let (ended, end) = mpsc::channel();
        std::thread::spawn(move || {
            let program = async {
                let (begun, begins) = tokio::sync::oneshot::channel();
                tokio::task::spawn_blocking(move || {
                    let _begins = begun.send(());
                    resolver.recv()
                });
                begins.await
            };
            ended.send(block_on(program).is_ok())
        });
        assert_eq!(end.recv_timeout(Duration::from_secs(20)), Ok(true));
        drop(answer);
    }
}
