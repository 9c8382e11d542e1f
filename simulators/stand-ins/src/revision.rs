//! ControllerRevisions: the pod templates that a StatefulSet or a DaemonSet had, counted from 1, as `kubectl rollout
//! history` and `undo` read them. Old ones are kept.

use serde_json::{Value, json};

use crate::objects::{Action, Kind, Round, hash, key, name, number, owner};

/// The label with the revision of a pod.
pub(crate) const REVISION_HASH: &str = "controller-revision-hash";

/// The revision of the current template.
#[derive(Debug)]
pub(crate) struct Current {
    /// The name of the ControllerRevision.
    pub(crate) name: String,
    /// The hash that distinguishes it from the other revisions of the set.
    pub(crate) hash: String,
}

/// Makes sure that the current template has a revision, and that its number is the highest.
pub(crate) fn keep(round: &mut Round<'_>, kind: Kind, set: &Value) -> Current {
    let data = data_of(set);
    let known: Vec<&Value> = round.objects.controlled_by(Kind::ControllerRevision, set).collect();
    let highest = known.iter().map(|one| number(&one["revision"])).max().unwrap_or_default();
    if let Some(same) = known.iter().find(|one| one["data"] == data) {
        if number(&same["revision"]) < highest {
            let patch = json!({"revision": highest + 1});
            round.act(Action::Patch(Kind::ControllerRevision, key(same), patch));
        }
        let label = &same["metadata"]["labels"][REVISION_HASH];
        return Current { name: name(same).to_owned(), hash: label.as_str().unwrap_or_default().to_owned() };
    }
    let hash = hash(&data);
    let mut labels = set["spec"]["selector"]["matchLabels"].clone();
    labels[REVISION_HASH] = hash.as_str().into();
    let name = format!("{}-{hash}", name(set));
    let revision = json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": name,
            "namespace": set["metadata"]["namespace"],
            "labels": labels,
            "annotations": set["metadata"]["annotations"],
            "ownerReferences": [owner(kind, set)],
        },
        "data": data,
        "revision": highest + 1,
    });
    round.act(Action::Create(Kind::ControllerRevision, revision));
    Current { name, hash }
}

/// The template of a revision by name, while its ControllerRevision exists.
pub(crate) fn template_of<'a>(round: &Round<'a>, set: &'a Value, revision: &str) -> Option<&'a Value> {
    let mut known = round.objects.controlled_by(Kind::ControllerRevision, set);
    known.find(|one| name(one) == revision).map(|one| &one["data"]["spec"]["template"])
}

/// A patch of the set that restores the template.
fn data_of(set: &Value) -> Value {
    let mut template = set["spec"]["template"].clone();
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}
