//! What has to happen for one Service, and in which order; decided only here.
//!
//! A [`Sequence`] is a value that returns the next task, given what Azure holds now. The preview drives it with the
//! expected state ([`crate::plan_cluster`]); the provider drives it with Azure's answers. Both do the same things in
//! the same order:
//!
//! ```text
//!  a Service that wants a load balancer        a Service that leaves
//!    0 load balancers of SKU Basic deleted
//!    1 place promised, public IPs written        1 its parts of every load balancer that holds any,
//!    2 leaves load balancers of other kinds        beside its security rules
//!    3 load balancer and members of pools,       2 public IPs given up
//!      beside the security rules where
//!      the addresses are known
//!    4 security rules, where they were not
//!    5 private link service
//!    6 public IPs given up that it does not use
//! ```
//!
//! Nothing refers to what does not exist yet, and nothing is given up while something refers to it. Every step is
//! decided from the observed state, so a sequence that was interrupted anywhere can be started again and continues.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{PublicIpAddress, ResourceId};
use k8s::{Notice, ObjectKey, Service};

use crate::machines::backend_pool;
use crate::model::family::is_public;
use crate::model::{Balancer, Cluster, Family, names};
pub use crate::outcome::Stop;
use crate::outcome::{Action, OtherName, Refusal, Step, Wait};
use crate::placement;
pub use crate::placement::Seen;
use crate::resources::load_balancer::frontend::{self, frontends_of};
use crate::resources::load_balancer::{
    self, ListedLoadBalancer, LoadBalancerIntent, LoadBalancersByName, Places,
};
use crate::resources::security_group::AccessIntent;
use crate::resources::{private_link, public_ip};
use crate::service::{ServiceIntent, ServiceRemoval};

/// The maximum number of times that a Service may have a public IP deleted and created again: once per family, and once
/// more.
const MAX_RECREATIONS: u32 = 3;

/// The next task.
#[derive(Debug)]
pub enum Task {
    /// Write these public IPs in parallel, and wait until they may be referred to.
    WritePublicIps(Vec<Step>),
    /// Wait until no operation runs on these public IPs.
    AwaitPublicIps(Vec<ResourceId>),
    /// Bring shared resources to these intents in parallel; then call [`Sequence::submitted`].
    Submit(Vec<Intent>),
    /// Write or delete these in order: a private link service, and its prerequisites.
    WritePrivateLink(Vec<Step>),
    /// Give up these public IPs in parallel.
    ReleasePublicIps(Vec<Step>),
    /// Done: the Service has all it wants. These are the addresses for its status.
    Finish(Vec<IpAddr>),
}

/// What a Service wants of a shared resource.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "as the intents inside")]
pub enum Intent {
    /// For a load balancer. If the Service is present there, the eligible nodes join its pools afterwards.
    LoadBalancer(Balancer, LoadBalancerIntent),
    /// For the security group.
    SecurityGroup(AccessIntent),
}

/// The goal of a sequence.
#[derive(Debug, Clone)]
enum Goal {
    Present(Arc<ServiceIntent>),
    Absent,
}

/// The progress of a Service. Later stages are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Load balancers of another SKU than the configured one are deleted. Until then no address can be of another SKU,
    /// and no machine can be behind another load balancer.
    Retiring,
    /// Its public IPs are written.
    Addresses,
    /// It leaves load balancers that are not its own.
    Leaving,
    /// Its load balancer is written and, if the addresses are known, the security group in parallel.
    Balancing,
    /// The security group is written.
    Access,
    /// Its private link service is written.
    Linking,
    /// Public IPs that it does not use are given up.
    Releasing,
}

