//! The security group as a shared resource.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use arm::ApiVersion;
use async_trait::async_trait;
use azure_types::{PublicIpAddress, ResourceId, SecurityGroup};
use cloud::{ClusterState, LogicalTime, Notice};
use k8s::{ObjectKey, Service};
use parking_lot::Mutex;
use planner::security_group::{self as plans, AccessIntent, ClusterUsage};
use planner::{Cluster, Document, ParsedServices, Purpose, Step, public_ip};

use crate::azure::Azure;
use crate::drift::{self, Drift};
use crate::failure::{self, Failure, Kind};
use crate::fingerprint;
use crate::intent_owner::{IntentOwner, is_wanted};
use crate::observed::Observed;
use writer::{Disturbance, Planned, Resource, Written};

/// Addresses of Services where their status is not up to date.
#[derive(Debug, Default)]
pub(crate) struct RecentlyProgrammed(Mutex<ProgrammedAddresses>);

#[derive(Debug, Default)]
struct ProgrammedAddresses {
    /// Addresses that were programmed and may not be in the status yet.
    programmed: BTreeMap<ObjectKey, Vec<IpAddr>>,
    /// Services that are completely removed, although their status may contain addresses until Kubernetes deletes them.
    removed: BTreeSet<ObjectKey>,
    /// Services that were refused after the group had been opened for them.
    in_vain: BTreeSet<ObjectKey>,
    /// Addresses of the cluster for which the group is open. While it is open, they prove who owns the rule, even when
    /// nothing in the cluster has them any more.
    held: BTreeSet<IpAddr>,
    /// Addresses of users that others had taken over when the group was to be closed for them.
    passed_on: BTreeSet<IpAddr>,
}

impl RecentlyProgrammed {
    /// Records that a Service uses these addresses from now on.
    pub(crate) fn set(&self, key: &ObjectKey, addresses: Vec<IpAddr>) {
        let mut recent = self.0.lock();
        recent.removed.remove(key);
        recent.programmed.insert(key.clone(), addresses);
    }

    /// Records whether a Service was refused after the group had been opened for it.
    pub(crate) fn opened_in_vain(&self, key: &ObjectKey, in_vain: bool) {
        let known = &mut self.0.lock().in_vain;
        if in_vain {
            known.insert(key.clone());
        } else {
            known.remove(key);
        }
    }

    /// Whether that happened in the latest attempt.
    pub(crate) fn was_opened_in_vain(&self, key: &ObjectKey) -> bool {
        self.0.lock().in_vain.contains(key)
    }

    /// Whether a Service has addresses that its status may not show.
    pub(crate) fn has(&self, key: &ObjectKey) -> bool {
        self.0.lock().programmed.contains_key(key)
    }

    /// Drops a Service that is deleted, or has only what Azure shows. Returns its addresses.
    pub(crate) fn forget(&self, key: &ObjectKey) -> Option<Vec<IpAddr>> {
        self.0.lock().programmed.remove(key)
    }

    /// Records that nothing of a Service is left in Azure.
    pub(crate) fn removed(&self, key: ObjectKey) {
        self.0.lock().removed.insert(key);
    }

    /// Records the addresses of the cluster for which the group is open.
    fn hold(&self, open: &BTreeSet<IpAddr>, is_of_cluster: impl Fn(&IpAddr) -> bool) {
        let ProgrammedAddresses { held, passed_on, .. } = &mut *self.0.lock();
        passed_on.retain(|address| open.contains(address));
        held.retain(|address| open.contains(address));
        held.extend(open.iter().filter(|address| is_of_cluster(address)));
    }

    /// Records that the group is about to be opened for these addresses.
    fn opens(&self, addresses: impl IntoIterator<Item = IpAddr>) {
        self.0.lock().held.extend(addresses);
    }

    /// Records that the group is no longer open for these addresses.
    fn closed(&self, addresses: &BTreeSet<IpAddr>) {
        self.0.lock().held.retain(|address| !addresses.contains(address));
    }

