//! Converts watches into cluster state and queue keys. Pure and synchronous: events go in, changes come out.
//!
//! A watch starts with a complete list, and restarts with one whenever it has lost track. Objects that are missing from
//! such a list were deleted; that is known when the list ends and not before.

use std::collections::HashSet;
use std::sync::Arc;

use cloud::{ClusterState, LogicalTime};
use k8s::{Node, ObjectKey, Service};
use kube::runtime::watcher::Event;

use crate::node_set::{NodeSetChanges, membership_changed};
use crate::refusals::Refusals;
use crate::routes;
use crate::served::Served;
use crate::service_change::{is_relevant, needs_update};

/// The Services that concern load balancers. Others are not stored, so that thousands of them cost nothing.
#[derive(Debug)]
pub(crate) struct ServiceIndex {
    state: ClusterState,
    listed: HashSet<ObjectKey>,
    follows_labels: bool,
    served: Arc<Served>,
    refusals: Arc<Refusals>,
}

impl ServiceIndex {
    pub fn new(state: ClusterState, served: Arc<Served>) -> Self {
        let (listed, refusals) = (HashSet::new(), Arc::default());
        Self { state, listed, follows_labels: false, served, refusals }
    }

    /// Services in `refusals` are reconciled on any event.
    pub fn with_refusals(self, refusals: Arc<Refusals>) -> Self {
        Self { refusals, ..self }
    }

    /// Sets whether labels decide on which load balancer a Service is.
    pub fn following_labels(self, follows: bool) -> Self {
        Self { follows_labels: follows, ..self }
    }

    /// Applies an event. Returns the Services that have to be reconciled because of it.
    pub fn on(&mut self, event: Event<Service>) -> Vec<ObjectKey> {
        match event {
            Event::Init => {
                self.listed.clear();
                vec![]
            }
            Event::InitApply(service) => {
                self.listed.insert(service.key());
                self.apply(service).into_iter().collect()
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.state.services_are_synced();
                let services = self.state.services();
                let gone = services.iter().map(|service| service.key()).filter(|key| !listed.contains(key));
                gone.filter_map(|key| self.remove(&key)).collect()
            }
            Event::Apply(service) => self.apply(service).into_iter().collect(),
            Event::Delete(service) => self.remove(&service.key()).into_iter().collect(),
        }
    }

    fn apply(&mut self, service: Service) -> Option<ObjectKey> {
        let key = service.key();
        let old = self.state.service(&key);
        let needs_work = match &old {
            None => service.is_to_be_served() || service.is_to_be_cleaned_up(),
            Some(old) => {
                let relabelled = self.follows_labels
                    && service.wants_load_balancer()
                    && old.metadata.labels != service.metadata.labels;
                relabelled
                    || needs_update(old, &service)
                    || service.is_to_be_cleaned_up()
                    || self.refusals.follow(old, &service)
            }
        };
        // A Service that becomes irrelevant stays until it has been reconciled (`forget`).
        if needs_work || is_relevant(&service) {
            let service = Arc::new(service);
            self.served.follow(&service);
            self.state.apply_service(service);
        } else {
            self.state.remove_service(&key);
        }
        needs_work.then_some(key)
    }

    fn remove(&mut self, key: &ObjectKey) -> Option<ObjectKey> {
        // The finalizer has usually driven the cleanup before. If it was removed by force, the controller remembers its
        // resources.
        let known = self.state.service(key).is_some();
        self.state.remove_service(key);
        known.then(|| key.clone())
    }
}

/// Drops a Service that no longer concerns load balancers.
pub(crate) fn forget_irrelevant(state: &ClusterState, key: &ObjectKey) {
    if state.service(key).is_some_and(|service| !is_relevant(&service)) {
        state.remove_service(key);
    }
}

/// The changes in an event of the node watch.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct NodeChanges {
    /// New nodes, and nodes that have changed in any way.
    pub touched: Vec<Arc<Node>>,
    /// Whether load balancers may have to send traffic to other nodes now.
    pub set_changed: bool,
    /// Whether a node has started or stopped draining.
    pub draining_changed: bool,
    /// Whether routes to the pods of nodes may have to change.
    pub routes_changed: bool,
    /// Whether a node's network condition changed.
    pub network_changed: bool,
    /// Deleted nodes, and nodes that were replaced by another one of the same name.
    pub removed: Vec<Arc<Node>>,
}

/// All nodes, reduced to the fields in use ([`Node::slim`]).
#[derive(Debug)]
pub(crate) struct NodeIndex {
    state: ClusterState,
    changes: Arc<NodeSetChanges>,
    listed: HashSet<String>,
    /// When the first page of the list arrived that is being read. All pages are as of the first one.
    list_came: Option<LogicalTime>,
    follows_labels: bool,
}