/// The sequence of one Service.
#[derive(Debug, Clone)]
pub struct Sequence {
    removal: Arc<ServiceRemoval>,
    goal: Goal,
    stage: Stage,
    /// The load balancer that it is placed on, once that is decided.
    destination: Option<Balancer>,
    /// The public IP of each family, once they are ready.
    public_ips: BTreeMap<Family, ResourceId>,
    /// Whether the security group is written in parallel with the load balancer.
    access_beside: bool,
    /// Whether the security group waits for the load balancer even so: it was opened in vain before.
    access_last: bool,
    /// Whether a public IP can only be created after another was deleted.
    recreates: bool,
    recreations: u32,
    /// Whether public IPs are to be given up at the end.
    releases: bool,
    /// Public IPs that could not be given up, because something else refers to them.
    kept: BTreeSet<ResourceId>,
    /// Resources that are used as they are, because changes to them do not last.
    accepted: BTreeSet<ResourceId>,
    /// Load balancers of another name that serve the Service, or the cluster that has none of its own name.
    other_name: Option<OtherName>,
}

impl Sequence {
    /// Brings a Service to what it wants.
    pub fn ensure(intent: Arc<ServiceIntent>) -> Self {
        let removal = Arc::clone(intent.removal());
        Self::new(removal, Goal::Present(intent), Stage::Retiring)
    }

    /// The same for a Service that the load balancer refused before: the security group is opened only after the load
    /// balancer accepted it, instead of being opened in vain again and again.
    #[must_use]
    pub fn opening_last(self) -> Self {
        Self { access_last: true, ..self }
    }

    /// Removes everything that a Service has.
    pub fn remove(removal: Arc<ServiceRemoval>) -> Self {
        Self::new(removal, Goal::Absent, Stage::Balancing)
    }

    fn new(removal: Arc<ServiceRemoval>, goal: Goal, stage: Stage) -> Self {
        Self {
            removal,
            goal,
            stage,
            destination: None,
            public_ips: BTreeMap::new(),
            access_beside: false,
            access_last: false,
            recreates: false,
            recreations: 0,
            releases: false,
            kept: BTreeSet::new(),
            accepted: BTreeSet::new(),
            other_name: None,
        }
    }

    /// The Service.
    pub fn key(&self) -> &ObjectKey {
        &self.removal.key
    }

    /// What it owns, and how that is found.
    pub fn owner(&self) -> &Arc<ServiceRemoval> {
        &self.removal
    }

    /// What it wants; absent if it is being removed.
    pub fn intent(&self) -> Option<&Arc<ServiceIntent>> {
        match &self.goal {
            Goal::Present(intent) => Some(intent),
            Goal::Absent => None,
        }
    }

    /// The current stage.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Records load balancers of another name that already serve the Service. If the cluster has none of its own name
    /// yet, one that serves any Service of the cluster counts as well. `services` are all of the cluster.
    pub fn see_load_balancers(
        &mut self,
        all: &LoadBalancersByName<'_>,
        services: impl FnOnce() -> Vec<Arc<Service>>,
    ) {
        let base = self.removal.base_name.as_deref();
        self.other_name = base.and_then(|base| all.serving_instead(&self.removal.key, base)).or_else(|| {
            let makes_the_first = all.are_all_others() && self.intent().is_some();
            makes_the_first.then(|| all.serving(&services())).flatten()
        });
    }

    /// Records the groups in which the public IPs of its frontends are. A Service that names another group moves its
    /// frontends there, and then nothing else says where the public IP is that it has to give up.
    pub fn see_frontends(&mut self, cluster: &Cluster, load_balancers: &[(Balancer, ListedLoadBalancer)]) {
        let none = BTreeMap::new();
        for (balancer, document) in load_balancers {
            for frontend in frontends_of(cluster, balancer, document, &self.removal, &none) {
                let group = frontend.public_ip.as_ref().and_then(ResourceId::parent);
                if let Some(group) = group.filter(|group| !self.removal.public_ip_groups.contains(group)) {
                    Arc::make_mut(&mut self.removal).public_ip_groups.insert(group);
                }
            }
        }
    }

