//! The out-of-service taint of nodes that are shut down, so that their pods and volumes move at once (Kubernetes,
//! "Non-graceful node shutdown").
//!
//! Upstream sets it on every node that is not ready and has the shutdown taint, and removes any such taint from a ready
//! node, an operator's included. Here the taint has a value that identifies its owner, and only that one is removed
//! (LB-362).

use cloud::ClusterState;
use k8s::{Node, Taint, names};
use kube::{Api, Client};

use crate::events::Recorder;
use crate::queue::Next;
use crate::taints::{add, edit_taints, remove, tell};

/// The value that identifies our taint.
const VALUE: &str = "cloud-controller-manager";

const EFFECT: &str = "NoExecute";

/// The effect of the shutdown taint.
const SHUTDOWN_EFFECT: &str = "NoSchedule";

fn is_out_of_service(taint: &Taint) -> bool {
    taint.key == names::TAINT_OUT_OF_SERVICE && taint.effect == EFFECT
}

/// Whether only a cloud controller manager can have set the taint: it has our value, or it has none, as upstream's, and
/// came with the shutdown taint.
fn is_ours(taint: &Taint, beside_shutdown: bool) -> bool {
    is_out_of_service(taint) && (taint.value == VALUE || (taint.value.is_empty() && beside_shutdown))
}

fn has_shutdown(taints: &[Taint]) -> bool {
    taints.iter().any(|taint| taint.key == names::TAINT_SHUTDOWN)
}

/// Removes the shutdown taint. Returns whether it was there. Before, an out-of-service taint without value gets our
/// value: only the shutdown taint showed that it is a controller's, and without it the taint would count as an
/// operator's and stay for ever.
pub(crate) fn remove_shutdown(taints: &mut Vec<Taint>) -> bool {
    let is_shutdown = |taint: &Taint| taint.key == names::TAINT_SHUTDOWN && taint.effect == SHUTDOWN_EFFECT;
    if !taints.iter().any(is_shutdown) {
        return false;
    }
    for taint in taints.iter_mut().filter(|taint| is_ours(taint, true)) {
        VALUE.clone_into(&mut taint.value);
    }
    remove(taints, is_shutdown)
}

/// Corrects a node's taints. Returns whether that changed them.
fn edit(ready: bool, taints: &mut Vec<Taint>) -> bool {
    let shutdown = has_shutdown(taints);
    if ready {
        remove(taints, |taint| is_ours(taint, shutdown))
    } else if shutdown {
        let taint = Taint {
            key: names::TAINT_OUT_OF_SERVICE.to_owned(),
            value: VALUE.to_owned(),
            effect: EFFECT.into(),
            time_added: None,
        };
        add(taints, taint)
    } else {
        false
    }
}

/// Whether a node has to be reconciled.
pub(crate) fn needs_work(node: &Node) -> bool {
    (node.has_taint(names::TAINT_SHUTDOWN) || node.has_taint(names::TAINT_OUT_OF_SERVICE))
        && edit(node.is_ready(), &mut node.spec.taints.clone())
}

/// Sets and removes the taint.
pub(crate) struct OutOfService {
    api: Api<Node>,
    state: ClusterState,
    recorder: Recorder,
}

impl OutOfService {
    pub fn new(client: Client, state: ClusterState, recorder: Recorder) -> Self {
        Self { api: Api::all(client), state, recorder }
    }

    /// Reconciles one node.
    pub async fn reconcile(&self, name: &str) -> Next {
        let Some(node) = self.state.node(name) else { return Next::Done };
        let ready = node.is_ready();
        match edit_taints(&self.api, &node, |taints| edit(ready, taints)).await {
            Ok(changed) => {
                if changed {
                    let why = match ready {
                        true => "the node is ready",
                        false => "its machine is shut down: its pods and volumes move to other nodes",
                    };
                    tell(&self.recorder, &node, names::TAINT_OUT_OF_SERVICE, !ready, why);
                }
                Next::Done
            }
            Err(error) if error.is_not_found() => Next::Done,
            Err(error) => {
                tracing::warn!(node = name, %error, "the out-of-service taint was not changed");
                Next::Retry
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taint(key: &str, value: &str, effect: &str) -> Taint {
        Taint { key: key.to_owned(), value: value.to_owned(), effect: effect.into(), time_added: None }
    }

    /// NODE-244: whichever of the two taints is removed first, upstream's out-of-service taint is removed when the node
    /// is ready, and an operator's stays.
    #[test]
    fn node_244_upstreams_taint_is_known_after_the_shutdown_taint_went() {
        let shutdown = || taint(names::TAINT_SHUTDOWN, "", "NoSchedule");
        let out = |value| taint(names::TAINT_OUT_OF_SERVICE, value, "NoExecute");
        for (before, after) in [("", None), (VALUE, None), ("nodeshutdown", Some("nodeshutdown"))] {
            let after: Vec<Taint> = after.map(out).into_iter().collect();
            let mut taints = vec![shutdown(), out(before)];
            assert!(remove_shutdown(&mut taints), "{before}");
            assert!(!edit(false, &mut taints.clone()), "{before}: it stays until the node is ready");
            edit(true, &mut taints);
            assert_eq!(taints, after, "shutdown first: {before}");
            let mut taints = vec![out(before), shutdown()];
            edit(true, &mut taints);
            assert!(remove_shutdown(&mut taints) && taints == after, "out-of-service first: {before}");
        }
        let mut alone = vec![out("")];
        assert!(!remove_shutdown(&mut alone) && alone == [out("")], "a node at rest is not written");
    }

    /// LB-362, NODE-080.
    #[test]
    fn lb_362_only_our_own_taint_is_removed() {
        let shutdown = || taint(names::TAINT_SHUTDOWN, "", "NoSchedule");
        let out = |value| taint(names::TAINT_OUT_OF_SERVICE, value, "NoExecute");
        let foreign = || taint("example.com/x", "", "NoExecute");
        let rows = [
            ("ready, nothing", true, vec![], vec![]),
            ("ready, operator's, no value", true, vec![out("")], vec![out("")]),
            ("ready, operator's, a value", true, vec![out("nodeshutdown")], vec![out("nodeshutdown")]),
            ("ready, ours", true, vec![foreign(), out(VALUE)], vec![foreign()]),
            ("ready, upstream's", true, vec![shutdown(), out("")], vec![shutdown()]),
            (
                "ready, operator's beside shutdown",
                true,
                vec![shutdown(), out("nodeshutdown")],
                vec![shutdown(), out("nodeshutdown")],
            ),
            ("not ready", false, vec![foreign()], vec![foreign()]),
            ("not ready, ours without shutdown", false, vec![out(VALUE)], vec![out(VALUE)]),
            ("shut down", false, vec![shutdown()], vec![shutdown(), out(VALUE)]),
            ("shut down, there", false, vec![shutdown(), out("")], vec![shutdown(), out("")]),
        ];
        for (name, ready, before, after) in rows {
            let mut taints = before.clone();
            let changed = edit(ready, &mut taints);
            assert_eq!(taints, after, "{name}");
            assert_eq!(changed, before != after, "{name}");
        }
    }
}
