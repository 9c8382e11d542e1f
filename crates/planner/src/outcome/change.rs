//! What a step changes, and why: one variant for each kind of change, with its subject in the fields. This module alone
//! makes the texts.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;
use k8s::ObjectKey;

use crate::model::words::name_some;
use crate::model::{AdminState, Family};

/// One change of a resource.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Change {
    /// A desired tag is missing.
    TagAdded {
        /// The tag.
        name: String,
        /// Its value.
        value: String,
    },
    /// A tag has another value than desired.
    TagChanged {
        /// The tag.
        name: String,
        /// Its value so far.
        from: String,
        /// Its value from now on.
        to: String,
    },
    /// A tag that is not desired is removed.
    TagRemoved {
        /// The tag.
        name: String,
    },
    /// Nothing differs, and Azure did not finish the last write.
    Repaired(Unfinished),
    /// Azure accepted a change and refused it later.
    Restored,

    /// A public IP is new.
    PublicIpCreated {
        /// The family of its address.
        family: Family,
        /// Its zones; empty where the region has none.
        zones: Vec<String>,
    },
    /// A Service shares a public IP that other Services use.
    PublicIpShared {
        /// The Service.
        service: ObjectKey,
    },
    /// A Service gives a public IP up.
    PublicIpGivenUp {
        /// The Service.
        service: ObjectKey,
        /// The other users, as its tag lists them; without any, the public IP is deleted.
        others: Vec<String>,
    },
    /// A Service gives up a public IP that it may not delete.
    PublicIpKept {
        /// The Service.
        service: ObjectKey,
    },
    /// A public IP cannot be changed as desired, and is replaced by another one.
    PublicIpReplaced(Replacement),
    /// A member of a public IP differs.
    PublicIp(Difference),
    /// The IP tags of a public IP differ.
    IpTagsChanged,
    /// A public IP is created with a DNS label.
    DnsLabelAdded {
        /// The label.
        label: String,
    },
    /// A public IP gets another DNS label.
    DnsLabelChanged {
        /// The label so far.
        from: Option<String>,
        /// The label from now on.
        to: String,
    },
    /// A public IP loses its DNS label.
    DnsLabelRemoved {
        /// The label.
        label: String,
    },

    /// A Service gets a frontend.
    FrontendAdded {
        /// The frontend.
        frontend: String,
        /// The Service.
        service: ObjectKey,
        /// Where its address comes from.
        source: FrontendSource,
    },
    /// A frontend refers to another public IP.
    FrontendPublicIp {
        /// The frontend.
        frontend: String,
        /// The public IP so far.
        from: String,
        /// The public IP from now on.
        to: String,
    },
    /// A frontend has its address in another subnet.
    FrontendMoved {
        /// The frontend.
        frontend: String,
        /// Where its address comes from now.
        source: FrontendSource,
    },
    /// A frontend has another private address.
    FrontendAddress {
        /// The frontend.
        frontend: String,
        /// The address so far.
        from: Option<String>,
        /// The address from now on.
        to: IpAddr,
    },
    /// A Service no longer needs a frontend.
    FrontendRemoved {
        /// The frontend.
        frontend: String,
        /// The Service.
        service: ObjectKey,
    },
    /// A frontend is left over from a Service that does not exist.
    LeftoverFrontendRemoved {
        /// The frontend.
        frontend: String,
    },
    /// A load balancer without frontends is deleted.
    LastFrontendGone,
    /// A load balancer of SKU Basic is deleted, and one of SKU Standard created in its place.
    BasicLoadBalancerRetired,
    /// A port gets its rule.
    RuleAdded {
        /// The rule.
        rule: String,
        /// The protocol, as rules spell it.
        protocol: String,
        /// The frontend port.
        port: i32,
        /// The port at which packets reach a node.
        backend_port: i32,
    },
    /// A member of a rule differs.
    RuleChanged {
        /// The rule.
        rule: String,
        /// What differs.
        difference: Difference,
    },
    /// No port needs the rule any more.
    RuleRemoved {
        /// The rule.
        rule: String,
    },
    /// A rule gets its probe.
    ProbeAdded {
        /// The probe.
        probe: String,
        /// The protocol, as probes spell it.
        protocol: String,
        /// The port that it probes.
        port: i32,
        /// The path that it requests; empty with TCP.
        path: String,
        /// The interval, in seconds.
        interval: i32,
    },
    /// A member of a probe differs.
    ProbeChanged {
        /// The probe.
        probe: String,
        /// What differs.
        difference: Difference,
    },
    /// No port needs the probe any more.
    ProbeRemoved {
        /// The probe.
        probe: String,
    },
    /// No rule uses the shared probe any more.
    SharedProbeRemoved {
        /// The probe.
        probe: String,
    },
    /// A load balancer gets a pool.
    PoolAdded {
        /// The pool.
        pool: String,
    },
    /// A Service's own pool that no rule refers to any more is removed.
    PoolRemoved {
        /// Its name.
        pool: String,
    },
    /// The members of a pool of addresses differ.
    PoolMembers {
        /// The pool.
        pool: String,
        /// The nodes that are added, each with its address.
        come: Vec<(String, IpAddr)>,
        /// The addresses that are removed.
        gone: Vec<String>,
    },
    /// A pool holds addresses from now on.
    PoolOfAddresses {
        /// The pool.
        pool: String,
        /// The virtual network of the addresses.
        network: String,
    },
    /// A pool holds interfaces from now on.
    PoolOfInterfaces {
        /// The pool.
        pool: String,
    },
    /// Nodes drain, or stop draining.
    AdminState {
        /// The pool.
        pool: String,
        /// Their state from now on.
        state: AdminState,
        /// The nodes.
        nodes: Vec<String>,
    },
    /// A machine joins a pool, or leaves it.
    Membership {
        /// Which machine.
        member: Member,
        /// Whether it joins.
        joins: bool,
        /// The pool.
        pool: String,
        /// The pool's load balancer.
        load_balancer: String,
    },

    /// A security rule is new.
    SecurityRuleAdded {
        /// The rule.
        rule: String,
        /// What it is for.
        traffic: TrafficClass,
        /// Its destinations.
        destinations: Vec<String>,
        /// Its priority.
        priority: i32,
    },
    /// A security rule gets other destinations.
    SecurityRuleDestinations {
        /// The rule.
        rule: String,
        /// The destinations that are added.
        come: Vec<String>,
        /// The destinations that are removed.
        gone: Vec<String>,
    },
    /// The destinations of a security rule are merged into fewer prefixes, because of the group's limit.
    SecurityRuleGathered {
        /// The rule.
        rule: String,
        /// The number of prefixes after merging.
        prefixes: usize,
    },
    /// One of the cluster's security rules, changed by others, is restored.
    SecurityRuleRestored {
        /// The rule.
        rule: String,
        /// What it is for.
        traffic: TrafficClass,
    },
    /// A security rule that is no longer needed is removed.
    SecurityRuleRemoved {
        /// The rule.
        rule: String,
        /// Its destinations.
        destinations: Vec<String>,
    },

    /// A Service gets a private link service.
    PrivateLinkAdded {
        /// The private link service.
        name: String,
        /// The Service.
        service: ObjectKey,
        /// The frontend that it offers.
        frontend: String,
    },
    /// A private link service has other addresses.
    PrivateLinkAddresses {
        /// How many.
        count: usize,
        /// Their subnet.
        subnet: String,
        /// Those that are chosen.
        chosen: Vec<String>,
    },
    /// A private link service speaks the PROXY protocol, or not.
    ProxyProtocol {
        /// Whether it does.
        on: bool,
    },
    /// A list of a private link service differs.
    PrivateLinkList {
        /// The name of the list.
        list: &'static str,
        /// What it held.
        from: Vec<String>,
        /// What it holds from now on.
        to: Vec<String>,
    },
    /// A connection is removed, because Azure keeps a private link service that has connections.
    ConnectionRemoved {
        /// The private link service.
        name: String,
    },
    /// A private link service is removed.
    PrivateLinkRemoved {
        /// The private link service.
        name: String,
    },
    /// A subnet is opened to private link services.
    SubnetOpened,

    /// A range of a node's pods gets its route.
    RouteAdded {
        /// The route.
        route: String,
        /// The range.
        range: IpNet,
        /// The node's address.
        next_hop: IpAddr,
    },
    /// A member of a route differs.
    RouteChanged {
        /// The route.
        route: String,
        /// What differs.
        difference: Difference,
    },
    /// No node has the range any more.
    RouteRemoved {
        /// The route.
        route: String,
        /// The range.
        range: IpNet,
    },
}

