//! Spot machines that Azure takes back: a program on the node reports it as an Event with reason `PreemptScheduled`
//! about the node, and the node gets the taint that lets it drain (10.4).

use std::collections::{HashMap, HashSet};

use cloud::ClusterState;
use k8s::{Event, Node, ObjectKey, Taint, names};
use kube::runtime::watcher;
use kube::{Api, Client};
use parking_lot::Mutex;

use crate::queue::Next;
use crate::taints::{add, edit_taints};

/// The watched Events, selected because there are many others.
pub(crate) const EVENTS: &str = "involvedObject.kind=Node,reason=PreemptScheduled";

/// New pods go elsewhere; existing ones end by themselves or with the machine.
const EFFECT: &str = "NoSchedule";

/// Whether an Event is about this node, and not about an earlier one of the same name.
fn is_about(event: &Event, node: &Node) -> bool {
    let about = &event.involved_object;
    if about.name != node.name() {
        return false;
    }
    if about.uid.is_empty() {
        // An Event without UID is about the node that exists when it is written.
        return event.metadata.creation_timestamp > node.metadata.creation_timestamp;
    }
    // Kubelets and their companions write the node's name for its UID.
    Some(&about.uid) == node.metadata.uid.as_ref()
        || about.uid == node.name() && event.metadata.creation_timestamp > node.metadata.creation_timestamp
}

/// Taints nodes whose machines Azure is about to take.
pub(crate) struct Preemption {
    api: Api<Node>,
    state: ClusterState,
    seen: Mutex<SeenEvents>,
}

/// The Events that have been handled. They last an hour in Kubernetes.
#[derive(Default)]
struct SeenEvents {
    /// The version of each Event.
    versions: HashMap<ObjectKey, Option<String>>,
    /// The Events in the list that is being received: missing ones were deleted while no watch ran.
    listed: Option<HashSet<ObjectKey>>,
}

impl Preemption {
    pub fn new(client: Client, state: ClusterState) -> Self {
        Self { api: Api::all(client), state, seen: Mutex::default() }
    }

    /// Applies an event of the watch; passes the node that has to be tainted to `taint`. An Event takes effect once: an
    /// operator who removes the taint has decided, and another list does not change that. A new write of the Event
    /// does.
    pub fn on(&self, change: watcher::Event<Event>, taint: impl FnOnce(String)) {
        let event = match change {
            watcher::Event::InitApply(event) | watcher::Event::Apply(event) => event,
            watcher::Event::Delete(event) => {
                self.seen.lock().versions.remove(&ObjectKey::of(&event.metadata));
                return;
            }
            watcher::Event::Init => {
                self.seen.lock().listed = Some(HashSet::new());
                return;
            }
            watcher::Event::InitDone => {
                let SeenEvents { versions, listed } = &mut *self.seen.lock();
                if let Some(listed) = listed.take() {
                    versions.retain(|key, _| listed.contains(key));
                }
                return;
            }
        };
        let version = event.metadata.resource_version.clone();
        let key = ObjectKey::of(&event.metadata);
        {
            let SeenEvents { versions, listed } = &mut *self.seen.lock();
            if let Some(listed) = listed {
                listed.insert(key.clone());
            }
            if versions.insert(key, version.clone()).is_some_and(|seen| seen == version) {
                return;
            }
        }
        let Some(node) = self.state.node(&event.involved_object.name) else { return };
        if is_about(&event, &node) && !node.has_taint(names::TAINT_DRAINING) {
            taint(node.name().to_owned());
        }
    }

    /// Taints a node, unless it already drains.
    pub async fn reconcile(&self, name: &str) -> Next {
        let Some(node) = self.state.node(name) else { return Next::Done };
        let taint = || Taint {
            key: names::TAINT_DRAINING.to_owned(),
            value: names::DRAINING_SPOT_EVICTION.to_owned(),
            effect: EFFECT.into(),
            time_added: None,
        };
        match edit_taints(&self.api, &node, |taints| add(taints, taint())).await {
            Ok(changed) => {
                if changed {
                    tracing::info!(node = name, "Azure takes the node's machine back: it drains");
                }
                Next::Done
            }
            Err(error) if error.is_not_found() => Next::Done,
            Err(error) => {
                tracing::warn!(node = name, %error, "failed to taint a node whose machine Azure takes back");
                Next::Retry
            }
        }
    }
}
