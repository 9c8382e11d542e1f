//! Calls that may block, on threads of their own.

use std::io;
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long calls about files may take: they end in microseconds unless a device or a server does not answer.
pub(super) const FILE_LIMIT: Duration = Duration::from_secs(30);

/// How long a mount or its end may take: a journal may have to be replayed, and buffers to be written.
pub(super) const MOUNT_LIMIT: Duration = Duration::from_secs(600);

/// Runs a call for at most this long. The kernel may still complete it later: a repeated operation reads the
/// mount table first.
pub(super) async fn blocking<T: Send + 'static>(
    limit: Duration,
    call: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match timeout(limit, spawn_blocking(call)).await {
        Ok(Ok(result)) => result,
        Ok(Err(_)) => Err(io::Error::other("the call ended abnormally")),
        Err(_) => {
            let text =
                format!("the kernel did not answer within {} s; the device may not answer", limit.as_secs());
            Err(io::Error::new(io::ErrorKind::TimedOut, text))
        }
    }
}
