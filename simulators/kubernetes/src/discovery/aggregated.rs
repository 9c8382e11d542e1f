//! Aggregated discovery (`apidiscovery.k8s.io`): all groups, versions and resources in one response, built from the
//! rows of the plain lists that other clients read one by one.

use serde_json::{Value, json};

/// Media types of the versions, newest first.
const VERSIONS: &[(&str, &str)] = &[
    ("v2", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"),
    ("v2beta1", "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"),
];

/// The version that a client prefers to the plain lists, and its media type.
pub(crate) fn negotiate(accept: &str) -> Option<(&'static str, &'static str)> {
    for clause in accept.split(',') {
        let parameters: Vec<&str> = clause.split(';').map(str::trim).collect();
        if !matches!(parameters.first(), Some(&("application/json" | "application/*" | "*/*"))) {
            continue;
        }
        if !parameters.contains(&"as=APIGroupDiscoveryList") {
            return None;
        }
        let known = |version: &str| parameters.iter().any(|part| part.strip_prefix("v=") == Some(version));
        if let Some(found) = VERSIONS.iter().find(|(version, _)| known(version)) {
            return Some(*found);
        }
    }
    None
}

/// The list of groups in this version of `apidiscovery.k8s.io`.
pub(crate) fn list(version: &str, groups: Vec<Value>) -> Value {
    json!({ "kind": "APIGroupDiscoveryList", "apiVersion": format!("apidiscovery.k8s.io/{version}"), "metadata": {},
        "items": groups })
}

/// One group, from the plain resource lists of its versions.
pub(crate) fn group(name: &str, versions: &[(&str, Value)]) -> Value {
    let versions: Vec<Value> = versions
        .iter()
        .map(|(version, list)| {
            json!({ "version": version, "resources": resources(name, version, list), "freshness": "Current" })
        })
        .collect();
    json!({ "metadata": { "name": name, "creationTimestamp": null }, "versions": versions })
}

/// The rows of a list, with subresources inside their resources.
fn resources(group: &str, version: &str, list: &Value) -> Vec<Value> {
    let rows = list.get("resources").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut found: Vec<Value> = Vec::new();
    for row in rows {
        let text =
            |name: &str, other: &str| row.get(name).and_then(Value::as_str).unwrap_or(other).to_owned();
        let kind = json!({ "group": text("group", group), "version": text("version", version),
            "kind": text("kind", "") });
        let name = text("name", "");
        if let Some((_, subresource)) = name.split_once('/') {
            let inner =
                json!({ "subresource": subresource, "responseKind": kind, "verbs": row.get("verbs") });
            let last = found.last_mut().and_then(Value::as_object_mut);
            let list = last.map(|last| last.entry("subresources").or_insert_with(|| json!([])));
            if let Some(Value::Array(list)) = list {
                list.push(inner);
            }
            continue;
        }
        let namespaced = row.get("namespaced").and_then(Value::as_bool) == Some(true);
        let mut resource = json!({
            "resource": name,
            "responseKind": kind,
            "scope": if namespaced { "Namespaced" } else { "Cluster" },
            "singularResource": text("singularName", ""),
            "verbs": row.get("verbs"),
        });
        for member in ["shortNames", "categories"] {
            if let Some(names) = row.get(member) {
                resource[member] = names.clone();
            }
        }
        found.push(resource);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_acceptable_form_wins() {
        let of = |accept| negotiate(accept).map(|(version, _)| version);
        assert_eq!(of("application/json"), None);
        assert_eq!(
            of("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"),
            Some("v2")
        );
        assert_eq!(
            of("application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,\
                application/json;as=APIGroupDiscoveryList;v=v2beta1;g=apidiscovery.k8s.io"),
            Some("v2beta1")
        );
        assert_eq!(of("application/vnd.kubernetes.protobuf,application/json"), None);
    }
}
