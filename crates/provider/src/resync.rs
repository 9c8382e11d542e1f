//! The periodic comparison (resync) of everything that Services have in Azure with what they want.
//!
//! One list per kind serves all Services. Writers repair differences in shared documents, because each write includes
//! all accepted intents. Resources of a single Service are compared here by the sequence that created them; a Service
//! that lacks something is ensured again.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use arm::{Class, OperationGroup};
use azure_types::{PublicIpAddress, ResourceId, SecurityGroup};
use cloud::{LogicalTime, Looked, Notice};
use futures::future::join_all;
use k8s::ObjectKey;
use planner::drift::{self, Drift, DriftCheck};
use planner::foreign_entries::ForeignEntries;
use planner::load_balancer::LoadBalancerIntent;
use planner::security_group::{self, AccessIntent};
use planner::{Action, Balancer, Document, ServiceIntent, Step};
use tokio::time::Instant;

use crate::drift::{Kind, not_kept_notice};
use crate::failure::{self, Failure};
use crate::intent_owner::IntentOwner;
use crate::load_balancer::LoadBalancerRequest;
use crate::provider::Inner;
use crate::security_group::SecurityGroupRequest;
use writer::Scope;

/// How long a resync is put off while Azure's budget is low: it refills in ten seconds.
const LOW_BUDGET_DELAY: Duration = Duration::from_secs(30);

/// Delay of the second resync after one that found differences; it checks the repairs.
const SECOND_RESYNC_DELAY: Duration = Duration::from_secs(30);

/// A Service that is on a load balancer.
struct Served {
    balancer: Balancer,
    intent: Arc<ServiceIntent>,
}

/// The observed resources of single Services.
struct ObservedPublicIps {
    public_ips: Vec<Arc<PublicIpAddress>>,
    /// Resource groups that could not be read: absence from them proves nothing.
    unread: BTreeSet<ResourceId>,
}

/// Notices for Services if pools do not keep what is written: pools belong to no particular Service.
fn not_kept_by<'a>(failure: &Failure, concerned: impl Iterator<Item = &'a Served>) -> Vec<Notice> {
    if failure.kind != failure::Kind::FailedPrecondition || failure.scope != Scope::All {
        return Vec::new();
    }
    concerned.map(|one| not_kept_notice(&one.intent.key, &failure.message)).collect()
}

impl Inner {
    /// Compares everything that Services have with what they want, and repairs the differences.
    pub(crate) async fn look_again(&self) -> Looked {
        let subscription = self.cluster.config.network_subscription_id();
        if !self.azure().has_room(subscription, OperationGroup::Reads, Class::Refresh) {
            // Calls that a Service waits for go first.
            return Looked { next: Some(LOW_BUDGET_DELAY), ..Looked::default() };
        }
        let failures = self.compare_all(LogicalTime::now()).await;
        for failure in &failures {
            tracing::warn!(error = %failure.message, "cannot compare everything that Services have with what they want");
        }
        let differences = self.drift.take_counts();
        let second = self.drift.needs_second_resync(&differences).then_some(SECOND_RESYNC_DELAY);
        let repair = self.next_repair().map(|at| at.saturating_duration_since(Instant::now()));
        Looked {
            differences,
            next: second.into_iter().chain(repair).min(),
            failure: failures.into_iter().next().map(failure::service_error),
        }
    }

    /// When the next repair that is put off may be tried.
    fn next_repair(&self) -> Option<Instant> {
        let balancers = self.load_balancer_writers().into_iter();
        let balancers = balancers.filter_map(|(_, writer)| writer.next_repair());
        let group = self.security_group_writer().and_then(|writer| writer.next_repair());
        balancers.chain(group).min()
    }

    /// The Services that have what they want on load balancers.
    fn served(&self) -> Vec<Served> {
        let mut all = Vec::new();
        for (balancer, writer) in self.load_balancer_writers() {
            for (_, request) in writer.accepted_intents() {
                if let LoadBalancerRequest::Service(LoadBalancerIntent::Present { service, .. }) = request {
                    all.push(Served { balancer: balancer.clone(), intent: service });
                }
            }
        }
        all
    }

    async fn compare_all(&self, since: LogicalTime) -> Vec<Failure> {
        let served = self.served();
        if served.is_empty() {
            return Vec::new();
        }
        if let Err(failure) = self.observed.load_balancers().list(since).await {
            return vec![failure];
        }
        let mut failures = Vec::new();
        let (observed, unread) = self.read_public_ips_of(&served, since).await;
        failures.extend(unread);
        let public_ips = drift::by_service(served.iter().map(|one| &*one.intent), &observed.public_ips);
        let access = match self.compare(&served, &observed.unread, &public_ips, since).await {
            Ok(access) => access,
            Err(failure) => {
                failures.push(failure);
                Vec::new()
            }
        };
        let (unshared, mut notices) = self.compare_shared(&served, since).await;
        failures.extend(unshared);
        let repaired = self.compare_access(&access, since).await.unwrap_or_else(|failure| {
            failures.push(failure);
            None
        });
        match self.membership.look_again(since).await {
            Ok(true) => self.drift.count(Kind::PoolMembership),
            Ok(false) => {}
            Err(failure) => {
                notices.extend(not_kept_by(&failure, served.iter()));
                failures.push(failure);
            }
        }
        match self.find_strangers(&served, &public_ips, repaired, since).await {
            Ok(strange) => {
                notices.extend(strange);
                self.drift.notify(notices);
            }
            Err(failure) => failures.push(failure),
        }
        failures
    }

