//! The references of clusters' objects: without the objects they refer to, applying them has no effect.

use serde_json::Value;

use crate::plan::values::{text, title};

/// The references by kind, and the default kind that they refer to.
const REFERENCES: &[(&str, &str, &str)] = &[
    ("Cluster", "/spec/infrastructureRef", ""),
    ("Cluster", "/spec/controlPlaneRef", ""),
    ("AzureCluster", "/spec/identityRef", "AzureClusterIdentity"),
    ("AzureManagedControlPlane", "/spec/identityRef", "AzureClusterIdentity"),
    ("AzureClusterIdentity", "/spec/clientSecret", "Secret"),
    ("KubeadmControlPlane", "/spec/machineTemplate/infrastructureRef", ""),
    ("KubeadmControlPlane", "/spec/machineTemplate/spec/infrastructureRef", ""),
    ("Machine", "/spec/infrastructureRef", ""),
    ("Machine", "/spec/bootstrap/configRef", ""),
    ("MachineDeployment", "/spec/template/spec/infrastructureRef", ""),
    ("MachineDeployment", "/spec/template/spec/bootstrap/configRef", ""),
    ("MachinePool", "/spec/template/spec/infrastructureRef", ""),
    ("MachinePool", "/spec/template/spec/bootstrap/configRef", ""),
];

/// Identities with a Secret.
const BY_SECRET: [&str; 3] = ["ServicePrincipal", "ManualServicePrincipal", "ServicePrincipalCertificate"];

/// The members with versions of Kubernetes.
const VERSIONS: [(&str, &str); 4] = [
    ("KubeadmControlPlane", "/spec/version"),
    ("Machine", "/spec/version"),
    ("MachineDeployment", "/spec/template/spec/version"),
    ("MachinePool", "/spec/template/spec/version"),
];

/// The group of Cluster API's own kinds, and the kinds.
const CORE: &str = "cluster.x-k8s.io/";
const CORE_KINDS: [&str; 8] = [
    "Cluster",
    "ClusterClass",
    "Machine",
    "MachineDeployment",
    "MachineDrainRule",
    "MachineHealthCheck",
    "MachinePool",
    "MachineSet",
];

/// References to objects that are not declared, in words.
pub fn leading_nowhere(objects: &[Value]) -> Vec<String> {
    let mut found = Vec::new();
    for (kind, pointer, default) in REFERENCES {
        for object in objects.iter().filter(|object| text(object, "/kind") == *kind) {
            let Some(reference) = object.pointer(pointer) else { continue };
            let name = text(reference, "/name");
            let target = match text(reference, "/kind") {
                "" => default,
                said => said,
            };
            let is_unused =
                *kind == "AzureClusterIdentity" && !BY_SECRET.contains(&text(object, "/spec/type"));
            if name.is_empty() || target.is_empty() || is_unused {
                continue;
            }
            let namespace = match text(reference, "/namespace") {
                "" => text(object, "/metadata/namespace"),
                said => said,
            };
            let is_there = objects.iter().any(|other| {
                text(other, "/kind") == target
                    && text(other, "/metadata/name") == name
                    && text(other, "/metadata/namespace") == namespace
            });
            if !is_there {
                let place = pointer.trim_start_matches('/').replace('/', ".");
                found.push(format!(
                    "{}: {place}: {target} {namespace}/{name} is not in the manifests: it must exist in the cluster",
                    title(object)
                ));
            }
        }
    }
    found
}

/// Objects that no API server with Cluster API accepts: kinds that its core does not have, and versions that are
/// numbers. Each with its title.
pub fn misshapen(objects: &[Value]) -> Vec<(String, String)> {
    let unknown = objects.iter().filter(|object| {
        text(object, "/apiVersion").starts_with(CORE) && !CORE_KINDS.contains(&text(object, "/kind"))
    });
    let unknown = unknown.map(|object| {
        let (version, kind) = (text(object, "/apiVersion"), text(object, "/kind"));
        (title(object), format!("no matches for kind \"{kind}\" in version \"{version}\""))
    });
    let numbers = VERSIONS.iter().flat_map(|(kind, pointer)| {
        objects.iter().filter(move |object| text(object, "/kind") == *kind).filter_map(move |object| {
            let version = object.pointer(pointer).filter(|version| version.is_number())?;
            let place = pointer.trim_start_matches('/').replace('/', ".");
            Some((title(object), format!("{place}: {version} is a number: write it like \"v1.33.1\"")))
        })
    });
    unknown.chain(numbers).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(kind: &str, name: &str, spec: Value) -> Value {
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": kind,
            "metadata": { "name": name, "namespace": "default" }, "spec": spec })
    }

    #[test]
    fn what_is_referred_to_and_not_there_is_told() {
        let deployment = json!({ "template": { "spec": {
            "infrastructureRef": { "kind": "AzureMachineTemplate", "name": "workers" },
            "bootstrap": { "configRef": { "kind": "KubeadmConfigTemplate", "name": "workers" } } } } });
        let identity =
            |kind: &str| json!({ "type": kind, "clientSecret": { "name": "proof", "namespace": "default" } });
        let objects = [
            object(
                "AzureCluster",
                "c",
                json!({ "identityRef": { "kind": "AzureClusterIdentity", "name": "i", "namespace": "shared" } }),
            ),
            object("MachineDeployment", "workers", deployment),
            object("AzureMachineTemplate", "workers", json!({})),
            object("AzureClusterIdentity", "i", identity("ServicePrincipal")),
            object("AzureClusterIdentity", "w", identity("WorkloadIdentity")),
        ];
        let found = leading_nowhere(&objects);
        let begins: Vec<&str> = found.iter().map(|words| words.split(" is not").next().unwrap()).collect();
        assert_eq!(
            begins,
            [
                "AzureCluster default/c: spec.identityRef: AzureClusterIdentity shared/i",
                "AzureClusterIdentity default/i: spec.clientSecret: Secret default/proof",
                "MachineDeployment default/workers: spec.template.spec.bootstrap.configRef: KubeadmConfigTemplate default/workers",
            ]
        );
    }

    #[test]
    fn kinds_that_the_core_does_not_have_and_numbers_are_refused() {
        let objects = [
            object("MachineDeploment", "a", json!({})),
            object("MachineSet", "b", json!({})),
            object("KubeadmControlPlane", "c", json!({ "version": 1.33 })),
            object("Machine", "d", json!({ "version": "v1.33.1" })),
        ];
        let mut objects = objects.to_vec();
        objects[2]["apiVersion"] = "controlplane.cluster.x-k8s.io/v1beta1".into();
        let said: Vec<(String, String)> = misshapen(&objects);
        assert_eq!(
            said,
            [
                (
                    "MachineDeploment default/a".to_owned(),
                    "no matches for kind \"MachineDeploment\" in version \"cluster.x-k8s.io/v1beta1\""
                        .to_owned()
                ),
                (
                    "KubeadmControlPlane default/c".to_owned(),
                    "spec.version: 1.33 is a number: write it like \"v1.33.1\"".to_owned()
                ),
            ]
        );
    }
}
