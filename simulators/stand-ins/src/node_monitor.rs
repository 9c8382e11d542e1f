//! The part of kube-controller-manager that monitors nodes: `node-lifecycle-controller`.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s::api::api::coordination::v1::Lease;
use k8s::api::api::core::v1::Node;
use kube::Api;
use kube::api::{Patch, PatchParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use crate::api_error::has_code;
use crate::kubelet::LEASES;
use crate::objects::seconds;
use crate::{Pace, Running, WallClock};

const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// Marks nodes without a heartbeat as Ready=Unknown and keeps the taints that follow readiness:
/// `node.kubernetes.io/not-ready` and `node.kubernetes.io/unreachable`.
///
/// A heartbeat is a changed Lease in `kube-node-lease` or a changed time in the condition Ready. As in the real
/// controller, the time at which it saw the change counts, not the times in the objects.
pub struct NodeMonitor;

impl NodeMonitor {
    /// Runs until `shutdown`.
    pub fn spawn(client: kube::Client, clock: WallClock, shutdown: CancellationToken) -> Running {
        NodeMonitor::spawn_at(Pace::default(), client, clock, shutdown)
    }

    /// As [`NodeMonitor::spawn`], at another pace.
    pub fn spawn_at(
        pace: Pace,
        client: kube::Client,
        clock: WallClock,
        shutdown: CancellationToken,
    ) -> Running {
        let monitor = Monitor {
            pace,
            nodes: Api::all(client.clone()),
            clock,
            health: BTreeMap::new(),
            looked: Instant::now(),
        };
        Running::until(shutdown, monitor.run(client))
    }
}

/// The cached state of a node.
struct NodeHealth {
    /// `None` until the Node itself is read: its Lease may come first.
    readiness: Option<Readiness>,
    taints: Vec<Value>,
    /// Times of the condition Ready and of the Lease as last read.
    heartbeat: (Option<String>, Option<String>),
    last_heartbeat: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Readiness {
    Ready,
    NotReady,
    Unknown,
    /// There is no condition yet.
    Never,
}

#[allow(clippy::large_enum_variant, reason = "one at a time, and used up at once")]
enum Input {
    Node(watcher::Event<Node>),
    Lease(watcher::Event<Lease>),
    Tick,
}

struct Monitor {
    pace: Pace,
    nodes: Api<Node>,
    clock: WallClock,
    health: BTreeMap<String, NodeHealth>,
    /// When all nodes were last checked.
    looked: Instant,
}

impl Monitor {
    /// Restarts the grace period of every node. A monitor that was itself delayed has not read what nodes reported
    /// meanwhile, and must not declare them silent.
    fn excuse(&mut self) {
        for health in self.health.values_mut() {
            health.last_heartbeat = Instant::now();
        }
    }

    async fn run(mut self, client: kube::Client) {
        let leases: Api<Lease> = Api::namespaced(client, LEASES);
        let nodes = watcher(self.nodes.clone(), watcher::Config::default())
            .default_backoff()
            .map_ok(Input::Node)
            .filter_map(async |event| event.ok());
        let leases = watcher(leases, watcher::Config::default())
            .default_backoff()
            .map_ok(Input::Lease)
            .filter_map(async |event| event.ok());
        let mut period = interval(self.pace.monitor_period);
        period.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ticks = stream::poll_fn(move |context| period.poll_tick(context).map(|_| Some(Input::Tick)));
        let mut inputs = pin!(stream::select(ticks, stream::select(nodes, leases)));
        let mut listed = BTreeSet::new();
        while let Some(input) = inputs.next().await {
            match input {
                Input::Node(watcher::Event::Apply(node)) => {
                    if let Some(name) = self.see_node(&node) {
                        self.settle(&name).await;
                    }
                }
                Input::Node(watcher::Event::Init) => listed.clear(),
                Input::Node(watcher::Event::InitApply(node)) => listed.extend(self.see_node(&node)),
                Input::Node(watcher::Event::InitDone) => {
                    self.health.retain(|name, health| health.readiness.is_none() || listed.contains(name));
                }
                Input::Node(watcher::Event::Delete(node)) => {
                    self.health.remove(&node.metadata.name.unwrap_or_default());
                }
                Input::Lease(watcher::Event::Apply(lease) | watcher::Event::InitApply(lease)) => {
                    self.see_lease(&lease);
                }
                Input::Tick => {
                    if self.looked.elapsed() > 2 * self.pace.monitor_period {
                        self.excuse();
                    }
                    self.looked = Instant::now();
                    let names: Vec<String> = self.health.keys().cloned().collect();
                    for name in names {
                        self.settle(&name).await;
                    }
                }
                _ => {}
            }
        }
    }

    fn health_of(&mut self, name: &str) -> &mut NodeHealth {
        self.health.entry(name.to_owned()).or_insert_with(|| NodeHealth {
            readiness: None,
            taints: vec![],
            heartbeat: (None, None),
            last_heartbeat: Instant::now(),
        })
    }

    fn see_node(&mut self, node: &Node) -> Option<String> {
        let name = node.metadata.name.clone()?;
        let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
        let ready = conditions.unwrap_or_default().iter().find(|condition| condition.type_ == "Ready");
        let readiness = match ready.map(|condition| condition.status.as_str()) {
            None => Readiness::Never,
            Some("True") => Readiness::Ready,
            Some("False") => Readiness::NotReady,
            Some(_) => Readiness::Unknown,
        };
        let heartbeat =
            ready.and_then(|condition| condition.last_heartbeat_time.as_ref()).map(|time| time.0.to_string());
        let health = self.health_of(&name);
        health.readiness = Some(readiness);
        health.taints = node
            .spec
            .as_ref()
            .and_then(|spec| spec.taints.as_ref())
            .into_iter()
            .flatten()
            .filter_map(|taint| serde_json::to_value(taint).ok())
            .collect();
        if health.heartbeat.0 != heartbeat {
            health.heartbeat.0 = heartbeat;
            health.last_heartbeat = Instant::now();
        }
        Some(name)
    }

    fn see_lease(&mut self, lease: &Lease) {
        let Some(name) = lease.metadata.name.as_deref() else { return };
        let renewed = lease.spec.as_ref().and_then(|spec| spec.renew_time.as_ref());
        let renewed = renewed.map(|time| time.0.to_string());
        let health = self.health_of(name);
        if health.heartbeat.1 != renewed {
            health.heartbeat.1 = renewed;
            health.last_heartbeat = Instant::now();
        }
    }

    async fn settle(&mut self, name: &str) {
        let Some(health) = self.health.get(name) else { return };
        let Some(readiness) = health.readiness else { return };
        let grace = if readiness == Readiness::Never { self.pace.startup_grace } else { self.pace.grace };
        let silent = health.last_heartbeat.elapsed() > grace;
        let outcome = if silent && readiness != Readiness::Unknown {
            self.mark_unknown(name, readiness).await
        } else if wanted_taints(readiness, &health.taints).is_some() {
            self.write_taints(name, readiness).await
        } else {
            return;
        };
        if let Err(error) = outcome
            && !has_code(&error, 404)
        {
            tracing::debug!(node = name, %error, "marking the node failed; the next round tries again");
        }
    }

    async fn mark_unknown(&self, name: &str, readiness: Readiness) -> Result<(), kube::Error> {
        let now = seconds((self.clock)());
        let (reason, message) = match readiness {
            Readiness::Never => ("NodeStatusNeverUpdated", "Kubelet never posted node status."),
            _ => ("NodeStatusUnknown", "Kubelet stopped posting node status."),
        };
        let conditions: Vec<Value> = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"]
            .into_iter()
            .map(|kind| {
                json!({"type": kind, "status": "Unknown", "reason": reason, "message": message,
                    "lastTransitionTime": now})
            })
            .collect();
        let patch = Patch::Strategic(json!({"status": {"conditions": conditions}}));
        self.nodes.patch_status(name, &PatchParams::default(), &patch).await.map(|_| ())
    }

    /// Other writers keep taints in the same list, so it is read again and written under its resource version.
    async fn write_taints(&self, name: &str, readiness: Readiness) -> Result<(), kube::Error> {
        let node = self.nodes.get(name).await?;
        let taints: Vec<Value> = node
            .spec
            .and_then(|spec| spec.taints)
            .into_iter()
            .flatten()
            .filter_map(|taint| serde_json::to_value(taint).ok())
            .collect();
        let Some(taints) = wanted_taints(readiness, &taints) else { return Ok(()) };
        let patch = Patch::Merge(json!({
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": taints},
        }));
        self.nodes.patch(name, &PatchParams::default(), &patch).await.map(|_| ())
    }
}

/// The taints that a node of this readiness should have; `None` when it has them.
fn wanted_taints(readiness: Readiness, taints: &[Value]) -> Option<Vec<Value>> {
    let key = match readiness {
        Readiness::Ready => None,
        Readiness::NotReady | Readiness::Never => Some(NOT_READY),
        Readiness::Unknown => Some(UNREACHABLE),
    };
    let ours = |taint: &&Value| taint["key"] == NOT_READY || taint["key"] == UNREACHABLE;
    let has =
        |effect: &str| taints.iter().any(|taint| taint["key"].as_str() == key && taint["effect"] == effect);
    let stray = taints.iter().filter(ours).any(|taint| taint["key"].as_str() != key);
    // A node that never reported keeps the taints that it was created with.
    let missing =
        key.is_some() && !(has("NoSchedule") && (has("NoExecute") || readiness == Readiness::Never));
    if !stray && !missing {
        return None;
    }
    let mut wanted: Vec<Value> = taints.iter().filter(|taint| !ours(taint)).cloned().collect();
    if let Some(key) = key {
        wanted.push(json!({"key": key, "effect": "NoSchedule"}));
        if readiness != Readiness::Never {
            wanted.push(json!({"key": key, "effect": "NoExecute"}));
        }
    }
    Some(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_follow_readiness_and_leave_others_alone() {
        let other = json!({"key": "other", "effect": "NoSchedule"});
        let taint = |key: &str, effect: &str| json!({"key": key, "effect": effect});
        let fresh = [other.clone(), taint(NOT_READY, "NoSchedule")];
        assert_eq!(wanted_taints(Readiness::Never, &fresh), None);
        assert_eq!(wanted_taints(Readiness::Ready, &fresh), Some(vec![other.clone()]));
        assert_eq!(wanted_taints(Readiness::Ready, std::slice::from_ref(&other)), None);
        let unreachable = vec![other, taint(UNREACHABLE, "NoSchedule"), taint(UNREACHABLE, "NoExecute")];
        assert_eq!(wanted_taints(Readiness::Unknown, &fresh), Some(unreachable.clone()));
        assert_eq!(wanted_taints(Readiness::Unknown, &unreachable), None);
    }
}
