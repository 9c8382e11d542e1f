//! What a Service needs of the security group: rules, and their destinations.

use std::collections::{BTreeMap, BTreeSet};

use k8s::Service;

use super::access::Access;
use super::arrival::Arrival;
use super::owner::ServiceRemoval;
use super::port::Transport;
use super::security_rule::{self, Traffic, WantedRule};
use crate::model::{Family, Flavor};

/// The source of Azure's health probes.
const PROBES: &str = "AzureLoadBalancer";

/// Ports by the protocol's name in security rules.
pub(crate) type Ports = BTreeMap<&'static str, BTreeSet<i32>>;

/// The ports at which packets arrive, by protocol; each port is given as protocol, number and node port.
fn ports(ports: impl Iterator<Item = (Transport, i32, i32)>, arrival: Arrival) -> Ports {
    let mut arriving = Ports::new();
    for (protocol, port, node_port) in ports {
        let number = arrival.port(port, node_port);
        if number > 0 {
            arriving.entry(protocol.in_security_rule()).or_default().insert(number);
        }
    }
    arriving
}

/// What one Service needs of the security group, as far as its object says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Needs {
    /// The ports at which packets of each family arrive.
    pub(crate) ports: BTreeMap<Family, Ports>,
    /// The families whose packets arrive at nodes' own addresses.
    pub(crate) at_nodes: BTreeSet<Family>,
    /// The rules that it asks for.
    pub(crate) demand: Demand,
}

impl Needs {
    /// Reads what a Service needs. Never fails: unreadable values are left out.
    pub fn of(service: &Service, owner: &ServiceRemoval, access: &Access) -> Self {
        let listed = |arrival| {
            let ports = service.spec.ports.iter();
            let listed = ports.filter_map(|port| {
                let protocol = Transport::parse(&port.protocol)?;
                Some((protocol, port.port, port.node_port))
            });
            self::ports(listed, arrival)
        };
        let ports = Family::BOTH.map(|family| (family, listed(owner.arrival(family)))).into();
        let at_nodes = owner.families.iter().copied();
        let at_nodes = at_nodes.filter(|family| !owner.arrival(*family).is_floating()).collect();
        let demand = Demand::of(access, owner.flavor, &ports, &at_nodes);
        Self { ports, at_nodes, demand }
    }
}

/// The addresses at which packets of one family arrive.
#[derive(Debug, Clone, Default)]
pub(crate) struct Destinations {
    /// Frontends, and addresses that the Service has by other means: only its own traffic arrives there.
    pub own: BTreeSet<String>,
    /// Nodes, where other Services, health probes and kubelets are reached, too.
    pub nodes: BTreeSet<String>,
}

/// The destinations of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    Own,
    Nodes,
}

/// One rule without its destinations.
#[derive(Debug, Clone, PartialEq)]
struct Item {
    family: Family,
    scope: Scope,
    rule: WantedRule,
}

/// The rules that one Service asks for, in the order in which priorities are assigned.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Demand(Vec<Item>);

impl Demand {
    /// The demand of a Service with these ports by family. `at_nodes` are the families whose packets arrive at nodes'
    /// own addresses.
    fn of(
        access: &Access,
        flavor: Flavor,
        ports: &BTreeMap<Family, Ports>,
        at_nodes: &BTreeSet<Family>,
    ) -> Self {
        let mut demand = Self::default();
        if access.disabled {
            return demand;
        }
        for protocol in security_rule::PROTOCOLS {
            for (family, ports) in ports {
                let Some(ports) = ports.get(protocol) else { continue };
                let sources = access.sources(flavor, *family);
                demand.extend(
                    *family,
                    Scope::All,
                    sources
                        .into_iter()
                        .map(|sources| WantedRule::allow(Traffic::new(protocol, *family, sources, ports))),
                );
            }
        }
        if access.denies_all_else() {
            demand.deny(ports, at_nodes);
        }
        demand
    }

    /// Denies what no other rule allows: all traffic at the Service's own addresses; at nodes only its ports, and
    /// health probes still reach them.
    fn deny(&mut self, ports: &BTreeMap<Family, Ports>, at_nodes: &BTreeSet<Family>) {
        for family in ports.keys() {
            self.extend(*family, Scope::Own, [WantedRule::deny_all(*family)]);
        }
        for (family, ports) in ports.iter().filter(|(family, _)| at_nodes.contains(family)) {
            for (protocol, ports) in ports {
                let from = |source: &str| Traffic::new(protocol, *family, [source.to_owned()], ports);
                // Azure probes only with TCP.
                let probes = (*protocol == "Tcp").then(|| WantedRule::allow(from(PROBES)));
                let denied = WantedRule::deny(from("*"));
                self.extend(*family, Scope::Nodes, probes.into_iter().chain([denied]));
            }
        }
    }

    fn extend(&mut self, family: Family, scope: Scope, rules: impl IntoIterator<Item = WantedRule>) {
        self.0.extend(rules.into_iter().map(|rule| Item { family, scope, rule }));
    }

    /// The rules with their destinations, without rules that would have none.
    pub fn rules(&self, destinations: &BTreeMap<Family, Destinations>) -> Vec<WantedRule> {
        let at = |item: &Item| {
            let Destinations { own, nodes } = destinations.get(&item.family)?;
            let to = match item.scope {
                Scope::All => own | nodes,
                Scope::Own => own.clone(),
                Scope::Nodes => nodes.clone(),
            };
            (!to.is_empty()).then(|| item.rule.to(to))
        };
        self.0.iter().filter_map(at).collect()
    }

    /// The rules that it asks for at one destination, either a node or an address of its own.
    pub fn at(&self, family: Family, is_node: bool) -> impl Iterator<Item = &WantedRule> {
        let applies = move |scope: Scope| match scope {
            Scope::All => true,
            Scope::Own => !is_node,
            Scope::Nodes => is_node,
        };
        self.0.iter().filter(move |item| item.family == family && applies(item.scope)).map(|item| &item.rule)
    }
}
