//! The content of a view of the simulated network.

use std::net::IpAddr;

use serde::Serialize;
use serde_json::Value;

/// Everything that the page shows, at one moment.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Topology {
    /// Frontends of load balancers, then public IPs that no load balancer uses.
    pub addresses: Vec<AddressView>,
    /// Kubernetes Services of type LoadBalancer, if given; see [`Topology::with_services`].
    pub services: Vec<ServiceView>,
    /// Clusters that are made of these resources, if given; see [`Topology::with_clusters`].
    pub clusters: Vec<ClusterView>,
    /// Machines, by name.
    pub nodes: Vec<NodeView>,
    /// Network interfaces that no machine has, by name.
    pub interfaces: Vec<InterfaceView>,
    /// Private endpoints, by name.
    pub endpoints: Vec<EndpointView>,
    /// Virtual networks, by name.
    pub networks: Vec<NetworkView>,
    /// Security groups.
    pub security_groups: Vec<SecurityGroupView>,
    /// The last requests, oldest first, as the journal has them.
    pub journal: Vec<Value>,
    /// Requests counted, as the journal counts them.
    pub counts: Value,
}

/// A cluster that is being created, maintained or deleted, as a tree: line by line, each deeper one below the one
/// before it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ClusterView {
    /// The cluster itself first, its parts after it.
    pub parts: Vec<ClusterPart>,
}

/// A cluster, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ClusterPart {
    /// How deep it is; the cluster itself is at 0.
    pub depth: usize,
    /// Its name.
    pub name: String,
    /// Its progress.
    pub stand: Stand,
    /// The progress in words.
    pub words: String,
    /// The zone of a machine.
    pub zone: Option<String>,
}

/// Progress of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stand {
    /// Nothing happens yet.
    Waits,
    /// It is being worked on.
    Works,
    /// It is as wanted.
    Done,
}

/// A Kubernetes Service that wants a load balancer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ServiceView {
    /// Its name, as `namespace/name`.
    pub name: String,
    /// The common part of the names of its frontends, rules and public addresses, in lower case.
    pub base: String,
    /// Its addresses; none while it waits for them.
    pub addresses: Vec<IpAddr>,
}

/// An address and its rules.
#[derive(Debug, Clone, Serialize)]
pub struct AddressView {
    /// The address; `None` while Azure has not given one.
    pub address: Option<IpAddr>,
    /// Whether only the virtual network reaches it.
    pub internal: bool,
    /// The public IP's name.
    pub public_ip: Option<String>,
    /// The Kubernetes Services that are known to have it, as `namespace/name`: by the public IP's tag, or by their
    /// status.
    pub services: Vec<String>,
    /// The load balancer's name; `None` for a public IP that none uses.
    pub load_balancer: Option<String>,
    /// The frontend's name.
    pub frontend: Option<String>,
    /// Whether Azure is still working on the load balancer or public IP.
    pub updating: bool,
    /// The frontend's rules.
    pub rules: Vec<RuleView>,
    /// The frontend's inbound NAT rules, at most [`MAX_MEMBERS`].
    pub nat_rules: Vec<NatRuleView>,
    /// Names of the private link services that offer the frontend.
    pub link_services: Vec<String>,
    /// The machine that has the public IP for itself.
    pub node: Option<String>,
}

/// An inbound NAT rule as it works for one machine.
#[derive(Debug, Clone, Serialize)]
pub struct NatRuleView {
    /// Its name.
    pub name: String,
    /// Its protocol as written.
    pub protocol: String,
    /// Port on the frontend.
    pub port: u16,
    /// Port on the machine.
    pub backend_port: u16,
    /// The machine; `None` while it leads to none.
    pub node: Option<String>,
}

/// A network interface.
#[derive(Debug, Clone, Serialize)]
pub struct InterfaceView {
    /// Its name.
    pub name: String,
    /// Private addresses.
    pub addresses: Vec<IpAddr>,
    /// Public addresses of its own.
    pub public_addresses: Vec<IpAddr>,
    /// Its subnet, as `network/subnet`.
    pub subnet: Option<String>,
    /// Names of the backend pools that it is in.
    pub pools: Vec<String>,
    /// Whether it may forward packets that bear other addresses.
    pub forwards: bool,
}

/// A private endpoint.
#[derive(Debug, Clone, Serialize)]
pub struct EndpointView {
    /// Its name.
    pub name: String,
    /// Its private addresses.
    pub addresses: Vec<IpAddr>,
    /// `Approved`, `Pending`, `Rejected` or `Disconnected`.
    pub status: String,
    /// The name of what it leads to.
    pub leads_to: Option<String>,
}

/// A virtual network.
#[derive(Debug, Clone, Serialize)]
pub struct NetworkView {
    /// Its name.
    pub name: String,
    /// Its address space.
    pub prefixes: Vec<String>,
    /// Names of the networks that it is connected to.
    pub peers: Vec<String>,
    /// Its subnets, by name.
    pub subnets: Vec<SubnetView>,
}

/// A subnet.
#[derive(Debug, Clone, Serialize)]
pub struct SubnetView {
    /// Its name.
    pub name: String,
    /// Its addresses.
    pub prefixes: Vec<String>,
    /// The name of its security group.
    pub security_group: Option<String>,
    /// The name of its NAT gateway.
    pub nat_gateway: Option<String>,
    /// User routes in force in it, in a few words each; at most [`MAX_MEMBERS`].
    pub routes: Vec<String>,
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
    /// The security rule or want of a group that stops packets from the internet ([`SOMEONE`], [`SOMEONE_V6`]) behind a
    /// public address although members would take them, in a few words.
    pub denied: Option<String>,
    /// The probe's request, such as `HTTP 32000 /healthz`; `None` without a probe.
    pub probe: Option<String>,
    /// The backend pool's name.
    pub pool: Option<String>,
    /// How many members take new connections.
    pub taking: usize,
    /// How many members there are.
    pub total: usize,
    /// The members, those that take no connections first; at most [`MAX_MEMBERS`].
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
    /// The scale set, for instances of one and for machines that joined a flexible one.
    pub scale_set: Option<String>,
    /// Whether the scale set is a flexible one.
    pub flexible: bool,
    /// Private addresses.
    pub addresses: Vec<IpAddr>,
    /// Its network interfaces.
    pub interfaces: Vec<InterfaceView>,
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
    /// Its rules in the order of evaluation: by direction, then by priority.
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

/// The default source of packets, a host on the internet; set aside for documentation.
pub const SOMEONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(203, 0, 113, 7));
/// The same for IPv6.
pub const SOMEONE_V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 7));

/// Most members of one rule that are listed, for which a page has room; a cluster may have thousands.
pub const MAX_MEMBERS: usize = 48;
