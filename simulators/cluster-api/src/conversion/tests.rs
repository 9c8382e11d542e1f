use serde_json::{Value, json};

use super::convert;
use super::values::{duration_seconds, go_duration};

const CORE: &str = "cluster.x-k8s.io";

fn both_ways(old: &Value, new: &Value, group: &str) {
    assert_eq!(convert(old, &format!("{group}/v1beta2")).unwrap(), *new);
    assert_eq!(convert(new, &format!("{group}/v1beta1")).unwrap(), *old);
}

#[test]
fn clusters_keep_their_meaning() {
    let old = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster",
        "metadata": {"name": "a", "namespace": "n"},
        "spec": {"paused": true, "other": 1,
            "infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
                "name": "a", "namespace": "n"},
            "controlPlaneRef": {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2",
                "kind": "KubeadmControlPlane", "name": "a", "namespace": "n"}},
        "status": {"infrastructureReady": true, "controlPlaneReady": false, "phase": "Provisioned",
            "failureDomains": {"1": {"controlPlane": true}, "2": {"controlPlane": false}},
            "conditions": [{"type": "Ready", "severity": "Info"}],
            "v1beta2": {"conditions": [{"type": "Available"}]}}});
    let new = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": {"name": "a", "namespace": "n"},
        "spec": {"paused": true, "other": 1,
            "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureCluster", "name": "a"},
            "controlPlaneRef": {"apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane",
                "name": "a"}},
        "status": {"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": false},
            "phase": "Provisioned",
            "failureDomains": [{"name": "1", "controlPlane": true}, {"name": "2", "controlPlane": false}],
            "deprecated": {"v1beta1": {"conditions": [{"type": "Ready", "severity": "Info"}]}},
            "conditions": [{"type": "Available"}]}});
    both_ways(&old, &new, CORE);
}

#[test]
fn deployments_of_machines_keep_their_strategy() {
    let template = |references: Value| json!({"spec": references});
    let old = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment",
        "metadata": {"name": "a", "namespace": "n"},
        "spec": {"minReadySeconds": 5, "strategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%", "deletePolicy": "Oldest"}},
            "template": template(json!({"nodeDrainTimeout": "1m30s", "version": "v1.33.0",
                "infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "AzureMachineTemplate", "name": "t", "namespace": "n"}}))},
        "status": {"readyReplicas": 1, "v1beta2": {"readyReplicas": 2}}});
    let new = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineDeployment",
        "metadata": {"name": "a", "namespace": "n"},
        "spec": {"deletion": {"order": "Oldest"}, "rollout": {"strategy": {"type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}}},
            "template": template(json!({"deletion": {"nodeDrainTimeoutSeconds": 90}, "minReadySeconds": 5,
                "version": "v1.33.0",
                "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
                    "kind": "AzureMachineTemplate", "name": "t"}}))},
        "status": {"deprecated": {"v1beta1": {"readyReplicas": 1}}, "readyReplicas": 2}});
    both_ways(&old, &new, CORE);
}

#[test]
fn control_planes_keep_their_configuration() {
    let old = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane",
        "metadata": {"name": "a", "namespace": "n"},
        "spec": {"machineTemplate": {"nodeDrainTimeout": "10s", "infrastructureRef": {
                "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureMachineTemplate",
                "name": "t", "namespace": "n"}},
            "kubeadmConfigSpec": {"clusterConfiguration": {"apiServer": {"extraArgs": {"a": "b"}, "timeoutForControlPlane": "20m0s"}},
                "initConfiguration": {"nodeRegistration": {"kubeletExtraArgs": {"cloud-provider": "external"}}}}},
        "status": {"initialized": true, "ready": true, "readyReplicas": 1, "replicas": 1}});
    let new = json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta2", "kind": "KubeadmControlPlane",
        "metadata": {"name": "a", "namespace": "n"},
        "spec": {"machineTemplate": {"spec": {"deletion": {"nodeDrainTimeoutSeconds": 10}, "infrastructureRef": {
                "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureMachineTemplate", "name": "t"}}},
            "kubeadmConfigSpec": {"clusterConfiguration": {"apiServer": {"extraArgs": [{"name": "a", "value": "b"}]}},
                "initConfiguration": {"timeouts": {"controlPlaneComponentHealthCheckSeconds": 1200},
                    "nodeRegistration": {"kubeletExtraArgs": [{"name": "cloud-provider", "value": "external"}]}}}},
        "status": {"initialization": {"controlPlaneInitialized": true}, "replicas": 1,
            "deprecated": {"v1beta1": {"readyReplicas": 1}}}});
    both_ways(&old, &new, "controlplane.cluster.x-k8s.io");
}

#[test]
fn what_is_not_known_is_refused() {
    let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster"});
    assert!(convert(&object, "cluster.x-k8s.io/v1alpha4").is_err());
    assert!(convert(&object, "bootstrap.cluster.x-k8s.io/v1beta2").is_err());
    let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "ClusterClass"});
    assert!(convert(&object, "cluster.x-k8s.io/v1beta2").is_err());
}

#[test]
fn durations() {
    for (text, seconds) in [("10s", 10), ("1m30s", 90), ("1h0m0s", 3600), ("0s", 0), ("20m0s", 1200)] {
        assert_eq!(duration_seconds(text), Some(seconds), "{text}");
        assert_eq!(go_duration(seconds), text);
    }
    assert_eq!(duration_seconds("1500ms"), Some(1));
    assert_eq!(duration_seconds("tomorrow"), None);
}
