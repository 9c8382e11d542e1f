//! Membership of backend pools: one writer per scale set, and one for the interfaces of each resource group. Each write
//! covers all pools that have to change.

mod holders;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use azure_types::{MemberInterfaces, ResourceId, ScaleSet, VirtualMachine};
use cloud::{ClusterState, LogicalTime, Notice};
use futures::future::join_all;
use k8s::{Node, ObjectKey};
use parking_lot::Mutex;
use planner::backend_pool::{self, PoolMembership};
use planner::load_balancer::pool_in;
use planner::unserved::{self, Reason, Unserved};
use planner::{Cluster, Machines, interface, scale_set};
use tokio_util::sync::CancellationToken;

use crate::azure::Azure;
use crate::failure::{Failure, Kind};
use crate::interfaces::SharedInterfaces;
use crate::observed::Observed;
use crate::scale_set::SharedScaleSet;
use holders::{NodeIdentities, NodesBySet, groups_of, holder_of, of_holders, scale_sets_of};
use writer::{Pace, Resource, Writer, Writers};

/// Why pools are not filled yet.
pub(crate) const NODES_UNKNOWN: &str = "the cluster's nodes are not all known yet";

/// The machines and their membership of pools.
pub(crate) struct Membership {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
    pub(crate) state: ClusterState,
    scale_sets: Writers<SharedScaleSet>,
    interfaces: Writers<SharedInterfaces>,
    /// The nodes with which each pool was last filled.
    filled: Mutex<HashMap<ResourceId, FilledPool>>,
    /// When a load balancer whose pools had been filled was last recreated or deleted.
    emptied: Mutex<Option<LogicalTime>>,
    /// The members of each pool at the last comparison, and the nodes at that time.
    compared: Mutex<HashMap<ResourceId, (u64, Arc<NodeIdentities>)>>,
    /// Why a scale set does not keep its pools although its machines are in them; not yet reported.
    not_kept: Mutex<Option<Failure>>,
    /// Attempts to fill pools, by set of pools.
    attempts: Mutex<HashMap<Vec<ResourceId>, Arc<FillAttempt>>>,
    /// The eligible nodes, by version of the nodes.
    eligible: Mutex<Option<(u64, Arc<NodeIdentities>)>>,
}

/// One task fills pools while the others that want the same wait. Holds the latest failed attempt and when it began.
type FillAttempt = tokio::sync::Mutex<Option<(LogicalTime, Failure)>>;

/// The known members of a pool.
struct FilledPool {
    membership: PoolMembership,
    /// The nodes that it was filled with.
    nodes: Arc<NodeIdentities>,
    /// The nodes among them that are not in it.
    unserved: Vec<Unserved>,
    /// The holders that could not be written then. The next change of nodes tries them again.
    failed: BTreeSet<ResourceId>,
}

/// The outcome of an attempt to fill pools.
struct Filled {
    /// The nodes that are not in them.
    unserved: Vec<Unserved>,
    /// The holders that could not be written, if others could.
    failed: BTreeSet<ResourceId>,
}