/// What Azure left unfinished.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unfinished {
    /// A write.
    Write,
    /// Any operation, whether ours or not.
    Operation,
}

/// In what the replacement of a public IP differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Replacement {
    /// Its address is of this family.
    Family(Family),
    /// It has the IP tags that are wanted.
    IpTags,
}

/// A member whose value differs from the desired one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Difference {
    /// The member, in words.
    pub member: &'static str,
    /// Its value so far.
    pub from: String,
    /// Its value from now on.
    pub to: String,
}

/// Where a frontend has its address from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum FrontendSource {
    /// A public IP, by name.
    PublicIp(String),
    /// A subnet.
    Subnet {
        /// The subnet.
        name: String,
        /// The address; absent where Azure chooses.
        address: Option<IpAddr>,
    },
}

/// Which machine a document is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Member {
    /// The instances that a scale set creates from now on.
    NewInstances,
    /// That of a node.
    Node(String),
    /// An instance that is not a node.
    Instance,
    /// A network interface without a machine.
    Interface(String),
}

/// What a security rule allows or denies.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TrafficClass {
    /// Allow or Deny.
    pub access: String,
    /// The protocol.
    pub protocol: String,
    /// The destination ports.
    pub ports: Vec<String>,
    /// From where.
    pub sources: Vec<String>,
}

