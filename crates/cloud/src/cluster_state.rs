//! The cluster as controllers and provider know it: all Services and Nodes, fed by watches; the labels of Namespaces
//! where they decide on which load balancer a Service is; and the nodes on which Services have endpoints.
//!
//! Each object carries the point in logical time at which its watch event was processed. A controller works on the
//! object with data read after that point: an address that was created just before the Service asked for it is found.
//!
//! Plans of shared resources need all objects: a security rule may be deleted only if no Service needs it. Until a kind
//! has been listed completely ([`ClusterState::services_synced`]), the absence of an object proves nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Deref;
use std::sync::Arc;

use k8s::{EndpointSlice, Node, ObjectKey, Service};
use logical_time::LogicalTime;
use parking_lot::RwLock;

use crate::endpoints::Endpoints;

/// Labels of an object.
pub type Labels = BTreeMap<String, String>;

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

/// Number of deleted Nodes whose machines are remembered. A machine that is deleted with its Node does not matter; few
/// others stay.
const MAX_DEPARTED: usize = 1000;

fn is_same_machine(one: &Node, other: &Node) -> bool {
    one.name() == other.name() || one.spec.provider_id.eq_ignore_ascii_case(&other.spec.provider_id)
}

/// Whether `node` is the known Node, on the same machine.
fn is_unchanged_machine(known: &Node, node: &Node) -> bool {
    known.metadata.uid == node.metadata.uid && known.spec.provider_id == node.spec.provider_id
}

/// All Services and Nodes of the cluster, shared by controllers and provider.
#[derive(Debug, Default, Clone)]
pub struct ClusterState(Arc<RwLock<Inner>>);

/// Objects of one kind, in a list that is shared by all readers until one of the objects changes: with thousands of
/// objects, hundreds of readers would each make their own.
pub type ObjectList<T> = Arc<[Arc<T>]>;

#[derive(Debug, Default)]
struct Inner {
    services: HashMap<ObjectKey, Stamped<Service>>,
    nodes: BTreeMap<String, Stamped<Node>>,
    /// The lists of all Services and Nodes, if they were read since the last change.
    service_list: Option<ObjectList<Service>>,
    node_list: Option<ObjectList<Node>>,
    services_synced: bool,
    /// Deleted Nodes that have not come back, oldest first.
    departed: VecDeque<Arc<Node>>,
    nodes_synced: bool,
    machines_changed: Option<LogicalTime>,
    /// Number of Node events processed.
    nodes_version: u64,
    namespaces: HashMap<String, Arc<Labels>>,
    namespaces_synced: bool,
    endpoints: Endpoints,
    endpoints_synced: bool,
}

impl ClusterState {
    /// Stores the current state of a Service, stamped with the current logical time.
    pub fn apply_service(&self, service: Arc<Service>) {
        let mut inner = self.0.write();
        inner.service_list = None;
        inner.services.insert(service.key(), Stamped::now(service));
    }

    /// Removes a deleted Service.
    pub fn remove_service(&self, key: &ObjectKey) {
        let mut inner = self.0.write();
        inner.service_list = None;
        inner.services.remove(key);
    }

    /// Stores the current state of a Node, stamped with the current logical time.
    pub fn apply_node(&self, node: Arc<Node>) {
        self.apply_node_as_of(node, LogicalTime::now());
    }

    /// Stores a Node as of `stamp`. All pages of a list are as of its first page.
    pub fn apply_node_as_of(&self, node: Arc<Node>, stamp: LogicalTime) {
        let mut inner = self.0.write();
        let is_known = inner.nodes.get(node.name()).is_some_and(|known| is_unchanged_machine(known, &node));
        if !is_known {
            inner.machines_changed = inner.machines_changed.max(Some(stamp));
        }
        inner.nodes_version += 1;
        inner.node_list = None;
        inner.departed.retain(|gone| !is_same_machine(gone, &node));
        inner.nodes.insert(node.name().to_owned(), Stamped { object: node, stamp });
    }

    /// Removes a deleted Node, and remembers its machine.
    pub fn remove_node(&self, name: &str) {
        let mut inner = self.0.write();
        if let Some(node) = inner.nodes.remove(name).filter(|node| !node.spec.provider_id.is_empty()) {
            if inner.departed.len() >= MAX_DEPARTED {
                inner.departed.pop_front();
            }
            inner.departed.push_back(Arc::new(node.departed()));
        }
        inner.nodes_version += 1;
        inner.node_list = None;
    }

