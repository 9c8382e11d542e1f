//! Reading the topology out of the network that the packet oracle knows.

use azure_types::ResourceId;
use serde_json::Value;

use super::topology::{
    AddressView, ClusterView, EndpointView, InterfaceView, MAX_MEMBERS, MemberView, NatRuleView, NetworkView,
    NodeView, RuleView, SOMEONE, SOMEONE_V6, SecurityGroupView, SecurityRuleView, ServiceView, SubnetView,
    Topology,
};
use crate::balancer::{Frontend, LoadBalancer, Rule};
use crate::health::Probed;
use crate::json::{id_at, id_of, ids_at, is_updating, items, text_at};
use crate::machine::{Interface, Power};
use crate::{MemberState, Network, Packet, ProbeAnswers, Protocol, Refusal, Source};
use azure_engine::document::reading::Documents;

/// The tag by which a public IP names its Services (LB-090).
const SERVICE_TAGS: [&str; 2] = ["k8s-azure-service", "service"];

impl Topology {
    /// Reads the topology; `probes` gives the health of members.
    pub fn read(documents: &dyn Documents, probes: &dyn ProbeAnswers) -> Self {
        let (mut network, mut public_ips, mut groups) = (Network::default(), Vec::new(), Vec::new());
        documents.at_once(&mut |documents| {
            network = Network::read(documents);
            public_ips = documents.of_type("Microsoft.Network/publicIPAddresses");
            groups = documents.of_type("Microsoft.Network/networkSecurityGroups");
        });
        let probed = Probed::default();
        let mut addresses = Vec::new();
        for balancer in &network.balancers {
            for frontend in &balancer.frontends {
                addresses.push(address_view(&network, probes, &probed, &public_ips, balancer, frontend));
            }
        }
        for document in &public_ips {
            let Some(id) = id_of(document) else { continue };
            let used = network
                .balancers
                .iter()
                .flat_map(|balancer| &balancer.frontends)
                .any(|frontend| frontend.public_address.as_ref() == Some(&id));
            if !used {
                addresses.push(AddressView {
                    address: text_at(document, "/properties/ipAddress").and_then(|text| text.parse().ok()),
                    internal: false,
                    public_ip: Some(id.name().to_owned()),
                    services: services(document),
                    load_balancer: None,
                    frontend: None,
                    updating: is_updating(document),
                    rules: Vec::new(),
                    nat_rules: Vec::new(),
                    link_services: Vec::new(),
                    node: holder(&network, &id),
                });
            }
        }
        Self {
            addresses,
            services: Vec::new(),
            clusters: Vec::new(),
            nodes: nodes(&network),
            interfaces: loose_interfaces(&network),
            endpoints: endpoints(&network),
            networks: networks(&network),
            security_groups: groups.iter().filter_map(|group| security_group(group, &network)).collect(),
            journal: Vec::new(),
            counts: Value::Null,
        }
    }

    /// Adds the Services of a cluster, and names the addresses after those that have them.
    #[must_use]
    pub fn with_services(mut self, services: Vec<ServiceView>) -> Self {
        for shown in self.addresses.iter_mut().filter(|shown| shown.services.is_empty()) {
            let has = |service: &&ServiceView| {
                shown.address.is_some_and(|address| service.addresses.contains(&address))
            };
            shown.services = services.iter().filter(has).map(|service| service.name.clone()).collect();
        }
        self.services = services;
        self
    }

    /// Adds clusters that are made of these resources.
    #[must_use]
    pub fn with_clusters(mut self, clusters: Vec<ClusterView>) -> Self {
        self.clusters = clusters;
        self
    }

    /// Adds the end of the journal, oldest entry first, and its counts.
    #[must_use]
    pub fn with_journal(mut self, entries: Vec<Value>, counts: Value) -> Self {
        self.journal = entries;
        self.counts = counts;
        self
    }
}

