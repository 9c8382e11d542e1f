//! The state of Azure and the cluster that concerns one Service.

use std::sync::Arc;

use azure_types::{PrivateLinkService, PublicIpAddress, Subnet};
use k8s::Node;

use crate::machines::MachineSets;
use crate::model::{Balancer, Labels};
use crate::resources::load_balancer::ListedLoadBalancer;

/// The state of Azure and the cluster that concerns one Service.
#[derive(Debug, Clone, Copy)]
pub struct ServiceObservation<'a> {
    /// The public IPs that concern the Service ([`PublicIpOwners`](crate::resources::public_ip::PublicIpOwners)), of its
    /// group and of the cluster's.
    pub public_ips: &'a [Arc<PublicIpAddress>],
    /// The cluster's load balancers that exist.
    pub load_balancers: &'a [(Balancer, ListedLoadBalancer)],
    /// The subnet of an internal Service's frontends; absent where it does not exist.
    pub subnet: Option<&'a Arc<Subnet>>,
    /// All nodes of the cluster.
    pub nodes: &'a [Arc<Node>],
    /// The private link services of the groups in which the Service's may be; absent if they were not read because the
    /// Service can have none.
    pub private_links: Option<&'a [Arc<PrivateLinkService>]>,
    /// The subnet of its private link service's addresses; absent where it does not exist.
    pub private_link_subnet: Option<&'a Arc<Subnet>>,
    /// The labels of the Service's namespace; absent if unknown.
    pub namespace: Option<&'a Labels>,
    /// The sets of standalone virtual machines; read only where load balancers are of SKU Basic.
    pub machine_sets: Option<&'a MachineSets>,
}

impl<'a> ServiceObservation<'a> {
    /// The document of a load balancer, if it exists.
    pub(crate) fn load_balancer(&self, balancer: &Balancer) -> Option<&'a ListedLoadBalancer> {
        self.load_balancers.iter().find(|(one, _)| one == balancer).map(|(_, document)| document)
    }
}
