//! The nodes on which Services have endpoints, merged from all EndpointSlices of each Service.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s::{EndpointSlice, ObjectKey};

/// The nodes in EndpointSlices, by Service and by slice.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    services: HashMap<ObjectKey, BTreeMap<Arc<str>, BTreeSet<String>>>,
    /// The Service of each slice. A slice may change its Service.
    slices: HashMap<ObjectKey, ObjectKey>,
}

impl Endpoints {
    /// Stores the current state of a slice. Returns the Services whose set of endpoint nodes changed.
    pub(crate) fn apply(&mut self, slice: &EndpointSlice) -> BTreeSet<ObjectKey> {
        let key = slice.key();
        let Some(service) = slice.service() else { return self.remove(&key) };
        let mut changed = BTreeSet::new();
        if self.slices.get(&key).is_some_and(|before| *before != service) {
            changed.extend(self.remove(&key));
        }
        let before = self.nodes_of(&service);
        let nodes = slice.endpoints.iter().filter_map(|endpoint| endpoint.node_name.clone()).collect();
        self.services.entry(service.clone()).or_default().insert(key.name.clone(), nodes);
        self.slices.insert(key, service.clone());
        if self.nodes_of(&service) != before {
            changed.insert(service);
        }
        changed
    }

    /// Removes a deleted slice. Returns its Service if the Service's set of endpoint nodes changed.
    pub(crate) fn remove(&mut self, slice: &ObjectKey) -> BTreeSet<ObjectKey> {
        let Some(service) = self.slices.remove(slice) else { return BTreeSet::new() };
        let before = self.nodes_of(&service);
        if let Some(slices) = self.services.get_mut(&service) {
            slices.remove(&slice.name);
            if slices.is_empty() {
                self.services.remove(&service);
            }
        }
        if self.nodes_of(&service) == before { BTreeSet::new() } else { BTreeSet::from([service]) }
    }

    /// The nodes with endpoints of a Service.
    pub(crate) fn nodes_of(&self, service: &ObjectKey) -> BTreeSet<String> {
        self.services.get(service).into_iter().flat_map(BTreeMap::values).flatten().cloned().collect()
    }

    /// All slices, in no order.
    pub(crate) fn slices(&self) -> Vec<ObjectKey> {
        self.slices.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(name: &str, service: &str, nodes: &[&str]) -> EndpointSlice {
        let mut slice = EndpointSlice::default();
        slice.metadata.namespace = Some("shop".to_owned());
        slice.metadata.name = Some(name.to_owned());
        let label = ("kubernetes.io/service-name".to_owned(), service.to_owned());
        slice.metadata.labels = (!service.is_empty()).then(|| BTreeMap::from([label]));
        let endpoint = |node: &&str| k8s::Endpoint { node_name: Some((*node).to_owned()) };
        slice.endpoints = nodes.iter().map(endpoint).collect();
        slice
    }

    fn web() -> ObjectKey {
        ObjectKey::new("shop", "web")
    }

    /// LB-258: a node stays while any slice has an endpoint on it.
    #[test]
    fn lb_258_nodes_are_those_of_all_slices_together() {
        let mut endpoints = Endpoints::default();
        let of_web = BTreeSet::from([web()]);
        assert_eq!(endpoints.apply(&slice("a", "web", &["n1", "n2"])), of_web);
        assert_eq!(endpoints.apply(&slice("b", "web", &["n1"])), BTreeSet::new(), "n1 is known");
        assert_eq!(endpoints.apply(&slice("a", "web", &["n2"])), BTreeSet::new(), "n1 is in the other slice");
        assert_eq!(endpoints.nodes_of(&web()).into_iter().collect::<Vec<_>>(), ["n1", "n2"]);
        assert_eq!(endpoints.remove(&slice("b", "web", &[]).key()), of_web);
        assert_eq!(endpoints.remove(&slice("b", "web", &[]).key()), BTreeSet::new());
        assert_eq!(endpoints.remove(&slice("a", "web", &[]).key()), of_web);
        assert!(endpoints.nodes_of(&web()).is_empty() && endpoints.slices().is_empty());
    }

    #[test]
    fn a_slice_may_come_to_name_another_service() {
        let mut endpoints = Endpoints::default();
        endpoints.apply(&slice("a", "web", &["n1"]));
        let both = BTreeSet::from([web(), ObjectKey::new("shop", "other")]);
        assert_eq!(endpoints.apply(&slice("a", "other", &["n1"])), both);
        assert!(endpoints.nodes_of(&web()).is_empty());
        assert_eq!(endpoints.apply(&slice("a", "", &["n1"])).len(), 1);
        assert!(endpoints.slices().is_empty());
    }
}
