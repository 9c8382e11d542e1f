//! Pods. What their deletion does, bindings and evictions are in [`crate::verbs::pod`].

use k8s_openapi::api::core::v1::Pod;

use crate::kinds::prelude::*;
use crate::kinds::shared::pod_spec;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["po"],
    categories: &["all"],
    status: StatusRule::Subresource,
    subresources: &[
        Subresource { name: "binding", takes: (None, "Binding"), verb: "create" },
        Subresource { name: "eviction", takes: (Some(("policy", "v1")), "Eviction"), verb: "create" },
    ],
    generation: Generation::Specification,
    fields: &[
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ],
    deletion_returns_object: true,
    columns: COLUMNS,
    pod_spec: Some("/spec"),
    defaults: &[
        ("spec.enableServiceLinks", "true"),
        ("spec.preemptionPolicy", r#""PreemptLowerPriority""#),
        ("spec.priority", "0"),
        ("status", "{}"),
        ("status.phase", r#""Pending""#),
    ],
    derive,
    prepare_create,
    prepare_update: |_, object, _| admit(object),
    validate: |object, causes| {
        pod_spec::validate(object.get("spec").unwrap_or(&Value::Null), "spec", Restarts::Any, causes);
    },
    validate_update: Some(validate_update),
    example: r#"{"spec": {"serviceAccountName": "default", "containers": [{"name": "c", "image": "i:1"}]}}"#,
    ..BuiltinKind::namespaced::<Pod>()
};

const COLUMNS: &[Column] = &[
    NAME,
    Column::derived("Ready", ready_containers),
    Column::derived("Status", |pod| pod_status(pod).to_owned()),
    Column::derived("Restarts", restarts),
    AGE,
    Column::text_or("IP", "/status/podIP", NONE).wide(),
    Column::text_or("Node", "/spec/nodeName", NONE).wide(),
    Column::text_or("Nominated Node", "/status/nominatedNodeName", NONE).wide(),
    Column::derived("Readiness Gates", readiness_gates).wide(),
];

/// Derives what only pods themselves have, not templates.
fn derive(object: &mut Value) {
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        let containers = object.pointer_mut(&format!("/spec/{list}")).and_then(Value::as_array_mut);
        containers.into_iter().flatten().filter_map(Value::as_object_mut).for_each(request_limits);
    }
    if let Some(grace) = object.pointer_mut("/spec/terminationGracePeriodSeconds")
        && grace.as_i64().is_some_and(|seconds| seconds < 0)
    {
        *grace = json!(1);
    }
}

fn prepare_create(object: &mut Value) {
    admit(object);
    let class = quality(object);
    if let Some(status) = member(object, "status") {
        status.entry("qosClass").or_insert_with(|| class.into());
    }
}

/// The admission plugins that change pods.
fn admit(object: &mut Value) {
    name_account(object);
    tolerate_for_a_while(object);
}

fn ready_containers(object: &Value) -> String {
    let statuses = list_at(object, "/status/containerStatuses");
    let ready = statuses.iter().filter(|status| status.get("ready") == Some(&Value::Bool(true))).count();
    format!("{ready}/{}", list_at(object, "/spec/containers").len())
}

fn restarts(object: &Value) -> String {
    let statuses = list_at(object, "/status/containerStatuses");
    statuses.iter().map(|status| number_at(status, "/restartCount")).sum::<i64>().to_string()
}

fn pod_status(object: &Value) -> &str {
    if object.pointer("/metadata/deletionTimestamp").is_some_and(|at| !at.is_null()) {
        return "Terminating";
    }
    let statuses = list_at(object, "/status/containerStatuses");
    let reason = statuses.iter().rev().find_map(|status| {
        let reasons = ["/state/waiting/reason", "/state/terminated/reason"];
        reasons.iter().map(|at| text_at(status, at)).find(|reason| !reason.is_empty())
    });
    reason.unwrap_or_else(|| or(text_at(object, "/status/reason"), text_at(object, "/status/phase")))
}

fn readiness_gates(object: &Value) -> String {
    let gates = list_at(object, "/spec/readinessGates");
    if gates.is_empty() {
        return NONE.to_owned();
    }
    let met = gates.iter().filter(|gate| condition(object, text_at(gate, "/conditionType")) == Some("True"));
    format!("{}/{}", met.count(), gates.len())
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

fn validate_update(old: &Value, new: &Value, causes: &mut Causes) {
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
    let (mut before, mut after) = (spec_without(old, FREE), spec_without(new, FREE));
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
