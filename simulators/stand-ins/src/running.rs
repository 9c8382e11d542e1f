//! The handle of a part of a cluster that runs.

use std::future::Future;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A part of a cluster that runs until the shutdown that it was spawned with. Dropping it does not end it.
#[derive(Debug)]
pub struct Running(JoinHandle<()>);

impl Running {
    /// Runs until `shutdown`, wherever it is by then.
    pub(crate) fn until(
        shutdown: CancellationToken,
        part: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self::to_its_end(async move {
            shutdown.run_until_cancelled(part).await;
        })
    }

    /// Runs something that ends by itself after the shutdown.
    pub(crate) fn to_its_end(part: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(tokio::spawn(part))
    }

    /// Waits until it has ended, after the shutdown.
    pub async fn stopped(self) {
        // The task does not panic, and nothing aborts it.
        let _ = self.0.await;
    }
}
