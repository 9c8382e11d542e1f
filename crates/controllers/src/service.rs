//! The service controller: creates and deletes load balancers for Services of that type (Kubernetes, "Cloud Controller
//! Manager", service controller).
//!
//! Hundreds of Services are reconciled in parallel. Each calls the cloud by itself; the cloud merges pending requests
//! into few writes.

use std::sync::Arc;
use std::time::Duration;

use cloud::{ClusterState, LoadBalancers, LogicalTime, Notice, ServiceError, Stamped};
use k8s::{ObjectKey, Service};
use kube::Client;
use tokio::time::Instant;

use crate::api::ApiError;
use crate::events::{EventType, Recorder, Reference};
use crate::index::forget_irrelevant;
use crate::node_set::no_available_nodes;
use crate::observer::{Observer, ServiceOperation};
use crate::queue::{Backoff, Next};
use crate::refusals::{RefusalState, Refusals};
use crate::resource_lease::{Guard, ResourceLease};
use crate::served::Served;
use crate::{finalizer, status};

/// Why a Service could not be synced.
#[derive(Debug, thiserror::Error)]
enum Failure {
    /// An error of the cloud.
    #[error("{doing}: {source}")]
    Cloud {
        /// The attempted action.
        doing: &'static str,
        /// The cloud's error.
        source: ServiceError,
    },
    /// The lease on the Azure resources could not be taken.
    #[error("{0}")]
    Lease(ServiceError),
    /// An error of the Kubernetes API.
    #[error(transparent)]
    Kubernetes(#[from] ApiError),
    /// The cloud reported success but no address.
    #[error("failed to ensure load balancer: it has no address yet")]
    NoAddress,
}

impl Failure {
    fn source(&self) -> Option<&ServiceError> {
        match self {
            Self::Cloud { source, .. } | Self::Lease(source) => Some(source),
            Self::Kubernetes(_) | Self::NoAddress => None,
        }
    }

    fn is_refusal(&self) -> bool {
        matches!(self.source(), Some(ServiceError::Refused { .. }))
    }

    fn notices(&self) -> &[Notice] {
        match self.source() {
            Some(ServiceError::Refused { notices, .. } | ServiceError::Retry { notices, .. }) => notices,
            None => &[],
        }
    }

    fn wait(&self) -> Option<Duration> {
        match self.source() {
            Some(ServiceError::Retry { after, .. }) => after.filter(|after| !after.is_zero()),
            _ => None,
        }
    }
}

fn doing(doing: &'static str) -> impl FnOnce(ServiceError) -> Failure {
    move |source| Failure::Cloud { doing, source }
}

/// The service controller.
pub(crate) struct ServiceController {
    pub client: Client,
    pub cloud: Arc<dyn LoadBalancers>,
    pub state: ClusterState,
    pub lease: Option<ResourceLease>,
    pub recorder: Recorder,
    /// Records the notices of the cloud.
    pub notices: Recorder,
    pub served: Arc<Served>,
    pub refusals: Arc<Refusals>,
    pub observer: Arc<dyn Observer>,
}

impl ServiceController {
    /// Holds the lease on the Azure resources, if one is used, for an operation.
    pub async fn hold_lease(&self, operation: &str) -> Result<Option<Guard>, ServiceError> {
        ResourceLease::hold_any(self.lease.as_ref(), operation).await
    }

    /// Whether something may exist in the cloud for any Service, including refused ones: their earlier load balancers
    /// still carry traffic.
    pub fn serves_any(&self) -> bool {
        !self.served.is_empty()
    }

    /// The Services that have, or may have, the load balancer that they want: not those that were refused.
    pub fn served(&self) -> Vec<Arc<Service>> {
        let mut served = self.served.those(|key| !self.refusals.contains(key));
        served.sort_unstable_by_key(|service| service.key());
        served
    }

    /// Reconciles one Service.
    pub async fn reconcile(&self, key: ObjectKey) -> Next {
        let service = self.state.service(&key);
        let served = self.served.get(&key);
        let current = match (service, served) {
            (None, None) => {
                self.refusals.remove(&key);
                return Next::Done;
            }
            (None, Some(served)) => return self.clean_up_after(&key, &served, LogicalTime::now()).await,
            (Some(service), Some(served)) if service.metadata.uid != served.metadata.uid => {
                let next = self.clean_up_after(&key, &served, service.stamp).await;
                if next != Next::Done {
                    return next;
                }
                service
            }
            (Some(service), _) => service,
        };
        let Stamped { object: current, stamp } = current;
        let unwanted = !current.is_to_be_served();
        if !unwanted {
            match self.refusals.judge(&current) {
                RefusalState::NotRefused => {}
                RefusalState::Reported(next) => return Next::DoneFor(next),
                RefusalState::ReportDue(message, notices, next) => {
                    self.recorder.warning(current.as_ref(), "SyncLoadBalancerFailed", message);
                    self.record_notices(&current, &notices);
                    return Next::DoneFor(next);
                }
            }
        }
        let outcome = if unwanted {
            self.clean_up(&key, &current, stamp).await
        } else {
            self.refusals.remove(&key);
            self.ensure(&key, &current, stamp).await
        };
        match outcome {
            Ok(()) => Next::Done,
            Err(failure) => {
                let message = format!("Error syncing load balancer: {failure}");
                tracing::warn!(service = %key, error = %failure, "failed to sync Service");
                self.recorder.warning(current.as_ref(), "SyncLoadBalancerFailed", message.clone());
                self.record_notices(&current, failure.notices());
                if failure.is_refusal() && !unwanted {
                    let next = self.refusals.insert(&current, message, failure.notices().to_vec());
                    return Next::DoneFor(next);
                }
                Self::after_failure(&failure)
            }
        }
    }

