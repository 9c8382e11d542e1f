//! The same documents at two servers, with the same responses: defaults, refusals with all causes, and tables.

use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use crate::agreement::caller::{Answer, Caller};

/// Members that differ from server to server.
const OWN: &[&str] = &["uid", "resourceVersion", "creationTimestamp", "managedFields", "selfLink"];

fn containers() -> Value {
    json!([{ "name": "c", "image": "registry.example.com/app:1" }])
}

fn template() -> Value {
    json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": containers() } })
}

fn workload(spec: Value) -> Value {
    let mut all = json!({ "selector": { "matchLabels": { "a": "b" } }, "template": template() });
    merge(&mut all, spec);
    all
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Resource (`group/version/plural`, or `version/plural`), whether it is in a namespace, kind, and documents.
fn cases() -> Vec<(&'static str, bool, &'static str, Vec<Value>)> {
    let spec = |spec: Value| json!({ "spec": spec });
    let pods = |member: Value| {
        // Without the admission plugin it has to be set.
        let mut pod = json!({ "containers": containers(), "serviceAccountName": "default" });
        merge(&mut pod, member);
        json!({ "spec": pod })
    };
    let container = |member: Value| {
        let mut container = json!({ "name": "c", "image": "i" });
        merge(&mut container, member);
        pods(json!({ "containers": [container] }))
    };
    let webhook = |member: Value| {
        let mut webhook = json!({ "name": "hook.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": { "service": { "namespace": "none", "name": "none" } },
            "rules": [{ "operations": ["CREATE"], "apiGroups": ["none.example.com"], "apiVersions": ["v1"],
                "resources": ["nothing"] }] });
        merge(&mut webhook, member);
        json!({ "webhooks": [webhook] })
    };
    let claim = |member: Value| {
        let mut claim = json!({ "accessModes": ["ReadWriteOnce"], "storageClassName": "none",
            "resources": { "requests": { "storage": "1Gi" } } });
        merge(&mut claim, member);
        json!({ "spec": claim })
    };
    vec![
        (
            "v1/pods",
            true,
            "Pod",
            vec![
                pods(json!({})),
                pods(json!({ "hostNetwork": true, "containers": [{ "name": "c", "image": "i",
                    "ports": [{ "containerPort": 80 }] }] })),
                pods(json!({ "volumes": [{ "name": "v" }, { "name": "s", "secret": { "secretName": "x" } },
                    { "name": "p", "projected": { "sources": [{ "serviceAccountToken": { "path": "t" } }] } }] })),
                container(json!({ "resources": { "limits": { "cpu": "0.5", "memory": "1024Mi" } } })),
                container(json!({ "livenessProbe": { "httpGet": { "port": 80 } }, "env": [
                    { "name": "A", "valueFrom": { "fieldRef": { "fieldPath": "metadata.name" } } }] })),
                container(json!({ "image": "" })),
                container(json!({ "name": "C" })),
                container(json!({ "imagePullPolicy": "Sometimes" })),
                container(json!({ "volumeMounts": [{ "name": "v", "mountPath": "/v" }] })),
                container(
                    json!({ "ports": [{ "containerPort": 70000 }, { "containerPort": 80, "protocol": "HTTP" }] }),
                ),
                container(json!({ "resources": { "requests": { "cpu": 2 }, "limits": { "cpu": 1 } } })),
                container(json!({ "livenessProbe": {} })),
                pods(json!({ "restartPolicy": "Sometimes", "dnsPolicy": "Else" })),
                pods(json!({ "terminationGracePeriodSeconds": -1 })),
                pods(
                    json!({ "volumes": [{ "name": "v", "emptyDir": {} }, { "name": "v", "emptyDir": {} }] }),
                ),
                pods(json!({ "tolerations": [{ "operator": "Equal" }] })),
                spec(json!({ "containers": [] })),
            ],
        ),
        (
            "apps/v1/deployments",
            true,
            "Deployment",
            vec![
                spec(workload(json!({}))),
                spec(workload(json!({ "strategy": { "type": "Recreate" }, "replicas": 0 }))),
                spec(workload(json!({ "replicas": -1, "strategy": { "type": "Else" } }))),
                spec(workload(json!({ "selector": { "matchLabels": { "a": "c" } } }))),
                spec(workload(json!({ "template": { "spec": { "restartPolicy": "Never" } } }))),
                spec(json!({ "template": template() })),
                spec(json!({ "selector": {}, "template": template() })),
                spec(workload(
                    json!({ "selector": { "matchExpressions": [{ "key": "a", "operator": "In" }] } }),
                )),
            ],
        ),
        (
            "apps/v1/replicasets",
            true,
            "ReplicaSet",
            vec![spec(workload(json!({}))), spec(json!({ "template": template() }))],
        ),
        (
            "apps/v1/statefulsets",
            true,
            "StatefulSet",
            vec![
                spec(workload(json!({ "serviceName": "s" }))),
                spec(workload(json!({ "serviceName": "s", "podManagementPolicy": "Else" }))),
                spec(json!({ "serviceName": "s", "selector": { "matchLabels": { "app": "a" } },
                    "template": { "metadata": { "labels": { "app": "a" } }, "spec": { "containers": [{ "name": "c",
                        "image": "i", "volumeMounts": [{ "name": "data", "mountPath": "/data" }] }] } },
                    "volumeClaimTemplates": [{ "metadata": { "name": "data" }, "spec": {
                        "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }] })),
                spec(json!({ "serviceName": "s", "selector": { "matchLabels": { "app": "a" } },
                    "template": { "metadata": { "labels": { "app": "a" } }, "spec": { "restartPolicy": "Never",
                        "containers": [{ "name": "C_", "image": "i" }] } } })),
            ],
        ),
        (
            "apps/v1/daemonsets",
            true,
            "DaemonSet",
            vec![
                spec(workload(json!({}))),
                spec(workload(json!({ "updateStrategy": { "type": "OnDelete" } }))),
            ],
        ),
        (
            "apps/v1/controllerrevisions",
            true,
            "ControllerRevision",
            vec![json!({ "revision": 3, "data": { "a": 1 } }), json!({ "revision": 3 })],
        ),
        (
            "v1/replicationcontrollers",
            true,
            "ReplicationController",
            vec![spec(json!({ "template": template() }))],
        ),
        ("v1/podtemplates", true, "PodTemplate", vec![json!({ "template": template() })]),
        (
            "batch/v1/jobs",
            true,
            "Job",
            vec![
                spec(
                    json!({ "template": { "spec": { "restartPolicy": "Never", "containers": containers() } } }),
                ),
                spec(
                    json!({ "parallelism": 3, "template": { "spec": { "restartPolicy": "OnFailure", "containers": containers() } } }),
                ),
                spec(
                    json!({ "completions": -1, "template": { "spec": { "restartPolicy": "Never", "containers": containers() } } }),
                ),
            ],
        ),
        (
            "v1/configmaps",
            true,
            "ConfigMap",
            vec![
                json!({ "data": { "a b": "c" } }),
                json!({ "data": { "a": "b" }, "binaryData": { "c": "AA==" } }),
            ],
        ),
        ("v1/secrets", true, "Secret", vec![json!({ "stringData": { "a": "b" } })]),
        ("v1/serviceaccounts", true, "ServiceAccount", vec![json!({ "secrets": [{ "name": "x" }] })]),
        (
            "v1/endpoints",
            true,
            "Endpoints",
            vec![json!({ "subsets": [{ "addresses": [{ "ip": "10.1.2.3" }], "ports": [{ "port": 80 }] }] })],
        ),
        (
            "v1/limitranges",
            true,
            "LimitRange",
            vec![spec(
                json!({ "limits": [{ "type": "Container", "max": { "cpu": "2" }, "min": { "cpu": "100m" } }] }),
            )],
        ),
        (
            "v1/resourcequotas",
            true,
            "ResourceQuota",
            vec![spec(json!({ "hard": { "pods": "4", "requests.cpu": "0.5" } }))],
        ),
        (
            "v1/persistentvolumeclaims",
            true,
            "PersistentVolumeClaim",
            vec![
                claim(json!({})),
                claim(json!({ "accessModes": [] })),
                claim(json!({ "accessModes": ["Else"] })),
                spec(json!({ "accessModes": ["ReadWriteOnce"] })),
            ],
        ),
        (
            "v1/persistentvolumes",
            false,
            "PersistentVolume",
            vec![
                spec(
                    json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"], "hostPath": { "path": "/x" } }),
                ),
                spec(json!({ "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"] })),
                spec(json!({ "hostPath": { "path": "/x" } })),
            ],
        ),
        (
            "storage.k8s.io/v1/storageclasses",
            false,
            "StorageClass",
            vec![
                json!({ "provisioner": "disk.csi.azure.com" }),
                json!({}),
                json!({ "provisioner": "p", "reclaimPolicy": "Else" }),
            ],
        ),
        ("storage.k8s.io/v1/csidrivers", false, "CSIDriver", vec![spec(json!({}))]),
        (
            "storage.k8s.io/v1/csinodes",
            false,
            "CSINode",
            vec![spec(
                json!({ "drivers": [{ "name": "d.example.com", "nodeID": "n", "topologyKeys": [] }] }),
            )],
        ),
        (
            "storage.k8s.io/v1/volumeattachments",
            false,
            "VolumeAttachment",
            vec![spec(
                json!({ "attacher": "a.example.com", "nodeName": "n", "source": { "persistentVolumeName": "v" } }),
            )],
        ),
        (
            "rbac.authorization.k8s.io/v1/roles",
            true,
            "Role",
            vec![
                json!({ "rules": [{ "apiGroups": [""], "resources": ["pods"], "verbs": ["get"] }] }),
                json!({ "rules": [{ "resources": ["pods"], "verbs": ["get"] }, { "apiGroups": [""], "verbs": [] }] }),
                json!({ "rules": [{ "nonResourceURLs": ["/x"], "verbs": ["get"] }] }),
                json!({}),
            ],
        ),
        (
            "rbac.authorization.k8s.io/v1/rolebindings",
            true,
            "RoleBinding",
            vec![
                json!({ "roleRef": { "kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io" },
                    "subjects": [{ "kind": "User", "name": "u" }, { "kind": "ServiceAccount", "name": "s", "namespace": "n" }] }),
                json!({ "roleRef": { "kind": "Else", "name": "", "apiGroup": "rbac.authorization.k8s.io" }, "subjects": [{ "kind": "Dog", "name": "" }] }),
            ],
        ),
        (
            "networking.k8s.io/v1/ingresses",
            true,
            "Ingress",
            vec![
                spec(
                    json!({ "rules": [{ "host": "example.com", "http": { "paths": [{ "path": "/", "pathType": "Prefix",
                    "backend": { "service": { "name": "s", "port": { "number": 80 } } } }] } }] }),
                ),
                spec(json!({ "rules": [{ "http": { "paths": [{ "path": "x", "pathType": "Prefix",
                    "backend": { "service": { "name": "s", "port": { "number": 80 } } } }] } }] })),
                spec(
                    json!({ "rules": [{ "http": { "paths": [{ "path": "/", "backend": { "service": { "name": "s", "port": { "number": 80 } } } }] } }] }),
                ),
            ],
        ),
        (
            "networking.k8s.io/v1/ingressclasses",
            false,
            "IngressClass",
            vec![spec(json!({ "controller": "example.com/c" }))],
        ),
        (
            "networking.k8s.io/v1/networkpolicies",
            true,
            "NetworkPolicy",
            vec![
                spec(json!({ "podSelector": {}, "ingress": [{ "ports": [{ "port": 80 }] }] })),
                spec(json!({ "podSelector": { "matchLabels": { "a": "b" } }, "egress": [{}] })),
            ],
        ),
        (
            "scheduling.k8s.io/v1/priorityclasses",
            false,
            "PriorityClass",
            vec![json!({ "value": 5 }), json!({ "value": 2_000_000_000 })],
        ),
        ("node.k8s.io/v1/runtimeclasses", false, "RuntimeClass", vec![json!({ "handler": "runc" })]),
        (
            "autoscaling/v1/horizontalpodautoscalers",
            true,
            "HorizontalPodAutoscaler",
            vec![
                spec(
                    json!({ "maxReplicas": 5, "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" } }),
                ),
                spec(json!({ "maxReplicas": 0, "scaleTargetRef": { "kind": "Deployment" } })),
                spec(
                    json!({ "minReplicas": 3, "maxReplicas": 2, "scaleTargetRef": { "kind": "Deployment", "name": "d" } }),
                ),
            ],
        ),
        (
            "admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
            false,
            "ValidatingWebhookConfiguration",
            vec![
                webhook(json!({})),
                webhook(json!({ "name": "short" })),
                webhook(json!({ "failurePolicy": "Else", "matchPolicy": "Else" })),
                webhook(json!({ "timeoutSeconds": 60, "admissionReviewVersions": [] })),
                webhook(
                    json!({ "rules": [{ "operations": ["MOVE"], "apiGroups": [], "apiVersions": ["v1"], "resources": ["x"] }] }),
                ),
            ],
        ),
        (
            "admissionregistration.k8s.io/v1/mutatingwebhookconfigurations",
            false,
            "MutatingWebhookConfiguration",
            vec![webhook(json!({}))],
        ),
        (
            "coordination.k8s.io/v1/leases",
            true,
            "Lease",
            vec![
                spec(
                    json!({ "holderIdentity": "me", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z" }),
                ),
                spec(json!({ "leaseDurationSeconds": 0 })),
            ],
        ),
        ("v1/namespaces", false, "Namespace", vec![json!({})]),
    ]
}

/// Removes the members that differ from server to server.
fn comparable(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        OWN.iter().for_each(|member| drop(metadata.remove(*member)));
    }
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
    }
    // A Job's pods are labelled with its UID.
    for labels in ["/spec/selector/matchLabels", "/spec/template/metadata/labels", "/metadata/labels"] {
        for label in ["controller-uid", "batch.kubernetes.io/controller-uid"] {
            if let Some(value) = object.pointer_mut(labels).and_then(|labels| labels.get_mut(label)) {
                *value = "UID".into();
            }
        }
    }
    object
}

/// The content of a response, without what differs from server to server.
pub fn said(answer: &Answer) -> Value {
    if answer.code < 300 {
        return comparable(answer.body.clone());
    }
    let (body, details) = (&answer.body, &answer.body["details"]);
    json!({ "code": answer.code, "reason": body["reason"], "causes": details["causes"],
        "details": [details["name"], details["kind"]] })
}

/// Columns, and the cells that do not depend on time.
fn table(answer: &Answer) -> Value {
    let columns = answer.body["columnDefinitions"].as_array().cloned().unwrap_or_default();
    let timeless = |index: usize| {
        !matches!(columns[index]["name"].as_str(), Some("Age" | "Created At" | "Duration" | "Last Seen"))
    };
    let names: Vec<Value> =
        columns.iter().map(|column| json!([column["name"], column["priority"]])).collect();
    let cells: Vec<Value> = answer.body["rows"][0]["cells"]
        .as_array()
        .into_iter()
        .flatten()
        .enumerate()
        .filter(|(index, _)| timeless(*index))
        .map(|(_, cell)| match cell {
            // A number and its text look the same to users. A Job selects its pods by its UID.
            Value::String(text) => json!(text.split("controller-uid=").next()),
            other => json!(other.to_string()),
        })
        .collect();
    json!({ "columns": names, "cells": cells })
}

/// The path of a resource's objects.
pub fn place(resource: &str, namespaced: bool, namespace: &str) -> String {
    let (api_version, plural) = resource.rsplit_once('/').unwrap();
    let root = if api_version == "v1" { "/api/v1".to_owned() } else { format!("/apis/{api_version}") };
    if namespaced { format!("{root}/namespaces/{namespace}/{plural}") } else { format!("{root}/{plural}") }
}

/// A document with its type and name.
pub fn whole(resource: &str, kind: &str, name: &str, document: &Value) -> Value {
    let (api_version, _) = resource.rsplit_once('/').unwrap();
    let mut object = json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name } });
    merge(&mut object, document.clone());
    object
}

/// Sends all documents to both servers.
pub async fn agree(simulator: Client, server: Client) {
    let (left, right) = (Caller::new(simulator, "documents").await, Caller::new(server, "documents").await);
    let mut differences = Vec::new();
    let mut count = 0;
    for (resource, namespaced, kind, documents) in cases() {
        let path = place(resource, namespaced, "documents");
        for (index, document) in documents.into_iter().enumerate() {
            let name = format!("d{index}");
            let object = whole(resource, kind, &name, &document);
            let (one, other) = (left.post(&path, &object).await, right.post(&path, &object).await);
            let mut pairs = vec![("created", said(&one), said(&other))];
            if one.code == 201 && other.code == 201 {
                let at = format!("{path}/{name}");
                let again = |answer: &Answer| {
                    let mut object = answer.body.clone();
                    object["metadata"]["annotations"] = json!({ "a": "b" });
                    object
                };
                let replaced = (left.put(&at, &again(&one)).await, right.put(&at, &again(&other)).await);
                pairs.push(("replaced", said(&replaced.0), said(&replaced.1)));
                let shown = async |caller: &Caller| {
                    let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
                    let request = Request::builder().uri(&at).header("accept", accept);
                    table(&caller.answer(request.body(Body::empty()).unwrap()).await)
                };
                pairs.push(("shown", shown(&left).await, shown(&right).await));
                let (_, _) = (left.delete(&at).await, right.delete(&at).await);
            }
            count += pairs.len();
            for (what, one, other) in pairs.into_iter().filter(|(_, one, other)| one != other) {
                differences.push(format!("{kind} {document} {what}\n  simulated {one}\n  real      {other}"));
            }
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {count} answers differ:\n{}",
        differences.len(),
        differences.join("\n")
    );
}
