//! Services: the parts into which the status of an object is divided. Each has the name of its operations in
//! `status.longRunningOperationStates`, and the condition that reports it.

/// A part of an object's status.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Service {
    /// The name in operations and in conditions' messages.
    pub name: &'static str,
    /// The condition that reports it; `None` if other conditions cover it.
    pub condition: Option<&'static str>,
    /// Whether its condition is True even if the object has no goals for it.
    pub true_without_goals: bool,
}

macro_rules! services {
    ($($(#[$doc:meta])* $id:ident = $name:literal, $condition:expr, $always:literal;)*) => {
        $($(#[$doc])* pub static $id: Service =
            Service { name: $name, condition: $condition, true_without_goals: $always };)*
    };
}

services! {
    /// Resource groups.
    GROUP = "group", Some("ResourceGroupReady"), true;
    /// The virtual network.
    VIRTUAL_NETWORK = "virtualnetworks", Some("VNetReady"), true;
    /// Security groups.
    SECURITY_GROUPS = "securitygroups", Some("SecurityGroupsReady"), false;
    /// Route tables.
    ROUTE_TABLES = "routetables", Some("RouteTablesReady"), false;
    /// Public IPs.
    PUBLIC_IPS = "publicips", Some("PublicIPsReady"), false;
    /// NAT gateways.
    NAT_GATEWAYS = "natgateways", Some("NATGatewaysReady"), true;
    /// Subnets.
    SUBNETS = "subnets", Some("SubnetsReady"), true;
    /// Peerings with other networks.
    PEERINGS = "vnetpeerings", Some("VnetPeeringReady"), false;
    /// Load balancers.
    LOAD_BALANCERS = "loadbalancers", Some("LoadBalancersReady"), false;
    /// The private DNS zone.
    DNS_ZONE = "privatedns", Some("PrivateDNSZoneReady"), false;
    /// Links of networks to the private DNS zone.
    DNS_LINKS = "privatednslinks", Some("PrivateDNSLinkReady"), false;
    /// The record of the API server.
    DNS_RECORD = "privatednsrecords", Some("PrivateDNSRecordReady"), false;
    /// Private endpoints.
    PRIVATE_ENDPOINTS = "privateendpoints", Some("PrivateEndpointsReady"), true;
    /// The bastion host.
    BASTION = "bastionhosts", Some("BastionHostReady"), true;
    /// Inbound NAT rules of machines.
    INBOUND_NAT_RULES = "inboundnatrules", Some("InboundNATRulesReady"), false;
    /// Network interfaces.
    INTERFACES = "interfaces", Some("NetworkInterfacesReady"), false;
    /// Availability sets.
    AVAILABILITY_SET = "availabilitysets", Some("AvailabilitySetReady"), false;
    /// Disks.
    DISKS = "disks", Some("DisksReady"), false;
    /// The machine.
    VIRTUAL_MACHINE = "virtualmachine", Some("VMRunning"), false;
    /// Role assignments.
    ROLE_ASSIGNMENTS = "roleassignments", None, false;
    /// Extensions of the machine, including the one that waits for its bootstrap.
    EXTENSIONS = "vmextensions", Some("BootstrapSucceeded"), false;
    /// The scale set.
    SCALE_SET = "scalesets", Some("BootstrapSucceeded"), false;
    /// An instance of a scale set.
    SCALE_SET_INSTANCE = "scalesetvms", None, false;
    /// The managed cluster.
    MANAGED_CLUSTER = "managedcluster", Some("ManagedClusterRunning"), true;
    /// The membership of a managed cluster in a fleet.
    FLEET_MEMBER = "fleetsmember", Some("FleetReady"), true;
    /// Extensions of a managed cluster.
    CLUSTER_EXTENSIONS = "extension", Some("AKSExtensionsReady"), true;
    /// Raw resources of Azure Service Operator's kinds.
    RAW_RESOURCES = "resources", Some("ResourcesReady"), false;
    /// A node pool of a managed cluster.
    AGENT_POOLS = "agentpools", Some("AgentPoolsReady"), false;
}

/// The services of an AzureMachinePool.
pub static POOL: [&Service; 2] = [&SCALE_SET, &ROLE_ASSIGNMENTS];

/// The services of an AzureCluster, in the order in which its conditions are written.
pub static CLUSTER: [&Service; 14] = [
    &GROUP,
    &VIRTUAL_NETWORK,
    &SECURITY_GROUPS,
    &ROUTE_TABLES,
    &PUBLIC_IPS,
    &NAT_GATEWAYS,
    &SUBNETS,
    &PEERINGS,
    &LOAD_BALANCERS,
    &DNS_ZONE,
    &DNS_LINKS,
    &DNS_RECORD,
    &PRIVATE_ENDPOINTS,
    &BASTION,
];

/// The services of an AzureManagedControlPlane, in the order in which its conditions are written.
pub static MANAGED_CONTROL_PLANE: [&Service; 7] = [
    &GROUP,
    &VIRTUAL_NETWORK,
    &SUBNETS,
    &MANAGED_CLUSTER,
    &PRIVATE_ENDPOINTS,
    &FLEET_MEMBER,
    &CLUSTER_EXTENSIONS,
];

/// The services of the kinds with raw resources.
pub static RAW: [&Service; 1] = [&RAW_RESOURCES];

/// The services of an AzureManagedMachinePool.
pub static MANAGED_MACHINE_POOL: [&Service; 1] = [&AGENT_POOLS];

/// The services of an AzureMachine, in the order in which its conditions are written.
pub static MACHINE: [&Service; 8] = [
    &PUBLIC_IPS,
    &INBOUND_NAT_RULES,
    &INTERFACES,
    &AVAILABILITY_SET,
    &DISKS,
    &VIRTUAL_MACHINE,
    &ROLE_ASSIGNMENTS,
    &EXTENSIONS,
];
