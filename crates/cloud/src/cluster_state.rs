//! What controllers and provider know of the cluster: all Services and all Nodes, fed by watches.
//!
//! Each object carries the point in logical time at which the event that brought it was processed. Whoever
//! works on it judges by what was read after that point: an address that was made just before the Service
//! asked for it exists.
//!
//! Plans of shared resources need everybody: a security rule may go only if no Service needs it. While a
//! kind has not been listed whole ([`ClusterState::services_synced`]), nothing may be concluded from an
//! object's absence.

use std::collections::{BTreeMap, HashMap};
use std::ops::Deref;
use std::sync::Arc;

use k8s::{Node, ObjectKey, Service};
use parking_lot::RwLock;

use crate::LogicalTime;

/// An object, and when the event that brought it was processed.
#[derive(Debug)]
pub struct Stamped<T> {
    /// The object.
    pub object: Arc<T>,
    /// When its event was processed.
    pub stamp: LogicalTime,
}

impl<T> Stamped<T> {
    fn now(object: Arc<T>) -> Self {
        Self { object, stamp: LogicalTime::now() }
    }
}

impl<T> Clone for Stamped<T> {
    fn clone(&self) -> Self {
        Self { object: Arc::clone(&self.object), stamp: self.stamp }
    }
}

impl<T> Deref for Stamped<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.object
    }
}

/// All Services and Nodes of the cluster, shared between controllers and provider.
#[derive(Debug, Default, Clone)]
pub struct ClusterState(Arc<RwLock<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    services: HashMap<ObjectKey, Stamped<Service>>,
    nodes: BTreeMap<String, Stamped<Node>>,
    services_synced: bool,
    nodes_synced: bool,
    nodes_changed: Option<LogicalTime>,
}

impl ClusterState {
    /// Takes over a Service as it is now, and stamps it with this moment.
    pub fn apply_service(&self, service: Arc<Service>) {
        self.0.write().services.insert(service.key(), Stamped::now(service));
    }

    /// Forgets a Service that is gone.
    pub fn remove_service(&self, key: &ObjectKey) {
        self.0.write().services.remove(key);
    }

    /// Takes over a Node as it is now, and stamps it with this moment.
    pub fn apply_node(&self, node: Arc<Node>) {
        let mut inner = self.0.write();
        let node = Stamped::now(node);
        inner.nodes_changed = Some(node.stamp);
        inner.nodes.insert(node.name().to_owned(), node);
    }

    /// Forgets a Node that is gone.
    pub fn remove_node(&self, name: &str) {
        self.0.write().nodes.remove(name);
    }

    /// When the latest event of a Node was processed; the beginning if there was none.
    pub fn nodes_changed(&self) -> LogicalTime {
        self.0.read().nodes_changed.unwrap_or(LogicalTime::BEGINNING)
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

    /// One Service and its stamp.
    pub fn service(&self, key: &ObjectKey) -> Option<Stamped<Service>> {
        self.0.read().services.get(key).cloned()
    }

    /// One Node and its stamp.
    pub fn node(&self, name: &str) -> Option<Stamped<Node>> {
        self.0.read().nodes.get(name).cloned()
    }

    /// All Services, in no order.
    pub fn services(&self) -> Vec<Arc<Service>> {
        self.0.read().services.values().map(|service| Arc::clone(&service.object)).collect()
    }

    /// All Nodes, by name.
    pub fn nodes(&self) -> Vec<Arc<Node>> {
        self.0.read().nodes.values().map(|node| Arc::clone(&node.object)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_gets_a_later_stamp() {
        let state = ClusterState::default();
        let service: Arc<Service> = Arc::default();
        let before = LogicalTime::now();
        state.apply_service(Arc::clone(&service));
        let first = state.service(&service.key()).map(|service| service.stamp);
        assert!(first > Some(before));
        state.apply_service(Arc::clone(&service));
        assert!(state.service(&service.key()).map(|service| service.stamp) > first);
    }
}
