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

/// The ports at which packets arrive, by family and by the protocol's name in security rules. A sorted list, because
/// thousands of Services have one or two.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ArrivingPorts(Vec<(Family, &'static str, i32)>);

impl ArrivingPorts {
    /// Reads the ports of a Service.
    fn of_service(service: &Service, arrival: impl Fn(Family) -> Arrival) -> Self {
        let mut arriving = Self::default();
        for port in &service.spec.ports {
            let Some(protocol) = Transport::parse(&port.protocol) else { continue };
            for family in Family::BOTH {
                let number = arrival(family).port(port.port, port.node_port);
                if number > 0 {
                    arriving.insert(family, protocol.in_security_rule(), number);
                }
            }
        }
        arriving
    }

    /// Adds a port.
    pub(crate) fn insert(&mut self, family: Family, protocol: &'static str, port: i32) {
        let port = (family, protocol, port);
        if let Err(at) = self.0.binary_search(&port) {
            self.0.insert(at, port);
        }
    }

    /// The protocols and ports of a family.
    pub(crate) fn of_family(&self, family: Family) -> impl Iterator<Item = (&'static str, i32)> {
        let of_family = self.0.iter().filter(move |(of, ..)| *of == family);
        of_family.map(|(_, protocol, port)| (*protocol, *port))
    }

    /// The ports of a family and a protocol.
    pub(crate) fn of(&self, family: Family, protocol: &str) -> BTreeSet<i32> {
        self.of_family(family).filter(|(of, _)| *of == protocol).map(|(_, port)| port).collect()
    }
}

/// What one Service needs of the security group, as far as its object says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SecurityNeeds {
    /// The ports at which packets of each family arrive.
    pub(crate) ports: ArrivingPorts,
    /// The families whose packets arrive at nodes' own addresses.
    pub(crate) at_nodes: BTreeSet<Family>,
    /// The rules that it asks for.
    pub(crate) demand: RuleDemand,
}

impl SecurityNeeds {
    /// Reads what a Service needs. Never fails: unreadable values are left out.
    pub fn of(service: &Service, owner: &ServiceRemoval, access: &Access) -> Self {
        let ports = ArrivingPorts::of_service(service, |family| owner.arrival(family));
        let at_nodes = owner.families.iter().copied();
        let at_nodes = at_nodes.filter(|family| !owner.arrival(*family).is_floating()).collect();
        let demand = RuleDemand::of(access, owner.flavor, &ports, &at_nodes);
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
enum DestinationScope {
    All,
    Own,
    Nodes,
}

/// One rule without its destinations.
#[derive(Debug, Clone, PartialEq)]
struct DemandedRule {
    family: Family,
    scope: DestinationScope,
    rule: WantedRule,
}

/// The rules that one Service asks for, in the order in which priorities are assigned.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct RuleDemand(Vec<DemandedRule>);

impl RuleDemand {
    /// The demand of a Service with these ports by family. `at_nodes` are the families whose packets arrive at nodes'
    /// own addresses.
    fn of(access: &Access, flavor: Flavor, ports: &ArrivingPorts, at_nodes: &BTreeSet<Family>) -> Self {
        let mut demand = Self::default();
        if access.disabled {
            return demand;
        }
        for protocol in security_rule::PROTOCOLS {
            for family in Family::BOTH {
                let ports = ports.of(family, protocol);
                if ports.is_empty() {
                    continue;
                }
                let rule = |sources| WantedRule::allow(Traffic::new(protocol, family, sources, &ports));
                let sources = access.sources(flavor, family).into_iter();
                demand.extend(family, DestinationScope::All, sources.map(rule));
            }
        }
        if access.denies_all_else() {
            demand.deny(ports, at_nodes);
        }
        demand
    }

    /// Denies what no other rule allows: all traffic at the Service's own addresses; at nodes only its ports, and
    /// health probes still reach them.
    fn deny(&mut self, ports: &ArrivingPorts, at_nodes: &BTreeSet<Family>) {
        for family in Family::BOTH {
            self.extend(family, DestinationScope::Own, [WantedRule::deny_all(family)]);
        }
        for family in Family::BOTH.into_iter().filter(|family| at_nodes.contains(family)) {
            let protocols: BTreeSet<&str> = ports.of_family(family).map(|(protocol, _)| protocol).collect();
            for protocol in protocols {
                let ports = ports.of(family, protocol);
                let from = |source: &str| Traffic::new(protocol, family, [source.to_owned()], &ports);
                // Azure probes only with TCP.
                let probes = (protocol == "Tcp").then(|| WantedRule::allow(from(PROBES)));
                let denied = WantedRule::deny(from("*"));
                self.extend(family, DestinationScope::Nodes, probes.into_iter().chain([denied]));
            }
        }
    }

    fn extend(
        &mut self,
        family: Family,
        scope: DestinationScope,
        rules: impl IntoIterator<Item = WantedRule>,
    ) {
        self.0.extend(rules.into_iter().map(|rule| DemandedRule { family, scope, rule }));
    }

    /// The rules with their destinations, without rules that would have none.
    pub fn rules(&self, destinations: &BTreeMap<Family, Destinations>) -> Vec<WantedRule> {
        let at = |item: &DemandedRule| {
            let Destinations { own, nodes } = destinations.get(&item.family)?;
            let to = match item.scope {
                DestinationScope::All => own | nodes,
                DestinationScope::Own => own.clone(),
                DestinationScope::Nodes => nodes.clone(),
            };
            (!to.is_empty()).then(|| item.rule.to(to))
        };
        self.0.iter().filter_map(at).collect()
    }

    /// The rules that it asks for at one destination, either a node or an address of its own.
    pub fn at(&self, family: Family, is_node: bool) -> impl Iterator<Item = &WantedRule> {
        let applies = move |scope: DestinationScope| match scope {
            DestinationScope::All => true,
            DestinationScope::Own => !is_node,
            DestinationScope::Nodes => is_node,
        };
        self.0.iter().filter(move |item| item.family == family && applies(item.scope)).map(|item| &item.rule)
    }
}
