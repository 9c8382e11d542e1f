//! Reconciles one Service across all resources: drives its [`Sequence`] with Azure's answers.
//!
//! The sequence decides the steps and their order; this file reads, writes and waits.

use std::sync::Arc;

use azure_types::{PrivateLinkService, PublicIpAddress, Subnet};
use cloud::{Ensured, Labels, LogicalTime, Notice, ObjectList, ServiceError};
use futures::future::{BoxFuture, join_all};
use k8s::{Node, ObjectKey, Service};
use planner::cluster_name::LoadBalancersByName;
use planner::load_balancer::LoadBalancerIntent;
use planner::placement::MachineSets;
use planner::security_group::{AccessIntent, in_force};
use planner::sequence::{ResourceIntent, Sequence, ServiceObservation, Stage, Stop, Task};
use planner::{Action, Balancer, Flavor, ListedLoadBalancer, backend_pool};
use tokio::time::sleep;

use crate::failure::{Failure, Kind, refused, service_error, stopped};
use crate::intent_owner::IntentOwner;
use crate::load_balancer::{self, LoadBalancerRequest, SharedLoadBalancer};
use crate::membership::NODES_UNKNOWN;
use crate::observed::Observed;
use crate::provider::Inner;
use crate::security_group::{SecurityGroupRequest, SharedSecurityGroup};
use writer::Announcement;

/// Announcements of intents to the writers that a Service needs.
pub(crate) struct Announcements {
    /// One for each load balancer that the Service may get.
    pub(crate) load_balancers: Vec<(Balancer, Announcement<SharedLoadBalancer>)>,
    pub(crate) security_group: Option<Announcement<SharedSecurityGroup>>,
}

impl Announcements {
    fn take_load_balancer(&mut self, balancer: &Balancer) -> Option<Announcement<SharedLoadBalancer>> {
        let at = self.load_balancers.iter().position(|(announced, _)| announced == balancer)?;
        Some(self.load_balancers.swap_remove(at).1)
    }

    /// Withdraws all announcements because Azure asked to wait: other Services do not wait for this one.
    fn withdraw(&mut self) {
        self.load_balancers.clear();
        self.security_group = None;
    }

    /// Withdraws the announcements to the other load balancers once the Service has a place on one.
    fn decide(&mut self, destination: Option<&Balancer>) {
        if let Some(destination) = destination {
            self.load_balancers.retain(|(balancer, _)| balancer == destination);
        }
    }
}

/// What was read for one Service.
#[derive(Default)]
pub(crate) struct ServiceReading {
    pub(crate) public_ips: Vec<Arc<PublicIpAddress>>,
    /// The load balancers that may hold parts of the Service. Their documents are taken from the cache on use: of a
    /// load balancer with hundreds of Services each retained version is a megabyte.
    balancers: Vec<Balancer>,
    subnet: Option<Arc<Subnet>>,
    nodes: ObjectList<Node>,
    private_links: Option<Vec<Arc<PrivateLinkService>>>,
    /// Whether the private link services were read after the decision to delete one.
    private_links_are_fresh: bool,
    private_link_subnet: Option<Arc<Subnet>>,
    namespace: Option<Arc<Labels>>,
    machine_sets: Option<MachineSets>,
}

impl ServiceReading {
    pub(crate) fn seen<'a>(
        &'a self,
        load_balancers: &'a [(Balancer, ListedLoadBalancer)],
    ) -> ServiceObservation<'a> {
        ServiceObservation {
            public_ips: &self.public_ips,
            load_balancers,
            subnet: self.subnet.as_ref(),
            nodes: &self.nodes,
            private_links: self.private_links.as_deref(),
            private_link_subnet: self.private_link_subnet.as_ref(),
            namespace: self.namespace.as_deref(),
            machine_sets: self.machine_sets.as_ref(),
        }
    }

    fn add(&mut self, balancer: &Balancer) {
        if !self.balancers.contains(balancer) {
            self.balancers.push(balancer.clone());
        }
    }

    /// The cached load balancers, at least as new as what was read or written for the Service.
    pub(crate) fn load_balancers(&self, observed: &Observed) -> Vec<(Balancer, ListedLoadBalancer)> {
        let cache = observed.load_balancers();
        let now = |balancer: &Balancer| Some((balancer.clone(), cache.cached(&balancer.name)?.into()));
        self.balancers.iter().filter_map(now).collect()
    }
}

