//! The parts of a cluster's network.

mod load_balancer;
mod private_endpoint;
mod public_ip;
mod security_group;
mod subnet;
mod virtual_network;

pub use load_balancer::{
    BackendPool, FrontendIp, INTERNAL, LoadBalancer, LoadBalancerClass, MAX_OUTBOUND_IPS, PUBLIC, STANDARD,
};
pub use private_endpoint::{PrivateEndpoint, PrivateLinkServiceConnection};
pub use public_ip::{IpTag, PublicIp};
pub use security_group::{COMPLETED_RULES, SecurityGroup, SecurityGroupClass, SecurityRule};
pub use subnet::{NatGateway, NatGatewayClass, RouteTable, ServiceEndpoint, Subnet, SubnetClass};
pub use virtual_network::{Peering, PeeringProperties, VirtualNetwork, VirtualNetworkClass};

pub(crate) use load_balancer::check_idle_timeout;
pub(crate) use subnet::{SubnetView, check_subnets};
pub(crate) use virtual_network::{check_cidrs, check_peerings};

/// Roles of subnets.
pub mod roles {
    /// For workers.
    pub const NODE: &str = "node";
    /// For machines of the control plane.
    pub const CONTROL_PLANE: &str = "control-plane";
    /// For the bastion.
    pub const BASTION: &str = "bastion";
    /// For both workers and the control plane.
    pub const CLUSTER: &str = "cluster";
}
