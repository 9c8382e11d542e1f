//! The preview: runs every Service's [`Sequence`] against the observed state of Azure, as changed by the steps so far.
//!
//! Services at the same stage share one write of each shared resource, as they do in the provider.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::ResourceId;
use k8s::{Node, Notice, ObjectKey, Service};

use super::expected::ExpectedAzure;
use super::observation::ClusterObservation;
use super::sequence::{ResourceIntent, Sequence, Stage, Task};
use crate::machines::MachineSets;
use crate::machines::backend_pool::{self, PoolMembership};
use crate::machines::unserved::{self, Unserved};
use crate::model::{Balancer, Cluster, Labels};
use crate::outcome::{Action, ClusterPlan, Plan, Refusal, Step, Stop, Wait};
use crate::placement::{self, NodesInPools, ServiceObservation};
use crate::resources::load_balancer::{self, ClusterFacts, KnownServices, LoadBalancerIntent, Places};
use crate::resources::security_group::{self, AccessIntent, ClusterUsage, ShownAddress};
use crate::resources::{private_link, public_ip};
use crate::service::{LocalService, ParsedService, local_pool};

/// An upper bound, far above the rounds that any Service needs: a public IP may be recreated a few times, no more.
const MAX_ROUNDS: usize = 64;

/// A preview under way.
pub(crate) struct Preview<'a> {
    cluster: &'a Cluster,
    services: Vec<ParsedService>,
    nodes: &'a [Arc<Node>],
    node_addresses: Arc<BTreeSet<IpAddr>>,
    known_services: KnownServices,
    local_services: Option<Vec<LocalService>>,
    /// The expected state of Azure after the steps so far.
    expected: ExpectedAzure,
    sequences: Vec<Sequence>,
    places: Places,
    namespaces: BTreeMap<String, Labels>,
    /// Addresses that the security group was opened for.
    opened: Vec<(ObjectKey, IpAddr)>,
    /// Addresses of public IPs that are tagged as a Service's.
    tagged: Vec<(ObjectKey, IpAddr)>,
    /// The addresses that Azure showed to be the Services' before the first step.
    shown: Vec<ShownAddress>,
    steps: Vec<Step>,
    refused: BTreeMap<ObjectKey, Refusal>,
    waiting: BTreeMap<ObjectKey, Wait>,
    notices: Vec<Notice>,
    warnings: BTreeSet<String>,
}

