//! A value in a file that another program renews.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a value is used before its file is read again, as in Kubernetes' own clients: the cluster changes the files
/// of a running pod, long before their old contents expire.
pub(super) const MAX_AGE: Duration = Duration::from_secs(60);

/// A value in a file, which is read again once a minute.
pub(super) struct RenewedFile<T> {
    read: Box<dyn Fn() -> anyhow::Result<T> + Send + Sync>,
    /// The value in a warning, with its verb.
    stays: &'static str,
    /// The last value read, and when.
    latest: Mutex<(T, Instant)>,
}

impl<T: Clone> RenewedFile<T> {
    /// A value that `read` reads. `stays` completes the warning `the previous … in use`.
    ///
    /// # Errors
    /// The file cannot be read.
    pub(super) fn new(
        stays: &'static str,
        read: impl Fn() -> anyhow::Result<T> + Send + Sync + 'static,
    ) -> anyhow::Result<Self> {
        let latest = Mutex::new((read()?, Instant::now()));
        Ok(Self { read: Box::new(read), stays, latest })
    }

    /// The value in the file. While the file cannot be read, the previous value stays in use.
    pub(super) fn current(&self) -> T {
        let mut latest = self.latest.lock();
        if latest.1.elapsed() >= MAX_AGE {
            latest.1 = Instant::now();
            match (self.read)() {
                Ok(value) => latest.0 = value,
                Err(error) => tracing::warn!("{error:#}; the previous {} in use", self.stays),
            }
        }
        latest.0.clone()
    }
}