    /// The logical time of the last event by which a Node was added or changed its machine; the beginning if there was
    /// none. Machines read after it include those of all Nodes, whatever their kubelets have reported since.
    pub fn machines_changed(&self) -> LogicalTime {
        self.0.read().machines_changed.unwrap_or(LogicalTime::BEGINNING)
    }

    /// Declares that every existing Service has been applied (once, after the first complete list).
    pub fn services_are_synced(&self) {
        self.0.write().services_synced = true;
    }

    /// Declares that every existing Node has been applied (once, after the first complete list).
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

    /// Stores the current state of an EndpointSlice. Returns the Services whose set of endpoint nodes changed.
    pub fn apply_endpoint_slice(&self, slice: &EndpointSlice) -> BTreeSet<ObjectKey> {
        self.0.write().endpoints.apply(slice)
    }

    /// Removes a deleted EndpointSlice. Returns its Service if the Service's set of endpoint nodes changed.
    pub fn remove_endpoint_slice(&self, slice: &ObjectKey) -> BTreeSet<ObjectKey> {
        self.0.write().endpoints.remove(slice)
    }

    /// Declares that every existing EndpointSlice has been applied (once, after the first complete list).
    pub fn endpoints_are_synced(&self) {
        self.0.write().endpoints_synced = true;
    }

    /// Whether a Service without endpoints is known to have none.
    pub fn endpoints_synced(&self) -> bool {
        self.0.read().endpoints_synced
    }

    /// The nodes with endpoints of a Service, ready or not.
    pub fn endpoint_nodes(&self, service: &ObjectKey) -> BTreeSet<String> {
        self.0.read().endpoints.nodes_of(service)
    }

    /// All EndpointSlices, in no order.
    pub fn endpoint_slices(&self) -> Vec<ObjectKey> {
        self.0.read().endpoints.slices()
    }

    /// One Service and its stamp.
    pub fn service(&self, key: &ObjectKey) -> Option<Stamped<Service>> {
        self.0.read().services.get(key).cloned()
    }

    /// One Node and its stamp.
    pub fn node(&self, name: &str) -> Option<Stamped<Node>> {
        self.0.read().nodes.get(name).cloned()
    }

    /// Stores the current labels of a Namespace. Returns whether they changed.
    pub fn apply_namespace(&self, name: &str, labels: Labels) -> bool {
        let mut inner = self.0.write();
        if inner.namespaces.get(name).is_some_and(|known| **known == labels) {
            return false;
        }
        inner.namespaces.insert(name.to_owned(), Arc::new(labels));
        true
    }

    /// Removes a deleted Namespace.
    pub fn remove_namespace(&self, name: &str) {
        self.0.write().namespaces.remove(name);
    }

    /// Declares that every existing Namespace has been applied (once, after the first complete list).
    pub fn namespaces_are_synced(&self) {
        self.0.write().namespaces_synced = true;
    }

    /// Whether an absent Namespace is known to be absent.
    pub fn namespaces_synced(&self) -> bool {
        self.0.read().namespaces_synced
    }

    /// The labels of a Namespace, if known.
    pub fn namespace_labels(&self, name: &str) -> Option<Arc<Labels>> {
        self.0.read().namespaces.get(name).cloned()
    }

    /// The names of all known Namespaces, in no order.
    pub fn namespaces(&self) -> Vec<String> {
        self.0.read().namespaces.keys().cloned().collect()
    }

    /// All Services, in no order.
    pub fn services(&self) -> ObjectList<Service> {
        if let Some(list) = &self.0.read().service_list {
            return Arc::clone(list);
        }
        let inner = &mut *self.0.write();
        let services = || inner.services.values().map(|service| Arc::clone(&service.object)).collect();
        Arc::clone(inner.service_list.get_or_insert_with(services))
    }

    /// All Nodes, by name.
    pub fn nodes(&self) -> ObjectList<Node> {
        self.nodes_in_version().1
    }

    /// A version number: while it stays the same, all Nodes do.
    pub fn nodes_version(&self) -> u64 {
        self.0.read().nodes_version
    }

    /// All Nodes and their version number.
    pub fn nodes_in_version(&self) -> (u64, ObjectList<Node>) {
        {
            let inner = self.0.read();
            if let Some(list) = &inner.node_list {
                return (inner.nodes_version, Arc::clone(list));
            }
        }
        let inner = &mut *self.0.write();
        let nodes = || inner.nodes.values().map(|node| Arc::clone(&node.object)).collect();
        (inner.nodes_version, Arc::clone(inner.node_list.get_or_insert_with(nodes)))
    }

