//! The observed state of Azure that a plan for a whole cluster is made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_types::{LoadBalancer, PrivateLinkService, PublicIpAddress, ResourceId, SecurityGroup, Subnet};

use crate::machines::inventory::Machines;
use crate::model::Labels;
use crate::service::EndpointNodes;

/// The observed state of Azure that concerns the cluster.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The load balancers of their resource group.
    pub load_balancers: Vec<Arc<LoadBalancer>>,
    /// The public IPs of all groups in use.
    pub public_ips: Vec<Arc<PublicIpAddress>>,
    /// Groups in use that cannot be read, and why. Services that name one are refused; the cluster's own group is never
    /// among them.
    pub unreadable_groups: BTreeMap<ResourceId, String>,
    /// The configured security group.
    pub security_group: Option<SecurityGroup>,
    /// The machines of every kind.
    pub machines: Machines,
    /// The nodes with endpoints of each Service; absent if unknown.
    pub endpoints: Option<EndpointNodes>,
    /// The private link services of all groups in use.
    pub private_links: Vec<Arc<PrivateLinkService>>,
    /// Groups whose private link services cannot be read, and why. Services that ask for one there are refused.
    pub unreadable_private_links: BTreeMap<ResourceId, String>,
    /// The labels of namespaces by name, where they affect the placement of Services.
    pub namespaces: BTreeMap<String, Labels>,
    /// The subnets that Services name for frontends and private link services, and the configured one.
    pub subnets: Vec<Arc<Subnet>>,
}