impl NodeIndex {
    pub fn new(state: ClusterState, changes: Arc<NodeSetChanges>) -> Self {
        Self { state, changes, listed: HashSet::new(), list_came: None, follows_labels: false }
    }

    /// Sets whether labels decide from which load balancer a node gets traffic.
    pub fn following_labels(self, follows: bool) -> Self {
        Self { follows_labels: follows, ..self }
    }

    /// Applies an event.
    pub fn on(&mut self, event: Event<Node>) -> NodeChanges {
        match event {
            Event::Init => {
                self.listed.clear();
                self.list_came = None;
                NodeChanges::default()
            }
            Event::InitApply(node) => {
                self.listed.insert(node.name().to_owned());
                let stamp = *self.list_came.get_or_insert_with(LogicalTime::now);
                self.apply(node, stamp)
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.state.nodes_are_synced();
                let mut changes = NodeChanges::default();
                for node in self.state.nodes().iter() {
                    if !listed.contains(node.name()) {
                        self.remove(node.name(), &mut changes);
                    }
                }
                changes
            }
            Event::Apply(node) => self.apply(node, LogicalTime::now()),
            Event::Delete(node) => {
                let mut changes = NodeChanges::default();
                self.remove(node.name(), &mut changes);
                changes
            }
        }
    }

    fn apply(&mut self, node: Node, stamp: LogicalTime) -> NodeChanges {
        let node = Arc::new(node.slim(self.follows_labels));
        let old = self.state.node(node.name());
        let relabelled = self.follows_labels
            && old.as_ref().is_some_and(|old| old.metadata.labels != node.metadata.labels);
        let set_changed = relabelled || old.as_ref().is_none_or(|old| membership_changed(old, &node));
        let drained =
            old.as_ref().is_some_and(|old| old.is_draining() && old.metadata.uid == node.metadata.uid);
        let draining_changed = drained != node.is_draining();
        self.state.apply_node_as_of(Arc::clone(&node), stamp);
        self.changes.note(old.as_deref(), Some(&node));
        if relabelled {
            self.changes.count_one();
        }
        let replaced = old.iter().filter(|old| old.metadata.uid != node.metadata.uid);
        let removed = replaced.map(|old| Arc::clone(&old.object)).collect();
        let old = old.as_deref();
        let (routes_changed, network_changed) =
            (routes::routes_changed(old, &node), routes::network_condition_changed(old, &node));
        let touched = vec![node];
        NodeChanges { touched, set_changed, draining_changed, routes_changed, network_changed, removed }
    }

