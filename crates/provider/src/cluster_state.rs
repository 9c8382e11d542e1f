//! What the provider knows of the cluster: all Services and all Nodes, fed by the controllers' watches.
//!
//! Plans of shared resources need everybody: a security rule may go only if no Service needs it. While a
//! kind has not been listed whole ([`ClusterState::services_synced`]), nothing may be concluded from an
//! object's absence.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use k8s::{Node, ObjectKey, Service};
use parking_lot::RwLock;

/// All Services and Nodes of the cluster, shared between controllers and provider.
#[derive(Debug, Default, Clone)]
pub struct ClusterState(Arc<RwLock<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    services: HashMap<ObjectKey, Arc<Service>>,
    nodes: BTreeMap<String, Arc<Node>>,
    services_synced: bool,
    nodes_synced: bool,
}

impl ClusterState {
    /// Takes over a Service as it is now.
    pub fn apply_service(&self, service: Arc<Service>) {
        self.0.write().services.insert(service.key(), service);
    }

    /// Forgets a Service that is gone.
    pub fn remove_service(&self, key: &ObjectKey) {
        self.0.write().services.remove(key);
    }

    /// Takes over a Node as it is now.
    pub fn apply_node(&self, node: Arc<Node>) {
        self.0.write().nodes.insert(node.name().to_owned(), node);
    }

    /// Forgets a Node that is gone.
    pub fn remove_node(&self, name: &str) {
        self.0.write().nodes.remove(name);
    }

    /// Says that every Service that exists has been applied (once, after the first whole list).
    pub fn services_are_synced(&self) {
        self.0.write().services_synced = true;
    }

    /// Says that every Node that exists has been applied (once, after the first whole list).
    pub fn nodes_are_synced(&self) {
        self.0.write().nodes_synced = true;
    }

    /// Whether an absent Service is known to be absent.
    pub fn services_synced(&self) -> bool {
        self.0.read().services_synced
    }

    /// Whether an absent Node is known to be absent.
    pub fn nodes_synced(&self) -> bool {
        self.0.read().nodes_synced
    }

    /// One Service.
    pub fn service(&self, key: &ObjectKey) -> Option<Arc<Service>> {
        self.0.read().services.get(key).cloned()
    }

    /// One Node.
    pub fn node(&self, name: &str) -> Option<Arc<Node>> {
        self.0.read().nodes.get(name).cloned()
    }

    /// All Services, in no order.
    pub fn services(&self) -> Vec<Arc<Service>> {
        self.0.read().services.values().cloned().collect()
    }

    /// All Nodes, by name.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        self.0.read().nodes.values().cloned().collect()
    }
}
