//! Who is in the pools: one writer per scale set, all pools of a moment together.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use azure_types::{ResourceId, ScaleSet};
use cloud::LogicalTime;
use futures::future::join_all;
use k8s::{Node, ObjectKey};
use parking_lot::Mutex;
use planner::backend_pool::{self, PoolMembership};
use planner::instance::{self, ProviderId};
use planner::unserved::{self, Unserved};
use planner::{Cluster, scale_set};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::azure::Azure;
use crate::failure::{self, Failure, Kind};
use crate::observed::Observed;
use crate::scale_set::SharedScaleSet;
use crate::writer::{Pace, Writer};
use crate::{ClusterState, Notice, ServiceError};

/// How often machines are looked at again that should be in a pool and do not run. Each look costs one LIST a
/// scale set, of the ten a minute that Azure allows for it.
const PENDING_INTERVAL: Duration = Duration::from_secs(60);

/// The scale sets and their place in the pools.
pub(crate) struct Membership {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
    pub(crate) state: ClusterState,
    pub(crate) pace: Pace,
    pub(crate) stop: CancellationToken,
    writers: Mutex<HashMap<ResourceId, Writer<SharedScaleSet>>>,
    /// The nodes with which each pool was last filled.
    filled: Mutex<HashMap<ResourceId, Filled>>,
}

/// The eligible nodes: name and provider id.
type NodeIdentities = BTreeSet<(String, String)>;

/// What is known of a pool's members.
struct Filled {
    nodes: NodeIdentities,
    /// Those of them that are not in it.
    unserved: Vec<Unserved>,
    at: Instant,
}

impl Filled {
    fn is_pending(&self) -> bool {
        self.unserved.iter().any(|one| one.reason.may_pass())
    }

    /// Whether nothing has to be done: the nodes are the same, and those who wait were looked at a moment ago.
    fn stands(&self, nodes: &NodeIdentities) -> bool {
        self.nodes == *nodes && (!self.is_pending() || self.at.elapsed() < PENDING_INTERVAL)
    }
}

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
            filled: Mutex::default(),
        }
    }

    /// A load balancer is new or going: nothing is known of its pools' members.
    pub(crate) fn forget(&self, load_balancer: &ResourceId) {
        self.filled.lock().retain(|pool, _| !pool.is_within(load_balancer));
    }

    fn eligible_nodes(&self) -> NodeIdentities {
        let eligible = backend_pool::eligible_nodes(&self.cluster, &self.state.nodes());
        eligible.iter().map(|node| (node.name().to_owned(), node.spec.provider_id.clone())).collect()
    }

    /// Brings the eligible nodes into the pools, unless they are known to be there since the nodes last
    /// changed.
    pub(crate) async fn join_if_changed(&self, pools: &[PoolMembership]) -> Result<(), ServiceError> {
        let nodes = self.eligible_nodes();
        let mut changed = false;
        let open: Vec<PoolMembership> = {
            let filled = self.filled.lock();
            let is_open = |membership: &&PoolMembership| {
                let known = filled.get(&membership.pool);
                changed |= known.is_some_and(|known| known.is_pending());
                !known.is_some_and(|known| known.stands(&nodes))
            };
            pools.iter().filter(is_open).cloned().collect()
        };
        if open.is_empty() {
            return Ok(());
        }
        // The machines of nodes that are new must be in what is read. Those who wait have to be read anew.
        let newer_than = if changed { LogicalTime::now() } else { self.state.nodes_changed() };
        self.join(&open, newer_than.max(self.observed.started)).await
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
        let identities = self.eligible_nodes();
        let nodes = self.state.nodes();
        let sets = self.sets(newer_than).await?;
        let mine: Vec<Arc<ScaleSet>> = sets.iter().filter(|set| has_node(set, &nodes)).cloned().collect();
        self.submit(mine.iter().filter_map(|set| set.id.clone()), pools, newer_than).await?;
        let mut machines = Vec::new();
        for set in mine {
            let Some(id) = set.id.as_ref().filter(|_| !scale_set::is_flexible(&set)) else {
                machines.push((set, Vec::new()));
                continue;
            };
            let instances = match self.observed.instances(id).all(newer_than).await {
                Ok(instances) => instances,
                Err(failure) if failure.is_not_found() => continue,
                Err(failure) => return Err(failure.into()),
            };
            machines.push((set, instances));
        }
        let unserved = unserved::find(&self.cluster, &nodes, &machines, pools);
        let at = Instant::now();
        let mut filled = self.filled.lock();
        for membership in pools {
            let of_pool = unserved.iter().filter(|one| one.pool == membership.pool).cloned().collect();
            let known = Filled { nodes: identities.clone(), unserved: of_pool, at };
            filled.insert(membership.pool.clone(), known);
        }
        Ok(())
    }

    /// What to tell the owner of a Service about nodes that get none of its traffic.
    pub(crate) fn notices(&self, service: &ObjectKey, pools: &[PoolMembership]) -> Vec<Notice> {
        let filled = self.filled.lock();
        let known = pools.iter().filter_map(|membership| filled.get(&membership.pool));
        let unserved: Vec<Unserved> = known.flat_map(|known| &known.unserved).cloned().collect();
        unserved::notices(service, &unserved)
    }

    /// When to look again at machines that should be in a pool and are not yet; absent if there are none.
    pub(crate) fn look_again_after(&self) -> Option<Duration> {
        let filled = self.filled.lock();
        let pending = filled.values().filter(|known| known.is_pending());
        pending.map(|known| PENDING_INTERVAL.saturating_sub(known.at.elapsed())).min()
    }

    /// Takes everybody out of the pools.
    pub(crate) async fn leave(&self, pools: &[PoolMembership]) -> Result<(), Failure> {
        if pools.is_empty() {
            return Ok(());
        }
        let newer_than = LogicalTime::now();
        let sets = self.sets(newer_than).await?;
        let ids = sets.iter().filter_map(|set| set.id.clone());
        self.submit(ids, pools, newer_than).await.map_err(of_writer)
    }

    /// Takes one scale set out of the pools.
    pub(crate) async fn leave_one(&self, set: &ResourceId, pools: &[PoolMembership]) -> Result<(), Failure> {
        self.submit([set.clone()], pools, LogicalTime::now()).await.map_err(of_writer)
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

/// What the writer of a scale set answers, as a failure of the load balancer that waits for it: nobody's in
/// particular, since machines belong to all Services.
fn of_writer(error: ServiceError) -> Failure {
    let (message, after) = match error {
        ServiceError::Refused { message, .. } => (message, None),
        ServiceError::Retry { message, after, .. } => (message, after),
    };
    Failure { after, ..Failure::new(Kind::PermissionDenied, message) }
}
