//! A load balancer as a shared resource.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use arm::ApiVersion;
use async_trait::async_trait;
use azure_types::{BackendAddresses, LoadBalancer, NetworkInterface, ResourceId};
use cloud::{ClusterState, LogicalTime, Notice};
use k8s::ObjectKey;
use parking_lot::Mutex;
use planner::admin_state::{self, AdminState, EntryKey};
use planner::backend_pool::{self, PoolMembership};
use planner::load_balancer::{self as plans, ClusterFacts, KnownServices, LoadBalancerIntent};
use planner::local_pool::{self, LocalService};
use planner::placement::NodeShare;
use planner::{Action, Balancer, Change, Cluster, Family, Flavor, Purpose, Step};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use crate::azure::Azure;
use crate::drift::{self, Drift};
use crate::failure::{self, Failure, Kind};
use crate::fingerprint;
use crate::intent_owner::{IntentOwner, is_wanted};
use crate::member_writes::MemberWrites;
use crate::membership::Membership;
use crate::observed::Observed;
use crate::private_link::PrivateLinks;
use crate::public_ip::PublicIps;
use writer::{Disturbance, Planned, Resource, Written};

/// Interval and timeout of polling pools while Azure migrates them, as in the replaced program (6.4).
const MIGRATION_INTERVAL: Duration = Duration::from_secs(5);
const MIGRATION_TIMEOUT: Duration = Duration::from_secs(10 * 60);
/// Rounds of removing the private link services of frontends that are deleted: their connections, the services, a check
/// that nothing is left; and one more for a connection that arrived meanwhile.
const MAX_REMOVAL_ROUNDS: u32 = 4;

/// The desired state of one owner.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "nearly all are of the larger kind")]
pub(crate) enum LoadBalancerRequest {
    /// The pools contain the current nodes and endpoints: their addresses, and which of them take new connections.
    Members,
    /// The frontends, rules and probes of a Service.
    Service(LoadBalancerIntent),
}

type Batch = [(IntentOwner, LoadBalancerRequest)];

/// The intents of the Services in a batch.
fn of_services(batch: &Batch) -> Vec<LoadBalancerIntent> {
    let intent = |(_, request): &(IntentOwner, LoadBalancerRequest)| match request {
        LoadBalancerRequest::Members => None,
        LoadBalancerRequest::Service(intent) => Some(intent.clone()),
    };
    batch.iter().filter_map(intent).collect()
}

/// The Services with pools of their own, and their nodes; `None` while the endpoints are unknown.
pub(crate) fn local_services(cluster: &Cluster, state: &ClusterState) -> Option<Vec<LocalService>> {
    let are_known = cluster.has_local_pools() && state.endpoints_synced();
    are_known.then(|| local_pool::local_services(cluster, &state.services(), |key| state.endpoint_nodes(key)))
}

/// One load balancer of the cluster.
pub(crate) struct SharedLoadBalancer {
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) balancer: Balancer,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
    pub(crate) public_ips: Arc<PublicIps>,
    pub(crate) private_links: Arc<PrivateLinks>,
    pub(crate) membership: Arc<Membership>,
    pub(crate) state: ClusterState,
    /// The writes of the members of load balancers that share the nodes, if there are several.
    pub(crate) member_writes: Arc<MemberWrites>,
    pub(crate) drift: Arc<Drift>,
    /// The pools that interfaces have left, so that they can contain addresses. The document alone is not sufficient: a
    /// scale set without instances may add interfaces later.
    pub(crate) emptied: Mutex<BTreeSet<ResourceId>>,
    /// Pool entries that an operator had set to `Up` before their nodes drained.
    pub(crate) was_up: Mutex<BTreeSet<EntryKey>>,
}

/// A load balancer before and after a write.
pub(crate) struct ObservedLoadBalancer {
    /// `None` if it does not exist.
    pub(crate) load_balancer: Option<Arc<LoadBalancer>>,
    /// The document before our write; the same if nothing was written.
    pub(crate) before: Option<Arc<LoadBalancer>>,
    /// Number of finished writes of its interfaces ([`crate::turns::Turns::ended`]).
    interfaces: u64,
}

/// A write, and what has to happen before it.
pub(crate) struct LoadBalancerWrite {
    step: Step,
    /// The pools that machines leave first.
    empty_first: Vec<PoolMembership>,
    /// The public IPs whose addresses are kept when their frontends are deleted.
    addresses_to_keep: Vec<ResourceId>,
    /// The frontends that the step deletes, and the resource groups of private link services that may use them.
    frontends_gone: Vec<ResourceId>,
    private_link_groups: BTreeSet<ResourceId>,
}