impl Change {
    /// Renames addresses: in a preview, placeholders stand for addresses that Azure has yet to choose.
    pub(crate) fn rename_addresses(&mut self, rename: impl Fn(&str) -> String) {
        let lists: &mut [&mut Vec<String>] = match self {
            Self::SecurityRuleAdded { destinations, .. } | Self::SecurityRuleRemoved { destinations, .. } => {
                &mut [destinations]
            }
            Self::SecurityRuleDestinations { come, gone, .. } => &mut [come, gone],
            Self::FrontendAddress { from: Some(from), .. } => {
                *from = rename(from);
                return;
            }
            _ => return,
        };
        for address in lists.iter_mut().flat_map(|list| list.iter_mut()) {
            *address = rename(address);
        }
    }
}

/// The changes on one line, for logs and events.
pub fn in_words(changes: &[Change]) -> String {
    changes.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn list_or_none(list: &[String]) -> String {
    if list.is_empty() { "none".to_owned() } else { list.join(" ") }
}

fn signed(f: &mut fmt::Formatter<'_>, sign: char, list: &[String]) -> fmt::Result {
    list.iter().try_for_each(|one| write!(f, " {sign}{one}"))
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TagAdded { name, value } => write!(f, "tag {name}={value} added"),
            Self::TagChanged { name, from, to } => write!(f, "tag {name}: {from} → {to}"),
            Self::TagRemoved { name } => write!(f, "tag {name} removed"),
            Self::Repaired(Unfinished::Write) => {
                f.write_str("written again as it is: Azure did not finish the last write")
            }
            Self::Repaired(Unfinished::Operation) => {
                f.write_str("written again as it is: the last operation on it failed")
            }
            Self::Restored => f.write_str("restored: Azure accepted a change and then refused it"),
            Self::PublicIpCreated { family, zones } if zones.is_empty() => {
                write!(f, "static {family} address")
            }
            Self::PublicIpCreated { family, zones } => {
                write!(f, "static {family} address in zones {}", zones.join(", "))
            }
            Self::PublicIpShared { service } => write!(f, "{service} uses it too"),
            Self::PublicIpGivenUp { service, others } if others.is_empty() => {
                write!(f, "{service} no longer uses it, and no other Service does")
            }
            Self::PublicIpGivenUp { service, others } => {
                write!(f, "{service} no longer uses it; {} still does", others.join(", "))
            }
            Self::PublicIpKept { service } => write!(f, "{service} no longer uses it; it stays"),
            Self::PublicIpReplaced(Replacement::Family(family)) => {
                write!(f, "will be created again as {family}")
            }
            Self::PublicIpReplaced(Replacement::IpTags) => {
                f.write_str("will be created again with the requested IP tags")
            }
            Self::PublicIp(difference) => difference.fmt(f),
            Self::IpTagsChanged => f.write_str("IP tags changed"),
            Self::DnsLabelAdded { label } => write!(f, "DNS label {label}"),
            Self::DnsLabelChanged { from, to } => {
                write!(f, "DNS label {} → {to}", from.as_deref().unwrap_or("none"))
            }
            Self::DnsLabelRemoved { label } => write!(f, "DNS label {label} removed"),
            Self::FrontendAdded { frontend, service, source } => {
                write!(f, "frontend {frontend} added for {service} ({source})")
            }
            Self::FrontendPublicIp { frontend, from, to } => {
                write!(f, "frontend {frontend}: public IP {from} → {to}")
            }
            Self::FrontendMoved { frontend, source } => write!(f, "frontend {frontend}: moved to {source}"),
            Self::FrontendAddress { frontend, from, to } => {
                write!(f, "frontend {frontend}: address {} → {to}", from.as_deref().unwrap_or("none"))
            }
            Self::FrontendRemoved { frontend, service } => {
                write!(f, "frontend {frontend} of {service} removed")
            }
            Self::LeftoverFrontendRemoved { frontend } => {
                write!(f, "frontend {frontend} removed: its Service is gone, or served elsewhere")
            }
            Self::LastFrontendGone => f.write_str("the last frontend is gone"),
            Self::BasicLoadBalancerRetired => f.write_str("SKU Basic: one of SKU Standard takes its place"),
            Self::RuleAdded { rule, protocol, port, backend_port } => {
                write!(f, "rule {rule} added: {protocol} port {port} → backend port {backend_port}")
            }
            Self::RuleChanged { rule, difference } => write!(f, "rule {rule}: {difference}"),
            Self::RuleRemoved { rule } => write!(f, "rule {rule} removed"),
            Self::ProbeAdded { probe, protocol, port, path, interval } => {
                write!(f, "probe {probe} added: {protocol} {port}{path} every {interval} s")
            }
            Self::ProbeChanged { probe, difference } => write!(f, "probe {probe}: {difference}"),
            Self::ProbeRemoved { probe } => write!(f, "probe {probe} removed"),
            Self::SharedProbeRemoved { probe } => write!(f, "probe {probe} removed: no rule uses it"),
            Self::PoolAdded { pool } => write!(f, "backend pool {pool} added"),
            Self::PoolRemoved { pool } => write!(f, "backend pool {pool} removed: no rule uses it"),
            Self::PoolMembers { pool, come, gone } => {
                let come = come.iter().map(|(node, address)| format!("+{node} ({address})"));
                let gone = gone.iter().map(|address| format!("-{address}"));
                write!(f, "backend pool {pool}: members {}", name_some(&come.chain(gone).collect::<Vec<_>>()))
            }
            Self::PoolOfAddresses { pool, network } => {
                write!(f, "backend pool {pool}: its members are addresses of virtual network {network}")
            }
            Self::PoolOfInterfaces { pool } => {
                write!(
                    f,
                    "backend pool {pool}: addresses removed: the nodes' network interfaces join instead"
                )
            }
            Self::AdminState { pool, state, nodes } => {
                let why = if *state == AdminState::Down { "draining" } else { "back" };
                let nodes = name_some(nodes);
                write!(f, "backend pool {pool}: adminState {} of {nodes} ({why})", state.as_str())
            }
            Self::Membership { member, joins, pool, load_balancer } => {
                let verb = if *joins { "joins" } else { "leaves" };
                write!(f, "{member}{verb} backend pool {pool} of load balancer {load_balancer}")
            }
            Self::SecurityRuleAdded { rule, traffic, destinations, priority } => {
                let destinations = destinations.join(", ");
                write!(f, "rule {rule} added: {traffic} to {destinations} (priority {priority})")
            }
            Self::SecurityRuleDestinations { rule, come, gone } => {
                write!(f, "rule {rule}: destinations")?;
                signed(f, '+', come)?;
                signed(f, '-', gone)
            }
            Self::SecurityRuleGathered { rule, prefixes } => {
                write!(f, "rule {rule}: the same destinations as {prefixes} prefixes")
            }
            Self::SecurityRuleRestored { rule, traffic } => {
                write!(f, "rule {rule}: set right again: {traffic}")
            }
            Self::SecurityRuleRemoved { rule, destinations } => {
                write!(f, "rule {rule} removed: no Service needs it for {}", destinations.join(", "))
            }
            Self::PrivateLinkAdded { name, service, frontend } => {
                write!(f, "private link service {name} of {service} added: it offers frontend {frontend}")
            }
            Self::PrivateLinkAddresses { count, subnet, chosen } => {
                write!(f, "addresses: {count} of subnet {subnet}")?;
                if chosen.is_empty() { Ok(()) } else { write!(f, ", {} among them", chosen.join(" ")) }
            }
            Self::ProxyProtocol { on } => write!(f, "PROXY protocol {}", if *on { "on" } else { "off" }),
            Self::PrivateLinkList { list, from, to } => {
                write!(f, "{list} {} → {}", list_or_none(from), list_or_none(to))
            }
            Self::ConnectionRemoved { name } => {
                write!(f, "connection removed: private link service {name} goes")
            }
            Self::PrivateLinkRemoved { name } => write!(f, "private link service {name} removed"),
            Self::SubnetOpened => f.write_str(
                "network policies of private link services disabled: Azure takes none there otherwise",
            ),
            Self::RouteAdded { route, range, next_hop } => {
                write!(f, "route {route} added: {range} → {next_hop}")
            }
            Self::RouteChanged { route, difference } => write!(f, "route {route}: {difference}"),
            Self::RouteRemoved { route, range } => write!(f, "route {route} to {range} removed"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} → {}", self.member, self.from, self.to)
    }
}

impl fmt::Display for FrontendSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PublicIp(name) => write!(f, "public IP {name}"),
            Self::Subnet { name, address: None } => write!(f, "subnet {name}, address chosen by Azure"),
            Self::Subnet { name, address: Some(address) } => write!(f, "subnet {name}, address {address}"),
        }
    }
}

impl fmt::Display for Member {
    /// Formats the text with which sentences begin.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NewInstances => f.write_str("new instances: "),
            Self::Node(name) => write!(f, "node {name} "),
            Self::Instance => Ok(()),
            Self::Interface(name) => write!(f, "interface {name}, which has no machine, "),
        }
    }
}

impl fmt::Display for TrafficClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { access, protocol, ports, sources } = self;
        write!(f, "{access} {protocol} {} from {}", ports.join(","), sources.join(","))
    }
}
