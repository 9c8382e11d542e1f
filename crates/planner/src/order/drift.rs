//! What has drifted for a Service that had all it wants: everything except what the writers of shared documents compare
//! themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{PrivateLinkService, PublicIpAddress, ResourceId, Subnet};
use k8s::{Node, ObjectKey};

use super::sequence::{Intent, Sequence, Task};
use crate::machines::machine_set::MachineSets;
use crate::model::{Balancer, Cluster, Labels};
use crate::outcome::{Step, Stop};
use crate::placement::Seen;
use crate::resources::load_balancer::{ListedLoadBalancer, LoadBalancerIntent, Places};
use crate::resources::public_ip::Owners;
use crate::resources::security_group::AccessIntent;
use crate::service::ServiceIntent;

/// An upper bound, far above the number of tasks of any sequence.
const MAX_TASKS: usize = 32;

/// The state that was read, for all Services.
#[derive(Debug)]
pub struct Look<'a> {
    /// The cluster's load balancers that exist.
    pub load_balancers: Vec<(Balancer, ListedLoadBalancer)>,
    /// All nodes of the cluster.
    pub nodes: &'a [Arc<Node>],
    /// Private link services of the groups in which Services ask for one.
    pub private_links: &'a [Arc<PrivateLinkService>],
    /// The subnets that Services name.
    pub subnets: &'a BTreeMap<ResourceId, Arc<Subnet>>,
    /// The labels of namespaces, as far as known.
    pub namespaces: &'a BTreeMap<String, Arc<Labels>>,
    /// The sets of standalone virtual machines, where load balancers are of SKU Basic.
    pub machine_sets: Option<&'a MachineSets>,
    /// The public IPs that may concern each Service ([`by_service`]).
    pub public_ips: &'a BTreeMap<ObjectKey, Vec<Arc<PublicIpAddress>>>,
}

/// The public IPs that may concern each of these Services.
pub fn by_service<'s>(
    services: impl Iterator<Item = &'s ServiceIntent>,
    public_ips: &[Arc<PublicIpAddress>],
) -> BTreeMap<ObjectKey, Vec<Arc<PublicIpAddress>>> {
    let owners = Owners::new(services.map(|service| &**service.removal()));
    let mut of_services: BTreeMap<ObjectKey, Vec<Arc<PublicIpAddress>>> = BTreeMap::new();
    for public_ip in public_ips {
        for key in owners.concerned(public_ip) {
            of_services.entry(key).or_default().push(Arc::clone(public_ip));
        }
    }
    of_services
}

/// A difference from what a Service wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Difference {
    /// Public IPs: the steps that would be written.
    PublicIps(Vec<Step>),
    /// A public IP that it names does not exist, or cannot be used by it.
    Refused,
    /// Its private link service: the steps that would be written.
    PrivateLink(Vec<Step>),
    /// It has parts on a load balancer that is not its own.
    Misplaced,
    /// The addresses in its status.
    Status,
}

/// The result of comparing one Service.
#[derive(Debug, Default)]
pub struct Found {
    /// The difference.
    pub difference: Option<Difference>,
    /// The Service's intent for the security group, where packets arrive at the nodes' own addresses.
    pub access: Option<AccessIntent>,
}

impl Look<'_> {
    /// Compares one Service. `published` are the addresses in its status.
    pub fn compare(
        &self,
        cluster: &Cluster,
        intent: &Arc<ServiceIntent>,
        published: &BTreeSet<IpAddr>,
        places: &mut Places,
    ) -> Found {
        let mut sequence = Sequence::ensure(Arc::clone(intent));
        sequence.see_frontends(cluster, &self.load_balancers);
        let none = Vec::new();
        let subnet = || self.subnets.get(&cluster.subnet_id(intent.subnet_name(cluster)));
        let link = intent.private_link.as_ref();
        let seen = Seen {
            public_ips: self.public_ips.get(&intent.key).unwrap_or(&none),
            load_balancers: &self.load_balancers,
            subnet: if intent.flavor.is_internal() { subnet() } else { None },
            nodes: self.nodes,
            private_links: link.map(|_| self.private_links),
            private_link_subnet: link.and_then(|link| self.subnets.get(&cluster.subnet_id(&link.subnet))),
            namespace: self.namespaces.get(&*intent.key.namespace).map(|labels| &**labels),
            machine_sets: self.machine_sets,
        };
        let mut found = Found::default();
        for _ in 0..MAX_TASKS {
            match sequence.next(cluster, &seen, places) {
                Ok(Task::Submit(intents)) => {
                    for one in intents {
                        match one {
                            Intent::LoadBalancer(_, LoadBalancerIntent::Present { .. }) => {}
                            Intent::LoadBalancer(..) => found.difference = Some(Difference::Misplaced),
                            Intent::SecurityGroup(access) if intent.arrives_at_nodes() => {
                                found.access = Some(access);
                            }
                            Intent::SecurityGroup(_) => {}
                        }
                    }
                    if found.difference.is_some() {
                        return found;
                    }
                    sequence.submitted();
                }
                Ok(Task::WritePublicIps(steps) | Task::ReleasePublicIps(steps)) => {
                    found.difference = Some(Difference::PublicIps(steps));
                    return found;
                }
                Ok(Task::WritePrivateLink(steps)) => {
                    found.difference = Some(Difference::PrivateLink(steps));
                    return found;
                }
                Ok(Task::Finish(addresses)) => {
                    // A frontend without an address is still being configured.
                    let addresses: BTreeSet<IpAddr> = addresses.into_iter().collect();
                    let differs = !published.is_empty() && addresses != *published;
                    found.difference = differs.then_some(Difference::Status);
                    return found;
                }
                Err(Stop::Refused(_)) => {
                    found.difference = Some(Difference::Refused);
                    return found;
                }
                // An operation is running, or the load balancer differs, which the load balancer's writer finds itself.
                Ok(Task::AwaitPublicIps(_)) | Err(Stop::NotYet(_)) => return found,
            }
        }
        found
    }
}