/// The Kubernetes Services that a public IP's document names in its tag, as `namespace/name`.
pub fn services(public_ip: &Value) -> Vec<String> {
    SERVICE_TAGS
        .iter()
        .find_map(|tag| public_ip.get("tags")?.get(tag)?.as_str())
        .into_iter()
        .flat_map(|names| names.split(','))
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect()
}

fn address_view(
    network: &Network,
    probes: &dyn ProbeAnswers,
    probed: &Probed,
    public_ips: &[Value],
    balancer: &LoadBalancer,
    frontend: &Frontend,
) -> AddressView {
    let public_ip = frontend
        .public_address
        .as_ref()
        .and_then(|id| public_ips.iter().find(|document| id_of(document).as_ref() == Some(id)));
    AddressView {
        address: frontend.address,
        internal: frontend.is_internal(),
        public_ip: frontend.public_address.as_ref().map(|id| id.name().to_owned()),
        services: public_ip.map(services).unwrap_or_default(),
        load_balancer: Some(balancer.id.name().to_owned()),
        frontend: Some(frontend.id.name().to_owned()),
        updating: balancer.updating || public_ip.is_some_and(is_updating),
        rules: balancer
            .rules_of(&frontend.id)
            .map(|rule| rule_view(network, probes, probed, balancer, frontend, rule))
            .collect(),
        nat_rules: balancer
            .nat_rules
            .iter()
            .filter(|rule| rule.frontend.as_ref() == Some(&frontend.id))
            .take(MAX_MEMBERS)
            .map(|rule| NatRuleView {
                name: rule.id.name().to_owned(),
                protocol: rule.protocol.clone(),
                port: rule.frontend_port,
                backend_port: rule.backend_port,
                node: rule
                    .target
                    .and_then(|index| network.interfaces.get(index))
                    .map(|interface| interface.node_name().to_owned()),
            })
            .collect(),
        link_services: network
            .link_services
            .iter()
            .filter(|service| service.frontends.contains(&frontend.id))
            .map(|service| service.id.name().to_owned())
            .collect(),
        node: None,
    }
}

fn rule_view(
    network: &Network,
    probes: &dyn ProbeAnswers,
    probed: &Probed,
    balancer: &LoadBalancer,
    frontend: &Frontend,
    rule: &Rule,
) -> RuleView {
    let mut states: Vec<MemberState> = probed.members(network, balancer, rule, probes).to_vec();
    let total = states.len();
    let taking = states.iter().filter(|state| state.health.takes_flows()).count();
    states.sort_by(|one, other| {
        (one.health.takes_flows(), &one.node).cmp(&(other.health.takes_flows(), &other.node))
    });
    states.truncate(MAX_MEMBERS);
    let probe = rule.probe.as_ref().and_then(|id| balancer.probe(id)).map(|probe| {
        let path = probe.path.as_deref().map(|path| format!(" {path}")).unwrap_or_default();
        format!("{} {}{path}", probe.protocol.to_uppercase(), probe.port)
    });
    RuleView {
        name: rule.id.name().to_owned(),
        protocol: rule.protocol.clone(),
        port: rule.frontend_port,
        backend_port: rule.backend_port,
        floating_ip: rule.floating_ip,
        denied: denial(network, probes, probed, frontend, rule),
        probe,
        pool: rule.pools.first().map(|pool| pool.name().to_owned()),
        taking,
        total,
        members: states
            .into_iter()
            .map(|state| MemberView {
                takes_flows: state.health.takes_flows(),
                why: state.health.words(),
                node: state.node,
                address: state.address,
            })
            .collect(),
    }
}