    fn held(&self) -> Vec<IpAddr> {
        self.0.lock().held.iter().copied().collect()
    }

    /// Records that these addresses are now used by others.
    fn pass_on(&self, addresses: &BTreeSet<IpAddr>) {
        self.0.lock().passed_on.extend(addresses);
    }

    fn all_passed_on(&self) -> BTreeSet<IpAddr> {
        self.0.lock().passed_on.clone()
    }

    /// Updates the addresses used by others: of those in `asked`, others still use only those in `still`.
    fn give_back(&self, asked: &BTreeSet<IpAddr>, still: &BTreeSet<IpAddr>) {
        let is_given_back = |address: &IpAddr| asked.contains(address) && !still.contains(address);
        self.0.lock().passed_on.retain(|address| !is_given_back(address));
    }

    /// The addresses that are used by others and that the cluster has not got back.
    fn passed_on(&self, has_again: impl Fn(&IpAddr) -> bool) -> Vec<IpAddr> {
        let passed_on = &mut self.0.lock().passed_on;
        passed_on.retain(|address| !has_again(address));
        passed_on.iter().copied().collect()
    }

    /// The Services of which something may be left in Azure.
    fn existing(&self, services: &[Arc<Service>]) -> Vec<Arc<Service>> {
        let mut recent = self.0.lock();
        let is_removed =
            |service: &Arc<Service>| !service.is_to_be_served() && recent.removed.contains(&service.key());
        let (removed, existing): (Vec<_>, Vec<_>) = services.iter().cloned().partition(is_removed);
        recent.removed = removed.iter().map(|service| service.key()).collect();
        existing
    }

    /// The addresses of all Services that their status does not show yet.
    fn unpublished(&self, services: &[Arc<Service>]) -> Vec<(ObjectKey, IpAddr)> {
        let recent = &mut self.0.lock().programmed;
        for service in services {
            let key = service.key();
            let ingress = &service.status.load_balancer.ingress;
            let published = |address: &IpAddr| ingress.iter().any(|entry| entry.ip.parse() == Ok(*address));
            if recent.get(&key).is_some_and(|addresses| addresses.iter().all(published)) {
                recent.remove(&key);
            }
        }
        recent
            .iter()
            .flat_map(|(key, addresses)| addresses.iter().map(|address| (key.clone(), *address)))
            .collect()
    }
}

/// The desired state of one owner.
#[derive(Debug, Clone)]
pub(crate) enum SecurityGroupRequest {
    /// The group is closed for unused addresses: those of deleted nodes, and of Services that were refused before they
    /// got theirs (LB-454, LB-464).
    CloseUnused,
    /// The access that a Service's clients need.
    Service(AccessIntent),
}

/// The security group.
pub(crate) struct SharedSecurityGroup {
    pub(crate) id: ResourceId,
    pub(crate) cluster: Arc<Cluster>,
    pub(crate) azure: Azure,
    pub(crate) observed: Arc<Observed>,
    pub(crate) state: ClusterState,
    pub(crate) recently: Arc<RecentlyProgrammed>,
    pub(crate) parsed: Arc<Mutex<ParsedServices>>,
    pub(crate) drift: Arc<Drift>,
    /// The addresses of the nodes, and their version.
    pub(crate) nodes: Mutex<Option<(u64, Arc<BTreeSet<IpAddr>>)>>,
}

impl SharedSecurityGroup {
    /// The group as read after `newer_than`, with no operation running on it; `None` if it does not exist.
    pub(crate) async fn observed_group(
        &self,
        newer_than: LogicalTime,
    ) -> Result<Option<Arc<SecurityGroup>>, Failure> {
        self.observed.settled_security_group(&self.id, newer_than).await
    }

