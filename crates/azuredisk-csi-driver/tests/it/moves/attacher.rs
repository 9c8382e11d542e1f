//! A stand-in for external-attacher: it asks a controller until the answer is success, with the side-car's time limit and
//! back-off.
//!
//! Facts of the side-car (external-attacher, `cmd/csi-attacher/main.go`): a failed call is made again after a second, and
//! then after twice as long each time, up to five minutes; the chart gives a call 600 s; it ends with its connection to
//! the driver, and starts again without a memory of failures.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(600);
/// The wait after the first failure, and the longest one.
const FIRST_RETRY: Duration = Duration::from_secs(1);
const LAST_RETRY: Duration = Duration::from_secs(300);
/// How long the side-car and the driver take to start again.
const RESTART: Duration = Duration::from_secs(1);

/// A driver's controller. A call is dropped if its time is over, or if the connection breaks.
pub trait Controller: Send + Sync + 'static {
    /// Attaches a volume, by its disk's ID, to a node. Answers the LUN.
    fn publish(&self, volume: &str, node: &str) -> impl Future<Output = Result<i64, String>> + Send;

    /// Detaches it.
    fn unpublish(&self, volume: &str, node: &str) -> impl Future<Output = Result<(), String>> + Send;
}

/// The side-car, and the controller that it is connected to.
pub struct Attacher<C>(Mutex<(Arc<C>, CancellationToken)>);

impl<C: Controller> Attacher<C> {
    pub fn connected_to(controller: Arc<C>) -> Self {
        Self(Mutex::new((controller, CancellationToken::new())))
    }

    /// Breaks the connection: running calls are dropped. The next ones go to this controller.
    pub fn connect_to(&self, controller: Arc<C>) {
        let (_, former) = std::mem::replace(&mut *self.0.lock(), (controller, CancellationToken::new()));
        former.cancel();
    }

    /// Asks until the answer is success.
    pub async fn until_done<T>(&self, ask: impl AsyncFn(Arc<C>) -> Result<T, String>) -> T {
        let mut wait = FIRST_RETRY;
        loop {
            let (controller, connection) = self.0.lock().clone();
            let answer = connection.run_until_cancelled(timeout(TIMEOUT, ask(controller))).await;
            match answer {
                Some(Ok(Ok(done))) => return done,
                Some(Ok(Err(_)) | Err(_)) => {
                    let ended = connection.run_until_cancelled(sleep(wait)).await.is_none();
                    wait = if ended { FIRST_RETRY } else { LAST_RETRY.min(2 * wait) };
                }
                None => wait = FIRST_RETRY,
            }
            if connection.is_cancelled() {
                sleep(RESTART).await;
            }
        }
    }
}
