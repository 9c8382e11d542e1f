//! The objects of a cluster as Cluster API's core leaves them, after admission.

use anyhow::{Context as _, anyhow};
use kubernetes_simulator::{Kubernetes, Object};
use serde_json::{Value, json};

/// The namespace of all objects.
pub const NAMESPACE: &str = "default";
/// The identity that all clusters use, and the Secret with its password.
pub(super) const IDENTITY: &str = "identity";
pub(super) const CORE: &str = "cluster.x-k8s.io/v1beta2";
pub(super) const OURS: &str = "infrastructure.cluster.x-k8s.io/v1beta1";
pub(super) const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";
const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
/// The version of Kubernetes.
pub(super) const VERSION: &str = "v1.33.2";
/// A public key, in base64, as an AzureMachine has it.
const SSH_KEY: &str = "c3NoLWVkMjU1MTkgQUFBQUMzTnphQzFsWkRJMU5URTVBQUFBSUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUEgbWU=";
/// The number of characters of a machine's bootstrap data; kubeadm's, which contains certificates, is about as long.
const BOOTSTRAP_DATA: usize = 12_000;

/// The application that all clusters sign in as.
pub struct Application<'a> {
    pub tenant: &'a str,
    pub client_id: &'a str,
    /// Its password, in base64.
    pub password: &'a str,
    pub subscription: &'a str,
}

/// Draws nothing at random: these objects name everything that would be drawn.
struct Named;

impl capz_api::Random for Named {
    fn guid(&mut self) -> String {
        "5e5e5e5e-0000-4000-8000-000000000000".to_owned()
    }
    fn ssh_public_key(&mut self) -> String {
        SSH_KEY.to_owned()
    }
}

/// Installs the kinds, and the identity.
pub fn install(kubernetes: &Kubernetes, application: &Application<'_>) -> anyhow::Result<()> {
    for kind in &capz_api::crd::KINDS {
        kubernetes.create(capz_api::crd::definition(kind))?;
    }
    for kind in ["Cluster", "Machine", "MachinePool"] {
        kubernetes.create(of_core(kind))?;
    }
    kubernetes.create(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": IDENTITY, "namespace": NAMESPACE },
        "data": { "clientSecret": application.password },
    }))?;
    kubernetes.create(json!({
        "apiVersion": OURS, "kind": "AzureClusterIdentity",
        "metadata": { "name": IDENTITY, "namespace": NAMESPACE },
        "spec": {
            "type": "ServicePrincipal", "tenantID": application.tenant, "clientID": application.client_id,
            "clientSecret": { "name": IDENTITY, "namespace": NAMESPACE }, "allowedNamespaces": {},
        },
    }))?;
    Ok(())
}