    /// The addresses in use.
    pub(crate) fn usage<'a>(&self, batch: impl IntoIterator<Item = &'a ObjectKey>) -> ClusterUsage {
        let known = self.state.services_synced() && self.state.nodes_synced();
        let services = self.state.services();
        let all = self.observed.load_balancers().all_cached();
        let load_balancers = self.cluster.own_load_balancers(all, &services);
        let services = self.recently.existing(&services);
        let mut alive = self.recently.unpublished(&services);
        // An interrupted Service has its address although neither its status nor a frontend shows it.
        let public_ips = self.observed.cached_public_ips();
        let is_own = |id: &ResourceId| load_balancers.iter().any(|(_, one)| one.id.as_ref() == Some(id));
        let tagged = public_ip::tagged_addresses(&self.cluster, public_ips.iter().map(|one| &**one), is_own);
        let shown = plans::shown_addresses(&self.cluster, &services, &load_balancers, &public_ips);
        // Services in the batch specify their addresses themselves.
        let batch: BTreeSet<&ObjectKey> = batch.into_iter().collect();
        let is_elsewhere = |key: &ObjectKey| !batch.contains(key) && self.state.service(key).is_some();
        let served = shown.iter().map(|one| (one.service.clone(), one.address));
        alive.extend(tagged.into_iter().chain(served).filter(|(key, _)| is_elsewhere(key)));
        let recorded = plans::recorded(&self.cluster);
        let held = self.recently.held().into_iter().map(|address| (address, recorded.clone()));
        let passed_on = self.recently.passed_on(|address| shown.iter().any(|one| one.address == *address));
        let parsed = &mut self.parsed.lock();
        ClusterUsage::of_known(
            &self.cluster,
            parsed,
            &services,
            self.node_addresses(),
            &alive,
            &load_balancers,
            known,
        )
        .as_shown(&shown)
        .with_others(passed_on)
        .with_proofs(shown.into_iter().map(|one| (one.address, one.proof)).chain(held))
    }

    /// The addresses of the nodes, which are read from thousands of nodes once for each version of them.
    fn node_addresses(&self) -> Arc<BTreeSet<IpAddr>> {
        let mut known = self.nodes.lock();
        match &*known {
            Some((version, addresses)) if *version == self.state.nodes_version() => Arc::clone(addresses),
            _ => {
                let (version, nodes) = self.state.nodes_in_version();
                let addresses = Arc::new(plans::addresses_of_nodes(&nodes));
                *known = Some((version, Arc::clone(&addresses)));
                addresses
            }
        }
    }

    /// Whether the group was open, when it was last read, for one of these addresses, which the Service is about to
    /// get. Its previous user may have closed it since, so that read proves nothing.
    pub(crate) fn was_opened_by_others(&self, addresses: &[IpAddr], published: &[IpAddr]) -> bool {
        let held = self.recently.held();
        let is_new = |one: &&IpAddr| !published.contains(one) && !held.contains(one);
        let mut new = addresses.iter().filter(is_new).peekable();
        let known = new.peek().and_then(|_| self.observed.security_group()?.cached(self.id.name()));
        known.is_some_and(|known| {
            let open = plans::open_addresses(&known);
            new.any(|one| open.contains(one))
        })
    }

    /// Checks before the group is closed for addresses of users: whether a load balancer or a machine of others has got
    /// one since the cluster had it. The public IPs are read after the group: a cluster that opened the group for an
    /// address before had the address by then, and a later opening is a conflict of the write.
    async fn check_passed_on(&self, step: &Step) -> Result<(), Failure> {
        let passed_on = self.those_of_others(&plans::closed_addresses(step)).await?;
        if passed_on.is_empty() {
            return Ok(());
        }
        self.recently.pass_on(&passed_on);
        let addresses: Vec<String> = passed_on.iter().map(ToString::to_string).collect();
        let message = format!("public IP address {} is in use by others now", addresses.join(", "));
        Err(Failure::new(Kind::Aborted, message))
    }

    /// Drops addresses that others no longer use.
    async fn forget_given_back(&self) -> Result<(), Failure> {
        let passed_on = self.recently.all_passed_on();
        if passed_on.is_empty() {
            return Ok(());
        }
        let still = self.those_of_others(&passed_on).await?;
        self.recently.give_back(&passed_on, &still);
        Ok(())
    }

    /// The addresses that belong to users and are in use by others now, as read from Azure.
    async fn those_of_others(&self, addresses: &BTreeSet<IpAddr>) -> Result<BTreeSet<IpAddr>, Failure> {
        let is_asked_for = |one: &PublicIpAddress| {
            public_ip::address_of(one).is_some_and(|address| addresses.contains(&address))
                && public_ip::may_pass_on(&self.cluster, one)
        };
        let known = self.observed.cached_public_ips();
        let known = known.iter().filter(|one| is_asked_for(one));
        let groups: BTreeSet<ResourceId> = known.filter_map(|one| one.id.as_ref()?.parent()).collect();
        let mut public_ips = Vec::new();
        let now = LogicalTime::now();
        for group in &groups {
            match self.observed.public_ips(group).list(now).await {
                Ok(listed) => public_ips.extend(listed),
                // A missing resource group contains no public IP.
                Err(failure) if failure.is_not_found() => {}
                Err(failure) => return Err(failure),
            }
        }
        let load_balancers = self.observed.load_balancers().all_cached();
        let load_balancers = self.cluster.own_load_balancers(load_balancers, &self.state.services());
        let public_ips = public_ips.iter().map(|one| &**one).filter(|one| is_asked_for(one));
        Ok(public_ip::addresses_of_others(&self.cluster, public_ips, &load_balancers))
    }

    /// The failure of intents that need the group if it does not exist.
    pub(crate) fn absent(&self) -> Failure {
        let message = format!(
            "security group {} does not exist: create it, or correct securityGroupName and \
             securityGroupResourceGroup in the cloud configuration",
            self.id
        );
        Failure::new(Kind::NotFound, message)
    }

    /// The intents of the Services in a batch.
    fn intents(batch: &[(IntentOwner, SecurityGroupRequest)]) -> Vec<AccessIntent> {
        let intent = |(_, request): &(IntentOwner, SecurityGroupRequest)| match request {
            SecurityGroupRequest::CloseUnused => None,
            SecurityGroupRequest::Service(intent) => Some(intent.clone()),
        };
        batch.iter().filter_map(intent).collect()
    }
}

