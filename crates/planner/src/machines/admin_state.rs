//! Whether pool members take new connections: the administrative state of a pool's entries (10.2).

use std::cell::OnceCell;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{
    BackendAddressPool, BackendAddressPoolProperties, BackendAddresses, LoadBalancer,
    LoadBalancerBackendAddress, NetworkInterface, ResourceId, Word,
};
use k8s::Node;

use super::nodes::{machine_id, machine_of};
pub use crate::model::admin_state::AdminState;

pub(crate) fn set(entry: &mut LoadBalancerBackendAddress, state: AdminState) {
    entry.properties.get_or_insert_default().admin_state = Some(Word::from(state.as_str()));
}

/// The key of an entry: its pool, and its address or interface.
pub type EntryKey = (String, String);

pub(crate) fn key_in(pool: &str, entry: &LoadBalancerBackendAddress) -> Option<EntryKey> {
    let properties = entry.properties.as_ref()?;
    let interface = properties.network_interface_ip_configuration.as_ref().and_then(|one| one.id.as_ref());
    let member = properties.ip_address.clone().or_else(|| interface.map(ResourceId::to_lower))?;
    Some((pool.to_lowercase(), member))
}

fn entries_of(
    pool: Option<&BackendAddressPoolProperties>,
) -> impl Iterator<Item = LoadBalancerBackendAddress> {
    let all = pool.and_then(|pool| pool.load_balancer_backend_addresses.as_ref());
    all.into_iter().flat_map(BackendAddresses::iter)
}

/// Every entry of a load balancer's pools, with its state.
pub fn entries(load_balancer: &LoadBalancer) -> BTreeMap<EntryKey, AdminState> {
    let pools = load_balancer.properties.iter().flat_map(|p| p.backend_address_pools.iter().flatten());
    let of_pool = |pool: &BackendAddressPool| {
        let entries = entries_of(pool.properties.as_ref());
        let name = pool.name.as_deref().unwrap_or_default();
        entries.filter_map(|entry| Some((key_in(name, &entry)?, AdminState::of(&entry)))).collect::<Vec<_>>()
    };
    pools.flat_map(of_pool).collect()
}

/// The nodes that entries of pools stand for.
pub(crate) struct Members<'a> {
    nodes: &'a [Arc<Node>],
    by_address: HashMap<IpAddr, &'a Node>,
    /// Filled lazily, only where interfaces are members.
    by_machine: OnceCell<HashMap<ResourceId, &'a Node>>,
    /// The virtual machine of each interface.
    machines: HashMap<&'a ResourceId, &'a ResourceId>,
}

impl<'a> Members<'a> {
    pub(crate) fn new(nodes: &'a [Arc<Node>], interfaces: &'a [Arc<NetworkInterface>]) -> Self {
        let machine = |one: &'a Arc<NetworkInterface>| Some((one.id.as_ref()?, machine_of(one)?));
        let machines = interfaces.iter().filter_map(machine).collect();
        let addresses =
            nodes.iter().flat_map(|node| node.internal_addresses().map(|address| (address, &**node)));
        Self { nodes, by_address: addresses.collect(), by_machine: OnceCell::new(), machines }
    }

    fn by_machine(&self, machine: &ResourceId) -> Option<&'a Node> {
        let by_machine = self.by_machine.get_or_init(|| {
            let nodes = self.nodes.iter();
            nodes.filter_map(|node| Some((machine_id(node)?, &**node))).collect()
        });
        by_machine.get(machine).copied()
    }

    /// The node that an entry stands for.
    pub(crate) fn node(&self, entry: &LoadBalancerBackendAddress) -> Option<&'a Node> {
        let properties = entry.properties.as_ref()?;
        // Azure reports the interface as well where the address is the member.
        if let Some(address) = properties.ip_address.as_deref() {
            return self.by_address.get(&address.parse().ok()?).copied();
        }
        let configuration = properties.network_interface_ip_configuration.as_ref()?.id.as_ref()?;
        let interface = configuration.parent()?;
        match self.machines.get(&interface) {
            Some(machine) => self.by_machine(machine),
            // The interface of an instance is a child of the instance: …/virtualMachines/0/networkInterfaces/nic
            None => self.by_machine(&interface.parent()?),
        }
    }
}

/// The nodes that are in pools of these load balancers, and whether none of their entries takes new connections.
pub fn nodes_in_pools<'a>(
    load_balancers: impl IntoIterator<Item = &'a LoadBalancer>,
    nodes: &[Arc<Node>],
    interfaces: &[Arc<NetworkInterface>],
) -> BTreeMap<String, bool> {
    let members = Members::new(nodes, interfaces);
    let mut found = BTreeMap::new();
    for document in load_balancers {
        let pools = document.properties.iter().flat_map(|p| p.backend_address_pools.iter().flatten());
        for entry in pools.flat_map(|pool| entries_of(pool.properties.as_ref())) {
            if let Some(node) = members.node(&entry) {
                let is_down = AdminState::of(&entry) == AdminState::Down;
                found.entry(node.name().to_owned()).and_modify(|all| *all &= is_down).or_insert(is_down);
            }
        }
    }
    found
}
