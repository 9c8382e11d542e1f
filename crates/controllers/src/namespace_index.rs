//! Converts the watch of Namespaces into the Services to reconcile, if labels of Namespaces decide on which load
//! balancer Services are.

use std::collections::HashSet;

use cloud::ClusterState;
use k8s::{Namespace, ObjectKey};
use kube::runtime::watcher::Event;

/// The labels of all Namespaces.
#[derive(Debug)]
pub(crate) struct NamespaceIndex {
    state: ClusterState,
    listed: HashSet<String>,
}

impl NamespaceIndex {
    pub fn new(state: ClusterState) -> Self {
        Self { state, listed: HashSet::new() }
    }

    /// Applies an event. Returns the Services that have to be reconciled because of it.
    pub fn on(&mut self, event: Event<Namespace>) -> Vec<ObjectKey> {
        match event {
            Event::Init => {
                self.listed.clear();
                Vec::new()
            }
            Event::InitApply(namespace) => {
                self.listed.insert(namespace.name().to_owned());
                self.apply(&namespace)
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.state.namespaces_are_synced();
                for name in self.state.namespaces().iter().filter(|name| !listed.contains(*name)) {
                    self.state.remove_namespace(name);
                }
                Vec::new()
            }
            Event::Apply(namespace) => self.apply(&namespace),
            Event::Delete(namespace) => {
                // Its Services are deleted before it, each with an event of its own.
                self.state.remove_namespace(namespace.name());
                Vec::new()
            }
        }
    }

    fn apply(&self, namespace: &Namespace) -> Vec<ObjectKey> {
        let labels = namespace.metadata.labels.clone().unwrap_or_default();
        if !self.state.apply_namespace(namespace.name(), labels) {
            return Vec::new();
        }
        let services = self.state.services();
        let keys = services.iter().map(|service| service.key());
        keys.filter(|key| *key.namespace == *namespace.name()).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn namespace(name: &str, team: &str) -> Namespace {
        serde_json::from_value(json!({"metadata": {"name": name, "labels": {"team": team}}})).unwrap()
    }

    /// LB-432.
    #[test]
    fn lb_432_services_of_a_relabelled_namespace_need_work() {
        let state = ClusterState::default();
        let service =
            json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"type": "LoadBalancer"}});
        let service: k8s::Service = serde_json::from_value(service).unwrap();
        let key = service.key();
        state.apply_service(Arc::new(service));
        let mut index = NamespaceIndex::new(state.clone());
        for event in [Event::Init, Event::InitApply(namespace("gone", "a"))] {
            assert_eq!(index.on(event), []);
        }
        assert_eq!(index.on(Event::InitApply(namespace("shop", "a"))), std::slice::from_ref(&key));
        assert!(!state.namespaces_synced());
        index.on(Event::InitDone);
        assert!(state.namespaces_synced());
        assert_eq!(index.on(Event::Apply(namespace("shop", "a"))), []);
        assert_eq!(index.on(Event::Apply(namespace("other", "a"))), []);
        assert_eq!(index.on(Event::Apply(namespace("shop", "b"))), [key]);
        assert_eq!(state.namespace_labels("shop").unwrap()["team"], "b");
        for event in [Event::Init, Event::InitApply(namespace("shop", "b")), Event::InitDone] {
            assert_eq!(index.on(event), []);
        }
        assert_eq!(state.namespaces(), ["shop"], "what a new list lacks is gone");
        index.on(Event::Delete(namespace("shop", "b")));
        assert_eq!(state.namespace_labels("shop"), None);
    }
}