#[async_trait]
impl Resource for SharedSecurityGroup {
    type Key = IntentOwner;
    type Intent = SecurityGroupRequest;
    /// `None` if the group does not exist.
    type Observed = Option<Arc<SecurityGroup>>;
    type Write = Step;
    /// The addresses in use: planning reads them once for each observed state.
    type Claim = Option<ClusterUsage>;
    type Notice = Notice;

    fn name(&self) -> String {
        format!("security group {}", self.id.name())
    }

    async fn observe(&self, newer_than: LogicalTime) -> Result<Self::Observed, Failure> {
        self.forget_given_back().await?;
        self.observed_group(newer_than).await
    }

    fn claim(
        &self,
        observed: &Self::Observed,
        batch: &[(IntentOwner, SecurityGroupRequest)],
    ) -> Option<ClusterUsage> {
        let observed = observed.as_ref()?;
        let intents = Self::intents(batch);
        let usage = self.usage(intents.iter().map(AccessIntent::key));
        self.recently.hold(&plans::open_addresses(observed), |address| usage.has(address));
        Some(usage)
    }

    fn plan(
        &self,
        observed: &Self::Observed,
        batch: &[(IntentOwner, SecurityGroupRequest)],
        usage: &Option<ClusterUsage>,
    ) -> Planned<Self> {
        let intents = Self::intents(batch);
        let (Some(observed), Some(usage)) = (observed, usage) else {
            // Removals need no group.
            let asking = intents.iter().filter(|intent| matches!(intent, AccessIntent::Present { .. }));
            let refused = asking.map(|intent| (IntentOwner::Service(intent.key().clone()), self.absent()));
            return Planned { write: None, refused: refused.collect(), notices: Vec::new() };
        };
        let plan = plans::plan(&self.cluster, observed, &intents, usage);
        let refused = plan
            .refused
            .into_iter()
            .map(|(key, refusal)| (IntentOwner::Service(key), failure::refused(refusal)));
        let notices =
            plan.notices.into_iter().map(|notice| (IntentOwner::Service(notice.service.clone()), notice));
        Planned { write: plan.step, refused: refused.collect(), notices: notices.collect() }
    }

