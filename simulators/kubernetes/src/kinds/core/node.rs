//! Nodes.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["no"],
    etcd_directory: Some("minions"),
    status: StatusRule::SubresourceKeptOnCreate,
    fields: &["spec.unschedulable"],
    columns: COLUMNS,
    dropped_if_empty: &[
        ("/spec", &["taints", "podCIDRs"]),
        ("/status", &["addresses", "conditions", "capacity", "allocatable"]),
    ],
    decode: join_ranges,
    prepare_create: taint_as_not_ready,
    validate: |object, causes| causes.note(validate(object)),
    validate_update: Some(|old, object, causes| causes.note(validate_update(old, object))),
    example: r#"{"spec": {"podCIDR": "10.244.0.0/24"}}"#,
    ..BuiltinKind::cluster::<Node>()
};

const COLUMNS: &[Column] = &[
    NAME,
    Column::derived("Status", node_status),
    Column::derived("Roles", node_roles),
    AGE,
    Column::text("Version", "/status/nodeInfo/kubeletVersion"),
    Column::derived("Internal-IP", |node| node_address(node, "InternalIP").to_owned()).wide(),
    Column::derived("External-IP", |node| node_address(node, "ExternalIP").to_owned()).wide(),
    Column::text_or("OS-Image", "/status/nodeInfo/osImage", UNKNOWN).wide(),
    Column::text_or("Kernel-Version", "/status/nodeInfo/kernelVersion", UNKNOWN).wide(),
    Column::text_or("Container-Runtime", "/status/nodeInfo/containerRuntimeVersion", UNKNOWN).wide(),
];

fn node_status(object: &Value) -> String {
    let mut status = match condition(object, "Ready") {
        Some("True") => "Ready".to_owned(),
        Some(_) => "NotReady".to_owned(),
        None => "Unknown".to_owned(),
    };
    if object.pointer("/spec/unschedulable") == Some(&Value::Bool(true)) {
        status.push_str(",SchedulingDisabled");
    }
    status
}

fn node_roles(object: &Value) -> String {
    let roles: BTreeSet<&str> = object
        .pointer("/metadata/labels")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => (!role.is_empty()).then_some(role),
            None if key == "kubernetes.io/role" => value.as_str().filter(|role| !role.is_empty()),
            None => None,
        })
        .collect();
    let roles: Vec<&str> = roles.into_iter().collect();
    or(&roles.join(","), NONE).to_owned()
}

fn node_address<'a>(object: &'a Value, kind: &str) -> &'a str {
    let found = list_at(object, "/status/addresses").iter().find(|address| text_at(address, "/type") == kind);
    found.map_or(NONE, |address| text_at(address, "/address"))
}

/// The taint that the API server adds to every new node (admission plugin `TaintNodesByCondition`);
/// kube-controller-manager removes it when the node is ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Makes `podCIDR` the first of `podCIDRs`, whichever of the two was written. If they differ, `podCIDR` alone counts:
/// older clients write no other field.
fn join_ranges(object: &mut Value) {
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or_default().to_owned();
    let one = text(spec.get("podCIDR"));
    let first = text(spec.get("podCIDRs").and_then(|all| all.get(0)));
    if one.is_empty() && first.is_empty() {
        spec.remove("podCIDR");
    } else if one.is_empty() {
        spec.insert("podCIDR".to_owned(), first.into());
    } else if one != first {
        spec.insert("podCIDRs".to_owned(), json!([one]));
    }
}

fn taint_as_not_ready(object: &mut Value) {
    let Value::Object(node) = object else { return };
    let spec = node.entry("spec").or_insert_with(|| json!({}));
    let Value::Object(spec) = spec else { return };
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    if taints.is_null() {
        *taints = json!([]);
    }
    if let Value::Array(taints) = taints
        && !taints.iter().any(|taint| taint["key"] == NOT_READY && taint["effect"] == "NoSchedule")
    {
        taints.push(json!({"key": NOT_READY, "effect": "NoSchedule"}));
    }
}

fn validate(object: &Value) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for (index, taint) in list_at(object, "/spec/taints").iter().enumerate() {
        // The API server's messages name taints under metadata.
        let field = format!("metadata.taints[{index}]");
        let (key, value, effect) =
            (text_at(taint, "/key"), text_at(taint, "/value"), text_at(taint, "/effect"));
        Invalid::check(format!("{field}.key"), key, qualified_name)?;
        Invalid::check(format!("{field}.value"), value, label_value)?;
        if effect.is_empty() {
            return Err(Invalid::required(format!("{field}.effect"), ""));
        }
        Invalid::check_one_of(format!("{field}.effect"), effect, &EFFECTS)?;
        if !seen.insert((key, effect)) {
            let why = format!(
                "{{\"Key\":{key:?},\"Value\":{value:?},\"Effect\":{effect:?},\"TimeAdded\":null}}: taints must be unique by key and effect pair"
            );
            return Err(Invalid::duplicate(field, &why));
        }
    }
    validate_ranges(list_at(object, "/spec/podCIDRs"))
}

fn validate_ranges(ranges: &[Value]) -> Result<(), Invalid> {
    let ranges: Vec<&str> = ranges.iter().map(|range| range.as_str().unwrap_or_default()).collect();
    let all = || {
        let quoted: Vec<String> = ranges.iter().map(|range| format!("{range:?}")).collect();
        format!("[{}]", quoted.join(","))
    };
    if let Some(index) = ranges.iter().position(|range| !is_cidr(range)) {
        return Err(Invalid::value(format!("spec.podCIDRs[{index}]"), all(), "must be valid CIDR"));
    }
    let of_v6 = ranges.iter().filter(|range| range.contains(':')).count();
    if ranges.len() > 2 || ranges.len() == 2 && of_v6 != 1 {
        let why = "may specify no more than one CIDR for each IP family";
        return Err(Invalid::value("spec.podCIDRs", all(), why));
    }
    Ok(())
}

fn validate_update(old: &Value, object: &Value) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for (index, address) in list_at(object, "/status/addresses").iter().enumerate() {
        let (kind, address) = (text_at(address, "/type"), text_at(address, "/address"));
        if !seen.insert((kind, address)) {
            let value = format!("{{\"Type\":{kind:?},\"Address\":{address:?}}}");
            return Err(Invalid::duplicate(format!("status.addresses[{index}]"), &value));
        }
    }
    let before = list_at(old, "/spec/podCIDRs");
    if !before.is_empty() && before != list_at(object, "/spec/podCIDRs") {
        let why = "node updates may not change podCIDR except from \"\" to valid";
        return Err(Invalid::forbidden("spec.podCIDRs", why));
    }
    let before = text_at(old, "/spec/providerID");
    if !before.is_empty() && before != text_at(object, "/spec/providerID") {
        let why = "node updates may not change providerID except from \"\" to valid";
        return Err(Invalid::forbidden("spec.providerID", why));
    }
    Ok(())
}