    fn remove(&self, name: &str, changes: &mut NodeChanges) {
        let old = self.state.node(name);
        self.state.remove_node(name);
        self.changes.note(old.as_deref(), None);
        changes.set_changed = true;
        changes.routes_changed |= old.as_ref().is_some_and(|old| !old.pod_ranges().is_empty());
        changes.removed.extend(old.map(|old| old.object));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::strategy::Strategy;
    use serde_json::{Value, json};

    use super::*;

    fn service(name: &str, kind: &str, more: Value) -> Service {
        let mut object = json!({
            "metadata": {"name": name, "namespace": "shop", "uid": name},
            "spec": {"type": kind, "ports": [{"port": 80}]},
        });
        for (member, value) in more.as_object().unwrap() {
            object["metadata"][member] = value.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    fn lb(name: &str) -> Service {
        service(name, "LoadBalancer", json!({}))
    }

    fn names(keys: Vec<ObjectKey>) -> Vec<String> {
        let mut names: Vec<_> = keys.into_iter().map(|key| key.name.to_string()).collect();
        names.sort();
        names
    }

    fn stored(state: &ClusterState) -> Vec<String> {
        names(state.services().iter().map(|service| service.key()).collect())
    }

    #[test]
    fn only_services_of_load_balancers_are_kept() {
        let state = ClusterState::default();
        let mut index = ServiceIndex::new(state.clone(), Arc::default());
        assert_eq!(names(index.on(Event::Apply(service("plain", "ClusterIP", json!({}))))), [""; 0]);
        assert_eq!(names(index.on(Event::Apply(lb("web")))), ["web"]);
        assert_eq!(stored(&state), ["web"]);
    }

    #[test]
    fn a_service_that_changes_its_type_is_kept_until_its_cleanup_is_done() {
        let state = ClusterState::default();
        let mut index = ServiceIndex::new(state.clone(), Arc::default());
        let finalizers = json!({"finalizers": [k8s::names::LOAD_BALANCER_FINALIZER]});
        index.on(Event::Apply(service("web", "LoadBalancer", finalizers.clone())));
        assert_eq!(names(index.on(Event::Apply(service("web", "ClusterIP", finalizers)))), ["web"]);
        assert_eq!(stored(&state), ["web"]);
        let gone = index.on(Event::Apply(service("web", "ClusterIP", json!({}))));
        assert_eq!(names(gone), [""; 0], "the finalizer's removal is no work");
        assert_eq!(stored(&state), [""; 0]);
    }

    #[test]
    fn a_service_that_loses_its_type_without_a_finalizer_still_needs_work() {
        let state = ClusterState::default();
        let mut index = ServiceIndex::new(state.clone(), Arc::default());
        index.on(Event::Apply(lb("web")));
        assert_eq!(names(index.on(Event::Apply(service("web", "ClusterIP", json!({}))))), ["web"]);
        assert_eq!(stored(&state), ["web"]);
        forget_irrelevant(&state, &ObjectKey::new("shop", "web"));
        assert_eq!(stored(&state), [""; 0]);
    }

    #[test]
    fn a_new_list_finds_what_the_watch_missed() {
        let state = ClusterState::default();
        let mut index = ServiceIndex::new(state.clone(), Arc::default());
        let mut start = |services: Vec<Service>| {
            let mut keys = index.on(Event::Init);
            keys.extend(services.into_iter().flat_map(|service| index.on(Event::InitApply(service))));
            keys.extend(index.on(Event::InitDone));
            names(keys)
        };
        assert!(!state.services_synced());
        assert_eq!(start(vec![lb("a"), lb("b"), lb("c")]), ["a", "b", "c"]);
        assert!(state.services_synced());
        assert_eq!(start(vec![lb("a"), lb("b"), lb("c")]), [""; 0], "the same list is no work");
        let mut changed = lb("b");
        changed.spec.ports[0].port = 81;
        assert_eq!(start(vec![lb("a"), changed]), ["b", "c"], "changed and gone ones are");
        assert_eq!(stored(&state), ["a", "b"]);
    }

    #[test]
    fn a_list_that_starts_again_forgets_its_first_part() {
        let state = ClusterState::default();
        let mut index = ServiceIndex::new(state.clone(), Arc::default());
        index.on(Event::Init);
        index.on(Event::InitApply(lb("a")));
        index.on(Event::Init);
        index.on(Event::InitApply(lb("b")));
        assert_eq!(names(index.on(Event::InitDone)), ["a"]);
        assert_eq!(stored(&state), ["b"]);
    }

    /// NODE-089.
    #[test]
    fn node_089_labels_are_no_work_and_annotations_are() {
        let mut index = ServiceIndex::new(ClusterState::default(), Arc::default());
        index.on(Event::Apply(lb("web")));
        let with = |member: &str| service("web", "LoadBalancer", json!({member: {"a": "b"}}));
        assert_eq!(names(index.on(Event::Apply(with("labels")))), [""; 0]);
        assert_eq!(names(index.on(Event::Apply(with("annotations")))), ["web"]);
    }

    /// LB-432: if labels decide on which load balancer a Service is.
    #[test]
    fn lb_432_labels_are_work_where_they_choose_a_load_balancer() {
        let mut index = ServiceIndex::new(ClusterState::default(), Arc::default()).following_labels(true);
        index.on(Event::Apply(lb("web")));
        let labelled = |kind: &str| service("web", kind, json!({"labels": {"a": "b"}}));
        assert_eq!(names(index.on(Event::Apply(labelled("LoadBalancer")))), ["web"]);
        assert_eq!(names(index.on(Event::Apply(labelled("LoadBalancer")))), [""; 0]);
        let changes = Arc::new(NodeSetChanges::default());
        let mut index = NodeIndex::new(ClusterState::default(), Arc::clone(&changes)).following_labels(true);
        let mut labelled = node("n1", "True", "azure:///a");
        index.on(Event::Apply(labelled.clone()));
        let before = changes.latest().changes;
        labelled.metadata.labels = Some([("pool".to_owned(), "gpu".to_owned())].into());
        assert!(index.on(Event::Apply(labelled.clone())).set_changed);
        assert_eq!(changes.latest().changes, before + 1);
        assert!(!index.on(Event::Apply(labelled)).set_changed);
    }

    #[test]
    fn deletion_is_work_as_long_as_the_finalizer_is_there() {
        let mut index = ServiceIndex::new(ClusterState::default(), Arc::default());
        index.on(Event::Apply(lb("web")));
        let deleting = json!({"deletionTimestamp": "2026-01-01T00:00:00Z",
                              "finalizers": [k8s::names::LOAD_BALANCER_FINALIZER]});
        assert_eq!(names(index.on(Event::Apply(service("web", "LoadBalancer", deleting)))), ["web"]);
        assert_eq!(names(index.on(Event::Delete(lb("web")))), ["web"]);
        assert_eq!(names(index.on(Event::Delete(lb("web")))), [""; 0]);
    }

    fn node(name: &str, ready: &str, provider_id: &str) -> Node {
        serde_json::from_value(json!({
            "metadata": {"name": name, "uid": name},
            "spec": {"providerID": provider_id},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        }))
        .unwrap()
    }

    /// NODE-087.
    #[test]
    fn node_087_the_node_set_changes_by_adding_removing_and_initialising() {
        let state = ClusterState::default();
        let mut index = NodeIndex::new(state.clone(), Arc::default());
        assert!(index.on(Event::Apply(node("n1", "True", ""))).set_changed, "added");
        let ready = index.on(Event::Apply(node("n1", "False", "")));
        assert_eq!((ready.touched.len(), ready.set_changed), (1, false), "readiness");
        assert!(index.on(Event::Apply(node("n1", "False", "azure:///a"))).set_changed, "provider id");
        assert!(index.on(Event::Delete(node("n1", "False", "azure:///a"))).set_changed, "removed");
        assert!(state.nodes().is_empty());
        index.on(Event::Init);
        index.on(Event::InitApply(node("n1", "True", "")));
        assert!(!index.on(Event::InitDone).set_changed);
        assert!(state.nodes_synced());
        index.on(Event::Init);
        assert!(index.on(Event::InitDone).set_changed, "missing in a new list");
        assert!(state.nodes().is_empty());
    }

    #[derive(Debug, Clone)]
    enum Op {
        Apply(u8, u8),
        Delete(u8),
        List(bool),
    }

    /// One of 18 forms of a Service, which differ in everything that matters here.
    fn form(name: u8, form: u8) -> Service {
        let kind = ["LoadBalancer", "ClusterIP"][usize::from(form % 2)];
        let stage = form / 2 % 3;
        let mut service = service(&format!("s{name}"), kind, json!({}));
        service.metadata.finalizers =
            (stage > 0).then(|| vec![k8s::names::LOAD_BALANCER_FINALIZER.to_owned()]);
        if stage == 2 {
            service.metadata.deletion_timestamp = Some(k8s::Time(jiff::Timestamp::UNIX_EPOCH));
        }
        service.spec.ports[0].port = 80 + i32::from(form / 6 % 3);
        service
    }

    proptest::proptest! {
        /// Whatever the watch delivers, and whatever it misses until its next list: the state contains exactly the
        /// Services that concern load balancers, and every relevant change is returned.
        #[test]
        fn nothing_that_matters_is_missed(ops in proptest::collection::vec(proptest::prop_oneof![
            (0..4_u8, 0..18_u8).prop_map(|(name, form)| Op::Apply(name, form)),
            (0..4_u8).prop_map(Op::Delete),
            proptest::bool::ANY.prop_map(Op::List),
        ], 0..60)) {
            let state = ClusterState::default();
            let mut index = ServiceIndex::new(state.clone(), Arc::default());
            let (mut cluster, mut worked) = (BTreeMap::new(), BTreeMap::new());
            let mut blind = false;
            for op in ops {
                let listed = matches!(op, Op::List(_));
                let events = match op {
                    Op::Apply(name, number) => {
                        cluster.insert(name, form(name, number));
                        vec![Event::Apply(form(name, number))]
                    }
                    Op::Delete(name) => cluster.remove(&name).map(Event::Delete).into_iter().collect(),
                    Op::List(sees) => {
                        blind = !sees;
                        let all = cluster.values().cloned().map(Event::InitApply);
                        [Event::Init].into_iter().chain(all).chain([Event::InitDone]).collect()
                    }
                };
                // Between two lists the watch may miss everything.
                if blind && !listed {
                    continue;
                }
                for event in events {
                    for key in index.on(event) {
                        let name: u8 = key.name[1..].parse().unwrap();
                        worked.insert(name, cluster.get(&name).cloned());
                        forget_irrelevant(&state, &key);
                    }
                }
                let relevant: Vec<_> =
                    cluster.values().filter(|service| is_relevant(service)).map(Service::key).collect();
                let mut stored: Vec<_> = state.services().iter().map(|service| service.key()).collect();
                stored.sort();
                assert_eq!(stored, relevant);
                for name in 0..4 {
                    match (worked.get(&name).cloned().flatten(), cluster.get(&name)) {
                        (Some(old), Some(new)) => {
                            assert!(!needs_update(&old, new), "a change of s{name} was missed");
                            assert!(!new.is_to_be_cleaned_up() || old.is_to_be_cleaned_up(), "a cleanup of s{name} was missed");
                        }
                        (None, Some(new)) => {
                            assert!(!new.is_to_be_served() && !new.is_to_be_cleaned_up(), "s{name} was missed");
                        }
                        (Some(old), None) => {
                            let served = old.is_to_be_served();
                            assert!(!served, "the end of s{name} was missed");
                        }
                        (None, None) => {}
                    }
                }
            }
        }
    }
}
