//! The run of a demo: its folder, its runtime, and its end.

use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::{Screen, Tone};
use crate::signals;

/// Runs a demo in a temporary folder. A requested stop interrupts it, unless the demo itself waits for the stop
/// (`waits_for_stop`).
///
/// # Errors
/// The demo's own error, or that it was interrupted.
pub fn run(
    waits_for_stop: bool,
    demo: impl AsyncFnOnce(&Path, &CancellationToken) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let runtime = runtime(TWO_THREADS)?;
    let directory = tempfile::Builder::new().prefix("cerulean-demo-").tempdir()?;
    let done = runtime.block_on(async {
        let stop = signals::stop_token()?;
        let interrupted = async {
            if waits_for_stop {
                std::future::pending::<()>().await;
            }
            stop.cancelled().await;
        };
        tokio::select! {
            done = demo(directory.path(), &stop) => done,
            () = interrupted => anyhow::bail!("interrupted"),
        }
    });
    // Connections that are still closing need not delay the end.
    runtime.shutdown_timeout(Duration::from_millis(200));
    done
}

/// Prints that a demo has found everything as it claims.
pub fn passed(screen: Screen) {
    screen.line(format_args!("\n{}", screen.paint(Tone::Good, "All checks passed.")));
}
