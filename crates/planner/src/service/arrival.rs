//! The destination and port with which packets of a Service's clients reach a node.
//!
//! This module alone decides it. The load-balancing rule's backend port and floating flag follow from it, and so do the
//! ports and destinations of security rules, which Azure evaluates after the load balancer.

use k8s::Service;

use super::annotations::Annotations;
use crate::model::{Cluster, Family, Flavor, annotation_keys as keys};

/// Where packets of one family arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Arrival {
    /// At the frontend's address and the Service's port: nodes see what clients sent (floating IP).
    Frontend,
    /// At the node's own address and the node port.
    NodePort,
    /// At the node's own address and the client's port: HA ports without floating IP.
    Node,
}

impl Arrival {
    /// Where packets of one family arrive, by what the Service's object says.
    pub(crate) fn of(cluster: &Cluster, service: &Service, flavor: Flavor, family: Family) -> Self {
        // Azure does not support floating IP for IPv6 addresses of internal frontends.
        let can_float = flavor == Flavor::External || family == Family::V4;
        if has_ha_ports(cluster, service, flavor) {
            return if can_float { Self::Frontend } else { Self::Node };
        }
        let floats = can_float && !Annotations(service).flag(keys::DISABLE_FLOATING_IP);
        if floats { Self::Frontend } else { Self::NodePort }
    }

    /// Whether nodes see the frontend's address as destination.
    pub fn is_floating(self) -> bool {
        self == Self::Frontend
    }

    /// The port at which packets for a port of the Service arrive.
    pub fn port(self, port: i32, node_port: i32) -> i32 {
        match self {
            Self::Frontend | Self::Node => port,
            Self::NodePort => node_port,
        }
    }
}

/// Whether one rule serves all ports of the Service.
pub(crate) fn has_ha_ports(cluster: &Cluster, service: &Service, flavor: Flavor) -> bool {
    flavor == Flavor::Internal
        && cluster.config.uses_standard_load_balancer()
        && Annotations(service).flag(keys::HA_PORTS)
}
