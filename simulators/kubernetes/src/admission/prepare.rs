//! Server-side changes to some kinds beyond plain defaults: values that are derived from other values.

use base64::Engine as _;
use serde_json::{Map, Value, json};

use super::{list_at, text_at};
use crate::conversion;
use crate::object::{finalizers, set_finalizers};
use crate::registry::{Conversion, Kind};

/// Prepares an object for creation.
pub(super) fn on_create(kind: &Kind, object: &mut Value) {
    both(kind, object);
    match kind.builtin() {
        Some(("batch", "Job")) => select_own_pods(object),
        Some(("apps", "DaemonSet")) => count_templates(object, 1),
        Some(("", "Namespace")) => {
            // The namespace controller removes this finalizer through a subresource once the namespace is empty.
            if let Some(spec) = member(object, "spec") {
                spec.entry("finalizers").or_insert_with(|| json!(["kubernetes"]));
            }
        }
        Some(("", "PersistentVolume")) => protect(object, "kubernetes.io/pv-protection"),
        Some(("", "PersistentVolumeClaim")) => protect(object, "kubernetes.io/pvc-protection"),
        Some(("", "Pod")) => {
            name_account(object);
            tolerate_for_a_while(object);
            let class = quality(object);
            if let Some(status) = member(object, "status") {
                status.entry("qosClass").or_insert_with(|| class.into());
            }
        }
        _ => {}
    }
}

/// Protects an object while it is in use (the admission plugin `StorageObjectInUseProtection`).
fn protect(object: &mut Value, finalizer: &str) {
    let mut held = finalizers(object);
    if !held.iter().any(|one| one == finalizer) {
        held.push(finalizer.to_owned());
        set_finalizers(object, &held);
    }
}

/// Prepares an object for an update.
pub(super) fn on_update(kind: &Kind, old: &Value, object: &mut Value) {
    both(kind, object);
    if kind.is("", "Pod") {
        name_account(object);
        tolerate_for_a_while(object);
    }
    if kind.is("apps", "DaemonSet") {
        let text = old.pointer(&format!("/metadata/annotations/{TEMPLATE_GENERATION}"));
        let count = text.and_then(Value::as_str).and_then(|text| text.parse().ok()).unwrap_or(1_u64);
        let template = |object: &Value| super::complete(kind, object).pointer("/spec/template").cloned();
        let changed = template(old) != template(object);
        count_templates(object, count + u64::from(changed));
    }
}

/// The annotation that counts a DaemonSet's templates; older versions have a field for it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn count_templates(object: &mut Value, count: u64) {
    if let Some(all) = object.get_mut("metadata").and_then(|metadata| member(metadata, "annotations")) {
        all.insert(TEMPLATE_GENERATION.to_owned(), count.to_string().into());
    }
}

/// Preparations that creation and update share.
pub(super) fn both(kind: &Kind, object: &mut Value) {
    if let Some(spec) = super::defaults::pod_spec(kind).and_then(|at| object.pointer_mut(at)) {
        prepare_pods(spec, kind.is("", "Pod"));
    }
    // For pods alone, not for templates.
    if kind.is("", "Pod")
        && let Some(grace) = object.pointer_mut("/spec/terminationGracePeriodSeconds")
        && grace.as_i64().is_some_and(|seconds| seconds < 0)
    {
        *grace = json!(1);
    }
    match kind.builtin() {
        Some(("", "Namespace")) => label_with_name(object),
        Some(("", "Secret")) => encode_texts(object),
        Some(("", "ReplicationController")) => select_template(object),
        Some(("", "LimitRange")) => complete_limits(object),
        Some(("batch", "Job")) => complete_job(object),
        Some(("networking.k8s.io", "NetworkPolicy")) => name_policy_types(object),
        Some(("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding")) => group_subjects(object),
        Some(("autoscaling", "HorizontalPodAutoscaler")) => measure_something(kind, object),
        _ => {}
    }
}

/// The map at `name`, created if it is missing or has another type.
fn member<'a>(object: &'a mut Value, name: &str) -> Option<&'a mut Map<String, Value>> {
    let value = object.as_object_mut()?.entry(name).or_insert(Value::Null);
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut()
}

