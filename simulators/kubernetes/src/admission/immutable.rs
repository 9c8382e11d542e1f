//! Validates that an update changes no immutable field.

use serde_json::{Map, Value, json};

use super::validation::selector_text;
use super::{Causes, Invalid, list_at, text_at};
use crate::registry::Kind;

/// An immutable member, and the message for a change.
enum Fixed {
    /// `Invalid value: …: field is immutable`, of a text.
    Text(&'static str),
    /// The same, of a label selector.
    Selector(&'static str),
    /// The same, of any value that is shown as JSON.
    Json(&'static str),
    /// `Forbidden: …`.
    Forbidden(&'static str, &'static str),
}

use Fixed::{Forbidden, Json, Selector, Text};

/// The immutable members of a kind.
fn fixed(kind: (&str, &str)) -> &'static [Fixed] {
    match kind {
        ("", "Secret") => &[Text("type")],
        ("discovery.k8s.io", "EndpointSlice") => &[Text("addressType")],
        ("apps", "Deployment" | "ReplicaSet" | "DaemonSet") | ("batch", "Job") => {
            &[Selector("spec.selector")]
        }
        ("networking.k8s.io", "IngressClass") => &[Text("spec.controller")],
        ("node.k8s.io", "RuntimeClass") => &[Text("handler")],
        ("storage.k8s.io", "StorageClass") => {
            &[Json("parameters"), Text("provisioner"), Text("reclaimPolicy"), Text("volumeBindingMode")]
        }
        ("storage.k8s.io", "CSIStorageCapacity") => &[Text("storageClassName")],
        ("scheduling.k8s.io", "PriorityClass") => {
            &[Forbidden("value", "may not be changed in an update."), Text("preemptionPolicy")]
        }
        ("certificates.k8s.io", "CertificateSigningRequest") => &[],
        _ => &[],
    }
}

/// Compares an object with the one that it replaces.
pub(super) fn validate(kind: &Kind, old: &Value, new: &Value, causes: &mut Causes) {
    let Some(name) = kind.builtin() else { return };
    for rule in fixed(name) {
        let (Text(path) | Selector(path) | Json(path) | Forbidden(path, _)) = rule;
        let pointer = format!("/{}", path.replace('.', "/"));
        let value = new.pointer(&pointer);
        if old.pointer(&pointer) == value {
            continue;
        }
        let value = value.unwrap_or(&Value::Null);
        causes.push(match rule {
            Text(path) => Invalid::text(*path, value.as_str().unwrap_or_default(), "field is immutable"),
            Selector(path) => Invalid::value(*path, &selector_text(value), "field is immutable"),
            Json(path) => Invalid::value(*path, &value.to_string(), "field is immutable"),
            Forbidden(path, why) => Invalid::forbidden(*path, why),
        });
    }
    match name {
        ("", "ConfigMap" | "Secret") => sealed(old, new, causes),
        ("", "Pod") => pod(old, new, causes),
        ("", "PersistentVolume") => volume(old, new, causes),
        ("", "PersistentVolumeClaim") => claim(old, new, causes),
        ("apps", "StatefulSet") => stateful_set(old, new, causes),
        ("apps", "ControllerRevision") if old.get("data") != new.get("data") => {
            let data = new.get("data").unwrap_or(&Value::Null).to_string();
            causes.push(Invalid::value("data", &data, "field is immutable"));
        }
        ("batch", "Job") => job(old, new, causes),
        ("storage.k8s.io", "VolumeAttachment") if old.get("spec") != new.get("spec") => {
            let at = |member: &str| text_at(new, &format!("/spec/{member}"));
            let value = format!(
                "{{\"Attacher\":{:?},\"Source\":{{\"PersistentVolumeName\":{:?},\"InlineVolumeSpec\":null}},\"NodeName\":{:?}}}",
                at("attacher"),
                at("source/persistentVolumeName"),
                at("nodeName")
            );
            causes.push(Invalid::value("spec", &value, "field is immutable"));
        }
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding")
            if old.get("roleRef") != new.get("roleRef") =>
        {
            let at = |member: &str| text_at(new, &format!("/roleRef/{member}"));
            let value = format!(
                "{{\"APIGroup\":{:?},\"Kind\":{:?},\"Name\":{:?}}}",
                at("apiGroup"),
                at("kind"),
                at("name")
            );
            causes.push(Invalid::value("roleRef", &value, "cannot change roleRef"));
        }
        _ => {}
    }
}

/// An object that is marked immutable stays so, and keeps its data.
fn sealed(old: &Value, new: &Value, causes: &mut Causes) {
    const WHY: &str = "field is immutable when `immutable` is set";
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    for member in ["immutable", "data", "binaryData"] {
        if old.get(member) != new.get(member) {
            causes.push(Invalid::forbidden(member, WHY));
        }
    }
}

/// A specification without some members.
fn without(object: &Value, members: &[&str]) -> Map<String, Value> {
    let mut spec = object.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    spec.retain(|name, _| !members.contains(&name.as_str()));
    spec
}

fn pod(old: &Value, new: &Value, causes: &mut Causes) {
    const WHY: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
        `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing \
        tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
    // Binding and ephemeral containers have subresources of their own; scheduling gates may be removed.
    const FREE: &[&str] = &[
        "activeDeadlineSeconds",
        "tolerations",
        "terminationGracePeriodSeconds",
        "containers",
        "initContainers",
        "ephemeralContainers",
        "schedulingGates",
    ];
    let images_apart = |object: &Value, list: &str| -> Vec<Value> {
        let mut containers = list_at(object, &format!("/spec/{list}")).to_vec();
        for container in containers.iter_mut().filter_map(Value::as_object_mut) {
            container.remove("image");
        }
        containers
    };
    let unbound = text_at(old, "/spec/nodeName").is_empty();
    let (mut before, mut after) = (without(old, FREE), without(new, FREE));
    if unbound {
        // In this process, schedulers may bind a pod by an update.
        before.remove("nodeName");
        after.remove("nodeName");
    }
    let changed = before != after
        || ["containers", "initContainers"]
            .iter()
            .any(|list| images_apart(old, list) != images_apart(new, list));
    if changed {
        causes.push(Invalid::forbidden("spec", WHY));
    }
    let gone =
        list_at(old, "/spec/tolerations").iter().any(|one| !list_at(new, "/spec/tolerations").contains(one));
    if gone {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        causes.push(Invalid::forbidden("spec.tolerations", why));
    }
}

fn volume(old: &Value, new: &Value, causes: &mut Causes) {
    const FREE: &[&str] = &[
        "capacity",
        "accessModes",
        "claimRef",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "mountOptions",
        "nodeAffinity",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    if without(old, FREE) != without(new, FREE) {
        let why = "spec.persistentvolumesource is immutable after creation";
        causes.push(Invalid::forbidden("spec.persistentvolumesource", why));
    }
    let mode = |object: &Value| text_at(object, "/spec/volumeMode").to_owned();
    if mode(old) != mode(new) {
        causes.push(Invalid::text("spec.volumeMode", &mode(new), "field is immutable"));
    }
}

fn claim(old: &Value, new: &Value, causes: &mut Causes) {
    const WHY: &str = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
    let (mut before, mut after) =
        (without(old, &["volumeAttributesClassName"]), without(new, &["volumeAttributesClassName"]));
    // The volume name and a missing storage class may be set once.
    for member in ["volumeName", "storageClassName"] {
        if before.get(member).is_none_or(|value| value.is_null() || value == "") {
            before.remove(member);
            after.remove(member);
        }
    }
    let bound = text_at(old, "/status/phase") == "Bound";
    let size = |spec: &mut Map<String, Value>| {
        let requests = spec.get_mut("resources").and_then(|resources| resources.get_mut("requests"));
        let storage = requests.and_then(Value::as_object_mut).and_then(|requests| requests.remove("storage"));
        storage
            .and_then(|storage| crate::quantity::Quantity::parse(storage.as_str()?))
            .map(|size| size.nanos())
    };
    if bound {
        let (was, is) = (size(&mut before), size(&mut after));
        if is < was {
            let why = "field can not be less than previous value";
            causes.push(Invalid::forbidden("spec.resources.requests.storage", why));
        }
    }
    if before != after {
        causes.push(Invalid::forbidden("spec", WHY));
    }
}

fn stateful_set(old: &Value, new: &Value, causes: &mut Causes) {
    const FREE: &[&str] = &[
        "replicas",
        "ordinals",
        "template",
        "updateStrategy",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
    ];
    if without(old, FREE) != without(new, FREE) {
        let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                   'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                   'minReadySeconds' are forbidden";
        causes.push(Invalid::forbidden("spec", why));
    }
}

fn job(old: &Value, new: &Value, causes: &mut Causes) {
    let at = |object: &Value, pointer: &str| object.pointer(pointer).cloned().unwrap_or_default();
    let suspended = at(old, "/spec/suspend") == Value::Bool(true);
    // Templates have no creation time; stored ones have it as null.
    let template = |object: &Value| {
        let mut template = at(object, "/spec/template");
        if let Some(Value::Object(metadata)) = template.get_mut("metadata") {
            metadata.remove("creationTimestamp");
        }
        template
    };
    if !suspended && template(old) != template(new) {
        // The server shows the whole template, with the names of Go's fields.
        let value =
            json!({ "metadata": { "labels": at(new, "/spec/template/metadata/labels") } }).to_string();
        causes.push(Invalid::value("spec.template", &value, "field is immutable"));
    }
    for member in ["completions", "completionMode"] {
        let pointer = format!("/spec/{member}");
        if at(old, &pointer) != at(new, &pointer) && at(old, "/spec/completionMode") != "Indexed" {
            let value = at(new, &pointer).to_string();
            causes.push(Invalid::value(format!("spec.{member}"), &value, "field is immutable"));
        }
    }
}