    /// The public IPs of all groups in which Services may have any.
    async fn read_public_ips_of(
        &self,
        served: &[Served],
        since: LogicalTime,
    ) -> (ObservedPublicIps, Vec<Failure>) {
        let mut groups: BTreeSet<ResourceId> = BTreeSet::new();
        for Served { intent, .. } in served {
            groups.extend(intent.removal().public_ip_groups.iter().cloned());
        }
        let lists = groups.iter().map(async |group| self.observed.public_ips(group).list(since).await);
        let mut observed = ObservedPublicIps { public_ips: Vec::new(), unread: BTreeSet::new() };
        let mut failures = Vec::new();
        for (group, list) in groups.iter().zip(join_all(lists).await) {
            match list {
                Ok(list) => observed.public_ips.extend(list),
                Err(failure) => {
                    observed.unread.insert(group.clone());
                    failures.push(failure);
                }
            }
        }
        (observed, failures)
    }

    /// Compares the resources of single Services. Returns the access intents of Services whose packets arrive at nodes'
    /// addresses.
    async fn compare(
        &self,
        served: &[Served],
        unread: &BTreeSet<ResourceId>,
        public_ips: &BTreeMap<ObjectKey, Vec<Arc<PublicIpAddress>>>,
        since: LogicalTime,
    ) -> Result<Vec<AccessIntent>, Failure> {
        let all = self.observed.load_balancers().all_cached();
        let load_balancers = self.cluster.own_load_balancers(all, &self.state.services());
        let (mut subnets, mut link_groups) = (BTreeSet::new(), BTreeSet::new());
        for Served { intent, .. } in served {
            if intent.flavor.is_internal() {
                subnets.insert(self.cluster.subnet_id(intent.subnet_name(&self.cluster)));
            }
            if let Some(link) = &intent.private_link {
                subnets.insert(self.cluster.subnet_id(&link.subnet));
                link_groups.insert(self.cluster.network_group(&link.group));
            }
        }
        let mut known_subnets = BTreeMap::new();
        for id in subnets {
            // Only the subnet's existence and its ranges matter.
            if let Some(subnet) = self.observed.subnet(&id, self.observed.started).await? {
                known_subnets.insert(id, subnet);
            }
        }
        let mut private_links = Vec::new();
        for group in &link_groups {
            let found = self.observed.private_links(group).list(since).await?;
            private_links.extend(found);
        }
        let machine_sets = match self.cluster.config.uses_basic_load_balancer() {
            true => Some(self.machine_sets(self.observed.started).await),
            false => None,
        };
        let namespaces: BTreeMap<_, _> = self
            .state
            .namespaces()
            .into_iter()
            .filter_map(|name| Some((name.clone(), self.state.namespace_labels(&name)?)))
            .collect();
        let nodes = self.state.nodes();
        let mut places = self.places.lock().clone();
        let look = DriftCheck {
            // Each Service checks several times whether it has a part of a load balancer.
            load_balancers: load_balancers
                .into_iter()
                .map(|(balancer, document)| (balancer, document.indexed()))
                .collect(),
            public_ips,
            nodes: &nodes,
            private_links: &private_links,
            subnets: &known_subnets,
            namespaces: &namespaces,
            machine_sets: machine_sets.as_ref(),
        };
        let mut access = Vec::new();
        for Served { balancer, intent } in served {
            if !intent.removal().public_ip_groups.is_disjoint(unread) {
                continue;
            }
            let Some(published) = self.published(&intent.key) else { continue };
            let found = look.compare(&self.cluster, intent, &published, &mut places);
            access.extend(found.access);
            let Some(difference) = found.difference else { continue };
            self.note(balancer, &intent.key, difference);
        }
        Ok(access)
    }