fn label_with_name(object: &mut Value) {
    let name = text_at(object, "/metadata/name").to_owned();
    if let Some(labels) = object.get_mut("metadata").and_then(|metadata| member(metadata, "labels")) {
        labels.insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

fn encode_texts(object: &mut Value) {
    let Some(Value::Object(texts)) = object.as_object_mut().and_then(|members| members.remove("stringData"))
    else {
        return;
    };
    let Some(data) = member(object, "data") else { return };
    for (key, text) in texts {
        let text = text.as_str().unwrap_or_default();
        data.insert(key, base64::engine::general_purpose::STANDARD.encode(text).into());
    }
}

/// Prepares a pod specification; `alone` if it is that of a pod itself and not of a template.
fn prepare_pods(spec: &mut Value, alone: bool) {
    let Some(members) = spec.as_object_mut() else { return };
    // Two names of one member: the newer one counts.
    let account = members.get("serviceAccountName").or_else(|| members.get("serviceAccount")).cloned();
    match account.filter(|account| account != "") {
        Some(account) => {
            members.insert("serviceAccountName".into(), account.clone());
            members.insert("serviceAccount".into(), account);
        }
        None => {
            members.remove("serviceAccount");
        }
    }
    for volume in members.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(volume) =
            volume.as_object_mut().filter(|volume| volume.len() == 1 && volume.contains_key("name"))
        {
            volume.insert("emptyDir".into(), json!({}));
        }
    }
    let host = members.get("hostNetwork") == Some(&Value::Bool(true));
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in members.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let policy = pull_policy(text_at(container, "/image"));
            let Some(container) = container.as_object_mut() else { continue };
            container.entry("imagePullPolicy").or_insert_with(|| policy.into());
            if alone {
                request_limits(container);
            }
            let ports = container.get_mut("ports").and_then(Value::as_array_mut);
            for port in ports.into_iter().flatten().filter(|_| host).filter_map(Value::as_object_mut) {
                if let Some(number) = port.get("containerPort").cloned() {
                    port.entry("hostPort").or_insert(number);
                }
            }
        }
    }
}

/// The pull policy of an image: an image without a tag, or with the tag `latest`, is pulled each time.
fn pull_policy(image: &str) -> &'static str {
    let name = image.rsplit('/').next().unwrap_or_default();
    if name.contains('@') {
        return "IfNotPresent";
    }
    match name.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

/// A container with a limit and no request requests as much as its limit.
fn request_limits(container: &mut Map<String, Value>) {
    let Some(resources) = container.get_mut("resources") else { return };
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else { return };
    let Some(requests) = member(resources, "requests") else { return };
    for (resource, limit) in limits {
        requests.entry(resource).or_insert(limit);
    }
}

/// Sets the default ServiceAccount of pods that name none (admission plugin `ServiceAccount`).
fn name_account(object: &mut Value) {
    let Some(spec) = member(object, "spec") else { return };
    for name in ["serviceAccountName", "serviceAccount"] {
        spec.entry(name).or_insert_with(|| "default".into());
    }
}

/// Makes pods leave an unreachable node after five minutes, unless they say otherwise (admission plugin
/// `DefaultTolerationSeconds`).
fn tolerate_for_a_while(object: &mut Value) {
    const SECONDS: u32 = 300;
    let tolerated = |object: &Value, key: &str| {
        list_at(object, "/spec/tolerations").iter().any(|toleration| {
            let (own, effect) = (text_at(toleration, "/key"), text_at(toleration, "/effect"));
            (own == key || own.is_empty()) && matches!(effect, "NoExecute" | "")
        })
    };
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        if tolerated(object, key) {
            continue;
        }
        let toleration =
            json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECONDS });
        let Some(spec) = member(object, "spec") else { return };
        if let Value::Array(all) = spec.entry("tolerations").or_insert_with(|| json!([])) {
            all.push(toleration);
        }
    }
}

