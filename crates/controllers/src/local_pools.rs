//! Services with backend pools of their own, of the nodes with their endpoints: the pools follow the endpoints (6.7).
//!
//! Changes are collected for an interval, then one call to the cloud covers all Services. The contents of a pool are
//! determined when it is written, so that only the names of the changed Services are needed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, LoadBalancers};
use k8s::ObjectKey;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::events::Recorder;
use crate::observer::Observer;
use crate::resource_lease::ResourceLease;

/// Reports to the cloud which Services' endpoints have moved.
pub(crate) struct LocalPools {
    pub cloud: Arc<dyn LoadBalancers>,
    pub state: ClusterState,
    pub lease: Option<ResourceLease>,
    pub recorder: Recorder,
    pub observer: Arc<dyn Observer>,
    pub interval: Duration,
    pub moved: Arc<MovedEndpoints>,
}

/// The Services whose endpoints have moved since the last call to the cloud.
#[derive(Default)]
pub(crate) struct MovedEndpoints {
    services: Mutex<BTreeSet<ObjectKey>>,
    wake: Notify,
}

impl MovedEndpoints {
    /// Records Services.
    pub fn note(&self, services: BTreeSet<ObjectKey>) {
        if !services.is_empty() {
            self.services.lock().extend(services);
            self.wake.notify_one();
        }
    }

    async fn any(&self) {
        while self.services.lock().is_empty() {
            self.wake.notified().await;
        }
    }
}

impl LocalPools {
    /// Runs until dropped.
    pub async fn run(&self) {
        loop {
            self.moved.any().await;
            tokio::time::sleep(self.interval).await;
            self.update().await;
        }
    }

    async fn update(&self) {
        let is_local = |key: &ObjectKey| {
            self.state.service(key).is_some_and(|service| service.is_to_be_served() && service.is_local())
        };
        self.moved.services.lock().retain(is_local);
        if self.moved.services.lock().is_empty() {
            return;
        }
        let operation = "update the pools of Services with policy Local";
        let _guard = match ResourceLease::hold_any(self.lease.as_ref(), operation).await {
            Ok(guard) => guard,
            Err(error) => {
                // They wait for the next interval.
                tracing::warn!(%error, "pools of Services with policy Local are not updated");
                return;
            }
        };
        let services: Vec<ObjectKey> = std::mem::take(&mut *self.moved.services.lock()).into_iter().collect();
        let start = Instant::now();
        let answers = self.cloud.update_local_pools(&services).await;
        self.observer.local_pools_updated(start.elapsed(), answers.values().all(Result::is_ok));
        for (key, answer) in answers {
            let service = self.state.service(&key).map(|service| service.object);
            match answer {
                Ok(()) => {
                    if let Some(service) = service {
                        let message = "Load balancer backend pool updated successfully";
                        self.recorder.normal(service.as_ref(), "LoadBalancerBackendPoolUpdated", message);
                    }
                }
                Err(error) => {
                    tracing::warn!(service = %key, %error, "the pool of a Service does not follow its endpoints yet");
                    if let Some(service) = service {
                        let reason = "LoadBalancerBackendPoolUpdateFailed";
                        self.recorder.warning(service.as_ref(), reason, error.to_string());
                    }
                    self.moved.note(BTreeSet::from([key]));
                }
            }
        }
    }
}
