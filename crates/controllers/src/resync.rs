//! Compares Azure with what Services want at a fixed interval, even without events: foreign changes are repaired within
//! the interval, and the affected Services get an event.

use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, Drifted, LoadBalancers};
use k8s::ObjectKey;
use tokio::time::{Instant, sleep};

use crate::events::{EventType, Recorder};
use crate::observer::Observer;
use crate::queue::Queue;
use crate::resource_lease::ResourceLease;

/// Compares the cloud's resources periodically.
pub(crate) struct Resync {
    pub cloud: Arc<dyn LoadBalancers>,
    pub state: ClusterState,
    pub lease: Option<ResourceLease>,
    pub recorder: Recorder,
    pub observer: Arc<dyn Observer>,
    /// The queue of Services.
    pub queue: Queue<ObjectKey>,
    /// Interval between comparisons; zero for none.
    pub period: Duration,
}

impl Resync {
    /// Runs until dropped.
    pub async fn run(&self, all_known: impl Future<Output = ()>) {
        all_known.await;
        tokio::join!(self.look(), self.follow());
    }

    async fn look(&self) {
        if self.period.is_zero() {
            return;
        }
        self.observer.looks_again(true);
        let _ended = Ended(&*self.observer);
        let mut pause = self.period;
        loop {
            sleep(pause).await;
            let held = ResourceLease::hold_any(self.lease.as_ref(), "compare Azure with the Services").await;
            let guard = match held {
                Ok(guard) => guard,
                Err(error) => {
                    tracing::warn!(%error, "Azure is not compared with the Services for now");
                    continue;
                }
            };
            let begin = Instant::now();
            let looked = self.cloud.look_again().await;
            drop(guard);
            self.observer.looked_again(begin.elapsed(), &looked);
            pause = looked.next.map_or(self.period, |next| next.min(self.period)).max(MIN_PAUSE);
        }
    }

    /// Records the notices of Services whose parts were changed, and queues those that were not repaired completely.
    async fn follow(&self) {
        loop {
            for Drifted { service: key, notices, ensure } in self.cloud.drifted().await {
                let Some(service) = self.state.service(&key) else { continue };
                for notice in notices {
                    let event_type = if notice.warning { EventType::Warning } else { EventType::Normal };
                    self.recorder.record(service.object.as_ref(), event_type, notice.reason, notice.message);
                }
                if ensure {
                    self.queue.add(key);
                }
            }
        }
    }
}

/// Reports that no comparison follows.
struct Ended<'a>(&'a dyn Observer);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.looks_again(false);
    }
}

/// The shortest pause between two comparisons.
const MIN_PAUSE: Duration = Duration::from_secs(1);