impl Inner {
    /// Brings Azure to the Service's desired state.
    pub(crate) async fn ensure(
        &self,
        service: &Arc<Service>,
        newer_than: LogicalTime,
    ) -> Result<Ensured, ServiceError> {
        let key = service.key();
        let event = newer_than;
        let newer_than = self.required_freshness(&key, event);
        self.record_event(&key, event);
        let parsed = self.parsed.lock().intent(&self.cluster, service);
        let intent = match parsed {
            Ok(intent) => intent,
            Err(refusal) => {
                self.close_unused(service).await;
                return Err(service_error(refused(refusal)));
            }
        };
        let security_group = Some(self.security_group().map_err(service_error)?.announce());
        let announced = Announcements { load_balancers: self.announce(intent.flavor), security_group };
        let mut notices = Vec::new();
        let mut sequence = Sequence::ensure(Arc::clone(&intent));
        if self.recently.was_opened_in_vain(&key) {
            sequence = sequence.opening_last();
        }
        self.places.lock().revise(&intent, sequence.destination(&self.cluster).as_ref());
        match self.drive(sequence, None, newer_than, announced, &mut notices).await {
            Ok(addresses) => {
                self.recently.opened_in_vain(&key, false);
                Ok(Ensured { addresses, notices })
            }
            Err(failure) => {
                if failure.kind == Kind::InvalidArgument {
                    self.places.lock().release(&key);
                }
                let refused = [Kind::InvalidArgument, Kind::FailedPrecondition, Kind::PermissionDenied];
                if refused.contains(&failure.kind) {
                    self.recently.opened_in_vain(&key, true);
                    self.close_unused(service).await;
                }
                Err(service_error(failure.with_notices(notices)))
            }
        }
    }

    /// A refused Service keeps what it depends on. What it no longer wants is closed, and so is what was opened beside
    /// a load balancer that it then did not get (LB-454): its addresses are only those that Azure and its status show.
    /// Free if nothing differs.
    pub(crate) async fn close_unused(&self, service: &Service) {
        let key = service.key();
        let programmed = self.recently.forget(&key);
        if let Err(failure) =
            self.close_what_nothing_has(IntentOwner::Service(key.clone()), LogicalTime::BEGINNING).await
        {
            let error = failure.full_text();
            tracing::debug!(error, service = %key, "cannot close the security group for unused addresses");
            programmed.into_iter().for_each(|addresses| self.recently.set(&key, addresses));
        }
    }

    /// Closes the security group for addresses that the cluster had and nothing in it has any more, based on data read
    /// after `newer_than`.
    pub(crate) async fn close_what_nothing_has(
        &self,
        owner: IntentOwner,
        newer_than: LogicalTime,
    ) -> Result<(), Failure> {
        // Without a configured security group nothing is open.
        let Ok(writer) = self.security_group() else { return Ok(()) };
        writer.submit(owner, SecurityGroupRequest::CloseUnused, newer_than, None).await.map(drop)
    }