fn frontends(load_balancer: Option<&LoadBalancer>) -> BTreeSet<(String, Option<ResourceId>)> {
    let properties = load_balancer.and_then(|document| document.properties.as_ref());
    let frontends = properties.and_then(|p| p.frontend_ip_configurations.as_ref());
    frontends
        .into_iter()
        .flatten()
        .map(|frontend| {
            let name = frontend.name.as_deref().unwrap_or_default().to_ascii_lowercase();
            let properties = frontend.properties.as_ref();
            let public_ip =
                properties.and_then(|p| p.public_ip_address.as_ref()).and_then(|ip| ip.id.clone());
            (name, public_ip)
        })
        .collect()
}

/// The resource ids of a type in an error text from Azure, compared without regard to case.
fn ids_in(text: &str, kind: &str) -> Vec<ResourceId> {
    let stops =
        |c: char| c.is_whitespace() || matches!(c, '\'' | '"' | ',' | ';' | '(' | ')' | '[' | ']' | '`');
    let kind = format!("/{}/", kind.to_ascii_lowercase());
    text.split(stops)
        .map(|word| word.trim_end_matches(['.', ':', '/']))
        .filter_map(|word| {
            let end = word.to_ascii_lowercase().find(&kind)? + kind.len();
            let name = word.get(end..)?.split('/').next()?;
            ResourceId::parse(word.get(..end + name.len())?).ok()
        })
        .collect()
}

/// The preparations for a write that have been made.
fn prepared<'a>(what: impl IntoIterator<Item = &'a ResourceId>) -> Written<ObservedLoadBalancer> {
    let mut hasher = DefaultHasher::new();
    what.into_iter().for_each(|id| id.hash(&mut hasher));
    Written::Prepared { what: hasher.finish() }
}

fn warning(service: &ObjectKey, reason: &'static str, failure: &Failure) -> Notice {
    let message = failure::short(failure.message.clone());
    Notice { service: service.clone(), warning: true, reason, message }
}

/// A notice for the owner of a Service that load balancers could not be read.
pub(crate) fn not_listed(service: &ObjectKey, failure: &Failure) -> Notice {
    warning(service, "ListLoadBalancers", failure)
}

impl SharedLoadBalancer {
    fn id(&self) -> ResourceId {
        self.cluster.load_balancer_id(&self.balancer)
    }

    async fn put(
        &self,
        current: &ObservedLoadBalancer,
        step: &Step,
    ) -> Result<ObservedLoadBalancer, Failure> {
        if step.action == Action::Create {
            // Cached knowledge of its pools is outdated.
            self.membership.forget(&self.id());
        }
        let turn = self.observed.turns().of_balancer(&self.id()).await;
        let interfaces = self.observed.turns().ended(&self.id());
        if step.action == Action::Update && interfaces != current.interfaces {
            turn.reserve_the_next();
            let message = format!("{}: interfaces joined or left its pools meanwhile", self.id());
            return Err(Failure::new(Kind::Aborted, message));
        }
        let document: LoadBalancer = match self.azure.put(step, ApiVersion::NETWORK).await {
            Ok(document) => document,
            Err(failure) => {
                self.observed.load_balancers().invalidate();
                return Err(self.after_use(failure));
            }
        };
        let changed = frontends(current.load_balancer.as_deref()) != frontends(Some(&document));
        if changed && self.balancer.flavor == Flavor::External {
            // Each public IP that gained or lost a frontend has a new version now.
            self.observed.invalidate_public_ips();
        }
        if step.action == Action::Create && self.cluster.has_several_load_balancers() {
            // The pools of a new load balancer are empty.
            let pools = Family::BOTH.map(|family| self.cluster.pool_id(&self.balancer, family));
            self.emptied.lock().extend(pools);
        }
        if let Some(before) = current.load_balancer.as_deref() {
            self.remember_up(before, &document);
        }
        let load_balancer = Some(self.observed.store_load_balancer(document));
        Ok(ObservedLoadBalancer { load_balancer, before: current.load_balancer.clone(), interfaces })
    }

    /// The cached interfaces of virtual machines, if they are needed.
    fn cached_interfaces(&self) -> Vec<Arc<NetworkInterface>> {
        let matter = self.cluster.config.enable_load_balancer_admin_state;
        if matter { self.observed.cached_machine_interfaces() } else { Vec::new() }
    }