impl<'a> Preview<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        services: &'a [Arc<Service>],
        nodes: &'a [Arc<Node>],
        observed: &ClusterObservation,
    ) -> Self {
        let mut refused = BTreeMap::new();
        let mut sequences = Vec::new();
        let parsed: Vec<ParsedService> =
            services.iter().map(|service| ParsedService::of(cluster, service)).collect();
        for one in &parsed {
            match &one.intent {
                Some(Ok(intent)) => sequences.push(Sequence::ensure(Arc::clone(intent))),
                Some(Err(refusal)) => drop(refused.insert(one.owner.key.clone(), refusal.clone())),
                None if one.service.is_to_be_cleaned_up() => {
                    sequences.push(Sequence::remove(Arc::clone(&one.owner)));
                }
                None => {}
            }
        }
        sequences.sort_by(|a, b| a.key().cmp(b.key()));
        let expected = ExpectedAzure::new(cluster, services, observed, &mut sequences);
        // A Service with an address keeps its security rules, although its status may not contain the address yet.
        let served = sequences.iter().filter(|sequence| sequence.intent().is_some());
        let opened = served.flat_map(|sequence| {
            let public_ips = expected.public_ips_of(sequence.key());
            let addresses = sequence.observed_addresses(cluster, expected.load_balancers(), &public_ips);
            addresses.into_iter().map(|address| (sequence.key().clone(), address))
        });
        let is_own =
            |id: &ResourceId| expected.load_balancers().iter().any(|(_, one)| one.id.as_ref() == Some(id));
        let tagged =
            public_ip::tagged_addresses(cluster, observed.public_ips.iter().map(|one| &**one), is_own);
        let keys: BTreeSet<ObjectKey> = services.iter().map(|service| service.key()).collect();
        let tagged = tagged.into_iter().filter(|(key, _)| keys.contains(key));
        let opened = opened.collect();
        let tagged = tagged.collect();
        let shown = security_group::shown_addresses(
            cluster,
            services,
            expected.load_balancers(),
            &observed.public_ips,
        );
        sequences.retain(|sequence| {
            let refusal = unreadable(cluster, sequence, observed);
            let is_readable = refusal.is_none();
            refused.extend(refusal.map(|refusal| (sequence.key().clone(), refusal)));
            is_readable
        });
        Self {
            cluster,
            services: parsed,
            nodes,
            node_addresses: Arc::new(security_group::addresses_of_nodes(nodes)),
            known_services: load_balancer::known_services(services),
            local_services: observed.endpoints.as_ref().map(|endpoints| {
                let nodes_of = |key: &ObjectKey| endpoints.get(key).cloned().unwrap_or_default();
                local_pool::local_services(cluster, services, nodes_of)
            }),
            expected,
            sequences,
            places: Places::default(),
            namespaces: observed.namespaces.clone(),
            opened,
            tagged,
            shown,
            steps: Vec::new(),
            refused,
            waiting: BTreeMap::new(),
            notices: Vec::new(),
            warnings: BTreeSet::new(),
        }
    }

    pub(crate) fn run(mut self) -> ClusterPlan {
        for _ in 0..MAX_ROUNDS {
            let tasks = self.next_tasks();
            let Some(stage) = tasks.iter().map(|(_, stage, _)| *stage).min() else { break };
            let now = tasks.into_iter().filter(|(_, of, _)| *of == stage);
            self.perform(now.map(|(key, _, task)| (key, task)).collect());
            let refused = &self.refused;
            self.sequences.retain(|sequence| !refused.contains_key(sequence.key()));
        }
        self.waiting.retain(|key, _| !self.refused.contains_key(key));
        let refused: Vec<(ObjectKey, Refusal)> = self.refused.into_iter().collect();
        let waiting = self.waiting.into_iter().collect();
        let mut steps = self.steps;
        for step in &mut steps {
            for change in &mut step.changes {
                change.rename_addresses(|address| self.expected.describe_unknown(address));
            }
            if self.expected.has_unknown(step) {
                step.document = None;
            }
        }
        let plan = Plan { steps };
        let warnings = self.warnings.into_iter().collect();
        ClusterPlan { plan, refused, waiting, notices: self.notices, warnings, unrouted: 0 }
    }

    /// The next task of each Service that is not done.
    fn next_tasks(&mut self) -> Vec<(ObjectKey, Stage, Task)> {
        let mut tasks = Vec::new();
        let mut open = Vec::new();
        let machine_sets = self.cluster.sku().serves_one_set().then(|| self.machine_sets());
        for mut sequence in std::mem::take(&mut self.sequences) {
            let public_ips = self.expected.public_ips_of(sequence.key());
            let subnet = sequence.intent().map(|i| self.cluster.subnet_id(i.subnet_name(self.cluster)));
            let link = sequence.intent().and_then(|intent| intent.private_link.as_ref());
            let link_subnet = link.map(|link| self.cluster.subnet_id(&link.subnet));
            let observation = ServiceObservation {
                public_ips: &public_ips,
                load_balancers: self.expected.load_balancers(),
                subnet: subnet.as_ref().and_then(|id| self.expected.subnet(id)),
                nodes: self.nodes,
                private_links: Some(self.expected.private_links()),
                private_link_subnet: link_subnet.as_ref().and_then(|id| self.expected.subnet(id)),
                namespace: self.namespaces.get(&*sequence.key().namespace),
                machine_sets: machine_sets.as_ref(),
            };
            match sequence.next(self.cluster, &observation, &mut self.places) {
                Ok(Task::Finish(_)) => {}
                Ok(task) => {
                    if matches!(task, Task::Submit(_)) {
                        self.notices.extend(sequence.farewell(self.cluster, &public_ips));
                    }
                    tasks.push((sequence.key().clone(), sequence.stage(), task));
                    open.push(sequence);
                }
                Err(Stop::Refused(refusal)) => drop(self.refused.insert(sequence.key().clone(), refusal)),
                Err(Stop::NotYet(wait)) => drop(self.waiting.insert(sequence.key().clone(), wait)),
            }
        }
        self.sequences = open;
        tasks
    }

    fn perform(&mut self, tasks: Vec<(ObjectKey, Task)>) {
        let mut balancing: BTreeMap<Balancer, Vec<LoadBalancerIntent>> = BTreeMap::new();
        let mut access = Vec::new();
        let mut submitted = BTreeSet::new();
        let mut linked: BTreeSet<ResourceId> = BTreeSet::new();
        for (key, task) in tasks {
            match task {
                Task::WritePublicIps(steps) | Task::ReleasePublicIps(steps) => {
                    steps.into_iter().for_each(|step| self.take(step));
                }
                Task::WritePrivateLink(steps) => {
                    // A resource that another Service has just written is checked again: they may share it.
                    if !steps.iter().any(|step| linked.contains(&step.target)) {
                        linked.extend(steps.iter().map(|step| step.target.clone()));
                        steps.into_iter().for_each(|step| self.take(step));
                    }
                }
                // Any running operation is assumed to have ended.
                Task::AwaitPublicIps(ids) => {
                    self.expected.settle(&ids);
                    let names = ids.iter().map(|id| id.name().to_owned()).collect();
                    self.waiting.insert(key, Wait::PublicIps { names });
                }
                Task::Submit(intents) => {
                    submitted.insert(key);
                    for intent in intents {
                        match intent {
                            ResourceIntent::LoadBalancer(balancer, intent) => {
                                balancing.entry(balancer).or_default().push(intent);
                            }
                            ResourceIntent::SecurityGroup(intent) => access.push(intent),
                        }
                    }
                }
                Task::Finish(_) => {}
            }
        }
        self.plan_load_balancers(balancing);
        let refused = &self.refused;
        access.retain(|intent| !refused.contains_key(intent.key()));
        if !access.is_empty() {
            self.plan_security_rules(&access);
        }
        for sequence in &mut self.sequences {
            if submitted.contains(sequence.key()) {
                sequence.submitted();
            }
        }
    }

    fn take(&mut self, step: Step) {
        self.expected.apply(&step);
        self.steps.push(step);
    }

    /// Interfaces leave the pools that get addresses, then all load balancers are written, then the members of their
    /// pools, then the load balancers to be deleted are deleted. All changes to one machine are one write.
    fn plan_load_balancers(&mut self, batches: BTreeMap<Balancer, Vec<LoadBalancerIntent>>) {
        let mut emptied = Vec::new();
        let mut written = Vec::new();
        let mut memberships = Vec::new();
        let mut deletions = Vec::new();
        let mut filled = Vec::new();
        let interfaces = self.expected.machines().interfaces.clone();
        let is_present = |intent: &&LoadBalancerIntent| matches!(intent, LoadBalancerIntent::Present { .. });
        let present: Vec<ObjectKey> =
            batches.values().flatten().filter(is_present).map(|intent| intent.key().clone()).collect();
        for (balancer, batch) in batches {
            let before = self.expected.load_balancer(&balancer);
            let links = self.expected.private_links().to_vec();
            let known = ClusterFacts {
                services: Some(&self.known_services),
                nodes: Some(self.nodes),
                interfaces: &interfaces,
                local_services: self.local_services.as_deref(),
                private_links: &links,
                ..ClusterFacts::default()
            };
            let planned = load_balancer::plan(self.cluster, &balancer, before.as_deref(), &batch, known);
            self.refused.extend(planned.refused);
            self.notices.extend(planned.notices);
            self.drop_private_links(&planned.frontends_gone);
            let on_behalf_of =
                planned.step.iter().flat_map(|step| step.on_behalf_of.clone()).collect::<Vec<_>>();
            for id in &planned.addresses_to_keep {
                let public_ip = self.expected.public_ip(id);
                let step = public_ip.and_then(|one| {
                    let proof = public_ip::used_by(self.cluster, &self.cluster.load_balancer_id(&balancer));
                    public_ip::keep_address(id, one, &on_behalf_of, proof)
                });
                step.into_iter().for_each(|step| self.take(step));
            }
            match planned.step {
                Some(step) if step.action == Action::Delete => {
                    memberships.extend(planned.empty_first);
                    deletions.push(step);
                }
                step => {
                    emptied.extend(planned.empty_first);
                    written.push((balancer, batch, before, step));
                }
            }
        }
        self.change_members(&emptied);
        let is_basic = self.cluster.sku().serves_one_set();
        let sets = is_basic.then(|| placement::nodes_of_sets(self.cluster, self.nodes, &self.machine_sets()));
        for (balancer, batch, before, step) in written {
            step.into_iter().for_each(|step| self.take(step));
            let after = self.expected.load_balancer(&balancer);
            let fill = after.map(|after| {
                backend_pool::pools_to_fill(self.cluster, &balancer, sets.as_ref(), before.as_deref(), &after)
            });
            let fill = fill.unwrap_or_default();
            filled.extend(batch.iter().filter_map(|intent| pools_of(intent, &fill)));
            memberships.extend(fill);
        }
        self.change_members(&memberships);
        self.find_unserved(&memberships, &filled);
        deletions.into_iter().for_each(|step| self.take(step));
        self.share_nodes(&present);
    }

    /// The sets of the machines.
    fn machine_sets(&self) -> MachineSets {
        MachineSets::new(self.expected.machines().virtual_machines.iter().map(|one| &**one))
    }

    /// Divides the nodes where several load balancers share them: each load balancer loses the nodes of others and gets
    /// the ones that no other has, and then the ones that others have lost. The owners of the `present` Services are
    /// informed of nodes that are on none.
    fn share_nodes(&mut self, present: &[ObjectKey]) {
        if !self.cluster.has_several_load_balancers() {
            return;
        }
        let sets = self.machine_sets();
        let places = placement::place_nodes(self.cluster, self.nodes, &sets, self.expected.load_balancers());
        for _ in 0..2 {
            let held = NodesInPools::of(self.cluster, self.nodes, self.expected.load_balancers());
            for balancer in self.cluster.balancers() {
                let Some(before) = self.expected.load_balancer(&balancer) else { continue };
                let share = held.share(&places, &balancer);
                let known = ClusterFacts {
                    services: Some(&self.known_services),
                    nodes: Some(self.nodes),
                    share: Some(&share),
                    ..ClusterFacts::default()
                };
                let planned = load_balancer::plan(self.cluster, &balancer, Some(&before), &[], known);
                let Some(step) = planned.step else { continue };
                self.change_members(&planned.empty_first);
                self.take(step);
            }
        }
        let served = present.iter().filter(|key| !self.refused.contains_key(*key));
        self.notices.extend(served.filter_map(|key| places.notice(key)));
    }

    /// Removes private link services whose frontends are to be removed, connections first.
    fn drop_private_links(&mut self, frontends: &[ResourceId]) {
        loop {
            let steps = private_link::plan_removal(self.cluster, frontends, self.expected.private_links());
            if steps.is_empty() {
                return;
            }
            steps.into_iter().for_each(|step| self.take(step));
        }
    }

    fn change_members(&mut self, memberships: &[PoolMembership]) {
        if memberships.is_empty() {
            return;
        }
        let steps = self.expected.machines().plan(self.cluster, memberships, self.nodes);
        self.expected.apply_to_machines(&steps);
        self.steps.extend(steps);
    }

    /// Records for each Service the nodes that cannot join its pools.
    fn find_unserved(&mut self, memberships: &[PoolMembership], filled: &[(ObjectKey, Vec<PoolMembership>)]) {
        let unserved = unserved::find(self.cluster, self.nodes, self.expected.machines(), memberships);
        for (key, pools) in filled.iter().filter(|(key, _)| !self.refused.contains_key(key)) {
            let is_mine = |one: &&Unserved| pools.iter().any(|pool| pool.pool == one.pool);
            let mine: Vec<Unserved> = unserved.iter().filter(is_mine).cloned().collect();
            self.notices.extend(unserved::notices(key, &mine));
        }
    }

    fn plan_security_rules(&mut self, batch: &[AccessIntent]) {
        for intent in batch {
            if let AccessIntent::Present { service, addresses, .. } = intent {
                self.opened.extend(addresses.iter().map(|address| (service.key.clone(), *address)));
            }
        }
        let Some(observed) = self.expected.security_group() else {
            let name = self.cluster.config.security_group_name.clone();
            let refusal = if name.is_empty() {
                Refusal::SecurityGroupNotConfigured
            } else {
                Refusal::SecurityGroupNotFound { name }
            };
            for intent in batch.iter().filter(|intent| matches!(intent, AccessIntent::Present { .. })) {
                self.refused.insert(intent.key().clone(), refusal.clone());
            }
            return;
        };
        // The Services of the batch declare their addresses themselves.
        let batched: BTreeSet<&ObjectKey> = batch.iter().map(AccessIntent::key).collect();
        let others = self.opened.iter().chain(&self.tagged).filter(|(key, _)| !batched.contains(key));
        let alive: Vec<(ObjectKey, IpAddr)> = others.cloned().collect();
        let usage = ClusterUsage::of_parsed(
            self.cluster,
            &self.services,
            Arc::clone(&self.node_addresses),
            &alive,
            self.expected.load_balancers(),
            true,
        );
        let usage = usage
            .as_shown(&self.shown)
            .with_proofs(self.shown.iter().map(|one| (one.address, one.proof.clone())));
        let planned = security_group::plan(self.cluster, observed, batch, &usage);
        self.refused.extend(planned.refused);
        self.notices.extend(planned.notices);
        if batch.iter().any(|intent| intent.wants_rules().is_some()) {
            let interfaces = &self.expected.machines().interfaces;
            let problem = security_group::in_force::problem(self.cluster, observed, self.nodes, interfaces);
            self.warnings.extend(problem);
        }
        planned.step.into_iter().for_each(|step| self.take(step));
    }
}

/// The pools of a Service that is present on a load balancer, for its own families.
fn pools_of(
    intent: &LoadBalancerIntent,
    pools: &[PoolMembership],
) -> Option<(ObjectKey, Vec<PoolMembership>)> {
    let LoadBalancerIntent::Present { service, .. } = intent else { return None };
    let mine = pools.iter().filter(|pool| service.families.contains(&pool.family));
    Some((service.key.clone(), mine.cloned().collect()))
}

/// The refusal of a Service whose resource groups could not be read.
fn unreadable(cluster: &Cluster, sequence: &Sequence, observed: &ClusterObservation) -> Option<Refusal> {
    let mut groups = sequence.owner().public_ip_groups.iter();
    if let Some((group, problem)) = groups.find_map(|group| observed.unreadable_groups.get_key_value(group)) {
        let (group, service) = (group.name().to_owned(), sequence.key().clone());
        return Some(Refusal::ResourceGroupUnreadable { group, service, problem: problem.clone() });
    }
    let link = sequence.intent()?.private_link.as_ref()?;
    let group = cluster.network_group(&link.group);
    let problem = observed.unreadable_private_links.get(&group)?;
    Some(private_link::unreadable(&group, problem).into())
}
