//! Kinds, each with an object and a change of it: the rows over which checks and random sequences run.

use serde_json::{Value, json};

/// A kind with a small object that every server accepts.
pub struct Row {
    pub kind: &'static str,
    pub api_version: &'static str,
    pub plural: &'static str,
    pub namespaced: bool,
    /// The object without its name, and without members whose defaults differ between versions.
    pub object: &'static str,
    /// A merge patch that changes it.
    pub change: &'static str,
    /// A member with a value of the wrong type.
    pub wrong: &'static str,
}

const TEMPLATE: &str =
    r#"{"metadata": {"labels": {"app": "a"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}"#;

const fn row(
    kind: &'static str,
    api_version: &'static str,
    plural: &'static str,
    namespaced: bool,
    [object, change, wrong]: [&'static str; 3],
) -> Row {
    Row { kind, api_version, plural, namespaced, object, change, wrong }
}

#[rustfmt::skip]
pub const KINDS: [Row; 23] = [
    row("ConfigMap", "v1", "configmaps", true, [r#"{"data": {"a": "1"}}"#, r#"{"data": {"a": "2", "b": "3"}}"#, r#"{"data": {"a": 1}}"#]),
    row("Secret", "v1", "secrets", true, [r#"{"data": {"a": "YQ=="}, "type": "Opaque"}"#, r#"{"data": {"b": "Yg=="}}"#, r#"{"data": {"a": 1}}"#]),
    row("ServiceAccount", "v1", "serviceaccounts", true, [r#"{"secrets": [{"name": "a"}]}"#, r#"{"automountServiceAccountToken": false}"#, r#"{"secrets": "a"}"#]),
    row("Endpoints", "v1", "endpoints", true, [r#"{"subsets": [{"addresses": [{"ip": "10.1.1.1"}], "ports": [{"port": 80, "protocol": "TCP"}]}]}"#, r#"{"subsets": null}"#, r#"{"subsets": 1}"#]),
    row("LimitRange", "v1", "limitranges", true, [r#"{"spec": {"limits": [{"type": "PersistentVolumeClaim", "max": {"storage": "2Gi"}}]}}"#, r#"{"metadata": {"annotations": {"a": "b"}}}"#, r#"{"spec": {"limits": 1}}"#]),
    row("ResourceQuota", "v1", "resourcequotas", true, [r#"{"spec": {"hard": {"configmaps": "1000"}}}"#, r#"{"spec": {"hard": {"configmaps": "2000"}}}"#, r#"{"spec": {"hard": 1}}"#]),
    row("Pod", "v1", "pods", true, [r#"{"spec": {"serviceAccountName": "default", "containers": [{"name": "c", "image": "i:1"}]}}"#, r#"{"metadata": {"annotations": {"a": "b"}}}"#, r#"{"spec": {"containers": 1}}"#]),
    row("PodTemplate", "v1", "podtemplates", true, [r#"{"template": {"spec": {"containers": [{"name": "c", "image": "i:1"}]}}}"#, r#"{"metadata": {"annotations": {"a": "b"}}}"#, r#"{"template": 1}"#]),
    row("ReplicationController", "v1", "replicationcontrollers", true, [r#"{"spec": {"replicas": 1, "selector": {"app": "a"}, "template": TEMPLATE}}"#, r#"{"spec": {"replicas": 2}}"#, r#"{"spec": {"replicas": "x"}}"#]),
    row("Deployment", "apps/v1", "deployments", true, [r#"{"spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}}"#, r#"{"spec": {"replicas": 2}}"#, r#"{"spec": {"replicas": "x"}}"#]),
    row("ReplicaSet", "apps/v1", "replicasets", true, [r#"{"spec": {"replicas": 1, "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}}"#, r#"{"spec": {"replicas": 2}}"#, r#"{"spec": {"replicas": "x"}}"#]),
    row("StatefulSet", "apps/v1", "statefulsets", true, [r#"{"spec": {"replicas": 1, "serviceName": "s", "selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}}"#, r#"{"spec": {"replicas": 2}}"#, r#"{"spec": {"replicas": "x"}}"#]),
    row("DaemonSet", "apps/v1", "daemonsets", true, [r#"{"spec": {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE}}"#, r#"{"spec": {"minReadySeconds": 5}}"#, r#"{"spec": {"minReadySeconds": "x"}}"#]),
    row("ControllerRevision", "apps/v1", "controllerrevisions", true, [r#"{"revision": 1, "data": {"a": "b"}}"#, r#"{"revision": 2}"#, r#"{"revision": "x"}"#]),
    row("Job", "batch/v1", "jobs", true, [r#"{"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}}}"#, r#"{"spec": {"parallelism": 2}}"#, r#"{"spec": {"parallelism": "x"}}"#]),
    row("Role", "rbac.authorization.k8s.io/v1", "roles", true, [r#"{"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}"#, r#"{"rules": []}"#, r#"{"rules": 1}"#]),
    row("RoleBinding", "rbac.authorization.k8s.io/v1", "rolebindings", true, [r#"{"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"}, "subjects": [{"kind": "ServiceAccount", "name": "s", "namespace": "n"}]}"#, r#"{"subjects": []}"#, r#"{"subjects": 1}"#]),
    row("Ingress", "networking.k8s.io/v1", "ingresses", true, [r#"{"spec": {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}}"#, r#"{"spec": {"defaultBackend": {"service": {"port": {"number": 81}}}}}"#, r#"{"spec": {"rules": 1}}"#]),
    row("NetworkPolicy", "networking.k8s.io/v1", "networkpolicies", true, [r#"{"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}"#, r#"{"spec": {"policyTypes": ["Egress"]}}"#, r#"{"spec": {"policyTypes": 1}}"#]),
    row("Lease", "coordination.k8s.io/v1", "leases", true, [r#"{"spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}}"#, r#"{"spec": {"holderIdentity": "b"}}"#, r#"{"spec": {"leaseDurationSeconds": "x"}}"#]),
    row("ClusterRole", "rbac.authorization.k8s.io/v1", "clusterroles", false, [r#"{"rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]}"#, r#"{"rules": []}"#, r#"{"rules": 1}"#]),
    row("PriorityClass", "scheduling.k8s.io/v1", "priorityclasses", false, [r#"{"value": 10}"#, r#"{"description": "d"}"#, r#"{"value": "x"}"#]),
    row("StorageClass", "storage.k8s.io/v1", "storageclasses", false, [r#"{"provisioner": "example.com/p", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"}"#, r#"{"allowVolumeExpansion": true}"#, r#"{"provisioner": 1}"#]),
];

impl Row {
    /// The path of this kind's objects.
    pub fn path(&self, namespace: &str) -> String {
        let root = if self.api_version == "v1" {
            "/api/v1".to_owned()
        } else {
            format!("/apis/{}", self.api_version)
        };
        match self.namespaced {
            true => format!("{root}/namespaces/{namespace}/{}", self.plural),
            false => format!("{root}/{}", self.plural),
        }
    }

    /// An object of this name.
    pub fn named(&self, name: &str) -> Value {
        let mut object = read(self.object);
        object["apiVersion"] = self.api_version.into();
        object["kind"] = self.kind.into();
        object["metadata"] = json!({"name": name, "labels": {"check": "agreement"}});
        object
    }

    pub fn change(&self) -> Value {
        read(self.change)
    }

    /// An object of this name with a member of the wrong type.
    pub fn wrong(&self, name: &str) -> Value {
        let mut object = self.named(name);
        for (member, value) in read(self.wrong).as_object().unwrap() {
            match value {
                Value::Object(inner) => {
                    inner.iter().for_each(|(key, value)| object[member][key] = value.clone())
                }
                other => object[member] = other.clone(),
            }
        }
        object
    }
}

fn read(text: &str) -> Value {
    serde_json::from_str(&text.replace("TEMPLATE", TEMPLATE)).unwrap()
}