/// What stops packets from the internet at a rule behind a public address.
fn denial(
    network: &Network,
    probes: &dyn ProbeAnswers,
    probed: &Probed,
    frontend: &Frontend,
    rule: &Rule,
) -> Option<String> {
    let to = frontend.address.filter(|_| !frontend.is_internal() && rule.frontend_port > 0)?;
    let protocol = if rule.protocol.eq_ignore_ascii_case("udp") { Protocol::Udp } else { Protocol::Tcp };
    let from = if to.is_ipv4() { SOMEONE } else { SOMEONE_V6 };
    let packet = Packet::new(Source::internet(from), to, rule.frontend_port, protocol);
    match network.trace_as_probed(probes, probed, &packet).refusal? {
        Refusal::Denied { decision } => Some(format!("{from} is denied by security rule {}", decision.rule)),
        Refusal::NoSecurityGroup { node } => Some(format!("{node} has no security group, which denies all")),
        _ => None,
    }
}

fn nodes(network: &Network) -> Vec<NodeView> {
    let mut nodes: Vec<NodeView> = network
        .machines
        .iter()
        .map(|(id, machine)| NodeView {
            name: machine.name.clone(),
            scale_set: machine.scale_set.as_ref().map(|set| set.name().to_owned()),
            flexible: machine.flexible,
            interfaces: interface_views(network, network.interfaces_of(id)),
            addresses: network.addresses_of(id),
            power: match machine.power {
                Power::Running => "running",
                Power::Stopped => "stopped",
                Power::Deallocated => "deallocated",
            },
        })
        .collect();
    nodes.sort_by(|one, other| one.name.cmp(&other.name));
    nodes
}

/// The machine that has a public IP for itself.
fn holder(network: &Network, public_ip: &ResourceId) -> Option<String> {
    let public = network.public_addresses.iter().find(|known| known.id == *public_ip)?;
    network.interface_behind(public).map(|interface| interface.node_name().to_owned())
}

/// IP configurations put together by the interface that they are of.
fn interface_views<'a>(
    network: &Network,
    configurations: impl Iterator<Item = &'a Interface>,
) -> Vec<InterfaceView> {
    let mut views: Vec<(&ResourceId, InterfaceView)> = Vec::new();
    for configuration in configurations {
        if views.last().is_none_or(|(id, _)| *id != &configuration.interface) {
            let subnet = configuration.subnet.as_ref().map(|subnet| {
                let holder = subnet.parent().map(|network| network.name().to_owned()).unwrap_or_default();
                format!("{holder}/{}", subnet.name())
            });
            let view = InterfaceView {
                name: configuration.interface.name().to_owned(),
                addresses: Vec::new(),
                public_addresses: Vec::new(),
                subnet,
                pools: Vec::new(),
                forwards: configuration.forwards,
            };
            views.push((&configuration.interface, view));
        }
        let Some((_, view)) = views.last_mut() else { continue };
        view.addresses.extend(configuration.address);
        let public = configuration.public_address.as_ref();
        view.public_addresses.extend(public.and_then(|id| {
            network.public_addresses.iter().find(|known| known.id == *id).and_then(|known| known.address)
        }));
        for pool in &configuration.pools {
            if !view.pools.iter().any(|known| known == pool.name()) {
                view.pools.push(pool.name().to_owned());
            }
        }
    }
    views.into_iter().map(|(_, view)| view).collect()
}

fn loose_interfaces(network: &Network) -> Vec<InterfaceView> {
    let loose = network.interfaces.iter().filter(|of| of.machine.is_none() && of.endpoint.is_none());
    let mut views = interface_views(network, loose);
    views.sort_by(|one, other| one.name.cmp(&other.name));
    views
}

fn endpoints(network: &Network) -> Vec<EndpointView> {
    let mut views: Vec<EndpointView> = network
        .endpoints
        .values()
        .map(|endpoint| EndpointView {
            name: endpoint.id.name().to_owned(),
            addresses: network.addresses_of_endpoint(&endpoint.id).collect(),
            status: endpoint.status.clone(),
            leads_to: endpoint
                .target
                .as_deref()
                .map(|target| target.rsplit('/').next().unwrap_or(target).to_owned()),
        })
        .collect();
    views.sort_by(|one, other| one.name.cmp(&other.name));
    views
}

