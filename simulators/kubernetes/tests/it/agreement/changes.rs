//! The same changes at two servers, with the same responses: which members may change, and the messages for those that
//! may not.

use kube::Client;
use serde_json::{Value, json};

use crate::agreement::caller::{Caller, MERGE};
use crate::agreement::documents::{place, said, whole};

/// Resource, whether it is in a namespace, kind, document, and merge patches of it, one after another.
fn cases() -> Vec<(&'static str, bool, &'static str, Value, Vec<Value>)> {
    let containers = json!([{ "name": "c", "image": "registry.example.com/app:1" }]);
    let template = json!({ "metadata": { "labels": { "a": "b" } }, "spec": { "containers": containers } });
    let workload = |more: Value| {
        let mut spec = json!({ "selector": { "matchLabels": { "a": "b" } }, "template": template });
        json_patch::merge(&mut spec, &more);
        json!({ "spec": spec })
    };
    let relabelled = json!({ "spec": { "selector": { "matchLabels": { "a": "c" } },
        "template": { "metadata": { "labels": { "a": "c" } } } } });
    vec![
        (
            "apps/v1/deployments",
            true,
            "Deployment",
            workload(json!({})),
            vec![
                json!({ "spec": { "replicas": 3 } }),
                json!({ "spec": { "template": { "spec": { "terminationGracePeriodSeconds": 0 } } } }),
                json!({ "spec": { "strategy": { "type": "Recreate" } } }),
                json!({ "spec": { "strategy": { "type": "Recreate", "rollingUpdate": null } } }),
                json!({ "metadata": { "labels": { "x": "y" } } }),
                relabelled.clone(),
            ],
        ),
        (
            "apps/v1/statefulsets",
            true,
            "StatefulSet",
            workload(
                json!({ "serviceName": "s", "volumeClaimTemplates": [{ "metadata": { "name": "v" }, "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }] }),
            ),
            vec![
                json!({ "spec": { "replicas": 2 } }),
                json!({ "metadata": { "annotations": { "a": "b" } } }),
            ],
        ),
        (
            "apps/v1/daemonsets",
            true,
            "DaemonSet",
            workload(json!({})),
            vec![
                json!({ "spec": { "template": { "spec": { "nodeSelector": { "a": "b" } } } } }),
                json!({ "metadata": { "annotations": { "a": "b" } } }),
                relabelled,
            ],
        ),
        (
            "v1/pods",
            true,
            "Pod",
            json!({ "spec": { "containers": containers, "serviceAccountName": "default" } }),
            vec![
                json!({ "spec": { "containers": [{ "name": "c", "image": "registry.example.com/app:2",
                    "imagePullPolicy": "IfNotPresent", "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File" }] } }),
                json!({ "spec": { "activeDeadlineSeconds": 100 } }),
            ],
        ),
        ("v1/secrets", true, "Secret", json!({ "data": { "a": "AA==" } }), vec![json!({ "type": "other" })]),
        (
            "v1/configmaps",
            true,
            "ConfigMap",
            json!({ "data": { "a": "b" } }),
            vec![
                json!({ "immutable": true }),
                json!({ "data": { "a": "c" } }),
                json!({ "metadata": { "labels": { "a": "b" } } }),
                json!({ "immutable": false }),
            ],
        ),
        (
            "v1/persistentvolumeclaims",
            true,
            "PersistentVolumeClaim",
            json!({ "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } } }),
            vec![json!({ "spec": { "volumeName": "v" } }), json!({ "metadata": { "labels": { "a": "b" } } })],
        ),
        (
            "v1/persistentvolumes",
            false,
            "PersistentVolume",
            json!({ "spec": { "capacity": { "storage": "1Gi" }, "accessModes": ["ReadWriteOnce"],
                "hostPath": { "path": "/x" } } }),
            vec![
                json!({ "spec": { "capacity": { "storage": "2Gi" }, "persistentVolumeReclaimPolicy": "Delete" } }),
                json!({ "spec": { "claimRef": { "namespace": "n", "name": "c" } } }),
            ],
        ),
        (
            "storage.k8s.io/v1/storageclasses",
            false,
            "StorageClass",
            json!({ "provisioner": "p", "parameters": { "a": "b" } }),
            vec![
                json!({ "allowVolumeExpansion": true }),
                json!({ "parameters": { "a": "c" } }),
                json!({ "provisioner": "q", "reclaimPolicy": "Retain" }),
                json!({ "volumeBindingMode": "WaitForFirstConsumer" }),
            ],
        ),
        (
            "rbac.authorization.k8s.io/v1/rolebindings",
            true,
            "RoleBinding",
            json!({ "roleRef": { "kind": "ClusterRole", "name": "view", "apiGroup": "rbac.authorization.k8s.io" } }),
            vec![
                json!({ "subjects": [{ "kind": "Group", "name": "g" }] }),
                json!({ "roleRef": { "name": "edit" } }),
            ],
        ),
        (
            "scheduling.k8s.io/v1/priorityclasses",
            false,
            "PriorityClass",
            json!({ "value": 5 }),
            vec![json!({ "description": "five" }), json!({ "value": 6 })],
        ),
        (
            "node.k8s.io/v1/runtimeclasses",
            false,
            "RuntimeClass",
            json!({ "handler": "runc" }),
            vec![json!({ "handler": "other" })],
        ),
        (
            "batch/v1/jobs",
            true,
            "Job",
            json!({ "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": containers } } } }),
            vec![json!({ "spec": { "parallelism": 2 } }), json!({ "spec": { "completions": 2 } })],
        ),
        (
            "networking.k8s.io/v1/ingressclasses",
            false,
            "IngressClass",
            json!({ "spec": { "controller": "example.com/c" } }),
            vec![json!({ "spec": { "controller": "example.com/d" } })],
        ),
    ]
}

/// Makes all changes at both servers.
pub async fn agree(simulator: Client, server: Client) {
    let (left, right) = (Caller::new(simulator, "changes").await, Caller::new(server, "changes").await);
    let mut differences = Vec::new();
    for (resource, namespaced, kind, document, patches) in cases() {
        let path = place(resource, namespaced, "changes");
        let object = whole(resource, kind, "c", &document);
        left.post(&path, &object).await.ok(201);
        right.post(&path, &object).await.ok(201);
        let at = format!("{path}/c");
        for patch in patches {
            let (one, other) = (left.patch(&at, MERGE, &patch).await, right.patch(&at, MERGE, &patch).await);
            let (one, other) = (said(&one), said(&other));
            if one != other {
                differences.push(format!("{kind} {patch} changed\n  simulated {one}\n  real      {other}"));
            }
        }
        for caller in [&left, &right] {
            caller.delete(&at).await;
        }
    }
    assert!(differences.is_empty(), "{} answers differ:\n{}", differences.len(), differences.join("\n"));
}
