//! ReplicaSets: as many pods as `replicas` asks for. Pods without a controller are not adopted.

use serde_json::{Value, json};

use crate::objects::{Action, Kind, Round, is_deleting, is_ready, key, number, replicas, text};
use crate::pod::{from_template, is_active, is_available};

/// Reconciles the pods of all ReplicaSets.
pub(crate) fn keep_all(round: &mut Round<'_>) {
    for set in round.objects.of(Kind::ReplicaSet).filter(|one| !is_deleting(one)) {
        keep(round, set);
    }
}

fn keep(round: &mut Round<'_>, set: &Value) {
    let mut pods: Vec<&Value> =
        round.objects.controlled_by(Kind::Pod, set).filter(|pod| is_active(pod)).collect();
    let wanted = usize::try_from(replicas(set)).unwrap_or(usize::MAX);
    let template = &set["spec"]["template"];
    for _ in pods.len()..wanted {
        round.act(Action::Create(Kind::Pod, from_template(Kind::ReplicaSet, set, template)));
    }
    // Pods that are not ready go first, then the newest.
    let count = pods.len();
    pods.sort_by_key(|pod| (is_ready(pod), text(&pod["metadata"]["creationTimestamp"]).to_owned(), key(pod)));
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    pods[count - ready..].reverse();
    for pod in pods.iter().take(count.saturating_sub(wanted)) {
        round.act(Action::Delete(Kind::Pod, key(pod)));
    }
    let available =
        pods.iter().filter(|pod| is_available(round, pod, &set["spec"]["minReadySeconds"])).count();
    let status = json!({
        "observedGeneration": set["metadata"]["generation"],
        "replicas": count,
        "fullyLabeledReplicas": count,
        "readyReplicas": ready,
        "availableReplicas": available,
    });
    round.write_status(Kind::ReplicaSet, set, status);
}

/// The sum of a number in the status of some ReplicaSets.
pub(crate) fn sum(sets: &[&Value], member: &str) -> u64 {
    sets.iter().map(|set| number(&set["status"][member])).sum()
}