    /// Records entries that were `Up` before a write set them to `Down`, and drops those that are no longer `Down`.
    fn remember_up(&self, before: &LoadBalancer, after: &LoadBalancer) {
        if !self.cluster.config.enable_load_balancer_admin_state {
            return;
        }
        let before = admin_state::entries(before);
        let mut was_up = self.was_up.lock();
        for (key, state) in admin_state::entries(after) {
            if state != AdminState::Down {
                was_up.remove(&key);
            } else if before.get(&key) == Some(&AdminState::Up) {
                was_up.insert(key);
            }
        }
    }

    /// Removes interfaces from pools that are to contain addresses. Each removal creates a new version of the load
    /// balancer.
    async fn empty(
        &self,
        current: &ObservedLoadBalancer,
        pools: &[PoolMembership],
    ) -> Result<Written<ObservedLoadBalancer>, Failure> {
        if self.cluster.config.enable_migrate_to_ip_based_backend_pool_api {
            self.migrate(current, pools).await?;
        }
        // Azure migrates neither models of scale sets nor, with manual upgrades, their instances.
        self.membership.leave(pools).await?;
        self.emptied.lock().extend(pools.iter().map(|membership| membership.pool.clone()));
        Ok(prepared(pools.iter().map(|membership| &membership.pool)))
    }

    /// Lets Azure convert the interfaces in pools to addresses, and waits until each pool contains as many (LB-186).
    async fn migrate(&self, current: &ObservedLoadBalancer, pools: &[PoolMembership]) -> Result<(), Failure> {
        let Some(document) = current.load_balancer.as_deref() else { return Ok(()) };
        let names = pools.iter().map(|membership| membership.pool.name());
        let wanted: Vec<(&str, usize)> = names
            .filter_map(|name| {
                Some((
                    name,
                    plans::pool_in(document, name)?
                        .properties
                        .as_ref()?
                        .backend_ip_configurations
                        .as_ref()?
                        .len(),
                ))
            })
            .filter(|(_, members)| *members > 0)
            .collect();
        if wanted.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = wanted.iter().map(|(name, _)| *name).collect();
        let id = self.id();
        self.azure.act(&id, "migrateToIpBased", ApiVersion::NETWORK, &json!({ "pools": names })).await?;
        let begin = Instant::now();
        loop {
            let now = self.observed.settled_load_balancer(&id, LogicalTime::now()).await?;
            let holds = |name: &str, members: usize| {
                let addresses =
                    now.as_deref().and_then(|document| plans::pool_in(document, name)?.properties.as_ref());
                let addresses = addresses.and_then(|pool| pool.load_balancer_backend_addresses.as_ref());
                let by_address = addresses.into_iter().flat_map(BackendAddresses::iter).filter(|entry| {
                    entry.properties.as_ref().is_some_and(|properties| properties.ip_address.is_some())
                });
                by_address.count() == members
            };
            if wanted.iter().all(|(name, members)| holds(name, *members)) {
                return Ok(());
            }
            if begin.elapsed() >= MIGRATION_TIMEOUT {
                warn!(load_balancer = %id, pools = ?names,
                    "Azure has not made addresses of all interfaces in time; the nodes' addresses are written instead");
                return Ok(());
            }
            sleep(MIGRATION_INTERVAL).await;
        }
    }

    /// Removes the private link services of frontends that are deleted. Returns what it removed, if anything: the load
    /// balancer then has a new version. Frontends used by another owner's private link service stay: they are planned
    /// again.
    async fn clear_private_links(
        &self,
        current: &ObservedLoadBalancer,
        write: &LoadBalancerWrite,
    ) -> Result<Option<Written<ObservedLoadBalancer>>, Failure> {
        let gone = &write.frontends_gone;
        if gone.is_empty() {
            return Ok(None);
        }
        let again = || {
            let message = format!("{}: private link services of frontends that go were found", self.id());
            Err(Failure::new(Kind::Aborted, message))
        };
        let mut removed = Vec::new();
        for _ in 0..MAX_REMOVAL_ROUNDS {
            let Some(steps) = self.private_links.removal(gone, &write.private_link_groups).await? else {
                return again();
            };
            if steps.is_empty() {
                return Ok((!removed.is_empty()).then(|| prepared(&removed)));
            }
            // The deletion of these frontends was decided on data that may be old, and the deletion of a private link
            // service has no If-Match on the load balancer (LB-448).
            let fresh = self.observed.settled_load_balancer(&self.id(), LogicalTime::now()).await?;
            let etag = |document: &Option<Arc<LoadBalancer>>| document.as_ref().map(|one| one.etag.clone());
            if etag(&fresh) != etag(&current.load_balancer) {
                return again();
            }
            self.private_links.remove(&steps).await?;
            removed.extend(steps.into_iter().map(|step| step.target));
        }
        let message = "private endpoints connect to a private link service faster than it can be deleted";
        Err(Failure::new(Kind::Unavailable, message))
    }