    /// All Nodes, and the deleted Nodes that have not come back, marked as being deleted: their machines may still run,
    /// and belong in no pool.
    pub fn nodes_and_departed(&self) -> Vec<Arc<Node>> {
        let inner = self.0.read();
        let nodes = inner.nodes.values().map(|node| &node.object);
        nodes.chain(&inner.departed).map(Arc::clone).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, provider_id: &str) -> Arc<Node> {
        let mut node = Node::default();
        node.metadata.name = Some(name.to_owned());
        node.spec.provider_id = provider_id.to_owned();
        node.status.addresses =
            vec![k8s::NodeAddress { kind: "InternalIP".into(), address: "10.0.0.4".to_owned() }];
        Arc::new(node)
    }

    /// NODE-083, NODE-084: of a deleted node, however its name is spelled, only its machine is remembered, and only
    /// until the node comes back.
    #[test]
    fn node_083_node_084_of_a_deleted_node_its_machine_alone_is_known() {
        let state = ClusterState::default();
        let departed = |state: &ClusterState| -> Vec<String> {
            let all = state.nodes_and_departed();
            let gone = all.iter().filter(|node| k8s::is_deleting(&node.metadata));
            gone.map(|node| format!("{} {}", node.name(), node.spec.provider_id)).collect()
        };
        for (name, id) in [("Pool-A", "azure:///a"), ("pool-b", "azure:///b"), ("new", "")] {
            state.apply_node(node(name, id));
        }
        for name in ["Pool-A", "pool-b", "new", "stranger"] {
            state.remove_node(name);
        }
        assert!(state.nodes().is_empty());
        assert_eq!(departed(&state), ["Pool-A azure:///a", "pool-b azure:///b"]);
        assert!(state.nodes_and_departed().iter().all(|node| node.internal_addresses().next().is_none()));
        state.apply_node(node("Pool-A", ""));
        assert_eq!(departed(&state), ["pool-b azure:///b"], "it came back");
        state.apply_node(node("another", "azure:///B"));
        assert_eq!(departed(&state), Vec::<String>::new(), "its machine came back under another name");
        for number in 0..=MAX_DEPARTED {
            state.apply_node(node(&number.to_string(), &format!("azure:///{number}")));
            state.remove_node(&number.to_string());
        }
        assert_eq!(departed(&state).len(), MAX_DEPARTED);
    }

    /// NODE-286: a report of a kubelet is no reason to read its machine again.
    #[test]
    fn node_286_machines_change_with_nodes_and_not_with_their_reports() {
        let state = ClusterState::default();
        let node = |uid: &str, id: &str| {
            let mut node = Node::default();
            node.metadata.name = Some("worker".to_owned());
            node.metadata.uid = Some(uid.to_owned());
            id.clone_into(&mut node.spec.provider_id);
            node
        };
        let apply = |node: Node| {
            let before = LogicalTime::now();
            state.apply_node(Arc::new(node));
            state.machines_changed() > before
        };
        assert!(apply(node("1", "")), "it came");
        let mut ready = node("1", "");
        ready.status.conditions.push(k8s::NodeCondition { kind: "Ready".into(), ..Default::default() });
        assert!(!apply(ready.clone()), "a report");
        assert!(apply(node("1", "azure:///a")), "it was initialised");
        assert!(!apply(node("1", "azure:///a")));
        assert!(apply(node("2", "azure:///a")), "another Node of this name");
        state.remove_node("worker");
        assert!(apply(node("2", "azure:///a")), "it came back");
        let (listed, read) = (LogicalTime::now(), LogicalTime::now());
        state.remove_node("worker");
        state.apply_node_as_of(Arc::new(node("3", "azure:///a")), listed);
        assert!(
            state.machines_changed() < read,
            "what is read after a list began holds the machines of all its pages"
        );
    }

    /// With thousands of objects, reading all of them costs nothing while none changes.
    #[test]
    fn all_readers_share_a_list_until_an_object_changes() {
        let state = ClusterState::default();
        state.apply_node(node("a", "azure:///a"));
        state.apply_service(Arc::default());
        let (nodes, services) = (state.nodes(), state.services());
        assert!(Arc::ptr_eq(&nodes, &state.nodes()) && Arc::ptr_eq(&services, &state.services()));
        state.apply_node(node("b", "azure:///b"));
        assert_eq!((nodes.len(), state.nodes().len(), state.nodes_in_version().1.len()), (1, 2, 2));
        assert!(Arc::ptr_eq(&services, &state.services()));
        state.remove_node("a");
        state.remove_service(&Service::default().key());
        assert_eq!((state.nodes().len(), state.services().len()), (1, 0));
    }

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
