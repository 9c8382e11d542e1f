//! The network interfaces of a resource group's virtual machines: separate resources that are read with one list and
//! planned together.

use std::collections::BTreeSet;
use std::sync::Arc;

use arm::ApiVersion;
use async_trait::async_trait;
use azure_types::{IpConfiguration, NetworkInterface, ResourceId};
use cloud::{ClusterState, LogicalTime, Notice};
use planner::backend_pool::PoolMembership;
use planner::interface as plans;
use planner::{Cluster, Document, Step};
use tracing::info;

use crate::azure::Azure;
use crate::failure::Failure;
use crate::fingerprint;
use crate::observed::Observed;
use writer::{Planned, Resource, Written};

/// Maximum number of parallel writes of interfaces. A write takes Azure a second or two, so a cluster of a thousand
/// virtual machines joins within some minutes, and the calls leave room for others in the budget of the subscription.
const MAX_PARALLEL_INTERFACES: usize = 10;

/// The network interfaces of one resource group.
pub(crate) struct SharedInterfaces {
    pub(crate) group: ResourceId,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
    pub(crate) state: ClusterState,
}

/// The load balancers whose pools contain the interface before or after a step.
fn load_balancers(interfaces: &[Arc<NetworkInterface>], step: &Step) -> BTreeSet<ResourceId> {
    let before =
        interfaces.iter().find(|interface| interface.id.as_ref() == Some(&step.target)).map(Arc::as_ref);
    let after = match &step.document {
        Some(Document::NetworkInterface(after)) => Some(&**after),
        _ => None,
    };
    let configurations = [before, after].into_iter().flatten().flat_map(|interface| {
        interface.properties.iter().flat_map(|properties| properties.ip_configurations.iter().flatten())
    });
    let pools = configurations.flat_map(IpConfiguration::pools).filter_map(|pool| pool.id.as_ref());
    pools.filter_map(ResourceId::parent).collect()
}

#[async_trait]
impl Resource for SharedInterfaces {
    /// The pool's id in lower case.
    type Key = String;
    type Intent = PoolMembership;
    type Observed = Vec<Arc<NetworkInterface>>;
    type Write = Vec<Step>;
    type Claim = ();
    type Notice = Notice;

    fn name(&self) -> String {
        format!("network interfaces of resource group {}", self.group.name())
    }

    async fn observe(&self, newer_than: LogicalTime) -> Result<Self::Observed, Failure> {
        self.observed.machine_interfaces(&self.group).list(newer_than).await
    }

    fn claim(&self, _observed: &Self::Observed, _batch: &[(String, PoolMembership)]) {}

    fn plan(&self, interfaces: &Self::Observed, batch: &[(String, PoolMembership)], _: &()) -> Planned<Self> {
        let memberships = self.observed.of_present_pools(batch);
        let steps =
            plans::plan_interfaces(&self.cluster, interfaces, &memberships, &self.state.nodes_and_departed());
        let write = (!steps.is_empty()).then_some(steps);
        Planned { write, refused: Vec::new(), notices: Vec::new() }
    }

    async fn write(
        &self,
        interfaces: &Self::Observed,
        write: &Vec<Step>,
    ) -> Result<Written<Self::Observed>, Failure> {
        let known = self.observed.machine_interfaces(&self.group);
        let keep = |document: NetworkInterface| document;
        let turn = |step| self.observed.turns().of_interface(load_balancers(interfaces, step));
        let results =
            self.azure.put_all(write, ApiVersion::NETWORK, MAX_PARALLEL_INTERFACES, keep, turn).await;
        // Pool members changed: the load balancers have a new version.
        self.observed.load_balancers().invalidate();
        let mut after = interfaces.clone();
        let mut problem: Option<Failure> = None;
        for (step, result) in results {
            match result {
                Ok(document) => {
                    let document = known.store(document);
                    let mine = after.iter_mut().find(|old| old.id.as_ref() == Some(&step.target));
                    mine.into_iter().for_each(|old| *old = Arc::clone(&document));
                }
                Err(failure) if failure.is_not_found() => {
                    info!(interface = %step.target, "the network interface is gone");
                    known.invalidate();
                    after.retain(|old| old.id.as_ref() != Some(&step.target));
                }
                Err(failure) => {
                    known.invalidate();
                    problem = Some(failure.not_attributable().unless_told(problem));
                }
            }
        }
        problem.map_or(Ok(Written::Whole(after)), Err)
    }

    fn fingerprint(&self, write: &Vec<Step>) -> u64 {
        fingerprint::of(write)
    }
}