    /// All Services that may have parts of load balancers; `None` if not all are known.
    fn known_services(&self) -> Option<KnownServices> {
        self.state.services_synced().then(|| plans::known_services(&self.state.services()))
    }

    /// Azure keeps a frontend that is used by a private link service, which may be in a group that no Service named.
    fn after_use(&self, failure: Failure) -> Failure {
        let named = ids_in(&failure.full_text(), "privateLinkServices");
        if self.private_links.learn_groups(&failure, &named) {
            return Failure { kind: Kind::Aborted, ..failure };
        }
        failure
    }

    async fn delete(
        &self,
        current: &ObservedLoadBalancer,
        write: &LoadBalancerWrite,
    ) -> Result<ObservedLoadBalancer, Failure> {
        let id = self.id();
        // Whatever the outcome of the deletion, the pools have changed.
        self.membership.forget(&id);
        let kept =
            self.public_ips.keep_addresses(&id, &write.addresses_to_keep, &write.step.on_behalf_of).await;
        kept.map_err(|failure| failure.seen_from(&id))?;
        self.membership.leave(&write.empty_first).await?;
        if let Some(document) = current.load_balancer.as_deref() {
            // Emptying pools takes time, and a deletion has no If-Match: check once more.
            let fresh = self.observed.settled_load_balancer(&id, LogicalTime::now()).await?;
            let services = self.known_services();
            let known = ClusterFacts { services: services.as_ref(), ..ClusterFacts::default() };
            let obstacle =
                fresh.and_then(|fresh| plans::deletion_obstacle(&self.cluster, document, &fresh, known));
            if let Some(part) = obstacle {
                return Err(Failure::new(Kind::Aborted, format!("{id} got {part} while it was emptied")));
            }
        }
        let mut result = {
            let _turn = self.observed.turns().of_balancer(&id).await;
            self.azure.delete(&write.step, ApiVersion::NETWORK).await
        };
        if let Err(failure) = &result
            && failure.has_code("LoadBalancerInUseByVirtualMachineScaleSet")
        {
            let current = current.load_balancer.as_deref();
            let pools = current.map(|lb| backend_pool::pools_to_empty(&self.cluster, &self.balancer, lb));
            self.clean_scale_sets(&failure.full_text(), &pools.unwrap_or_default()).await?;
            result = self.azure.delete(&write.step, ApiVersion::NETWORK).await;
        }
        self.observed.invalidate_public_ips();
        if let Err(failure) = result {
            self.observed.load_balancers().invalidate();
            return Err(self.after_use(failure).not_attributable());
        }
        self.observed.load_balancers().remove(id.name());
        Ok(ObservedLoadBalancer {
            load_balancer: None,
            before: current.load_balancer.clone(),
            interfaces: current.interfaces,
        })
    }