impl FilledPool {
    /// The names of the nodes that belong in the pool and cannot join yet.
    fn waiting(&self) -> impl Iterator<Item = &str> {
        self.unserved.iter().filter(|one| one.reason.may_pass()).map(|one| one.node.as_str())
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
            scale_sets: Writers::new(pace, stop.clone()),
            interfaces: Writers::new(pace, stop),
            filled: Mutex::default(),
            emptied: Mutex::default(),
            compared: Mutex::default(),
            not_kept: Mutex::default(),
            attempts: Mutex::default(),
            eligible: Mutex::default(),
        }
    }

    /// Drops what is known of the pools' members because a load balancer is created or deleted.
    pub(crate) fn forget(&self, load_balancer: &ResourceId) {
        let mut filled = self.filled.lock();
        let before = filled.len();
        filled.retain(|pool, _| !pool.is_within(load_balancer));
        if filled.len() < before {
            // Azure deletes it only when nothing refers to its pools, so something else has removed the pools from
            // scale sets before.
            *self.emptied.lock() = Some(LogicalTime::now());
        }
        self.observed.invalidate_machine_interfaces();
    }

    fn eligible_nodes(&self) -> Arc<NodeIdentities> {
        let mut known = self.eligible.lock();
        if let Some((_, nodes)) = known.as_ref().filter(|(version, _)| *version == self.state.nodes_version())
        {
            return Arc::clone(nodes);
        }
        let (version, nodes) = self.state.nodes_in_version();
        let eligible = nodes.iter().filter(|node| backend_pool::is_eligible(&self.cluster, node));
        let identities = Arc::new(NodeIdentities::of(eligible));
        *known = Some((version, Arc::clone(&identities)));
        identities
    }

    /// The pools that do not contain the current eligible nodes yet.
    fn open(&self, pools: &[PoolMembership]) -> Vec<PoolMembership> {
        let nodes = self.eligible_nodes();
        let filled = self.filled.lock();
        let is_open = |membership: &&PoolMembership| {
            filled
                .get(&membership.pool)
                .is_none_or(|known| known.nodes != nodes || known.membership.of_nodes != membership.of_nodes)
        };
        pools.iter().filter(is_open).cloned().collect()
    }

    fn attempt_at(&self, pools: &[PoolMembership]) -> Arc<FillAttempt> {
        let pools = pools.iter().map(|membership| membership.pool.clone()).collect();
        let mut attempts = self.attempts.lock();
        // Entries without holders have no waiting tasks.
        attempts.retain(|_, attempt| Arc::strong_count(attempt) > 1);
        Arc::clone(attempts.entry(pools).or_default())
    }

    /// Adds the eligible nodes to the pools, unless that was done since the nodes last changed. Machines that could not
    /// join then are [retried](Self::join_waiting) for all Services together. Returns whether there was anything to do.
    ///
    /// Hundreds of Services arrive at once, and each would check thousands of nodes: one task does it for all that want
    /// the same pools. A task that arrived before a failed attempt began shares its failure.
    pub(crate) async fn join_if_changed(&self, pools: &[PoolMembership]) -> Result<bool, Failure> {
        let came = LogicalTime::now();
        let open = self.open(pools);
        if open.is_empty() {
            return Ok(false);
        }
        let attempt = self.attempt_at(&open);
        let mut failed = attempt.lock().await;
        let open = self.open(&open);
        if open.is_empty() {
            return Ok(true);
        }
        if let Some((_, failure)) = failed.as_ref().filter(|(began, _)| *began > came) {
            return Err(failure.clone());
        }
        let began = LogicalTime::now();
        // The data must include the machines of new nodes.
        let newer_than = self.state.machines_changed().max(self.observed.started);
        let emptied = *self.emptied.lock();
        let joined = self.join(&open, emptied.map_or(newer_than, |at| newer_than.max(at))).await;
        *failed = joined.as_ref().err().map(|failure| (began, failure.clone()));
        joined.map(|()| true)
    }

    /// Adds the eligible nodes to the pools, based on data read after `newer_than`. Holders whose nodes have joined these
    /// pools before, and are still the same, are not read: their members are compared at [`Self::look_again`].
    pub(crate) async fn join(
        &self,
        pools: &[PoolMembership],
        newer_than: LogicalTime,
    ) -> Result<(), Failure> {
        let nodes = self.eligible_nodes();
        let settled = self.settled_holders(&nodes, pools);
        self.join_except(nodes, &settled, pools, newer_than).await
    }

    /// The holders of these nodes whose nodes are all in each of these pools, as far as known.
    fn settled_holders(&self, now: &NodeIdentities, pools: &[PoolMembership]) -> HashSet<ResourceId> {
        let filled = self.filled.lock();
        let mut settled: HashSet<ResourceId> = now.holders().cloned().collect();
        for membership in pools {
            let known = filled.get(&membership.pool);
            let Some(known) = known.filter(|known| known.membership == *membership) else {
                return HashSet::new();
            };
            let is_same = |holder: &ResourceId| known.nodes.of_holder(holder) == now.of_holder(holder);
            settled.retain(|holder| is_same(holder) && !known.failed.contains(holder));
            for node in known.unserved.iter().filter_map(|one| self.state.node(&one.node)) {
                holder_of(&node).map(|holder| settled.remove(&holder));
            }
        }
        settled
    }

    /// Adds the eligible nodes to the pools, except those of settled holders. `nodes` are the ones by which these were
    /// found: a node that changes since is a change for the next call.
    async fn join_except(
        &self,
        nodes: Arc<NodeIdentities>,
        settled: &HashSet<ResourceId>,
        pools: &[PoolMembership],
        newer_than: LogicalTime,
    ) -> Result<(), Failure> {
        if pools.is_empty() {
            return Ok(());
        }
        if !self.state.nodes_synced() {
            return Err(Failure::new(Kind::Unavailable, NODES_UNKNOWN));
        }
        let Filled { unserved, failed } =
            self.fill(pools, newer_than, |holder| !settled.contains(holder)).await?;
        let mut filled = self.filled.lock();
        for membership in pools {
            let unserved = unserved.iter().filter(|one| one.pool == membership.pool).cloned().collect();
            let (membership, nodes, failed) = (membership.clone(), Arc::clone(&nodes), failed.clone());
            filled.insert(membership.pool.clone(), FilledPool { membership, nodes, unserved, failed });
        }
        Ok(())
    }

    /// Adds the eligible nodes to the pools again if load balancers show other members than at the last comparison, or
    /// if scale sets have lost a pool. A load balancer lists all members and one list covers all scale sets; machines
    /// are only read if something has changed.
    pub(crate) async fn look_again(&self, since: LogicalTime) -> Result<bool, Failure> {
        let pools: Vec<PoolMembership> =
            self.filled.lock().values().map(|known| known.membership.clone()).collect();
        if pools.is_empty() || !self.state.nodes_synced() {
            return Ok(false);
        }
        let shown = |membership: &PoolMembership| {
            let document = self.observed.load_balancers().cached(membership.pool.parent()?.name())?;
            let pool = pool_in(&document, membership.pool.name())?.properties.as_ref()?;
            Some(pool.backend_ip_configurations.as_ref().map_or(0, MemberInterfaces::fingerprint))
        };
        let nodes = self.eligible_nodes();
        let mut shown: HashMap<ResourceId, (u64, Arc<NodeIdentities>)> = pools
            .iter()
            .filter_map(|one| Some((one.pool.clone(), (shown(one)?, Arc::clone(&nodes)))))
            .collect();
        // A missing pool is repaired with its load balancer.
        let pools: Vec<PoolMembership> =
            pools.into_iter().filter(|one| shown.contains_key(&one.pool)).collect();
        let sets = self.sets(since).await?;
        let has_left = {
            let all = self.state.nodes_and_departed();
            let machines = self.observed.virtual_machines(&self.own_group()).all_cached();
            let nodes = NodesBySet::new(&all);
            let is_behind = |set: &Arc<ScaleSet>| {
                nodes.has_any_of(set)
                    && scale_set::plan_model(&self.cluster, set, &machines, &pools, &all).is_some()
            };
            sets.iter().any(is_behind)
        };
        let (is_same, is_foreign) = {
            let compared = self.compared.lock();
            let other = |(pool, (members, of)): (&ResourceId, &(u64, Arc<NodeIdentities>))| {
                compared.get(pool).is_some_and(|(before, nodes)| before != members && nodes == of)
            };
            (*compared == shown, shown.iter().any(other))
        };
        if is_same && !has_left {
            return Ok(false);
        }
        self.join_except(nodes, &HashSet::new(), &pools, since).await?;
        std::mem::swap(&mut *self.compared.lock(), &mut shown);
        if let Some(failure) = self.not_kept.lock().take() {
            return Err(failure);
        }
        Ok(has_left || is_foreign)
    }

    /// Whether machines belong in a pool and cannot join yet.
    pub(crate) fn is_waiting(&self) -> bool {
        self.filled.lock().values().any(|known| known.waiting().next().is_some())
    }

    /// Adds the machines that could not join before to their pools, based on data read after `newer_than`. Scale sets
    /// and groups of interfaces without waiting machines are not read.
    pub(crate) async fn join_waiting(&self, newer_than: LogicalTime) -> Result<(), Failure> {
        let mut pools = Vec::new();
        let mut holders = BTreeSet::new();
        for known in self.filled.lock().values_mut() {
            // Deleted nodes are not waited for.
            known.unserved.retain(|one| self.state.node(&one.node).is_some());
            if known.waiting().next().is_some() {
                pools.push(known.membership.clone());
                let nodes = known.waiting().filter_map(|name| self.state.node(name));
                holders.extend(nodes.filter_map(|node| holder_of(&node)));
            }
        }
        if pools.is_empty() {
            return Ok(());
        }
        let found = self.fill(&pools, newer_than, |holder| holders.contains(holder)).await?.unserved;
        let is_looked_at = |one: &Unserved| {
            let node = self.state.node(&one.node);
            node.and_then(|node| holder_of(&node)).is_some_and(|holder| holders.contains(&holder))
        };
        let mut filled = self.filled.lock();
        for membership in &pools {
            let Some(known) = filled.get_mut(&membership.pool) else { continue };
            known.unserved.retain(|one| !is_looked_at(one));
            let mine = found.iter().filter(|one| one.pool == membership.pool && is_looked_at(one));
            known.unserved.extend(mine.cloned());
        }
        Ok(())
    }

    /// Adds the eligible nodes of the given holders to the pools.
    async fn fill(
        &self,
        pools: &[PoolMembership],
        newer_than: LogicalTime,
        which: impl Fn(&ResourceId) -> bool,
    ) -> Result<Filled, Failure> {
        let mut sets = self.sets(newer_than).await?;
        {
            // Hundreds of Services wait here at a time: the list of all nodes is dropped before waiting.
            let all = self.state.nodes_and_departed();
            let nodes = NodesBySet::new(&all);
            sets.retain(|set| nodes.has_any_of(set) && set.id.as_ref().is_some_and(&which));
        }
        let mut groups = self.interface_groups();
        groups.retain(&which);
        let ids = sets.iter().filter_map(|set| set.id.clone());
        let failed = self.submit(ids, &groups, pools, newer_than).await;
        if let Some(failure) = failed.values().find(|failure| !is_of_machines(failure)) {
            return Err(failure.clone());
        }
        let machines = self.machines_of(sets, &groups, newer_than).await?;
        let all = self.state.nodes();
        let nodes: Vec<Arc<Node>> = of_holders(&all, &which).cloned().collect();
        let mut unserved = unserved::find(&self.cluster, &nodes, &machines, pools);
        let is_not_kept =
            |failure: &&Failure| failure.kind == Kind::FailedPrecondition && failure.cause.is_none();
        *self.not_kept.lock() = failed.values().find(is_not_kept).cloned();
        let Some(failure) = failed.values().next() else {
            return Ok(Filled { unserved, failed: BTreeSet::new() });
        };
        // Machines that may not join do not keep Services from the other machines.
        let is_unserved = |node: &Node| unserved.iter().any(|one| one.node == node.name());
        let is_refused = |node: &Node| holder_of(node).is_some_and(|holder| failed.contains_key(&holder));
        let mut eligible = all.iter().filter(|node| backend_pool::is_eligible(&self.cluster, node));
        if !eligible.any(|node| holder_of(node).is_some() && !is_unserved(node)) {
            return Err(failure.clone());
        }
        let refused: BTreeMap<&str, &Failure> = (nodes.iter().filter(|node| is_refused(node)))
            .filter_map(|node| Some((node.name(), failed.get(&holder_of(node)?)?)))
            .collect();
        for one in unserved.iter_mut().filter(|one| one.reason == Reason::NoMachine) {
            if let Some(failure) = refused.get(one.node.as_str()) {
                one.reason = Reason::Refused(failure.message.clone());
            }
        }
        Ok(Filled { unserved, failed: failed.into_keys().collect() })
    }

    async fn machines_of(
        &self,
        sets: Vec<Arc<ScaleSet>>,
        groups: &BTreeSet<ResourceId>,
        newer_than: LogicalTime,
    ) -> Result<Machines, Failure> {
        let mut machines = Machines::default();
        for set in sets {
            let Some(id) = set.id.as_ref() else { continue };
            let instances = if scale_set::is_flexible(&set) {
                Vec::new()
            } else {
                match self.observed.instances(id).list(newer_than).await {
                    Ok(instances) => instances,
                    Err(failure) if failure.is_not_found() => continue,
                    Err(failure) => return Err(failure),
                }
            };
            machines.scale_sets.push((set, instances));
        }
        for group in groups {
            machines.interfaces.extend(self.observed.machine_interfaces(group).list(newer_than).await?);
        }
        Ok(machines)
    }

    /// All machines of the cluster, for a dry run.
    pub(crate) async fn machines(&self, newer_than: LogicalTime) -> Result<Machines, Failure> {
        let sets = self.sets(newer_than).await?;
        let has_flexible = sets.iter().any(|set| scale_set::is_flexible(set));
        let mut machines = self.machines_of(sets, &self.interface_groups(), newer_than).await?;
        if has_flexible {
            let known = self.observed.virtual_machines(&self.own_group());
            machines.virtual_machines = known.list(newer_than).await?;
        }
        Ok(machines)
    }

    /// The virtual machines in the resource groups of nodes that are virtual machines. If one group cannot be read, the
    /// others are.
    pub(crate) async fn virtual_machines(
        &self,
        newer_than: LogicalTime,
    ) -> Result<Vec<Arc<VirtualMachine>>, Failure> {
        let groups = self.machine_groups();
        let lists =
            groups.iter().map(async |group| self.observed.virtual_machines(group).list(newer_than).await);
        let lists: Result<Vec<_>, Failure> = join_all(lists).await.into_iter().collect();
        Ok(lists?.concat())
    }

    /// The cached virtual machines, however old.
    pub(crate) fn cached_virtual_machines(&self) -> Vec<Arc<VirtualMachine>> {
        let groups = self.machine_groups().into_iter();
        groups.flat_map(|group| self.observed.virtual_machines(&group).all_cached()).collect()
    }

    /// The resource groups of nodes that are virtual machines.
    fn machine_groups(&self) -> BTreeSet<ResourceId> {
        groups_of(&self.state.nodes())
    }

    /// Notices for the owner of a Service about nodes that get none of its traffic.
    pub(crate) fn notices(&self, service: &ObjectKey, pools: &[PoolMembership]) -> Vec<Notice> {
        let filled = self.filled.lock();
        let known = pools.iter().filter_map(|membership| filled.get(&membership.pool));
        let unserved: Vec<Unserved> = known.flat_map(|known| &known.unserved).cloned().collect();
        unserved::notices(service, &unserved)
    }

    /// Removes all members from the pools.
    pub(crate) async fn leave(&self, pools: &[PoolMembership]) -> Result<(), Failure> {
        if pools.is_empty() {
            return Ok(());
        }
        let newer_than = LogicalTime::now();
        let sets = self.sets(newer_than).await?;
        let ids = sets.iter().filter_map(|set| set.id.clone());
        all_done(self.submit(ids, &self.interface_groups(), pools, newer_than).await)
    }

    /// Removes one scale set from the pools.
    pub(crate) async fn leave_one(&self, set: &ResourceId, pools: &[PoolMembership]) -> Result<(), Failure> {
        let (set, none) = ([set.clone()], BTreeSet::new());
        all_done(self.submit(set, &none, pools, LogicalTime::now()).await)
    }

    /// Submits the pools to the writers of scale sets and of groups of interfaces. Returns those that failed.
    async fn submit(
        &self,
        sets: impl IntoIterator<Item = ResourceId>,
        groups: &BTreeSet<ResourceId>,
        pools: &[PoolMembership],
        newer_than: LogicalTime,
    ) -> BTreeMap<ResourceId, Failure> {
        let sets: Vec<_> = sets.into_iter().map(|set| (self.scale_set_writer(&set), set)).collect();
        let groups: Vec<_> = groups.iter().map(|group| (self.interface_writer(group), group)).collect();
        let of_set = async |(writer, set): &(Writer<SharedScaleSet>, ResourceId)| {
            (set.clone(), submit_all(writer, pools, newer_than).await)
        };
        let of_group = async |(writer, group): &(Writer<SharedInterfaces>, &ResourceId)| {
            ((*group).clone(), submit_all(writer, pools, newer_than).await)
        };
        let (sets, groups) =
            tokio::join!(join_all(sets.iter().map(of_set)), join_all(groups.iter().map(of_group)));
        sets.into_iter().chain(groups).filter_map(|(holder, done)| Some((holder, done.err()?))).collect()
    }

    fn own_group(&self) -> ResourceId {
        ResourceId::group(&self.cluster.config.subscription_id, &self.cluster.config.resource_group)
    }

    /// The scale sets of the cluster's resource group and of every group that contains a node's machine.
    async fn sets(&self, newer_than: LogicalTime) -> Result<Vec<Arc<ScaleSet>>, Failure> {
        let mut groups = BTreeSet::from([self.own_group()]);
        let nodes = self.state.nodes();
        groups.extend(scale_sets_of(&nodes).into_iter().filter_map(|set| set.parent()));
        drop(nodes);
        let mut all = Vec::new();
        for group in groups {
            all.extend(self.observed.scale_sets(&group).list(newer_than).await?);
        }
        let there: HashSet<&ResourceId> = all.iter().filter_map(|set| set.id.as_ref()).collect();
        self.scale_sets.keep(|id| there.contains(id));
        self.observed.keep_scale_sets(|id| there.contains(id));
        Ok(all)
    }

    /// The resource groups whose interfaces affect the pools: those of every virtual machine that is or was a node, and
    /// the cluster's own if the pools have members from there, because their machines may be gone.
    fn interface_groups(&self) -> BTreeSet<ResourceId> {
        let mut groups = groups_of(&self.state.nodes_and_departed());
        let own = self.own_group();
        let mut known =
            self.cluster.own_load_balancers(self.observed.load_balancers().all_cached(), &[]).into_iter();
        if known.any(|(_, load_balancer)| interface::has_members_of(&load_balancer, &own)) {
            groups.insert(own);
        }
        groups
    }

    fn scale_set_writer(&self, set: &ResourceId) -> Writer<SharedScaleSet> {
        self.scale_sets.of(set, || SharedScaleSet {
            id: set.clone(),
            cluster: Arc::clone(&self.cluster),
            azure: self.azure.clone(),
            observed: Arc::clone(&self.observed),
            state: self.state.clone(),
        })
    }

    fn interface_writer(&self, group: &ResourceId) -> Writer<SharedInterfaces> {
        self.interfaces.of(group, || SharedInterfaces {
            group: group.clone(),
            cluster: Arc::clone(&self.cluster),
            azure: self.azure.clone(),
            observed: Arc::clone(&self.observed),
            state: self.state.clone(),
        })
    }
}

/// Whether a failure means that machines may not join, and does not pass by itself.
fn is_of_machines(failure: &Failure) -> bool {
    matches!(failure.kind, Kind::PermissionDenied | Kind::FailedPrecondition | Kind::InvalidArgument)
}

/// The first failure, if any; it concerns no single owner.
fn all_done(failed: BTreeMap<ResourceId, Failure>) -> Result<(), Failure> {
    failed.into_values().next().map_or(Ok(()), |failure| Err(failure.not_attributable()))
}

async fn submit_all<R>(
    writer: &Writer<R>,
    pools: &[PoolMembership],
    newer_than: LogicalTime,
) -> Result<(), Failure>
where
    R: Resource<Key = String, Intent = PoolMembership, Notice = Notice>,
{
    let submit = async |membership: &PoolMembership| {
        writer.submit(membership.pool.to_lower(), membership.clone(), newer_than, None).await.map(drop)
    };
    join_all(pools.iter().map(submit)).await.into_iter().collect()
}
