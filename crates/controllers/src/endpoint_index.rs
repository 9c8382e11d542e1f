//! Converts the watch of EndpointSlices into cluster state. Pure and synchronous, as [`crate::index`].

use std::collections::{BTreeSet, HashSet};

use cloud::ClusterState;
use k8s::{EndpointSlice, ObjectKey};
use kube::runtime::watcher::Event;

/// All EndpointSlices that name a Service.
#[derive(Debug)]
pub(crate) struct EndpointIndex {
    state: ClusterState,
    listed: HashSet<ObjectKey>,
}

impl EndpointIndex {
    pub fn new(state: ClusterState) -> Self {
        Self { state, listed: HashSet::new() }
    }

    /// Applies an event. Returns the Services whose set of endpoint nodes changed. Empty until all slices are known:
    /// every Service is reconciled then.
    pub fn on(&mut self, event: Event<EndpointSlice>) -> BTreeSet<ObjectKey> {
        let was_synced = self.state.endpoints_synced();
        let changed = match event {
            Event::Init => {
                self.listed.clear();
                BTreeSet::new()
            }
            Event::InitApply(slice) => {
                self.listed.insert(slice.key());
                self.state.apply_endpoint_slice(&slice)
            }
            Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.state.endpoints_are_synced();
                let gone = self.state.endpoint_slices().into_iter().filter(|key| !listed.contains(key));
                gone.flat_map(|key| self.state.remove_endpoint_slice(&key)).collect()
            }
            Event::Apply(slice) => self.state.apply_endpoint_slice(&slice),
            Event::Delete(slice) => self.state.remove_endpoint_slice(&slice.key()),
        };
        if was_synced { changed } else { BTreeSet::new() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn slice(name: &str, nodes: &[&str]) -> EndpointSlice {
        let endpoints: Vec<_> = nodes.iter().map(|node| json!({"nodeName": node})).collect();
        serde_json::from_value(json!({
            "metadata": {"namespace": "shop", "name": name, "labels": {"kubernetes.io/service-name": "web"}},
            "endpoints": endpoints,
        }))
        .unwrap()
    }

    #[test]
    fn a_new_list_finds_what_the_watch_missed() {
        let state = ClusterState::default();
        let mut index = EndpointIndex::new(state.clone());
        let web = ObjectKey::new("shop", "web");
        let mut list = |slices: Vec<EndpointSlice>| {
            let mut changed = index.on(Event::Init);
            changed.extend(slices.into_iter().flat_map(|slice| index.on(Event::InitApply(slice))));
            changed.extend(index.on(Event::InitDone));
            changed.len()
        };
        assert_eq!(list(vec![slice("a", &["n1"]), slice("b", &["n2"])]), 0, "the first list is no change");
        assert!(state.endpoints_synced());
        assert_eq!(list(vec![slice("a", &["n1"]), slice("b", &["n2"])]), 0);
        assert_eq!(list(vec![slice("a", &["n1"])]), 1);
        assert_eq!(state.endpoint_nodes(&web).into_iter().collect::<Vec<_>>(), ["n1"]);
    }

    #[test]
    fn each_event_tells_whose_nodes_changed() {
        let state = ClusterState::default();
        state.endpoints_are_synced();
        let mut index = EndpointIndex::new(state);
        assert_eq!(index.on(Event::Apply(slice("a", &["n1"]))).len(), 1);
        assert_eq!(index.on(Event::Apply(slice("a", &["n1"]))).len(), 0);
        assert_eq!(index.on(Event::Apply(slice("a", &["n2"]))).len(), 1);
        assert_eq!(index.on(Event::Delete(slice("a", &[]))).len(), 1);
    }
}