    /// Removes the scale sets that Azure names from the load balancer's pools.
    async fn clean_scale_sets(&self, message: &str, pools: &[PoolMembership]) -> Result<(), Failure> {
        let own = &self.cluster.config.resource_group;
        for scale_set in ids_in(message, "virtualMachineScaleSets") {
            let group = scale_set.group_name().unwrap_or_default();
            if !group.eq_ignore_ascii_case(own) {
                let message = format!(
                    "scale set {} in resource group {group} uses load balancer {}, and this cluster only changes \
                     scale sets in resource group {own}: take it out of the load balancer's pools",
                    scale_set.name(),
                    self.id().name(),
                );
                return Err(Failure::new(Kind::PermissionDenied, message));
            }
            self.membership.leave_one(&scale_set, pools).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Resource for SharedLoadBalancer {
    type Key = IntentOwner;
    type Intent = LoadBalancerRequest;
    type Observed = ObservedLoadBalancer;
    type Write = LoadBalancerWrite;
    type Claim = Option<NodeShare>;
    type Notice = Notice;

    fn name(&self) -> String {
        format!("load balancer {}", self.balancer)
    }

    async fn observe(&self, newer_than: LogicalTime) -> Result<ObservedLoadBalancer, Failure> {
        let interfaces = self.observed.turns().ended(&self.id());
        let load_balancer = self.observed.settled_load_balancer(&self.id(), newer_than).await?;
        self.private_links.look_at_foreign(&self.id(), newer_than).await?;
        Ok(ObservedLoadBalancer { before: load_balancer.clone(), load_balancer, interfaces })
    }

    fn claim(&self, current: &ObservedLoadBalancer, batch: &Batch) -> Option<NodeShare> {
        let has_nodes = batch.iter().any(|(owner, _)| *owner == IntentOwner::Nodes);
        let nodes = (has_nodes && self.state.nodes_synced()).then(|| self.state.nodes())?;
        self.member_writes.claim(&self.cluster, &nodes, &self.balancer, current.load_balancer.as_deref())
    }

    fn plan(
        &self,
        current: &ObservedLoadBalancer,
        batch: &Batch,
        claim: &Option<NodeShare>,
    ) -> Planned<Self> {
        let intents = of_services(batch);
        let observed = current.load_balancer.as_deref();
        // An absent Service is deleted only if all Services are known.
        let known = self.known_services();
        let nodes = self.state.nodes_synced().then(|| self.state.nodes());
        let was_up = self.was_up.lock();
        let interfaces = self.cached_interfaces();
        let links = self.private_links.keeping(&self.id());
        let local_services = local_services(&self.cluster, &self.state);
        let known = ClusterFacts {
            services: known.as_ref(),
            nodes: nodes.as_deref(),
            interfaces: &interfaces,
            share: claim.as_ref(),
            was_up: Some(&was_up),
            local_services: local_services.as_deref(),
            private_links: &links,
        };
        let plan = plans::plan(&self.cluster, &self.balancer, observed, &intents, known);
        let mut empty_first = plan.empty_first;
        if plan.step.as_ref().is_some_and(|step| step.action != Action::Delete) {
            let emptied = self.emptied.lock();
            empty_first.retain(|membership| !emptied.contains(&membership.pool));
        }
        let groups = || intents.iter().flat_map(|intent| intent.owner().private_link_groups.iter().cloned());
        let write = plan.step.map(|step| LoadBalancerWrite {
            step,
            empty_first,
            addresses_to_keep: plan.addresses_to_keep,
            frontends_gone: plan.frontends_gone,
            private_link_groups: groups().collect(),
        });
        let refused = plan
            .refused
            .into_iter()
            .map(|(key, refusal)| (IntentOwner::Service(key), failure::refused(refusal)));
        let notices =
            plan.notices.into_iter().map(|notice| (IntentOwner::Service(notice.service.clone()), notice));
        Planned { write, refused: refused.collect(), notices: notices.collect() }
    }

    async fn write(
        &self,
        current: &ObservedLoadBalancer,
        write: &LoadBalancerWrite,
    ) -> Result<Written<ObservedLoadBalancer>, Failure> {
        let cleared = self.clear_private_links(current, write).await;
        if let Some(prepared) = cleared.map_err(|failure| failure.seen_from(&self.id()))? {
            return Ok(prepared);
        }
        match write.step.action {
            Action::Create | Action::Update if !write.empty_first.is_empty() => {
                self.empty(current, &write.empty_first).await
            }
            Action::Create | Action::Update => self.put(current, &write.step).await.map(Written::Whole),
            Action::Delete => self.delete(current, write).await.map(Written::Whole),
        }
    }

    fn fingerprint(&self, write: &LoadBalancerWrite) -> u64 {
        fingerprint::of([&write.step])
    }

    fn blame(&self, message: &str, batch: &Batch) -> Vec<IntentOwner> {
        let named = plans::services_named_in(message, &of_services(batch));
        named.into_iter().map(IntentOwner::Service).collect()
    }

    /// Repairs a public IP that is not provisioned, which makes Azure refuse the whole load balancer.
    async fn overcome(&self, failure: Failure) -> Failure {
        if !failure.has_code("ReferencedResourceNotProvisioned") {
            return failure;
        }
        for id in ids_in(&failure.full_text(), "publicIPAddresses") {
            info!(public_ip = %id, "a public IP that the load balancer refers to is not ready");
            if let Err(error) = self.public_ips.repair(&id, &self.id()).await {
                return error.while_doing(&failure.message).seen_from(&self.id());
            }
        }
        Failure { kind: Kind::Unavailable, ..failure }
    }

    fn undone(
        &self,
        before: &ObservedLoadBalancer,
        now: &ObservedLoadBalancer,
    ) -> Option<ObservedLoadBalancer> {
        let interfaces = now.interfaces;
        let (before, now) = before.load_balancer.as_deref().zip(now.load_balancer.as_deref())?;
        let undone = Some(Arc::new(plans::undone(before, now)?));
        Some(ObservedLoadBalancer { before: undone.clone(), load_balancer: undone, interfaces })
    }

    async fn restore(&self, before: &ObservedLoadBalancer) -> Result<(), Failure> {
        let now = self.observed.settled_load_balancer(&self.id(), LogicalTime::now()).await?;
        let before = before.load_balancer.as_deref();
        let step = now.and_then(|now| plans::restore(&self.cluster, &self.balancer, before, &now));
        let Some(step) = step else { return Ok(()) };
        if step.action == Action::Delete {
            self.azure.delete(&step, ApiVersion::NETWORK).await?;
            self.observed.load_balancers().remove(self.id().name());
        } else {
            let document: LoadBalancer = self.azure.put(&step, ApiVersion::NETWORK).await?;
            self.observed.store_load_balancer(document);
        }
        Ok(())
    }

    fn is_urgent(&self, owner: &IntentOwner) -> bool {
        // Nodes join pools after this write, and if several load balancers share the nodes, Services wait for that.
        matches!(owner, IntentOwner::Draining | IntentOwner::Nodes)
    }

    fn is_repair(&self, write: &LoadBalancerWrite) -> bool {
        write.step.purpose == Purpose::Repair
    }

    fn serves_all(&self, write: &LoadBalancerWrite) -> bool {
        let is_of_pool = |change: &Change| {
            matches!(
                change,
                Change::PoolAdded { .. }
                    | Change::PoolMembers { .. }
                    | Change::PoolOfAddresses { .. }
                    | Change::PoolOfInterfaces { .. }
            )
        };
        write.step.changes.iter().any(is_of_pool)
    }

    fn concerned(&self, write: &LoadBalancerWrite, _batch: &Batch) -> Vec<IntentOwner> {
        let services = write.step.on_behalf_of.iter().cloned().map(IntentOwner::Service);
        // Every write contains the pools, so it concerns nodes and endpoints, too.
        services
            .chain([
                IntentOwner::Draining,
                IntentOwner::Endpoints,
                IntentOwner::Comparison,
                IntentOwner::Nodes,
            ])
            .collect()
    }

    fn is_maintained(&self, request: &LoadBalancerRequest) -> bool {
        matches!(request, LoadBalancerRequest::Service(LoadBalancerIntent::Present { .. }))
    }

    fn is_wanted(&self, _owner: &IntentOwner, request: &LoadBalancerRequest) -> bool {
        match request {
            LoadBalancerRequest::Members => true,
            LoadBalancerRequest::Service(intent) => is_wanted(&self.state, intent.owner()),
        }
    }

    fn disturbed(&self, owner: &IntentOwner, _request: &LoadBalancerRequest, what: Disturbance) {
        if let IntentOwner::Service(key) = owner {
            self.drift.disturbed(key, drift::Kind::LoadBalancer, &self.name(), &what);
        }
    }

    fn complaint(
        &self,
        owner: &IntentOwner,
        write: Option<&LoadBalancerWrite>,
        failure: &Failure,
    ) -> Option<Notice> {
        let IntentOwner::Service(key) = owner else { return None };
        match write {
            None => Some(not_listed(key, failure)),
            Some(write) if write.step.action == Action::Delete => {
                Some(warning(key, "DeleteLoadBalancer", failure))
            }
            Some(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_found_in_the_texts_of_azure() {
        let text = "Cannot proceed with operation because resource /subscriptions/s/resourceGroups/rg/providers/\
                    Microsoft.Network/publicIPAddresses/pip-1 used by resource /subscriptions/s/resourceGroups/rg/\
                    providers/Microsoft.Network/loadBalancers/lb is not in Succeeded state.";
        let found = ids_in(text, "publicIPAddresses");
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].name(), "pip-1");
        let text = "its child resources kubernetes are in use by virtual machine scale set \
                    /subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachineScaleSets/vmss-0.";
        assert_eq!(ids_in(text, "virtualMachineScaleSets")[0].name(), "vmss-0");
        assert!(ids_in("nothing here", "publicIPAddresses").is_empty());
    }
}