    fn after_failure(failure: &Failure) -> Next {
        match (failure.is_refusal(), failure.wait()) {
            // A deletion has no input that its owner could correct: it is retried, slowly.
            (true, _) => Next::After(Backoff::SERVICES.max),
            (false, Some(wait)) => Next::After(wait),
            (false, None) => Next::Retry,
        }
    }

    async fn ensure(
        &self,
        key: &ObjectKey,
        service: &Arc<Service>,
        newer_than: LogicalTime,
    ) -> Result<(), Failure> {
        self.recorder.normal(service.as_ref(), "EnsuringLoadBalancer", "Ensuring load balancer");
        finalizer::add(&self.client, service).await?;
        if let Some(message) = no_available_nodes(&*self.cloud, &self.state.nodes()) {
            self.recorder.warning(service.as_ref(), "UnAvailableLoadBalancer", message);
        }
        let guard = self.hold_lease("ensure load balancer").await.map_err(Failure::Lease)?;
        self.served.insert(key, service);
        let ensuring = self.cloud.ensure(service, newer_than);
        let ensured = self.measured(service, ServiceOperation::Ensure, ensuring).await;
        let ensured = ensured.map_err(doing("failed to ensure load balancer"))?;
        drop(guard);
        self.record_notices(service, &ensured.notices);
        if ensured.addresses.is_empty() {
            return Err(Failure::NoAddress);
        }
        self.recorder.normal(service.as_ref(), "EnsuredLoadBalancer", "Ensured load balancer");
        // The watch may have delivered a newer status meanwhile.
        let latest = self.state.service(key).filter(|latest| latest.metadata.uid == service.metadata.uid);
        let latest = latest.map_or_else(|| Arc::clone(service), |latest| latest.object);
        status::write(&self.client, &latest, &ensured.addresses).await?;
        Ok(())
    }

    async fn clean_up(
        &self,
        key: &ObjectKey,
        service: &Arc<Service>,
        newer_than: LogicalTime,
    ) -> Result<(), Failure> {
        self.delete(service, newer_than).await?;
        finalizer::remove_with_status(&self.client, service).await?;
        self.forget(key);
        forget_irrelevant(&self.state, key);
        self.recorder.normal(service.as_ref(), "DeletedLoadBalancer", "Deleted load balancer");
        Ok(())
    }

    /// Deletes the load balancer of a Service that no longer exists.
    async fn clean_up_after(&self, key: &ObjectKey, served: &Arc<Service>, newer_than: LogicalTime) -> Next {
        match self.delete(served, newer_than).await {
            Ok(()) => {
                self.forget(key);
                self.recorder.normal(served.as_ref(), "DeletedLoadBalancer", "Deleted load balancer");
                Next::Done
            }
            Err(failure) => {
                let message = format!("Error deleting load balancer: {failure}");
                tracing::warn!(service = %key, error = %failure, "failed to delete load balancer");
                self.recorder.warning(served.as_ref(), "DeleteLoadBalancerFailed", message);
                self.record_notices(served, failure.notices());
                Self::after_failure(&failure)
            }
        }
    }

    async fn delete(&self, service: &Arc<Service>, newer_than: LogicalTime) -> Result<(), Failure> {
        let reading = self.cloud.prepare_deletion(service, newer_than);
        let deletion = self.measured(service, ServiceOperation::Get, reading).await;
        let deletion = deletion.map_err(doing("failed to check if load balancer exists before cleanup"))?;
        let Some(deletion) = deletion else { return Ok(()) };
        self.recorder.normal(service.as_ref(), "DeletingLoadBalancer", "Deleting load balancer");
        let _guard = self.hold_lease("delete load balancer").await.map_err(Failure::Lease)?;
        let deleted = self.measured(service, ServiceOperation::Delete, deletion.run()).await;
        let notices = deleted.map_err(doing("failed to delete load balancer"))?;
        self.record_notices(service, &notices);
        Ok(())
    }

    /// Reports an operation on a Service's load balancer to the observer.
    async fn measured<T>(
        &self,
        service: &Service,
        operation: ServiceOperation,
        work: impl Future<Output = Result<T, ServiceError>>,
    ) -> Result<T, ServiceError> {
        let begin = Instant::now();
        let outcome = work.await;
        self.observer.service_operated(service, operation, begin.elapsed(), outcome.is_ok());
        outcome
    }

    fn forget(&self, key: &ObjectKey) {
        self.served.remove(key);
        self.refusals.remove(key);
        self.observer.service_forgotten(key);
    }

    /// Records the cloud's notices as events on the Services that they are about.
    fn record_notices(&self, service: &Service, notices: &[Notice]) {
        for notice in notices {
            let about = if notice.service == service.key() {
                Reference::from(service)
            } else if let Some(other) = self.state.service(&notice.service) {
                Reference::from(other.object.as_ref())
            } else {
                continue;
            };
            let event_type = if notice.warning { EventType::Warning } else { EventType::Normal };
            self.notices.record(about, event_type, notice.reason, notice.message.clone());
        }
    }
}