    /// The public addresses in the Service's status that none of these public IPs has. If the Service was interrupted
    /// after its frontends had moved to another group, they are in the group that it named before, and only tags say
    /// so.
    pub fn lost_addresses(&self, public_ips: &[Arc<PublicIpAddress>]) -> Vec<IpAddr> {
        let known: BTreeSet<IpAddr> =
            public_ips.iter().filter_map(|one| public_ip::address_of(one)).collect();
        let owner = &self.removal;
        let published = owner.published_addresses.iter().copied();
        let lost = |address: &IpAddr| {
            is_public(*address) && !known.contains(address) && !owner.additional_addresses.contains(address)
        };
        published.filter(lost).collect()
    }

    /// Whether the Service has a frontend on any load balancer: only then can a private link service offer it.
    pub fn has_frontend(
        &self,
        cluster: &Cluster,
        load_balancers: &[(Balancer, ListedLoadBalancer)],
        public_ips: &[Arc<PublicIpAddress>],
    ) -> bool {
        let claimed = public_ip::claimed(cluster, &self.removal, public_ips);
        load_balancers.iter().any(|(balancer, document)| {
            !frontends_of(cluster, balancer, document, &self.removal, &claimed).is_empty()
        })
    }

    /// Records the groups of the public IPs that are tagged as the Service's; returns whether there are new ones.
    pub fn see_public_ips<'a>(
        &mut self,
        cluster: &Cluster,
        all: impl IntoIterator<Item = &'a PublicIpAddress>,
    ) -> bool {
        let own = all.into_iter().filter(|one| public_ip::is_used_by(cluster, &self.removal, one));
        let groups: BTreeSet<ResourceId> = own.filter_map(|one| one.id.as_ref()?.parent()).collect();
        let has_more = !groups.is_subset(&self.removal.public_ip_groups);
        if has_more {
            Arc::make_mut(&mut self.removal).public_ip_groups.extend(groups);
        }
        has_more
    }

    /// The load balancer that it will be on, as far as known: where there are several, only after [`Self::next`] was
    /// called.
    pub fn destination(&self, cluster: &Cluster) -> Option<Balancer> {
        let intent = self.intent()?;
        let is_only_one = !cluster.has_several_load_balancers() && !cluster.config.uses_basic_load_balancer();
        self.destination.clone().or_else(|| is_only_one.then(|| cluster.placement(intent.flavor)))
    }

    /// Returns the next task. `places` is consulted once, before addresses are bought.
    ///
    /// # Errors
    ///
    /// If the Service cannot be served, or not yet.
    pub fn next(&mut self, cluster: &Cluster, seen: &Seen<'_>, places: &mut Places) -> Result<Task, Stop> {
        if let Some(other) = &self.other_name {
            return Err(Refusal::OtherClusterName(other.clone()).into());
        }
        match self.goal.clone() {
            Goal::Present(intent) => self.next_present(cluster, seen, places, &intent),
            Goal::Absent => Ok(self.next_absent(cluster, seen)),
        }
    }

    /// The latest [`Task::Submit`] is carried out.
    pub fn submitted(&mut self) {
        self.stage = match (self.stage, self.intent().is_some()) {
            (Stage::Retiring, _) => Stage::Addresses,
            (Stage::Addresses | Stage::Leaving, _) => Stage::Balancing,
            (Stage::Balancing, true) if !self.access_beside => Stage::Access,
            (Stage::Balancing | Stage::Access, true) => Stage::Linking,
            (Stage::Balancing | Stage::Access | Stage::Linking | Stage::Releasing, _) => Stage::Releasing,
        };
    }

    /// A public IP cannot be given up, because something else refers to it: the Service continues without that.
    pub fn keep(&mut self, public_ip: ResourceId) {
        self.kept.insert(public_ip);
    }

    /// Changes to a resource do not last: the Service uses it as it is.
    pub fn accept(&mut self, resource: ResourceId) {
        self.accepted.insert(resource);
    }

    /// Whether the next task depends on the current public IPs; otherwise the ones seen before are enough.
    pub fn needs_public_ips(&self) -> bool {
        match (self.stage, self.intent().is_some()) {
            (Stage::Retiring | Stage::Addresses, _) | (_, false) => true,
            (Stage::Releasing, true) => self.releases,
            (Stage::Access, true) => self.waits_for_release(),
            (Stage::Leaving | Stage::Balancing | Stage::Linking, true) => false,
        }
    }

    /// Whether it gets an address only after a public IP is deleted and created again.
    fn waits_for_release(&self) -> bool {
        self.recreates && self.public_ips.is_empty()
    }

    fn next_present(
        &mut self,
        cluster: &Cluster,
        seen: &Seen<'_>,
        places: &mut Places,
        intent: &Arc<ServiceIntent>,
    ) -> Result<Task, Stop> {
        let balancer = match &self.destination {
            Some(balancer) => balancer.clone(),
            None => self.destination.insert(placement::place(cluster, intent, seen, places)?).clone(),
        };
        if self.stage == Stage::Retiring {
            let due = seen.load_balancers.iter();
            let due = due.filter(|(_, document)| load_balancer::has_to_be_retired(cluster, document));
            let retired = || LoadBalancerIntent::Retired { service: Arc::clone(&self.removal) };
            let due: Vec<Intent> = due.map(|(one, _)| Intent::LoadBalancer(one.clone(), retired())).collect();
            if !due.is_empty() {
                // A Service that is refused anyway must not interrupt the traffic of others.
                public_ip::plan(cluster, intent, seen.public_ips)?;
                return Ok(Task::Submit(due));
            }
            self.stage = Stage::Addresses;
        }
        if self.stage == Stage::Addresses {
            let mut plan = public_ip::plan(cluster, intent, seen.public_ips)?;
            let is_due = |step: &Step| step.action == Action::Create || !self.accepted.contains(&step.target);
            plan.before.retain(is_due);
            plan.ensure.retain(is_due);
            let due = if plan.before.is_empty() { plan.ensure } else { plan.before };
            if !due.is_empty() {
                let document = seen.load_balancers.iter().find(|(one, _)| *one == balancer);
                let document = document.map(|(_, document)| &**document);
                places.of(&balancer).reserve(&balancer, document, intent)?;
                return Ok(Task::WritePublicIps(due));
            }
            if !plan.running.is_empty() {
                return Ok(Task::AwaitPublicIps(plan.running));
            }
            self.public_ips = plan.use_ids;
            self.recreates = plan.recreates;
            self.releases = !plan.release.is_empty();
            self.stage = Stage::Leaving;
        }
        if self.stage == Stage::Leaving {
            let elsewhere: Vec<Intent> = self.holders(cluster, seen, |one| *one != balancer);
            if !elsewhere.is_empty() {
                self.check_destination(cluster, seen, &balancer, intent)?;
                return Ok(Task::Submit(elsewhere));
            }
            self.stage = Stage::Balancing;
        }
        if self.stage == Stage::Balancing {
            return Ok(Task::Submit(self.place(cluster, seen, &balancer, intent)));
        }
        if self.stage == Stage::Access {
            if !self.waits_for_release() {
                let addresses = self.frontend_addresses(cluster, seen, &balancer)?;
                return Ok(Task::Submit(vec![access(cluster, seen, intent, addresses)]));
            }
            self.stage = Stage::Releasing;
        }
        if self.stage == Stage::Linking {
            let steps = self.link(cluster, seen, &balancer, intent)?;
            if !steps.is_empty() {
                return Ok(Task::WritePrivateLink(steps));
            }
            self.stage = Stage::Releasing;
        }
        if self.releases {
            let plan = public_ip::plan(cluster, intent, seen.public_ips)?;
            if let Some(task) = self.release(cluster, seen, plan.release) {
                return Ok(task);
            }
            self.releases = false;
        }
        if self.recreates {
            self.recreations += 1;
            if self.recreations > MAX_RECREATIONS {
                return Err(Stop::NotYet(Wait::PublicIpRecreated { service: intent.key.clone() }));
            }
            self.stage = Stage::Addresses;
            return self.next_present(cluster, seen, places, intent);
        }
        let mut addresses = self.frontend_addresses(cluster, seen, &balancer)?;
        for address in intent.additional_addresses() {
            if !addresses.contains(address) {
                addresses.push(*address);
            }
        }
        Ok(Task::Finish(addresses))
    }

    /// Refuses a Service that the destination load balancer would refuse: it keeps what it has on the others (LB-452).
    fn check_destination(
        &self,
        cluster: &Cluster,
        seen: &Seen<'_>,
        balancer: &Balancer,
        intent: &Arc<ServiceIntent>,
    ) -> Result<(), Stop> {
        let document = seen.load_balancers.iter().find(|(one, _)| one == balancer);
        let document = document.map(|(_, document)| &**document);
        let batch = [self.presence(seen, intent)];
        let planned =
            load_balancer::plan(cluster, balancer, document, &batch, load_balancer::Known::default());
        match planned.refused.into_iter().next() {
            Some((_, refusal)) => Err(refusal.into()),
            None => Ok(()),
        }
    }

    fn presence(&self, seen: &Seen<'_>, intent: &Arc<ServiceIntent>) -> LoadBalancerIntent {
        LoadBalancerIntent::Present {
            service: Arc::clone(intent),
            public_ips: self.public_ips.clone(),
            subnet: seen.subnet.cloned(),
        }
    }

    /// The load balancer and, in parallel, the security group if all addresses are known. If the Service is served at
    /// an address that it is about to leave, the security group comes afterwards: if the load balancer refuses, the
    /// Service still depends on that address (LB-454). The same holds if the address is a user's and the Service has no
    /// frontend there yet: another cluster behind the same security group may have the address.
    fn place(
        &mut self,
        cluster: &Cluster,
        seen: &Seen<'_>,
        balancer: &Balancer,
        intent: &Arc<ServiceIntent>,
    ) -> Vec<Intent> {
        let mut intents = vec![Intent::LoadBalancer(balancer.clone(), self.presence(seen, intent))];
        let known: Option<Vec<IpAddr>> =
            self.public_ips.values().map(|id| address_of(seen.public_ips, id)).collect();
        let may_open = |addresses: &Vec<IpAddr>| {
            let served = self.observed_addresses(cluster, seen.load_balancers, seen.public_ips);
            let may_be_others = |one: &PublicIpAddress| {
                let address = public_ip::address_of(one);
                address.is_some_and(|it| addresses.contains(&it) && !served.contains(&it))
                    && public_ip::may_pass_on(cluster, one)
            };
            served.iter().all(|address| addresses.contains(address))
                && !seen.public_ips.iter().any(|one| may_be_others(one))
        };
        let known =
            known.filter(|addresses| !self.access_last && !addresses.is_empty() && may_open(addresses));
        self.access_beside = known.is_some();
        if let Some(addresses) = known {
            intents.push(access(cluster, seen, intent, addresses));
        }
        intents
    }

    /// The steps for its private link service.
    fn link(
        &self,
        cluster: &Cluster,
        seen: &Seen<'_>,
        balancer: &Balancer,
        intent: &ServiceIntent,
    ) -> Result<Vec<Step>, Stop> {
        // A frontend that waits for its public IP passes this stage once more.
        let Some(links) = seen.private_links.filter(|_| !self.recreates) else { return Ok(Vec::new()) };
        let document = seen.load_balancers.iter().find(|(one, _)| one == balancer);
        let frontends = document
            .map(|(_, document)| frontends_of(cluster, balancer, document, &self.removal, &self.public_ips));
        let of_v4 = frontends.into_iter().flatten().find(|frontend| frontend.family == Family::V4);
        let Some(frontend) = of_v4 else {
            return match intent.private_link {
                Some(_) => Err(Stop::NotYet(Wait::NoFrontend { service: self.removal.key.clone() })),
                None => Ok(Vec::new()),
            };
        };
        let mut steps = private_link::plan(
            cluster,
            intent,
            &frontend,
            links,
            seen.private_link_subnet.map(|subnet| &**subnet),
        )?;
        steps.retain(|step| step.action == Action::Create || !self.accepted.contains(&step.target));
        Ok(steps)
    }

    fn next_absent(&mut self, cluster: &Cluster, seen: &Seen<'_>) -> Task {
        let release = public_ip::plan_removal(cluster, &self.removal, seen.public_ips).release;
        if self.stage < Stage::Releasing {
            let mut intents = self.holders(cluster, seen, |_| true);
            let addresses = self.addresses_to_leave(cluster, seen, &release);
            intents.push(Intent::SecurityGroup(AccessIntent::Absent {
                service: Arc::clone(&self.removal),
                addresses,
            }));
            return Task::Submit(intents);
        }
        self.release(cluster, seen, release).unwrap_or(Task::Finish(Vec::new()))
    }

    /// Gives public IPs up. A public IP that another Service uses is not deleted, even if its tag does not list that
    /// Service.
    fn release(&self, cluster: &Cluster, seen: &Seen<'_>, steps: Vec<Step>) -> Option<Task> {
        let shared = |step: Step| {
            let is_needed = step.action == Action::Delete && self.is_used_by_others(seen, &step.target);
            let mut all = seen.public_ips.iter();
            let observed = all.find(|one| is_needed && one.id.as_ref() == Some(&step.target));
            match observed {
                Some(observed) => public_ip::leave(cluster, &self.removal, &step.target, observed),
                None => step,
            }
        };
        let steps = steps.into_iter().filter(|step| !self.kept.contains(&step.target));
        let steps: Vec<Step> = steps.map(shared).collect();
        (!steps.is_empty()).then_some(Task::ReleasePublicIps(steps))
    }

    /// Whether a frontend of another Service, or one that a rule of another Service refers to, has this public IP.
    fn is_used_by_others(&self, seen: &Seen<'_>, public_ip: &ResourceId) -> bool {
        let own = self.removal.base_name.as_deref().unwrap_or_default();
        let is_of_other = |name: &str| names::base_of(name).is_some_and(|base| base != own);
        let documents = seen.load_balancers.iter().filter_map(|(_, document)| document.properties.as_ref());
        documents.into_iter().any(|properties| {
            let frontends = properties.frontend_ip_configurations.iter().flatten();
            let mut with_it = frontends.filter(|one| frontend::public_ip_of(one) == Some(public_ip));
            let has_rules = |id: &ResourceId| frontend::rules_at(properties, id).any(is_of_other);
            with_it.any(|one| is_of_other(frontend::name_of(one)) || one.id.as_ref().is_some_and(has_rules))
        })
    }

    /// The notices about public IPs that stay when the Service is removed.
    pub fn farewell(&self, cluster: &Cluster, public_ips: &[Arc<PublicIpAddress>]) -> Vec<Notice> {
        match self.goal {
            Goal::Present(_) => Vec::new(),
            Goal::Absent => public_ip::kept(cluster, &self.removal, public_ips),
        }
    }

    /// The intents that remove the Service from the load balancers that hold any of its parts.
    fn holders(&self, cluster: &Cluster, seen: &Seen<'_>, which: impl Fn(&Balancer) -> bool) -> Vec<Intent> {
        let public_ips = public_ip::claimed(cluster, &self.removal, seen.public_ips);
        let holds = |(balancer, document): &&(Balancer, ListedLoadBalancer)| {
            which(balancer) && load_balancer::holds(cluster, balancer, document, &self.removal, &public_ips)
        };
        let absent = || LoadBalancerIntent::Absent {
            service: Arc::clone(&self.removal),
            public_ips: public_ips.clone(),
        };
        let found = seen.load_balancers.iter().filter(holds);
        found.map(|(balancer, _)| Intent::LoadBalancer(balancer.clone(), absent())).collect()
    }

    /// The addresses of its frontends in the load balancer's order. If one is not known yet, the Service has to be
    /// checked again (LB-333).
    fn frontend_addresses(
        &self,
        cluster: &Cluster,
        seen: &Seen<'_>,
        balancer: &Balancer,
    ) -> Result<Vec<IpAddr>, Stop> {
        let service = || self.removal.key.clone();
        let document = seen.load_balancers.iter().find(|(one, _)| one == balancer);
        let (_, document) =
            document.ok_or_else(|| Stop::NotYet(Wait::NoLoadBalancer { service: service() }))?;
        let mut addresses = Vec::new();
        for frontend in frontends_of(cluster, balancer, document, &self.removal, &self.public_ips) {
            let public = || address_of(seen.public_ips, frontend.public_ip.as_ref()?);
            let address = frontend.private_address.or_else(public);
            let address = address.ok_or_else(|| match &frontend.public_ip {
                Some(id) => Stop::NotYet(Wait::PublicIpWithoutAddress { name: id.name().to_owned() }),
                None => Stop::NotYet(Wait::FrontendWithoutAddress { service: service() }),
            })?;
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return Err(Stop::NotYet(Wait::NoFrontend { service: service() }));
        }
        Ok(addresses)
    }

    /// The known addresses that a leaving Service has or had.
    fn addresses_to_leave(&self, cluster: &Cluster, seen: &Seen<'_>, release: &[Step]) -> Vec<IpAddr> {
        let mut addresses = self.observed_addresses(cluster, seen.load_balancers, seen.public_ips);
        addresses.extend(&self.removal.published_addresses);
        // Its own public IPs, although no frontend refers to them any more: it was interrupted before.
        addresses.extend(release.iter().filter_map(|step| address_of(seen.public_ips, &step.target)));
        addresses.into_iter().collect()
    }

    /// The addresses of the Service's frontends on all load balancers.
    pub(crate) fn observed_addresses(
        &self,
        cluster: &Cluster,
        load_balancers: &[(Balancer, ListedLoadBalancer)],
        public_ips: &[Arc<PublicIpAddress>],
    ) -> BTreeSet<IpAddr> {
        let claimed = public_ip::claimed(cluster, &self.removal, public_ips);
        let owned = load_balancers.iter().flat_map(|(balancer, document)| {
            frontends_of(cluster, balancer, document, &self.removal, &claimed)
        });
        owned
            .filter_map(|frontend| {
                let public = || address_of(public_ips, frontend.public_ip.as_ref()?);
                frontend.private_address.or_else(public)
            })
            .collect()
    }
}

fn address_of(public_ips: &[Arc<PublicIpAddress>], id: &ResourceId) -> Option<IpAddr> {
    public_ips
        .iter()
        .find(|public_ip| public_ip.id.as_ref() == Some(id))
        .and_then(|one| public_ip::address_of(one))
}

fn access(cluster: &Cluster, seen: &Seen<'_>, intent: &Arc<ServiceIntent>, addresses: Vec<IpAddr>) -> Intent {
    // If floating IP is off, packets arrive with a node's address as destination; otherwise node addresses are not
    // needed.
    let families: Vec<Family> =
        intent.families.iter().copied().filter(|family| !intent.arrival(*family).is_floating()).collect();
    let node_addresses = backend_pool::node_addresses(cluster, seen.nodes, &families);
    Intent::SecurityGroup(AccessIntent::Present { service: Arc::clone(intent), addresses, node_addresses })
}
