//! The parts of a cluster's network.

mod load_balancer;
mod private_endpoint;
mod public_ip;
pub mod roles;
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
pub(crate) use private_endpoint::check as check_private_endpoints;
pub(crate) use subnet::{SubnetView, check_subnets};
pub(crate) use virtual_network::{check_address, check_cidrs, check_peerings};