    /// Executes a sequence to its end, starting with what was read for it, if anything. Returns the Service's addresses.
    pub(crate) async fn drive(
        &self,
        mut sequence: Sequence,
        mut first_reading: Option<ServiceReading>,
        mut newer_than: LogicalTime,
        mut announced: Announcements,
        notices: &mut Vec<Notice>,
    ) -> Result<Vec<std::net::IpAddr>, Failure> {
        let mut public_ips = self.public_ips.attempt();
        let mut reading: Option<ServiceReading> = None;
        let mut looked_again = false;
        loop {
            if let Some(wait) = public_ips.put_off() {
                announced.withdraw();
                sleep(wait).await;
            }
            let read = match reading.take() {
                None => {
                    let fresh = match first_reading.take() {
                        Some(first) => Ok(first),
                        None => self.read(&mut sequence, newer_than, notices).await,
                    };
                    fresh.map(|fresh| reading.insert(fresh))
                }
                Some(mut known) if sequence.needs_public_ips() => {
                    let fresh = self.public_ips.concerning(sequence.owner(), newer_than).await;
                    fresh.map(|fresh| {
                        known.public_ips = fresh;
                        reading.insert(known)
                    })
                }
                Some(known) => Ok(reading.insert(known)),
            };
            let known = match read {
                Ok(known) => known,
                Err(failure) if public_ips.should_retry(&failure) => continue,
                Err(failure) => return Err(failure),
            };
            known.nodes = self.state.nodes();
            known.namespace = self.state.namespace_labels(&sequence.key().namespace);
            let next = {
                let load_balancers = known.load_balancers(&self.observed);
                sequence.next(&self.cluster, &known.seen(&load_balancers), &mut self.places.lock())
            };
            // Hundreds of Services wait for Azure at a time: the list of all nodes is dropped before waiting.
            known.nodes = ObjectList::default();
            announced.decide(sequence.destination(&self.cluster).as_ref());
            if !matches!(next, Ok(Task::WritePublicIps(_))) {
                public_ips.arrived();
            }
            match next {
                Ok(Task::WritePublicIps(steps)) => {
                    public_ips.write(&steps, &mut sequence, notices).await?;
                }
                Ok(Task::AwaitPublicIps(ids)) => public_ips.settle(&ids).await?,
                Ok(Task::Submit(intents)) => {
                    let leaves = sequence.intent().is_none();
                    notices.extend(sequence.farewell(&self.cluster, &known.public_ips));
                    self.submit(known, intents, newer_than, &mut announced, leaves, notices).await?;
                    sequence.submitted();
                    let asks = sequence.intent().is_some_and(|intent| intent.private_link.is_some());
                    if asks && sequence.stage() == Stage::Linking {
                        // Private link services may have been removed with their frontends.
                        self.look_at_private_links(known, &sequence, newer_than, notices).await?;
                        let known_before = known.private_link_subnet.take();
                        known.private_link_subnet =
                            self.private_links.subnet_now(&sequence, known_before).await?;
                    }
                }
                Ok(Task::WritePrivateLink(steps)) => {
                    let deletes = steps.iter().any(|step| step.action == Action::Delete);
                    if deletes && !known.private_links_are_fresh {
                        // Connections have no version, and their private link service may have another owner by now.
                        known.private_links_are_fresh = true;
                        self.observed.invalidate_private_links();
                    } else {
                        let written = self.private_links.write(&steps, &mut sequence, notices).await;
                        if let Err(failure) = written
                            && !public_ips.should_retry(&failure)
                        {
                            return Err(failure);
                        }
                    }
                    self.look_at_private_links(known, &sequence, newer_than, notices).await?;
                    known.private_link_subnet = self.private_links.subnet(&sequence, newer_than).await?;
                }
                Ok(Task::ReleasePublicIps(steps)) => {
                    public_ips.release(&steps, &mut sequence, notices).await?;
                }
                Ok(Task::Finish(addresses)) => return Ok(addresses),
                // Azure may assign an address only once it is in use: read once more.
                Err(Stop::NotYet(_)) if !looked_again => {
                    looked_again = true;
                    newer_than = LogicalTime::now();
                    reading = None;
                }
                Err(stop) => return Err(stopped(stop)),
            }
        }
    }