/// A definition that accepts anything.
fn of_core(kind: &str) -> Value {
    let singular = kind.to_lowercase();
    let plural = format!("{singular}s");
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.cluster.x-k8s.io") },
        "spec": {
            "group": "cluster.x-k8s.io", "scope": "Namespaced",
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": singular },
            "versions": [{ "name": "v1beta2", "served": true, "storage": true, "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    })
}

/// A Cluster with its AzureCluster: a public one with a control plane and workers in subnets of their own.
pub fn cluster(kubernetes: &Kubernetes, application: &Application<'_>, name: &str) -> anyhow::Result<()> {
    let owner = kubernetes.create(json!({
        "apiVersion": CORE, "kind": "Cluster",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": {
            "clusterNetwork": { "pods": { "cidrBlocks": ["192.168.0.0/16"] } },
            "controlPlaneRef": { "apiGroup": "controlplane.cluster.x-k8s.io", "kind": "KubeadmControlPlane",
                "name": format!("{name}-control-plane") },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureCluster", "name": name },
        },
    }))?;
    let object = json!({
        "apiVersion": OURS, "kind": "AzureCluster",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": { (CLUSTER_NAME): name },
            "ownerReferences": [owner_reference("Cluster", &owner)] },
        "spec": { "location": "eastus", "subscriptionID": application.subscription,
            "identityRef": { "kind": "AzureClusterIdentity", "name": IDENTITY } },
    });
    admit(kubernetes, application, "AzureCluster", object)
}

/// A Machine with its AzureMachine and bootstrap data, in a cluster whose network is there.
pub fn machine(
    kubernetes: &Kubernetes,
    application: &Application<'_>,
    cluster: &str,
    name: &str,
    is_control_plane: bool,
) -> anyhow::Result<()> {
    let data = format!("{name}-data");
    kubernetes.create(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": data, "namespace": NAMESPACE },
        "data": { "value": "YmVu".repeat(BOOTSTRAP_DATA / 4) },
    }))?;
    let mut labels = json!({ (CLUSTER_NAME): cluster });
    if is_control_plane {
        labels[CONTROL_PLANE] = "".into();
    } else {
        labels["cluster.x-k8s.io/deployment-name"] = format!("{cluster}-workers").into();
    }
    let owner = kubernetes.create(json!({
        "apiVersion": CORE, "kind": "Machine",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels },
        "spec": {
            "clusterName": cluster, "version": VERSION, "bootstrap": { "dataSecretName": data },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureMachine", "name": name },
        },
    }))?;
    let object = json!({
        "apiVersion": OURS, "kind": "AzureMachine",
        "metadata": { "name": name, "namespace": NAMESPACE, "labels": labels,
            "annotations": { "cluster.x-k8s.io/cloned-from-name": format!("{cluster}-template"),
                "cluster.x-k8s.io/cloned-from-groupkind": "AzureMachineTemplate.infrastructure.cluster.x-k8s.io" },
            "ownerReferences": [owner_reference("Machine", &owner)] },
        "spec": { "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux", "diskSizeGB": 30 }, "sshPublicKey": SSH_KEY },
    });
    admit(kubernetes, application, "AzureMachine", object)
}

pub(super) fn owner_reference(kind: &str, owner: &Object) -> Value {
    let metadata = &owner.value()["metadata"];
    json!({ "apiVersion": CORE, "kind": kind, "name": metadata["name"], "uid": metadata["uid"], "controller": true })
}

/// Creates an object after our webhooks admit it.
pub(super) fn admit(
    kubernetes: &Kubernetes,
    application: &Application<'_>,
    kind: &str,
    mut object: Value,
) -> anyhow::Result<()> {
    capz_api::crd::fill_defaults(kind, &mut object);
    let context = capz_api::Context {
        subscription: capz_api::Lookup::Found(application.subscription.to_owned()),
        pool_version: capz_api::Lookup::Found(VERSION.to_owned()),
        cluster_network: capz_api::Lookup::Found(capz_api::ClusterNetwork::default()),
        ..capz_api::Context::default()
    };
    let denied = |denied| anyhow!("{kind}: {denied}");
    let object = capz_api::admission::set_defaults(kind, object, &context, &mut Named).map_err(denied)?;
    capz_api::admission::validate(kind, &object, None, &context).map_err(denied)?;
    kubernetes.create(object)?;
    Ok(())
}

/// Reports the cluster's network as ready, as the core does.
pub fn provisioned(kubernetes: &Kubernetes, cluster: &str) -> anyhow::Result<()> {
    let status = json!({ "status": { "initialization": { "infrastructureProvisioned": true } } });
    kubernetes.merge_status("Cluster", NAMESPACE, cluster, &status)?;
    Ok(())
}

/// Whether an object of ours is reconciled.
pub fn is_ready(object: &Object) -> bool {
    object.value()["status"]["ready"] == true
}

/// Why an object of ours will not become ready without a change, if it says so.
pub fn refusal(object: &Object) -> Option<String> {
    let value = object.value();
    let words = value["status"]["failureMessage"].as_str()?;
    let name = value["metadata"]["name"].as_str().context("a name").ok()?;
    Some(format!("{name}: {words}"))
}