    fn note(&self, balancer: &Balancer, key: &ObjectKey, difference: Drift) {
        let is_gone = match &difference {
            Drift::PublicIps(steps) => steps.iter().any(|step| step.action == Action::Create),
            Drift::Refused => true,
            Drift::PrivateLink(_) | Drift::Misplaced | Drift::Status => false,
        };
        if is_gone {
            // Its part of the load balancer would refer to a missing public IP.
            self.load_balancer(balancer).withdraw(&IntentOwner::Service(key.clone()));
        }
        let is_fight = |steps: &[Step]| steps.iter().all(|step| self.public_ips.is_left(step));
        let kind = match difference {
            Drift::PublicIps(steps) if is_fight(&steps) => return,
            Drift::PublicIps(_) | Drift::Refused => Kind::PublicIp,
            Drift::PrivateLink(_) => Kind::PrivateLink,
            Drift::Misplaced => Kind::LoadBalancer,
            Drift::Status => Kind::Status,
        };
        self.drift.differs(key, kind);
    }

    /// The addresses in a Service's status; `None` if the Service no longer wants a load balancer.
    fn published(&self, key: &ObjectKey) -> Option<BTreeSet<IpAddr>> {
        let service = self.state.service(key).filter(|service| service.is_to_be_served())?;
        let ingress = service.status.load_balancer.ingress.iter();
        Some(ingress.filter_map(|entry| entry.ip.parse().ok()).collect())
    }

    /// Lets the writers compare the shared documents. Returns failures, and notices for Services.
    async fn compare_shared(&self, served: &[Served], since: LogicalTime) -> (Vec<Failure>, Vec<Notice>) {
        let writers = self.load_balancer_writers().into_iter();
        let writers: Vec<_> = writers.filter(|(_, writer)| writer.has_accepted_intents()).collect();
        let balancing = writers.iter().map(async |(_, writer)| {
            writer.submit(IntentOwner::Comparison, LoadBalancerRequest::Members, since, None).await.map(drop)
        });
        let access = async {
            match self.security_group_writer() {
                Some(writer) => writer
                    .submit(IntentOwner::Comparison, SecurityGroupRequest::CloseUnused, since, None)
                    .await
                    .map(drop),
                None => Ok(()),
            }
        };
        let (balanced, opened) = futures::join!(join_all(balancing), access);
        let mut notices = Vec::new();
        for ((balancer, _), compared) in writers.iter().zip(&balanced) {
            let Some(failure) = compared.as_ref().err() else { continue };
            notices.extend(not_kept_by(failure, served.iter().filter(|one| one.balancer == *balancer)));
        }
        let mut failures: Vec<Failure> =
            balanced.into_iter().chain([opened]).filter_map(Result::err).collect();
        if self.cluster.has_several_load_balancers()
            && let Err(unfinished) = self.share_all_nodes(since).await
        {
            failures.push(unfinished.failure);
        }
        (failures, notices)
    }

    /// Compares the security group for Services whose packets arrive at nodes' addresses. Returns the group as it will
    /// be, if they need a change.
    async fn compare_access(
        &self,
        wanted: &[AccessIntent],
        since: LogicalTime,
    ) -> Result<Option<SecurityGroup>, Failure> {
        let Some(writer) = self.security_group_writer().filter(|_| !wanted.is_empty()) else {
            return Ok(None);
        };
        let Some(group) = writer.resource().observed_group(since).await? else {
            return Err(writer.resource().absent());
        };
        let usage = writer.resource().usage(wanted.iter().map(AccessIntent::key));
        let planned = security_group::plan(&self.cluster, &group, wanted, &usage);
        let Some(step) = planned.step else { return Ok(None) };
        for key in step.on_behalf_of {
            if wanted.iter().any(|intent| *intent.key() == key) {
                self.drift.differs(&key, Kind::SecurityGroup);
            }
        }
        Ok(match step.document {
            Some(Document::SecurityGroup(repaired)) => Some(*repaired),
            _ => None,
        })
    }

    /// Finds resources of unknown origin beside Services' parts, and reports each once while it exists. `repaired` is
    /// the security group as it will be, if it is about to be written.
    async fn find_strangers(
        &self,
        served: &[Served],
        public_ips: &BTreeMap<ObjectKey, Vec<Arc<PublicIpAddress>>>,
        repaired: Option<SecurityGroup>,
        since: LogicalTime,
    ) -> Result<Vec<Notice>, Failure> {
        if !self.state.services_synced() {
            return Ok(Vec::new());
        }
        let strangers = match self.security_group_writer() {
            Some(writer) => {
                let group = match repaired {
                    Some(repaired) => Some(Arc::new(repaired)),
                    None => writer.resource().observed_group(since).await?,
                };
                let usage = writer.resource().usage([]);
                group.map(|group| ForeignEntries::of_rules(&group, &usage)).unwrap_or_default()
            }
            None => ForeignEntries::default(),
        };
        let none = Vec::new();
        let exists = |key: &ObjectKey| self.state.service(key).is_some();
        let mut notices = Vec::new();
        for Served { intent, .. } in served {
            let Some(published) = self.published(&intent.key) else { continue };
            let of_service = public_ips.get(&intent.key).unwrap_or(&none);
            notices.extend(strangers.beside(&self.cluster, intent, &published, of_service, exists));
        }
        Ok(notices)
    }
}
