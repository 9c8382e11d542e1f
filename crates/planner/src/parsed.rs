//! A Service as planning reads it: once for each version of its object.

use std::sync::Arc;

use k8s::Service;

use crate::access::Access;
use crate::cluster::Cluster;
use crate::intent::{ServiceIntent, ServiceRemoval};
use crate::refusal::Refusal;
use crate::security_group::Needs;

/// A Service with everything that its object tells.
#[derive(Debug, Clone)]
pub(crate) struct ParsedService {
    pub service: Arc<Service>,
    /// What it owns, and how that is found.
    pub owner: Arc<ServiceRemoval>,
    /// What it wants, or why it cannot be served; absent where it wants no load balancer (any more).
    pub intent: Option<Result<Arc<ServiceIntent>, Refusal>>,
    /// What it needs of the security group, although it may be refused; absent where it wants no load balancer.
    pub needs: Option<Arc<Needs>>,
}

impl ParsedService {
    /// Reads a Service.
    pub fn of(cluster: &Cluster, service: &Arc<Service>) -> Self {
        let intent = service.is_to_be_served().then(|| ServiceIntent::from_service(cluster, service));
        let service = Arc::clone(service);
        match intent {
            Some(Ok(intent)) => {
                let intent = Arc::new(intent);
                let (owner, needs) = (Arc::clone(intent.removal()), Some(Arc::clone(&intent.needs)));
                Self { service, owner, intent: Some(Ok(intent)), needs }
            }
            intent => {
                let owner = Arc::new(ServiceRemoval::of(cluster, &service));
                let needs = intent.as_ref();
                let needs = needs.map(|_| Arc::new(Needs::of(&service, &owner, &Access::read(&service))));
                let intent = intent.map(|intent| intent.map(Arc::new));
                Self { service, owner, intent, needs }
            }
        }
    }

    /// Whether it wants what it cannot have.
    pub fn is_refused(&self) -> bool {
        matches!(self.intent, Some(Err(_)))
    }
}