/// The QoS class, from the requests and limits of containers.
fn quality(object: &Value) -> &'static str {
    let mut some = false;
    let mut guaranteed = true;
    for container in list_at(object, "/spec/containers").iter().chain(list_at(object, "/spec/initContainers"))
    {
        for resource in ["cpu", "memory"] {
            let of = |part: &str| container.pointer(&format!("/resources/{part}/{resource}"));
            let (request, limit) = (of("requests"), of("limits"));
            some |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request.is_none_or(|request| Some(request) == limit);
        }
    }
    match (some, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Derives the selector and labels of a replication controller from its template.
fn select_template(object: &mut Value) {
    let Some(labels) = object.pointer("/spec/template/metadata/labels").cloned() else { return };
    if object.pointer("/spec/selector").is_none()
        && let Some(spec) = member(object, "spec")
    {
        spec.insert("selector".into(), labels.clone());
    }
    if object.pointer("/metadata/labels").is_none()
        && let Some(metadata) = member(object, "metadata")
    {
        metadata.insert("labels".into(), labels);
    }
}

/// Derives limits of containers from each other.
fn complete_limits(object: &mut Value) {
    let limits = object.pointer_mut("/spec/limits").and_then(Value::as_array_mut);
    for limit in limits.into_iter().flatten() {
        if text_at(limit, "/type") != "Container" {
            continue;
        }
        for (to, from) in [("default", "max"), ("defaultRequest", "default"), ("defaultRequest", "min")] {
            let Some(values) = limit.get(from).and_then(Value::as_object).cloned() else { continue };
            let Some(target) = member(limit, to) else { continue };
            for (resource, value) in values {
                target.entry(resource).or_insert(value);
            }
        }
    }
}

/// Defaults a Job to one completion and one pod at a time.
fn complete_job(object: &mut Value) {
    let Some(spec) = member(object, "spec") else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        spec.insert("completions".into(), json!(1));
    }
    spec.entry("parallelism").or_insert_with(|| json!(1));
}

/// Labels a Job's pods with its UID, and selects them by that.
fn select_own_pods(object: &mut Value) {
    const UID: &str = "batch.kubernetes.io/controller-uid";
    if object.pointer("/spec/manualSelector") == Some(&Value::Bool(true)) {
        return;
    }
    let (uid, name) =
        (text_at(object, "/metadata/uid").to_owned(), text_at(object, "/metadata/name").to_owned());
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    let Some(template) = spec.get_mut("template").filter(|template| template.is_object()) else { return };
    let Some(metadata) =
        member(template, "metadata").map(|metadata| metadata.entry("labels").or_insert_with(|| json!({})))
    else {
        return;
    };
    let Some(labels) = metadata.as_object_mut() else { return };
    for (key, value) in
        [(UID, &uid), ("batch.kubernetes.io/job-name", &name), ("controller-uid", &uid), ("job-name", &name)]
    {
        labels.insert(key.to_owned(), value.as_str().into());
    }
    let labels = Value::Object(labels.clone());
    spec.entry("selector").or_insert_with(|| json!({ "matchLabels": { UID: uid } }));
    if object.pointer("/metadata/labels").is_none()
        && let Some(metadata) = member(object, "metadata")
    {
        metadata.insert("labels".into(), labels);
    }
}

fn name_policy_types(object: &mut Value) {
    let egress = !list_at(object, "/spec/egress").is_empty();
    let Some(spec) = member(object, "spec") else { return };
    let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    if spec.get("policyTypes").and_then(Value::as_array).is_none_or(Vec::is_empty) {
        spec.insert("policyTypes".into(), types);
    }
}

fn group_subjects(object: &mut Value) {
    for subject in object.get_mut("subjects").and_then(Value::as_array_mut).into_iter().flatten() {
        if matches!(text_at(subject, "/kind"), "User" | "Group")
            && let Some(subject) = subject.as_object_mut()
        {
            subject.entry("apiGroup").or_insert_with(|| "rbac.authorization.k8s.io".into());
        }
    }
}

fn measure_something(kind: &Kind, object: &mut Value) {
    let Some(spec) = member(object, "spec") else { return };
    let target = json!(conversion::DEFAULT_UTILIZATION);
    if kind.conversion == Conversion::None {
        if spec.get("metrics").and_then(Value::as_array).is_none_or(Vec::is_empty) {
            spec.insert("metrics".into(), json!([conversion::cpu_metric(target)]));
        }
    } else if object.pointer("/metadata/annotations/autoscaling.alpha.kubernetes.io~1metrics").is_none()
        && let Some(spec) = member(object, "spec")
    {
        spec.entry("targetCPUUtilizationPercentage").or_insert(target);
    }
}
