//! What the cluster's Services and Nodes need of the security group: who must keep what when others change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use k8s::{Node, ObjectKey, Service};

use super::demand::{self, Demand, Ports};
use crate::access::Access;
use crate::cluster::{Cluster, Family};
use crate::intent::{ServiceRemoval, Transport};

/// What one Service needs of the security group, as far as its object tells without validation.
#[derive(Debug, Clone)]
pub(super) struct Footprint {
    /// The ports at which packets of each family arrive.
    pub ports: BTreeMap<Family, Ports>,
    /// The families whose packets arrive at nodes' own addresses.
    pub at_nodes: BTreeSet<Family>,
    /// The rules that it asks for.
    pub demand: Demand,
    /// The addresses at which packets arrive, but not those of nodes.
    pub addresses: BTreeSet<IpAddr>,
}

/// What all Services and Nodes of the cluster need of the security group.
#[derive(Debug, Clone, Default)]
pub struct ClusterUsage {
    /// Whether all Services and Nodes have been listed. While they have not, nothing is taken away:
    /// it might belong to somebody who is not known yet.
    pub is_complete: bool,
    /// The addresses of all Services.
    pub service_addresses: BTreeSet<IpAddr>,
    /// The internal addresses of all nodes that Azure manages.
    pub node_addresses: BTreeSet<IpAddr>,
    pub(super) footprints: BTreeMap<ObjectKey, Footprint>,
}

impl ClusterUsage {
    /// Sums up all Services and Nodes. `recently_programmed` are addresses that Services were given and
    /// that their status may not show yet.
    pub fn of(
        cluster: &Cluster,
        services: &[Arc<Service>],
        nodes: &[Arc<Node>],
        recently_programmed: &[(ObjectKey, IpAddr)],
        is_complete: bool,
    ) -> Self {
        let mut usage = Self { is_complete, ..Self::default() };
        for service in services {
            let owner = ServiceRemoval::of(cluster, service);
            let mut addresses: BTreeSet<IpAddr> = owner.published_addresses.iter().copied().collect();
            let recent = recently_programmed.iter().filter(|(key, _)| *key == owner.key);
            addresses.extend(recent.map(|(_, address)| *address));
            addresses.extend(&owner.additional_addresses);
            usage.service_addresses.extend(&addresses);
            // Who is on the way out needs no rule any more: none is made again for it.
            if !service.is_to_be_served() {
                continue;
            }
            let listed = |arrival| {
                let ports = service.spec.ports.iter();
                let listed = ports.filter_map(|port| {
                    let protocol = Transport::parse(&port.protocol)?;
                    Some((protocol, port.port, port.node_port))
                });
                demand::ports(listed, arrival)
            };
            let ports: BTreeMap<Family, Ports> =
                Family::BOTH.into_iter().map(|family| (family, listed(owner.arrival(family)))).collect();
            let at_nodes =
                owner.families.iter().copied().filter(|family| !owner.arrival(*family).is_floating());
            let at_nodes = at_nodes.collect();
            let demand = Demand::of(&Access::read(service), owner.flavor, &ports, &at_nodes);
            addresses.retain(|address| owner.arrival(Family::of(*address)).is_floating());
            addresses.extend(&owner.additional_addresses);
            let footprint = Footprint { ports, at_nodes, demand, addresses };
            usage.footprints.insert(owner.key, footprint);
        }
        for (_, address) in recently_programmed {
            usage.service_addresses.insert(*address);
        }
        for node in nodes.iter().filter(|node| node.is_managed()) {
            let internal = node.status.addresses.iter().filter(|address| address.kind == "InternalIP");
            usage.node_addresses.extend(internal.filter_map(|a| a.address.parse::<IpAddr>().ok()));
        }
        usage
    }
}
