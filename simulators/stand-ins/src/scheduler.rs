//! The scheduler: binds pods to nodes. Resources are not counted; affinities between pods, spreading constraints,
//! priorities and preferences are ignored. Of the eligible nodes, the one with the fewest pods gets the pod.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::objects::{
    Action, Kind, Round, condition_of, expression_holds, is_deleting, is_ready, key, list, name, text,
};
use crate::pod::{has_ended, is_active};

/// The taint of a node that accepts no more pods.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Binds every waiting pod to an eligible node, if there is one.
pub(crate) fn place_all(round: &mut Round<'_>) {
    let nodes: Vec<&Value> = round.objects.of(Kind::Node).collect();
    let mut load: BTreeMap<&str, usize> = nodes.iter().map(|node| (name(node), 0)).collect();
    let mut waiting = Vec::new();
    for pod in round.objects.of(Kind::Pod) {
        match pod["spec"]["nodeName"].as_str() {
            Some(node) if !has_ended(pod) => *load.entry(node).or_default() += 1,
            Some(_) => {}
            None if waits(pod) => waiting.push(pod),
            None => {}
        }
    }
    for pod in waiting {
        let fitting = nodes.iter().filter(|node| takes_now(node, pod)).map(|node| name(node));
        match fitting.min_by_key(|node| load.get(node).copied().unwrap_or_default()) {
            Some(node) => {
                *load.entry(node).or_default() += 1;
                round.act(Action::Bind(key(pod), node.to_owned()));
            }
            None => report_once(round, pod, nodes.len()),
        }
    }
}

fn waits(pod: &Value) -> bool {
    let scheduler = text(&pod["spec"]["schedulerName"]);
    is_active(pod)
        && matches!(scheduler, "" | "default-scheduler")
        && list(&pod["spec"]["schedulingGates"]).is_empty()
}

/// Says in the pod's status and by an Event that no node is available for it; once, as both stay.
fn report_once(round: &mut Round<'_>, pod: &Value, nodes: usize) {
    if condition_of(pod, "PodScheduled").is_none() {
        let now = round.seconds();
        let message = match nodes {
            0 => "no nodes available to schedule pods".to_owned(),
            nodes => format!("0/{nodes} nodes are available."),
        };
        let condition = json!([{"type": "PodScheduled", "status": "False", "reason": "Unschedulable",
            "message": message, "lastTransitionTime": now}]);
        let status = json!({"phase": "Pending", "conditions": condition});
        round.act(Action::PatchStatus(Kind::Pod, key(pod), status));
        let metadata = &pod["metadata"];
        round.act(Action::Record(json!({
            "apiVersion": "v1", "kind": "Event",
            "metadata": {"namespace": metadata["namespace"], "generateName": format!("{}.", name(pod))},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "namespace": metadata["namespace"],
                "name": metadata["name"], "uid": metadata["uid"]},
            "type": "Warning", "reason": "FailedScheduling", "message": message, "count": 1,
            "source": {"component": "default-scheduler"}, "reportingComponent": "default-scheduler",
            "firstTimestamp": now, "lastTimestamp": now,
        })));
    }
}

fn takes_now(node: &Value, pod: &Value) -> bool {
    is_ready(node) && may_have(node, &pod["spec"])
}

/// Whether a node is eligible for a pod with this specification, ready or not.
pub(crate) fn may_have(node: &Value, pod: &Value) -> bool {
    let tolerations = list(&pod["tolerations"]);
    let tolerates = |taint: &Value| tolerations.iter().any(|toleration| is_tolerated(toleration, taint));
    let cordoned = node["spec"]["unschedulable"] == true
        && !tolerates(&json!({"key": UNSCHEDULABLE, "effect": "NoSchedule"}));
    let mut taints =
        list(&node["spec"]["taints"]).iter().filter(|taint| taint["effect"] != "PreferNoSchedule");
    !is_deleting(node) && !cordoned && taints.all(tolerates) && is_selected(node, pod)
}

fn is_tolerated(toleration: &Value, taint: &Value) -> bool {
    let key = text(&toleration["key"]);
    let all = toleration["operator"] == "Exists";
    let effect = text(&toleration["effect"]);
    (key.is_empty() && all || key == text(&taint["key"]))
        && (all || text(&toleration["value"]) == text(&taint["value"]))
        && (effect.is_empty() || taint["effect"] == effect)
}

/// `nodeSelector` and required node affinity.
fn is_selected(node: &Value, pod: &Value) -> bool {
    let labels = &node["metadata"]["labels"];
    let selected = pod["nodeSelector"]
        .as_object()
        .is_none_or(|wanted| wanted.iter().all(|(label, value)| labels[label] == *value));
    let required = &pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"];
    let fields = json!({"metadata.name": node["metadata"]["name"]});
    let holds = |term: &Value| {
        list(&term["matchExpressions"]).iter().all(|one| expression_holds(one, labels))
            && list(&term["matchFields"]).iter().all(|one| expression_holds(one, &fields))
    };
    selected && (required.is_null() || list(&required["nodeSelectorTerms"]).iter().any(holds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn taints_are_tolerated_and_nodes_selected_as_pods_say() {
        let special = json!({"metadata": {"name": "n0", "labels": {"pool": "spot"}},
            "spec": {"taints": [{"key": "spot", "value": "true", "effect": "NoSchedule"}]}});
        let spot = json!([{"key": "spot", "operator": "Exists"}]);
        let field = |name: &str| {
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}]}}})
        };
        for (pod, expected) in [
            (json!({}), false),
            (json!({"tolerations": [{"operator": "Exists"}]}), true),
            (json!({"tolerations": spot}), true),
            (json!({"tolerations": [{"key": "spot", "value": "true"}]}), true),
            (json!({"tolerations": [{"key": "spot", "value": "x"}]}), false),
            (json!({"tolerations": [{"key": "other", "operator": "Exists"}]}), false),
            (json!({"tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoExecute"}]}), false),
            (json!({"tolerations": spot, "nodeSelector": {"pool": "other"}}), false),
            (json!({"tolerations": spot, "nodeSelector": {"pool": "spot"}}), true),
            (json!({"tolerations": spot, "affinity": field("n0")}), true),
            (json!({"tolerations": spot, "affinity": field("n1")}), false),
        ] {
            assert_eq!(may_have(&special, &pod), expected, "{pod}");
        }
    }

    #[test]
    fn cordoned_nodes_take_what_tolerates_it() {
        let node = json!({"metadata": {"name": "n0"}, "spec": {"unschedulable": true}});
        assert!(!may_have(&node, &json!({})));
        assert!(may_have(&node, &json!({"tolerations": [{"key": UNSCHEDULABLE, "operator": "Exists"}]})));
    }
}
