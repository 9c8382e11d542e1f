//! The result of `kubectl apply` for an object of the cluster and a manifest. Pure.
//!
//! A manifest sets what it names. What it no longer names, but its predecessor did, is removed; what others have set
//! (node ports, cluster addresses, status) stays. The predecessor is the annotation that `kubectl apply` leaves behind,
//! or else the fields that are owned by tools which declare whole objects (`kubectl apply --server-side`, Helm, GitOps
//! controllers). If the object was never declared, the manifest's lists replace the cluster's.

use serde_json::{Map, Value};

use crate::manifests::{LAST_APPLIED, declared};

/// The object after the manifest is applied, before the API server fills in the rest.
pub fn apply(live: &Value, manifest: &Value) -> Value {
    let previous = previous(live).map(|previous| declared(&previous));
    merge(live, &declared(manifest), previous.as_ref(), Entries { undeclared_stay: previous.is_some() }, "")
}

/// The JSON merge patch from one value to the other; `None` if they are equal.
pub fn difference(from: &Value, to: &Value) -> Option<Value> {
    let (Value::Object(from), Value::Object(to)) = (from, to) else {
        return (from != to).then(|| to.clone());
    };
    let removed = from.keys().filter(|key| !to.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let changed = to.iter().filter_map(|(key, value)| {
        let patch = match from.get(key) {
            Some(old) => difference(old, value)?,
            None => value.clone(),
        };
        Some((key.clone(), patch))
    });
    let patch: Map<String, Value> = removed.chain(changed).collect();
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// How to treat entries of a list that neither the manifest nor its predecessor names.
#[derive(Clone, Copy)]
struct Entries {
    undeclared_stay: bool,
}

fn merge(live: &Value, declared: &Value, previous: Option<&Value>, entries: Entries, path: &str) -> Value {
    match (live, declared) {
        (Value::Object(live), Value::Object(declared)) => {
            let was_declared = |key: &String| previous.is_some_and(|previous| previous.get(key).is_some());
            let mut merged = live.clone();
            merged.retain(|key, _| declared.contains_key(key) || !was_declared(key));
            for (key, value) in declared {
                if value.is_null() {
                    merged.remove(key);
                    continue;
                }
                let previous = previous.and_then(|previous| previous.get(key));
                let old = live.get(key).unwrap_or(&Value::Null);
                merged.insert(key.clone(), merge(old, value, previous, entries, &format!("{path}/{key}")));
            }
            Value::Object(merged)
        }
        (Value::Array(live), Value::Array(declared)) if path == "/spec/ports" => {
            let find = |list: &[Value], key| list.iter().find(|entry| port_key(entry) == key).cloned();
            let previous = previous.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
            let mut merged: Vec<Value> = declared
                .iter()
                .map(|entry| match find(live, port_key(entry)) {
                    Some(old) => {
                        let previous = find(previous, port_key(entry));
                        merge(&old, entry, previous.as_ref(), entries, "")
                    }
                    None => entry.clone(),
                })
                .collect();
            if entries.undeclared_stay {
                let is_new = |entry: &&Value| {
                    [declared, previous].iter().all(|list| find(list, port_key(entry)).is_none())
                };
                merged.extend(live.iter().filter(is_new).cloned());
            }
            Value::Array(merged)
        }
        _ => declared.clone(),
    }
}

/// The key of a Service's port.
fn port_key(port: &Value) -> (String, Option<i64>) {
    let protocol = port.get("protocol").and_then(Value::as_str).unwrap_or("TCP");
    (protocol.to_owned(), port.get("port").and_then(Value::as_i64))
}

/// The manifest's predecessor; `None` without one.
fn previous(live: &Value) -> Option<Value> {
    let annotations = live.pointer("/metadata/annotations");
    if let Some(text) = annotations.and_then(|annotations| annotations.get(LAST_APPLIED)?.as_str())
        && let Ok(previous) = serde_json::from_str(text)
    {
        return Some(previous);
    }
    let managers = live.pointer("/metadata/managedFields").and_then(Value::as_array)?;
    let declares = |manager: &&Value| {
        let of_status = manager.get("subresource").is_some_and(|name| name != "");
        // Helm compares three states, too, but writes with updates.
        !of_status && (manager["operation"] == "Apply" || manager["manager"] == "helm")
    };
    let mut fields = Value::Null;
    for manager in managers.iter().filter(declares) {
        unite(&mut fields, &manager["fieldsV1"]);
    }
    fields.is_object().then(|| named_by(&fields))
}

fn unite(all: &mut Value, more: &Value) {
    match (all, more) {
        (Value::Object(all), Value::Object(more)) => {
            for (key, value) in more {
                unite(all.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (all, more) if all.is_null() => *all = more.clone(),
        _ => {}
    }
}

/// The members in a set of owned fields, in the shape of the object itself.
fn named_by(fields: &Value) -> Value {
    let members = fields.as_object().into_iter().flatten();
    let mut entries = Vec::new();
    let mut named = Map::new();
    for (key, below) in members {
        if let Some(member) = key.strip_prefix("f:") {
            named.insert(member.to_owned(), named_by(below));
        } else if let Some(Ok(Value::Object(mut entry))) = key.strip_prefix("k:").map(serde_json::from_str) {
            if let Value::Object(below) = named_by(below) {
                below.into_iter().for_each(|(member, value)| {
                    entry.entry(member).or_insert(value);
                });
            }
            entries.push(Value::Object(entry));
        }
    }
    if entries.is_empty() { Value::Object(named) } else { Value::Array(entries) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The object after `kubectl apply` of ports 80 and 443 and two annotations, and later additions by others.
    fn live() -> Value {
        let applied = json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "default", "creationTimestamp": null,
                "annotations": {"kept": "old", "dropped": "x"}},
            "spec": {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]},
            "status": {"loadBalancer": {}},
        });
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "default", "uid": "u", "resourceVersion": "7",
                "finalizers": ["service.kubernetes.io/load-balancer-cleanup"],
                "annotations": {"kept": "old", "dropped": "x", "others": "y", LAST_APPLIED: applied.to_string()}},
            "spec": {"type": "LoadBalancer", "clusterIP": "10.0.0.9", "loadBalancerSourceRanges": ["10.0.0.0/8"],
                "ports": [
                    {"name": "http", "port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": 30080},
                    {"name": "https", "port": 443, "protocol": "TCP", "targetPort": 443, "nodePort": 30443}]},
            "status": {"loadBalancer": {"ingress": [{"ip": "20.0.0.1"}]}},
        })
    }

    fn manifest() -> Value {
        json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "web", "namespace": "default", "annotations": {"kept": "new"}},
            "spec": {"type": "LoadBalancer", "ports": [{"name": "http", "port": 80, "targetPort": 8080}]},
        })
    }

    #[test]
    fn what_the_manifest_drops_goes_and_what_others_set_stays() {
        let merged = apply(&live(), &manifest());
        assert_eq!(
            merged["spec"],
            json!({"type": "LoadBalancer", "clusterIP": "10.0.0.9", "ports": [
                {"name": "http", "port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 30080}]})
        );
        assert_eq!(merged["metadata"]["annotations"]["kept"], "new");
        assert_eq!(merged["metadata"]["annotations"]["others"], "y");
        assert_eq!(merged["metadata"]["annotations"].get("dropped"), None);
        for kept in ["/metadata/uid", "/metadata/finalizers", "/status"] {
            assert_eq!(merged.pointer(kept), live().pointer(kept), "{kept}");
        }
    }

    #[test]
    fn ports_that_somebody_else_added_stay_and_protocols_tell_ports_apart() {
        let mut live = live();
        let added = json!({"port": 443, "protocol": "UDP", "nodePort": 31443});
        live["spec"]["ports"].as_array_mut().unwrap().push(added.clone());
        let merged = apply(&live, &manifest());
        assert_eq!(merged["spec"]["ports"].as_array().unwrap().len(), 2);
        assert_eq!(merged["spec"]["ports"][1], added);
    }

    /// Without the annotation, the owners of fields determine what was declared.
    #[test]
    fn fields_that_server_side_apply_owned_go_with_the_manifest() {
        let mut live = live();
        live["metadata"]["annotations"].as_object_mut().unwrap().remove(LAST_APPLIED);
        let mine = json!({
            "f:metadata": {"f:annotations": {"f:dropped": {}, "f:kept": {}}},
            "f:spec": {"f:type": {}, "f:loadBalancerSourceRanges": {}, "f:ports": {
                "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}},
                "k:{\"port\":443,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}, "f:name": {}}}},
        });
        live["metadata"]["managedFields"] = json!([
            {"manager": "argocd-controller", "operation": "Apply", "fieldsV1": mine},
            {"manager": "kubectl-annotate", "operation": "Update",
                "fieldsV1": {"f:metadata": {"f:annotations": {"f:others": {}}}}},
        ]);
        let merged = apply(&live, &manifest());
        assert_eq!(merged["spec"]["ports"].as_array().unwrap().len(), 1);
        assert_eq!(merged["spec"].get("loadBalancerSourceRanges"), None);
        assert_eq!(merged["metadata"]["annotations"], json!({"kept": "new", "others": "y"}));
    }

    #[test]
    fn an_object_that_nobody_declared_keeps_what_the_manifest_does_not_name() {
        let mut live = live();
        live["metadata"]["annotations"].as_object_mut().unwrap().remove(LAST_APPLIED);
        let merged = apply(&live, &manifest());
        assert_eq!(merged["metadata"]["annotations"], json!({"kept": "new", "dropped": "x", "others": "y"}));
        assert_eq!(merged["spec"]["ports"].as_array().unwrap().len(), 1, "a list replaces a list");
        assert_eq!(merged["spec"]["loadBalancerSourceRanges"], json!(["10.0.0.0/8"]));
    }

    #[test]
    fn what_kubectl_get_prints_changes_nothing() {
        assert_eq!(difference(&live(), &apply(&live(), &live())), None);
    }

    #[test]
    fn the_difference_is_a_merge_patch() {
        let (from, to) = (json!({"a": 1, "b": {"c": 1, "d": [1]}}), json!({"b": {"c": 1, "d": [2]}, "e": 3}));
        assert_eq!(difference(&from, &to), Some(json!({"a": null, "b": {"d": [2]}, "e": 3})));
    }
}
