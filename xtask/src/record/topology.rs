//! The flavor `topology`, as Cluster API's topology controller expands it from a class, which the stand-in does not do.
//!
//! It covers the names of the created objects, their labels and annotations, references to clones of the class's
//! templates, and patches of the flavor `clusterclass`. Later steps, rollouts and rebasing, are left out: nothing
//! changes while a cluster is recorded.

use anyhow::Context as _;
use kube::Client;
use serde_json::{Value, json};

use crate::e2e::capz::objects::{api, create};

/// The suffix that stands for the controller's random ones.
pub(super) const DRAWN: &str = "x7k2p";
pub(super) const OWNED: &str = "topology.cluster.x-k8s.io/owned";
pub(super) const CLUSTER_NAME: &str = "cluster.x-k8s.io/cluster-name";

/// Creates the objects that the class names, and returns what the controller creates from them for the Cluster
/// `topology`, including the Cluster.
///
/// # Errors
/// The server refuses a template, or one is missing.
pub async fn expanded(client: &Client, class: &[Value], cluster: &Value) -> anyhow::Result<Vec<Value>> {
    let stored = stored(client, class).await?;
    let topology = &cluster["spec"]["topology"];
    let workers = &topology["workers"]["machineDeployments"][0];
    let created = CreatedObjects { cluster: text(&cluster["metadata"]["name"]), stored };
    let (name, version) = (&created.cluster, &topology["version"]);
    let md = text(&workers["name"]);
    let mut labels = json!({ "topology.cluster.x-k8s.io/deployment-name": md });

    let network = created.clone_of("AzureClusterTemplate", "azure-cluster", name, &json!({}))?;
    let machines = created.template_of("control-plane", name, &json!({}))?;
    let mut control_plane =
        created.clone_of("KubeadmControlPlaneTemplate", "control-plane", name, &json!({}))?;
    let spec = &mut control_plane["spec"];
    spec["replicas"] = topology["controlPlane"]["replicas"].clone();
    spec["version"] = version.clone();
    spec["machineTemplate"]["infrastructureRef"] = reference(&machines);
    let configuration = &mut spec["kubeadmConfigSpec"];
    configuration["clusterConfiguration"]["controllerManager"]["extraArgs"]["cluster-name"] = json!(name);
    configuration["files"] = files(&machines, "control-plane-azure.json");

    let prefix = format!("{name}-{md}");
    let worker = created.template_of("md-0", &prefix, &labels)?;
    let mut bootstrap = created.named("KubeadmConfigTemplate", "md-0")?.clone();
    bootstrap["spec"]["template"]["spec"]["files"] = files(&worker, "worker-node-azure.json");
    bootstrap["metadata"] = created.metadata(&bootstrap, &prefix, &labels);
    let reference_to_worker = reference(&worker);
    labels[CLUSTER_NAME] = json!(name);
    labels[OWNED] = json!("");
    let deployment = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment",
        "metadata": { "name": format!("{prefix}-{DRAWN}"), "namespace": "default", "labels": labels },
        "spec": { "clusterName": name, "replicas": workers["replicas"], "selector": { "matchLabels": labels },
            "template": { "metadata": { "labels": labels }, "spec": { "clusterName": name, "version": version,
                "bootstrap": { "configRef": reference(&bootstrap) },
                "infrastructureRef": reference_to_worker } } },
    });
    let mut cluster = cluster.clone();
    cluster["spec"]["infrastructureRef"] = reference(&network);
    cluster["spec"]["controlPlaneRef"] = reference(&control_plane);
    Ok(vec![cluster, network, machines, control_plane, worker, bootstrap, deployment])
}

/// Creates the templates of a class, and reads them back: webhooks complete them before the controller reads them.
///
/// # Errors
/// The server refuses a template.
pub(super) async fn stored(client: &Client, class: &[Value]) -> anyhow::Result<Vec<Value>> {
    let mut stored = Vec::new();
    for object in class.iter().filter(|object| object["kind"] != "ClusterClass") {
        create(client, object).await?;
        let name = text(&object["metadata"]["name"]);
        let kind = api(client, &text(&object["apiVersion"]), &text(&object["kind"]), Some("default"));
        stored.push(serde_json::to_value(kind.get(&name).await?)?);
    }
    Ok(stored)
}

/// The objects that are created for a Cluster from the class's templates.
pub(super) struct CreatedObjects {
    /// The name of the Cluster.
    pub cluster: String,
    /// The class's templates.
    pub stored: Vec<Value>,
}

impl CreatedObjects {
    fn named(&self, kind: &str, end: &str) -> anyhow::Result<&Value> {
        let name = format!("{}-{end}", self.cluster);
        let name = name.trim_end_matches('-');
        let is_it = |one: &&Value| one["kind"] == kind && one["metadata"]["name"] == name;
        self.stored.iter().find(is_it).with_context(|| format!("the class has no {kind} {name}"))
    }

    /// An object created from a template's `spec.template`; the template's name ends with `end`, if it is not empty.
    ///
    /// # Errors
    /// There is no such template.
    pub(super) fn clone_of(
        &self,
        kind: &str,
        end: &str,
        prefix: &str,
        labels: &Value,
    ) -> anyhow::Result<Value> {
        let template = self.named(kind, end)?;
        Ok(json!({ "apiVersion": template["apiVersion"], "kind": kind.trim_end_matches("Template"),
            "metadata": self.metadata(template, prefix, labels), "spec": template["spec"]["template"]["spec"] }))
    }

    /// A template of machines, cloned from one of the class's.
    fn template_of(&self, end: &str, prefix: &str, labels: &Value) -> anyhow::Result<Value> {
        let template = self.named("AzureMachineTemplate", end)?;
        Ok(json!({ "apiVersion": template["apiVersion"], "kind": template["kind"],
            "metadata": self.metadata(template, prefix, labels), "spec": template["spec"] }))
    }

    fn metadata(&self, template: &Value, prefix: &str, labels: &Value) -> Value {
        let group = text(&template["apiVersion"]);
        let group = group.split('/').next().unwrap_or_default();
        let mut all = labels.clone();
        all[CLUSTER_NAME] = json!(self.cluster);
        all[OWNED] = json!("");
        json!({ "name": format!("{prefix}-{DRAWN}"), "namespace": "default", "labels": all, "annotations": {
            "cluster.x-k8s.io/cloned-from-name": template["metadata"]["name"],
            "cluster.x-k8s.io/cloned-from-groupkind": format!("{}.{group}", text(&template["kind"])) } })
    }
}

/// A reference to an object.
pub(super) fn reference(object: &Value) -> Value {
    json!({ "apiVersion": object["apiVersion"], "kind": object["kind"], "namespace": "default",
        "name": object["metadata"]["name"] })
}

/// The files of machines in the class's patches.
fn files(template: &Value, key: &str) -> Value {
    let secret = format!("{}-azure-json", text(&template["metadata"]["name"]));
    json!([{ "path": "/etc/kubernetes/azure.json", "owner": "root:root", "permissions": "0644",
        "contentFrom": { "secret": { "name": secret, "key": key } } }])
}

pub(super) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
