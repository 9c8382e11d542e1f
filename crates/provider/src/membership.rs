//! Who is in the pools: one writer per scale set, all pools of a moment together.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use azure_types::{ResourceId, ScaleSet};
use cloud::LogicalTime;
use futures::future::join_all;
use k8s::Node;
use parking_lot::Mutex;
use planner::Cluster;
use planner::backend_pool::{self, PoolMembership};
use planner::instance::{self, ProviderId};
use tokio_util::sync::CancellationToken;

use crate::azure::Azure;
use crate::failure::{self, Failure, Kind};
use crate::observed::Observed;
use crate::scale_set::SharedScaleSet;
use crate::writer::{Pace, Writer};
use crate::{ClusterState, ServiceError};

/// The scale sets and their place in the pools.
pub(crate) struct Membership {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
    pub(crate) state: ClusterState,
    pub(crate) pace: Pace,
    pub(crate) stop: CancellationToken,
    writers: Mutex<HashMap<ResourceId, Writer<SharedScaleSet>>>,
    /// The nodes with which a pool was last found or made complete.
    complete: Mutex<HashMap<ResourceId, Crowd>>,
}

/// The eligible nodes: name and provider id.
type Crowd = BTreeSet<(String, String)>;

impl Membership {
    pub(crate) fn new(
        cluster: Arc<Cluster>,
        azure: Azure,
        observed: Arc<Observed>,
        state: ClusterState,
        pace: Pace,
        stop: CancellationToken,
    ) -> Self {
        Self {
            cluster,
            azure,
            observed,
            state,
            pace,
            stop,
            writers: Mutex::default(),
            complete: Mutex::default(),
        }
    }

    /// A load balancer is new or going: nothing is known of its pools' members.
    pub(crate) fn forget(&self, load_balancer: &ResourceId) {
        self.complete.lock().retain(|pool, _| !pool.is_within(load_balancer));
    }

    fn crowd(&self) -> Crowd {
        let eligible = backend_pool::eligible_nodes(&self.cluster, &self.state.nodes());
        eligible.iter().map(|node| (node.name().to_owned(), node.spec.provider_id.clone())).collect()
    }

    /// Brings the eligible nodes into the pools, unless they are known to be there since the nodes last
    /// changed.
    pub(crate) async fn join_if_changed(&self, pools: &[PoolMembership]) -> Result<(), ServiceError> {
        let crowd = self.crowd();
        let open: Vec<PoolMembership> = {
            let complete = self.complete.lock();
            pools
                .iter()
                .filter(|membership| complete.get(&membership.pool) != Some(&crowd))
                .cloned()
                .collect()
        };
        if open.is_empty() { Ok(()) } else { self.join(&open, self.observed.started).await }
    }

    /// Brings the eligible nodes into the pools, judged by readings after `newer_than`.
    pub(crate) async fn join(
        &self,
        pools: &[PoolMembership],
        newer_than: LogicalTime,
    ) -> Result<(), ServiceError> {
        if pools.is_empty() {
            return Ok(());
        }
        if !self.state.nodes_synced() {
            return Err(failure::retry("the cluster's nodes are not all known yet", None));
        }
        let crowd = self.crowd();
        let nodes = self.state.nodes();
        let sets = self.sets(newer_than).await.map_err(|failure| failure.into_service_error(Vec::new()))?;
        let mine = sets.iter().filter(|set| has_node(set, &nodes));
        self.submit(mine.filter_map(|set| set.id.clone()), pools, newer_than).await?;
        let mut complete = self.complete.lock();
        for membership in pools {
            complete.insert(membership.pool.clone(), crowd.clone());
        }
        Ok(())
    }

    /// Takes everybody out of the pools.
    pub(crate) async fn leave(&self, pools: &[PoolMembership]) -> Result<(), Failure> {
        if pools.is_empty() {
            return Ok(());
        }
        let newer_than = LogicalTime::now();
        let sets = self.sets(newer_than).await?;
        let ids = sets.iter().filter_map(|set| set.id.clone());
        self.submit(ids, pools, newer_than).await.map_err(of_service_error)
    }

    /// Takes one scale set out of the pools.
    pub(crate) async fn leave_one(&self, set: &ResourceId, pools: &[PoolMembership]) -> Result<(), Failure> {
        self.submit([set.clone()], pools, LogicalTime::now()).await.map_err(of_service_error)
    }

    async fn submit(
        &self,
        sets: impl IntoIterator<Item = ResourceId>,
        pools: &[PoolMembership],
        newer_than: LogicalTime,
    ) -> Result<(), ServiceError> {
        let mut work = Vec::new();
        for set in sets {
            let writer = self.writer(&set);
            for membership in pools {
                let (writer, membership) = (writer.clone(), membership.clone());
                work.push(async move {
                    writer.submit(membership.pool.to_lower(), membership, newer_than, None).await.map(drop)
                });
            }
        }
        join_all(work).await.into_iter().collect()
    }

    /// The scale sets of the cluster's resource group and of every group that a node's machine is in.
    pub(crate) async fn sets(&self, newer_than: LogicalTime) -> Result<Vec<Arc<ScaleSet>>, Failure> {
        let config = &self.cluster.config;
        let own = ResourceId::group(&config.subscription_id, &config.resource_group);
        let mut groups = BTreeSet::from([own]);
        for node in self.state.nodes() {
            if let ProviderId::Instance(machine) = instance::parse_provider_id(&node.spec.provider_id) {
                groups.extend(machine.scale_set.parent());
            }
        }
        let mut all = Vec::new();
        for group in groups {
            all.extend(self.observed.scale_sets(&group).all(newer_than).await?);
        }
        Ok(all)
    }

    fn writer(&self, set: &ResourceId) -> Writer<SharedScaleSet> {
        let mut writers = self.writers.lock();
        if let Some(writer) = writers.get(set) {
            return writer.clone();
        }
        let resource = SharedScaleSet {
            id: set.clone(),
            cluster: Arc::clone(&self.cluster),
            azure: self.azure.clone(),
            observed: Arc::clone(&self.observed),
            state: self.state.clone(),
        };
        let writer = Writer::start(resource, self.pace, self.stop.clone());
        writers.insert(set.clone(), writer.clone());
        writer
    }
}

/// Whether any node is (by provider id, or else by name) a machine of the scale set.
fn has_node(set: &ScaleSet, nodes: &[Arc<Node>]) -> bool {
    nodes.iter().any(|node| match instance::parse_provider_id(&node.spec.provider_id) {
        ProviderId::Instance(machine) => Some(&machine.scale_set) == set.id.as_ref(),
        ProviderId::Machine(_) => false,
        ProviderId::Other => {
            node.spec.provider_id.is_empty() && instance::instance_id_of_node_name(node.name(), set).is_some()
        }
    })
}

fn of_service_error(error: ServiceError) -> Failure {
    match error {
        ServiceError::Refused { message, .. } => Failure::new(Kind::Denied, message),
        ServiceError::Retry { message, after, .. } => Failure { kind: Kind::Denied, message, after },
    }
}
