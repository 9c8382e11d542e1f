//! A cluster whose Services are reconciled one at a time, as a controller does it: each Service's sequence is driven
//! with Azure's answers.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::PublicIpAddress;
use k8s::{Node, ObjectKey, Service};

use super::azure::Azure;
use crate::machines::backend_pool::{self, PoolMembership};
use crate::order::sequence::{ResourceIntent, Sequence, Task};
use crate::outcome::Step;
use crate::placement::ServiceObservation;
use crate::resources::load_balancer::{self, ClusterFacts, LoadBalancersByName, Places};
use crate::resources::private_link;
use crate::resources::public_ip::PublicIpOwners;
use crate::resources::security_group::{self, AccessIntent, ClusterUsage};
use crate::service::{ParsedServices, ServiceIntent, ServiceRemoval};

/// Azure, a cluster, and its controller's memory.
pub(crate) struct Alone {
    pub azure: Azure,
    pub all: Vec<Arc<Service>>,
    pub nodes: Vec<Arc<Node>>,
    pub programmed: BTreeMap<ObjectKey, Vec<IpAddr>>,
    pub refused: BTreeSet<ObjectKey>,
    pub writes: usize,
    pub places: Places,
}

impl Alone {
    pub fn new(azure: Azure, all: Vec<Arc<Service>>, nodes: Vec<Arc<Node>>) -> Self {
        Self {
            azure,
            all,
            nodes,
            programmed: BTreeMap::new(),
            refused: BTreeSet::new(),
            writes: 0,
            places: Places::default(),
        }
    }

    fn take(&mut self, steps: &[Step]) {
        self.writes += steps.len();
        steps.iter().for_each(|step| self.azure.take(step));
    }

    fn members(&mut self, memberships: &[PoolMembership]) {
        let steps = self.azure.observed.machines.plan(&self.azure.cluster, memberships, &self.nodes);
        self.take(&steps);
    }

    fn public_ips(&self, owner: &ServiceRemoval) -> Vec<Arc<PublicIpAddress>> {
        let owners = PublicIpOwners::new(std::iter::once(owner));
        let all = self.azure.observed.public_ips.iter();
        all.filter(|public_ip| !owners.concerned(public_ip).is_empty()).cloned().collect()
    }

    fn next(&mut self, sequence: &mut Sequence) -> Option<Task> {
        let observed = &self.azure.observed;
        let cluster = &self.azure.cluster;
        let all = observed.load_balancers.iter().cloned();
        let load_balancers = cluster.own_load_balancers(all, &self.all);
        let by_name =
            LoadBalancersByName::new(cluster, observed.load_balancers.iter().map(Arc::as_ref), &self.all);
        sequence.see_load_balancers(&by_name, || self.all.clone());
        sequence.see_frontends(cluster, &load_balancers);
        let subnet = sequence.intent().map(|intent| cluster.subnet_id(intent.subnet_name(cluster)));
        let link = sequence.intent().and_then(|intent| intent.private_link.as_ref());
        let link_subnet = link.map(|link| cluster.subnet_id(&link.subnet));
        let observation = ServiceObservation {
            public_ips: &self.public_ips(sequence.owner()),
            load_balancers: &load_balancers,
            subnet: observed.subnets.iter().find(|found| found.id == subnet),
            nodes: &self.nodes,
            private_links: Some(&observed.private_links),
            private_link_subnet: observed.subnets.iter().find(|found| found.id == link_subnet),
            namespace: None,
            machine_sets: None,
        };
        sequence.next(cluster, &observation, &mut self.places).ok()
    }

    pub fn reconcile(&mut self, service: &Arc<Service>) {
        let cluster = &self.azure.cluster;
        let mut sequence = if service.is_to_be_served() {
            match ServiceIntent::from_service(cluster, service) {
                Ok(intent) => Sequence::ensure(Arc::new(intent)),
                Err(_) => {
                    self.refused.insert(service.key());
                    return;
                }
            }
        } else {
            Sequence::remove(Arc::new(ServiceRemoval::of(cluster, service)))
        };
        for _ in 0..30 {
            let Some(task) = self.next(&mut sequence) else {
                self.refused.insert(service.key());
                return;
            };
            match task {
                Task::WritePublicIps(steps)
                | Task::WritePrivateLink(steps)
                | Task::ReleasePublicIps(steps) => self.take(&steps),
                Task::AwaitPublicIps(ids) => panic!("nothing runs on {ids:?}"),
                Task::Submit(intents) => {
                    if !intents.into_iter().all(|intent| self.submit(intent)) {
                        self.refused.insert(service.key());
                        return;
                    }
                    sequence.submitted();
                }
                Task::Finish(_) => return,
            }
        }
        panic!("{} does not come to an end: {sequence:?}", service.key());
    }

    /// Whether a shared resource could be brought to an intent.
    fn submit(&mut self, intent: ResourceIntent) -> bool {
        let cluster = self.azure.cluster.clone();
        match intent {
            ResourceIntent::LoadBalancer(balancer, intent) => {
                let before = self.azure.load_balancer(balancer.flavor).cloned();
                let known = load_balancer::known_services(&self.all);
                let batch = [intent];
                let links = &self.azure.observed.private_links.clone();
                let known = ClusterFacts {
                    services: Some(&known),
                    nodes: Some(&self.nodes),
                    private_links: links,
                    ..ClusterFacts::default()
                };
                let planned = load_balancer::plan(&cluster, &balancer, before.as_ref(), &batch, known);
                if !planned.refused.is_empty() {
                    return false;
                }
                loop {
                    let links = &self.azure.observed.private_links;
                    let steps = private_link::plan_removal(&cluster, &planned.frontends_gone, links);
                    if steps.is_empty() {
                        break;
                    }
                    self.take(&steps);
                }
                self.members(&planned.empty_first);
                self.take(planned.step.as_slice());
                if let Some(after) = self.azure.load_balancer(balancer.flavor).cloned() {
                    self.members(&backend_pool::pools_to_fill(
                        &cluster,
                        &balancer,
                        None,
                        before.as_ref(),
                        &after,
                    ));
                }
            }
            ResourceIntent::SecurityGroup(intent) => {
                match &intent {
                    AccessIntent::Present { service, addresses, .. } => {
                        drop(self.programmed.insert(service.key.clone(), addresses.clone()));
                    }
                    AccessIntent::Absent { service, .. } => {
                        drop(self.programmed.remove(&service.key));
                    }
                }
                let programmed: Vec<(ObjectKey, IpAddr)> = self
                    .programmed
                    .iter()
                    .flat_map(|(key, list)| list.iter().map(|address| (key.clone(), *address)))
                    .collect();
                let all = self.azure.observed.load_balancers.iter().cloned();
                let balancers = cluster.own_load_balancers(all, &self.all);
                let usage = ClusterUsage::of_known(
                    &cluster,
                    &mut ParsedServices::default(),
                    &self.all,
                    Arc::new(security_group::addresses_of_nodes(&self.nodes)),
                    &programmed,
                    &balancers,
                    true,
                );
                let group = self.azure.observed.security_group.clone().unwrap();
                let planned = security_group::plan(&cluster, &group, &[intent], &usage);
                self.take(planned.step.as_slice());
            }
        }
        true
    }

    /// Reconciles every Service once; returns the number of writes.
    pub fn round(&mut self) -> usize {
        self.writes = 0;
        for service in self.all.clone() {
            self.reconcile(&service);
        }
        self.writes
    }
}
