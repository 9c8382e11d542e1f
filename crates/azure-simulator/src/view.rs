//! The simulated network as people like to see it: address → rule → pool → nodes, security rules in
//! the order in which they are asked, and what was asked of Azure lately.

use std::net::IpAddr;

use azure_types::ResourceId;
use serde::Serialize;
use serde_json::Value;

use crate::Documents;
use crate::packet::balancer::{Frontend, LoadBalancer, Rule};
use crate::packet::json::{id_at, id_of, ids_at, is_updating, items, text_at};
use crate::packet::machine::Power;
use crate::packet::{MemberState, Network, ProbeAnswers};

/// Everything that the page shows, at one moment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Topology {
    /// Frontends of load balancers, then public IPs that no load balancer uses.
    pub addresses: Vec<AddressView>,
    /// Machines that have a private address, by name.
    pub nodes: Vec<NodeView>,
    /// Security groups.
    pub security_groups: Vec<SecurityGroupView>,
    /// The last requests, oldest first, as the journal has them.
    pub journal: Vec<Value>,
    /// Requests counted, as the journal counts them.
    pub counts: Value,
}

/// An address and where it leads.
#[derive(Debug, Clone, Serialize)]
pub struct AddressView {
    /// The address; `None` while Azure has not given one.
    pub address: Option<IpAddr>,
    /// Whether only the virtual network reaches it.
    pub internal: bool,
    /// The public IP's name.
    pub public_ip: Option<String>,
    /// The Kubernetes Services named in the public IP's tag, as `namespace/name`.
    pub services: Vec<String>,
    /// The load balancer's name; `None` for a public IP that none uses.
    pub load_balancer: Option<String>,
    /// The frontend's name.
    pub frontend: Option<String>,
    /// Whether Azure is still working on the load balancer or public IP.
    pub updating: bool,
    /// The frontend's rules.
    pub rules: Vec<RuleView>,
}

/// A load balancing rule and the members behind it.
#[derive(Debug, Clone, Serialize)]
pub struct RuleView {
    /// Its name.
    pub name: String,
    /// Its protocol as written: `Tcp`, `Udp`, `All`.
    pub protocol: String,
    /// Port on the frontend; 0 for every port.
    pub port: u16,
    /// Port on the nodes, used without floating IP.
    pub backend_port: u16,
    /// Whether packets keep the address and port that they were sent to.
    pub floating_ip: bool,
    /// How the probe asks, such as `HTTP 32000 /healthz`; `None` without a probe.
    pub probe: Option<String>,
    /// The backend pool's name.
    pub pool: Option<String>,
    /// How many members take new connections.
    pub taking: usize,
    /// How many members there are.
    pub total: usize,
    /// The members, those that take no connections first; at most [`MOST_MEMBERS`].
    pub members: Vec<MemberView>,
}

/// A pool member behind a rule.
#[derive(Debug, Clone, Serialize)]
pub struct MemberView {
    /// The machine's name or bare address.
    pub node: String,
    /// Its private address.
    pub address: Option<IpAddr>,
    /// Whether it takes new connections.
    pub takes_flows: bool,
    /// Why, in a few words.
    pub why: String,
}

/// A machine.
#[derive(Debug, Clone, Serialize)]
pub struct NodeView {
    /// Host name.
    pub name: String,
    /// The scale set, for instances of one.
    pub scale_set: Option<String>,
    /// Private addresses.
    pub addresses: Vec<IpAddr>,
    /// `running`, `stopped` or `deallocated`.
    pub power: &'static str,
}

/// A security group.
#[derive(Debug, Clone, Serialize)]
pub struct SecurityGroupView {
    /// Its name.
    pub name: String,
    /// Names of the subnets and network interfaces that it guards.
    pub guards: Vec<String>,
    /// Its rules as Azure asks them: by direction, then by priority.
    pub rules: Vec<SecurityRuleView>,
}

/// A security rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecurityRuleView {
    /// Its name.
    pub name: String,
    /// Lower goes first.
    pub priority: u64,
    /// `Inbound` or `Outbound`.
    pub direction: String,
    /// `Allow` or `Deny`.
    pub access: String,
    /// `Tcp`, `Udp`, `*`.
    pub protocol: String,
    /// Prefixes, tags, application security groups.
    pub sources: Vec<String>,
    /// Prefixes, tags, application security groups.
    pub destinations: Vec<String>,
    /// Destination ports and ranges.
    pub ports: Vec<String>,
    /// Whether every security group has it.
    pub is_default: bool,
}

/// A page has room for so many members of one rule; a cluster may have thousands.
pub const MOST_MEMBERS: usize = 48;

/// The tag by which a public IP names its Services (`spec/load-balancer.md`, 4.6).
const SERVICE_TAGS: [&str; 2] = ["k8s-azure-service", "service"];

impl Topology {
    /// Reads the topology; `probes` tells which members are healthy.
    pub fn read(documents: &dyn Documents, probes: &dyn ProbeAnswers) -> Self {
        let network = Network::read(documents);
        let public_ips = documents.of_type("Microsoft.Network/publicIPAddresses");
        let mut addresses = Vec::new();
        for balancer in &network.balancers {
            for frontend in &balancer.frontends {
                addresses.push(address_view(&network, probes, &public_ips, balancer, frontend));
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
                });
            }
        }
        let groups = documents.of_type("Microsoft.Network/networkSecurityGroups");
        Self {
            addresses,
            nodes: nodes(&network),
            security_groups: groups.iter().filter_map(|group| security_group(group, &network)).collect(),
            journal: Vec::new(),
            counts: Value::Null,
        }
    }

    /// Adds the end of the journal, oldest entry first, and its counts.
    #[must_use]
    pub fn with_journal(mut self, entries: Vec<Value>, counts: Value) -> Self {
        self.journal = entries;
        self.counts = counts;
        self
    }
}

fn services(public_ip: &Value) -> Vec<String> {
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
            .map(|rule| rule_view(network, probes, balancer, rule))
            .collect(),
    }
}

fn rule_view(network: &Network, probes: &dyn ProbeAnswers, balancer: &LoadBalancer, rule: &Rule) -> RuleView {
    let mut states: Vec<MemberState> = network.members(balancer, &rule.pools, rule.probe.as_ref(), probes);
    let total = states.len();
    let taking = states.iter().filter(|state| state.health.takes_flows()).count();
    states.sort_by(|one, other| {
        (one.health.takes_flows(), &one.node).cmp(&(other.health.takes_flows(), &other.node))
    });
    states.truncate(MOST_MEMBERS);
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

fn nodes(network: &Network) -> Vec<NodeView> {
    let mut nodes: Vec<NodeView> = network
        .machines
        .iter()
        .map(|(id, machine)| NodeView {
            name: machine.name.clone(),
            scale_set: id
                .parent()
                .filter(|parent| {
                    parent.resource_type().eq_ignore_ascii_case("Microsoft.Compute/virtualMachineScaleSets")
                })
                .map(|parent| parent.name().to_owned()),
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