    async fn write(
        &self,
        observed: &Self::Observed,
        step: &Step,
    ) -> Result<Written<Self::Observed>, Failure> {
        self.check_passed_on(step).await?;
        let (mut opened, mut closed) = (Vec::new(), BTreeSet::new());
        if let (Some(observed), Some(Document::SecurityGroup(document))) = (observed, &step.document) {
            let (before, after) = (plans::open_addresses(observed), plans::open_addresses(document));
            opened.extend(after.difference(&before).copied());
            closed.extend(before.difference(&after).copied());
        }
        self.recently.opens(opened);
        let known = self.observed.security_group();
        let written = self.azure.put_known(step, ApiVersion::NETWORK, known).await?;
        // From now on such an address can only be opened by others: Azure may assign it to them.
        self.recently.closed(&closed);
        Ok(Written::Whole(Some(written)))
    }

    fn carried_out(&self, request: SecurityGroupRequest) -> SecurityGroupRequest {
        match request {
            SecurityGroupRequest::Service(intent) => SecurityGroupRequest::Service(intent.carried_out()),
            SecurityGroupRequest::CloseUnused => SecurityGroupRequest::CloseUnused,
        }
    }

    fn fingerprint(&self, step: &Step) -> u64 {
        fingerprint::of([step])
    }

    fn blame(&self, message: &str, batch: &[(IntentOwner, SecurityGroupRequest)]) -> Vec<IntentOwner> {
        let named = plans::services_named_in(message, &Self::intents(batch));
        named.into_iter().map(IntentOwner::Service).collect()
    }

    fn undone(&self, before: &Self::Observed, now: &Self::Observed) -> Option<Self::Observed> {
        let (before, now) = before.as_deref().zip(now.as_deref())?;
        Some(Some(Arc::new(plans::undone(before, now)?)))
    }

    async fn restore(&self, before: &Self::Observed) -> Result<(), Failure> {
        let now = self.observed.settled_security_group(&self.id, LogicalTime::now()).await?;
        let (Some(before), Some(now)) = (before, now) else { return Ok(()) };
        let Some(step) = plans::restore(&self.cluster, before, &now) else { return Ok(()) };
        self.azure.put_known(&step, ApiVersion::NETWORK, self.observed.security_group()).await.map(drop)
    }

    fn is_repair(&self, step: &Step) -> bool {
        step.purpose == Purpose::Repair
    }

    fn concerned(&self, step: &Step, _batch: &[(IntentOwner, SecurityGroupRequest)]) -> Vec<IntentOwner> {
        step.on_behalf_of.iter().cloned().map(IntentOwner::Service).collect()
    }

    /// If packets arrive at the nodes' own addresses, the intent changes with the nodes: the Service is reconciled for
    /// that, and compared separately ([`crate::resync`]).
    fn is_maintained(&self, request: &SecurityGroupRequest) -> bool {
        matches!(request, SecurityGroupRequest::Service(AccessIntent::Present { service, .. }) if !service.arrives_at_nodes())
    }

    fn is_wanted(&self, _owner: &IntentOwner, request: &SecurityGroupRequest) -> bool {
        match request {
            SecurityGroupRequest::Service(AccessIntent::Present { service, .. }) => {
                is_wanted(&self.state, service.removal())
            }
            SecurityGroupRequest::CloseUnused
            | SecurityGroupRequest::Service(AccessIntent::Absent { .. }) => false,
        }
    }

    fn disturbed(&self, owner: &IntentOwner, _request: &SecurityGroupRequest, what: Disturbance) {
        if let IntentOwner::Service(key) = owner {
            self.drift.disturbed(key, drift::Kind::SecurityGroup, &self.name(), &what);
        }
    }
}