fn networks(network: &Network) -> Vec<NetworkView> {
    let words = |prefixes: &[ipnet::IpNet]| prefixes.iter().map(ToString::to_string).collect();
    let name = |id: &ResourceId| id.name().to_owned();
    let mut views: Vec<NetworkView> = network
        .virtual_networks
        .iter()
        .map(|(id, of)| {
            let own = network.subnets.iter().filter(|(_, subnet)| subnet.virtual_network == *id);
            let mut subnets: Vec<SubnetView> = own
                .map(|(id, subnet)| SubnetView {
                    name: id.name().to_owned(),
                    prefixes: words(&subnet.prefixes),
                    security_group: subnet.group.as_ref().map(name),
                    nat_gateway: subnet.gateway.as_ref().map(|gateway| name(&gateway.id)),
                    routes: subnet
                        .routes
                        .iter()
                        .filter(|route| route.is_users())
                        .take(MAX_MEMBERS)
                        .map(|route| route.words())
                        .collect(),
                })
                .collect();
            subnets.sort_by(|one, other| one.name.cmp(&other.name));
            NetworkView {
                name: id.name().to_owned(),
                prefixes: words(&of.prefixes),
                peers: of.peers.iter().map(|peer| name(&peer.network)).collect(),
                subnets,
            }
        })
        .collect();
    views.sort_by(|one, other| one.name.cmp(&other.name));
    views
}

fn security_group(document: &Value, network: &Network) -> Option<SecurityGroupView> {
    let id = id_of(document)?;
    let subnets =
        network.subnets.iter().filter(|(_, subnet)| subnet.group.as_ref() == Some(&id)).map(|(id, _)| id);
    let mut guards: Vec<String> = subnets.map(|subnet| format!("subnet {}", subnet.name())).collect();
    let mut interfaces: Vec<&ResourceId> = network
        .interfaces
        .iter()
        .filter(|interface| interface.group.as_ref() == Some(&id))
        .map(|interface| &interface.interface)
        .collect();
    interfaces.dedup();
    match interfaces.as_slice() {
        [] => {}
        [only] => guards.push(format!("network interface {}", only.name())),
        several => guards.push(format!("{} network interfaces", several.len())),
    }
    guards.sort();
    let of = |pointer: &'static str, is_default: bool| {
        items(document, pointer).filter_map(move |rule| security_rule(rule, is_default))
    };
    let mut rules: Vec<SecurityRuleView> =
        of("/properties/securityRules", false).chain(of("/properties/defaultSecurityRules", true)).collect();
    rules.sort_by(|one, other| (&one.direction, one.priority).cmp(&(&other.direction, other.priority)));
    Some(SecurityGroupView { name: id.name().to_owned(), guards, rules })
}

fn security_rule(rule: &Value, is_default: bool) -> Option<SecurityRuleView> {
    let word = |member: &str| text_at(rule, &format!("/properties/{member}")).unwrap_or_default().to_owned();
    let several = |singular: &str, plural: &str| -> Vec<String> {
        text_at(rule, &format!("/properties/{singular}"))
            .into_iter()
            .chain(items(rule, &format!("/properties/{plural}")).filter_map(Value::as_str))
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
            .collect()
    };
    let side = |side: &str| {
        let mut all = several(&format!("{side}AddressPrefix"), &format!("{side}AddressPrefixes"));
        let groups = ids_at(rule, &format!("/properties/{side}ApplicationSecurityGroups"));
        all.extend(groups.iter().map(|group| group.name().to_owned()));
        all
    };
    Some(SecurityRuleView {
        name: text_at(rule, "/name")
            .map(str::to_owned)
            .or_else(|| Some(id_at(rule, "/id")?.name().to_owned()))?,
        priority: rule.pointer("/properties/priority")?.as_u64()?,
        direction: word("direction"),
        access: word("access"),
        protocol: word("protocol"),
        sources: side("source"),
        destinations: side("destination"),
        ports: several("destinationPortRange", "destinationPortRanges"),
        is_default,
    })
}