    /// Announces a Service to the load balancers of its kind.
    pub(crate) fn announce(&self, flavor: Flavor) -> Vec<(Balancer, Announcement<SharedLoadBalancer>)> {
        let balancers = self.cluster.balancers().into_iter().filter(|balancer| balancer.flavor == flavor);
        balancers
            .map(|balancer| {
                let announcement = self.load_balancer(&balancer).announce();
                (balancer, announcement)
            })
            .collect()
    }

    /// Boxed so that its memory is freed: the many Services that wait for a write have finished reading.
    pub(crate) fn read<'a>(
        &'a self,
        sequence: &'a mut Sequence,
        newer_than: LogicalTime,
        notices: &'a mut Vec<Notice>,
    ) -> BoxFuture<'a, Result<ServiceReading, Failure>> {
        Box::pin(self.read_now(sequence, newer_than, notices))
    }

    async fn read_now(
        &self,
        sequence: &mut Sequence,
        newer_than: LogicalTime,
        notices: &mut Vec<Notice>,
    ) -> Result<ServiceReading, Failure> {
        let mut reading = ServiceReading::default();
        // In parallel: they are independent.
        let owner = Arc::clone(sequence.owner());
        let (listed, public_ips, access) = futures::join!(
            self.list_load_balancers(&mut reading, newer_than),
            self.public_ips.concerning(&owner, newer_than),
            self.require_security_group(sequence.intent().is_some(), newer_than)
        );
        if let Err(failure) = listed {
            notices.push(load_balancer::not_listed(sequence.key(), &failure));
            return Err(failure);
        }
        {
            let all = self.observed.load_balancers().all_cached();
            let services = self.state.services();
            for (balancer, _) in self.cluster.former_load_balancers(all.iter().map(Arc::clone), &services) {
                reading.add(&balancer);
            }
            let all = LoadBalancersByName::new(&self.cluster, all.iter().map(|one| &**one), &services);
            sequence.see_load_balancers(&all, || services.to_vec());
            sequence.see_frontends(&self.cluster, &reading.load_balancers(&self.observed));
        }
        reading.public_ips = public_ips?;
        access?;
        if sequence.owner().public_ip_groups != owner.public_ip_groups {
            reading.public_ips = self.public_ips.concerning(sequence.owner(), newer_than).await?;
        }
        if self.look_elsewhere(sequence, &reading.public_ips, newer_than).await? {
            reading.public_ips = self.public_ips.concerning(sequence.owner(), newer_than).await?;
        }
        if let Some(intent) = sequence.intent().filter(|intent| intent.flavor.is_internal()) {
            let id = self.cluster.subnet_id(intent.subnet_name(&self.cluster));
            reading.subnet = self.observed.subnet(&id, newer_than).await?;
        }
        if self.cluster.config.uses_basic_load_balancer() && sequence.intent().is_some() {
            if !self.state.nodes_synced() {
                return Err(Failure::new(Kind::Unavailable, NODES_UNKNOWN));
            }
            reading.machine_sets = Some(self.machine_sets(self.observed.started).await);
        }
        self.look_at_private_links(&mut reading, sequence, newer_than, notices).await?;
        reading.private_link_subnet = self.private_links.subnet(sequence, newer_than).await?;
        Ok(reading)
    }

    /// Takes nothing from a Service while it clearly cannot be completed: without the security group no Service is
    /// provisioned, and an unreadable one keeps the rules of removed Services.
    async fn require_security_group(&self, is_needed: bool, newer_than: LogicalTime) -> Result<(), Failure> {
        let (Ok(writer), Some(known)) = (self.security_group(), self.observed.security_group()) else {
            return Ok(());
        };
        let resource = writer.resource();
        match known.get(resource.id.name(), newer_than).await? {
            None if is_needed => Err(resource.absent()),
            _ => Ok(()),
        }
    }

    async fn list_load_balancers(
        &self,
        reading: &mut ServiceReading,
        newer_than: LogicalTime,
    ) -> Result<(), Failure> {
        for balancer in self.cluster.balancers() {
            self.observed.load_balancers().get(&balancer.name, newer_than).await?;
            reading.add(&balancer);
        }
        Ok(())
    }

    async fn look_at_private_links(
        &self,
        reading: &mut ServiceReading,
        sequence: &Sequence,
        newer_than: LogicalTime,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Failure> {
        let is_served = || {
            let load_balancers = reading.load_balancers(&self.observed);
            sequence.has_frontend(&self.cluster, &load_balancers, &reading.public_ips)
        };
        let links = self.private_links.concerning(sequence, is_served, newer_than, notices).await?;
        reading.private_links = links;
        Ok(())
    }

    /// Searches for the Service's public IPs in resource groups that only their tags reveal. Returns whether there are
    /// more groups now. `public_ips` are those of the groups known so far.
    pub(crate) async fn look_elsewhere(
        &self,
        sequence: &mut Sequence,
        public_ips: &[Arc<PublicIpAddress>],
        newer_than: LogicalTime,
    ) -> Result<bool, Failure> {
        let since = if !sequence.lost_addresses(public_ips).is_empty() {
            newer_than
        } else {
            // An earlier process may have been interrupted in a group that the Service no longer names. The groups that
            // this process wrote to are known.
            self.observed.started
        };
        let mut all = self.observed.all_public_ips.list(since).await?;
        all.extend(self.observed.cached_public_ips());
        Ok(sequence.see_public_ips(&self.cluster, all.iter().map(|one| &**one)))
    }

    /// Submits intents to the writers in parallel, and waits for all answers.
    async fn submit(
        &self,
        reading: &mut ServiceReading,
        intents: Vec<ResourceIntent>,
        newer_than: LogicalTime,
        announced: &mut Announcements,
        leaves: bool,
        notices: &mut Vec<Notice>,
    ) -> Result<(), Failure> {
        let (mut balancing, mut access) = (Vec::new(), Vec::new());
        let is_present = |intent: &ResourceIntent| match intent {
            ResourceIntent::LoadBalancer(balancer, LoadBalancerIntent::Present { service, .. }) => {
                Some((balancer.clone(), service.key.clone()))
            }
            _ => None,
        };
        let present = intents.iter().find_map(is_present);
        let wants_rules = intents.iter().find_map(|intent| match intent {
            ResourceIntent::SecurityGroup(intent) => intent.wants_rules().cloned(),
            ResourceIntent::LoadBalancer(..) => None,
        });
        for intent in intents {
            match intent {
                ResourceIntent::LoadBalancer(balancer, intent) => {
                    let announcement = announced.take_load_balancer(&balancer);
                    balancing.push(self.ensure_load_balancer(balancer, intent, newer_than, announcement));
                }
                ResourceIntent::SecurityGroup(intent) => {
                    let announcement = announced.security_group.take();
                    access.push(self.ensure_security_rules(intent, newer_than, announcement));
                }
            }
        }
        if leaves {
            // There is no further intent to wait for.
            announced.load_balancers.clear();
        }
        let balancing = async {
            let balanced = join_all(balancing).await;
            // The creation or deletion of a load balancer changed the nodes of the others.
            let own = present.as_ref().map(|(balancer, _)| balancer);
            (balanced, self.share_nodes(own).await)
        };
        let ((balanced, shared), opened) = futures::join!(balancing, join_all(access));
        for result in balanced {
            let (balancer, more) = result?;
            reading.add(&balancer);
            notices.extend(more);
        }
        for result in opened {
            notices.extend(result?);
        }
        notices.extend(wants_rules.and_then(|key| self.security_group_out_of_force(&key)));
        let places = shared?;
        if let Some((_, key)) = &present {
            notices.extend(places.and_then(|places| places.notice(key)));
        }
        Ok(())
    }

    /// Applies the intent for a load balancer; if the Service has a frontend there, fills its pools afterwards.
    async fn ensure_load_balancer(
        &self,
        balancer: Balancer,
        intent: LoadBalancerIntent,
        newer_than: LogicalTime,
        announcement: Option<Announcement<SharedLoadBalancer>>,
    ) -> Result<(Balancer, Vec<Notice>), Failure> {
        let key = intent.key().clone();
        let families = match &intent {
            LoadBalancerIntent::Present { service, .. } => service.families.clone(),
            LoadBalancerIntent::Absent { .. } | LoadBalancerIntent::Retired { .. } => Vec::new(),
        };
        let writer = self.load_balancer(&balancer);
        if !families.is_empty() {
            self.require_nodes()?;
        }
        if matches!(&intent, LoadBalancerIntent::Present { service, .. } if service.local) {
            self.require_endpoints()?;
        }
        let (owner, request) = (IntentOwner::Service(key.clone()), LoadBalancerRequest::Service(intent));
        if !families.is_empty() {
            // It has its place here: its parts elsewhere are not maintained any more.
            let others = self.load_balancer_writers().into_iter().filter(|(other, _)| *other != balancer);
            others.for_each(|(_, other)| other.withdraw(&owner));
        }
        let done = writer.submit(owner, request, newer_than, announcement).await?;
        let mut notices = done.notices;
        let exists = done.observed.load_balancer.is_some();
        if exists && !families.is_empty() {
            let sets = self.nodes_of_sets(self.observed.started).await?;
            let (before, now) = (done.observed.before.as_deref(), done.observed.load_balancer.as_deref());
            let pools = now
                .map(|now| backend_pool::pools_to_fill(&self.cluster, &balancer, sets.as_ref(), before, now));
            // The observed state is not retained while machines join.
            drop(done.observed);
            let mut pools = pools.unwrap_or_default();
            if self.membership.join_if_changed(&pools).await? {
                self.mark_joined().await?;
            }
            // Pools of other IP families do not concern this Service.
            pools.retain(|pool| families.contains(&pool.family));
            notices.extend(self.membership.notices(&key, &pools));
        }
        Ok((balancer, notices))
    }

    /// The notice for the owner of a Service whose security rules have no effect at some nodes, as far as known. Logs
    /// the problem once, and its end.
    fn security_group_out_of_force(&self, key: &ObjectKey) -> Option<Notice> {
        let (known, id) = (self.observed.security_group()?, self.cluster.security_group_id()?);
        let (group, interfaces) = (known.cached(id.name())?, self.observed.cached_machine_interfaces());
        let problem = in_force::problem(&self.cluster, &group, &self.state.nodes(), &interfaces);
        let mut said = self.out_of_force.lock();
        if *said != problem {
            match &problem {
                Some(problem) => tracing::warn!("{problem}"),
                None => tracing::info!(security_group = %id, "the security group is in force at all nodes"),
            }
            said.clone_from(&problem);
        }
        problem.map(|problem| in_force::notice(key, &problem))
    }

    async fn ensure_security_rules(
        &self,
        intent: AccessIntent,
        newer_than: LogicalTime,
        announcement: Option<Announcement<SharedSecurityGroup>>,
    ) -> Result<Vec<Notice>, Failure> {
        let key = intent.key().clone();
        let writer = match (self.security_group(), &intent) {
            (Ok(writer), _) => writer,
            (Err(_), AccessIntent::Absent { .. }) => return Ok(Vec::new()),
            (Err(error), AccessIntent::Present { .. }) => return Err(error),
        };
        let mut newer_than = newer_than;
        if let AccessIntent::Present { service, addresses, .. } = &intent {
            if writer.resource().was_opened_by_others(addresses, &service.removal().published_addresses) {
                newer_than = newer_than.max(LogicalTime::now());
            }
            self.recently.set(&key, addresses.clone());
        }
        let (owner, request) = (IntentOwner::Service(key), SecurityGroupRequest::Service(intent));
        let done = writer.submit(owner, request, newer_than, announcement).await?;
        Ok(done.notices)
    }
}
