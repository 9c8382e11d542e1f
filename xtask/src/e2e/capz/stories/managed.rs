//! Clusters that Azure manages, of both generations, from a user's flavor to the end.

use anyhow::Context as _;
use azure_simulator::managed_clusters::{AttachedKubernetes, KubernetesOfClusters};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::e2e::capz::flavor::rendered;
use crate::e2e::capz::objects::create;
use crate::e2e::capz::stage::Stage;
use crate::e2e::capz::view::{CORE, OURS, View};
use crate::record::flavor;
use crate::world::CLIENT_SECRET;

const CLUSTERS: &str = "Microsoft.ContainerService/managedClusters";
const POOLS: &str = "Microsoft.ContainerService/managedClusters/agentPools";
/// The version to which clusters are upgraded.
const NEXT: &str = "v1.34.1";

/// A generation.
struct Generation {
    flavor: &'static str,
    cluster: &'static str,
    control_plane: &'static str,
    pool: &'static str,
    /// The pool that grows.
    grows: &'static str,
}

const GENERATIONS: [Generation; 2] = [
    Generation {
        flavor: "aks",
        cluster: "quay",
        control_plane: "AzureManagedControlPlane",
        pool: "AzureManagedMachinePool",
        grows: "quay-pool1",
    },
    Generation {
        flavor: "aks-aso",
        cluster: "pier",
        control_plane: "AzureASOManagedControlPlane",
        pool: "AzureASOManagedMachinePool",
        grows: "pier-pool1",
    },
];

/// A cluster of each generation becomes ready with two pools, one pool grows, control plane
/// and pools are upgraded, Azure's autoscaler takes over, and the cluster is deleted without a trace.
///
/// # Errors
/// The first failed step.
pub async fn play(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    attach(stage)?;
    let shape = &stage.place.shape;
    let credential = flavor::credential_of_operator(shape, CLIENT_SECRET);
    create(&stage.management.server.client, &credential).await?;
    for generation in &GENERATIONS {
        let Generation { flavor, cluster, grows, .. } = *generation;
        let objects = rendered(stage, flavor, cluster)?;
        stage.create(&objects).await?;
        stage
            .until(&format!("{flavor}: the cluster and two pools are ready"), |view| {
                is_ready(view, generation)
            })
            .await?;
        let before = counts(stage, grows);
        stage.scale(CORE, "MachinePool", grows, 3).await?;
        let azure = stage.place.azure.azure.clone();
        stage
            .until(&format!("{flavor}: a pool has one machine more"), |view| {
                let pools = azure.documents_of_type(POOLS);
                is_ready(view, generation) && pools.iter().any(|pool| pool["properties"]["count"] == 3)
            })
            .await?;
        anyhow::ensure!(before < 3, "the pool had {before} machines before");
        upgrade(stage, generation).await?;
        autoscale(stage, generation).await?;
        stage.ends(cluster).await?;
        let clusters = stage.place.azure.azure.documents_of_type(CLUSTERS);
        anyhow::ensure!(clusters.is_empty(), "managed clusters are left: {}", Value::from(clusters));
        for identity in objects.iter().filter(|it| it["kind"] == "AzureClusterIdentity") {
            let name = identity["metadata"]["name"].as_str().unwrap_or_default();
            stage.delete(OURS, "AzureClusterIdentity", name).await?;
        }
    }
    Ok(())
}

fn is_ready(view: &View, generation: &Generation) -> bool {
    let is_ready = |object: &Value| object["status"]["ready"] == true;
    let cluster = view.get("Cluster", generation.cluster);
    let initialization = &cluster["status"]["initialization"];
    is_ready(view.get(generation.control_plane, generation.cluster))
        && view.all(generation.pool).count() == 2
        && view.all(generation.pool).all(is_ready)
        && initialization["infrastructureProvisioned"] == true
        && initialization["controlPlaneInitialized"] == true
}

/// The machines of a pool, as its MachinePool wants them.
fn counts(stage: &Stage<'_>, pool: &str) -> u64 {
    let name = pool.rsplit('-').next().unwrap_or_default();
    let pools = stage.place.azure.azure.documents_of_type(POOLS);
    let found = pools.iter().find(|it| it["name"] == name);
    found.and_then(|it| it["properties"]["count"].as_u64()).unwrap_or_default()
}

/// The user changes the version of the control plane, and then that of the pools.
async fn upgrade(stage: &mut Stage<'_>, generation: &Generation) -> anyhow::Result<()> {
    let Generation { flavor, cluster, control_plane, .. } = *generation;
    let version = json!({ "spec": { "version": NEXT } });
    stage.merge(OURS, control_plane, cluster, &version).await?;
    let azure = stage.place.azure.azure.clone();
    let runs = move |kind: &str, member: &str, count: usize| {
        let all = azure.documents_of_type(kind);
        let next = NEXT.trim_start_matches('v');
        let upgraded = all.iter().filter(|it| {
            it["properties"][member] == next && it["properties"]["provisioningState"] == "Succeeded"
        });
        upgraded.count() == count
    };
    stage
        .until(&format!("{flavor}: the control plane is upgraded"), |view| {
            is_ready(view, generation)
                && view.get(control_plane, cluster)["status"]["version"] == NEXT
                && runs(CLUSTERS, "currentKubernetesVersion", 1)
        })
        .await?;
    for pool in ["pool0", "pool1"] {
        let version = json!({ "spec": { "template": { "spec": { "version": NEXT } } } });
        stage.merge(CORE, "MachinePool", &format!("{cluster}-{pool}"), &version).await?;
    }
    stage
        .until(&format!("{flavor}: the pools are upgraded"), |view| {
            is_ready(view, generation) && runs(POOLS, "currentOrchestratorVersion", 2)
        })
        .await
}

/// Azure's autoscaler decides how many machines a pool has, once the user has given bounds.
async fn autoscale(stage: &mut Stage<'_>, generation: &Generation) -> anyhow::Result<()> {
    let Generation { flavor, pool, grows, .. } = *generation;
    let bounds = match pool {
        "AzureManagedMachinePool" => json!([
            { "op": "add", "path": "/spec/scaling", "value": { "minSize": 1, "maxSize": 5 } },
        ]),
        _ => json!([
            { "op": "add", "path": "/spec/resources/0/spec/enableAutoScaling", "value": true },
            { "op": "add", "path": "/spec/resources/0/spec/minCount", "value": 1 },
            { "op": "add", "path": "/spec/resources/0/spec/maxCount", "value": 5 },
        ]),
    };
    stage.patch(OURS, pool, grows, &bounds).await?;
    let azure = stage.place.azure.azure.clone();
    let held = |azure: &azure_simulator::Azure| {
        azure.documents_of_type(POOLS).into_iter().find(|it| it["name"] == "pool1").unwrap_or_default()
    };
    stage
        .until(&format!("{flavor}: Azure's autoscaler has bounds"), |view| {
            let properties = &held(&azure)["properties"];
            is_ready(view, generation)
                && properties["enableAutoScaling"] == true
                && properties["provisioningState"] == "Succeeded"
        })
        .await?;
    let id = held(&azure)["id"].as_str().unwrap_or_default().parse()?;
    // It wants four machines, as for pods that find no place.
    azure.edit(&id, |pool| pool["properties"]["minCount"] = json!(4))?;
    stage.until(&format!("{flavor}: Azure has four machines"), |_| has(&held(&azure), 4)).await?;
    // The next look is due within the sync period; a change of the object brings it forward.
    stage.merge(OURS, pool, grows, &json!({ "metadata": { "labels": { "looked-at": "now" } } })).await?;
    stage
        .until(&format!("{flavor}: the MachinePool follows the autoscaler"), |view| {
            view.get("MachinePool", grows)["spec"]["replicas"] == 4
        })
        .await
}

/// Whether a pool has this many machines, and no operation runs.
fn has(pool: &Value, count: u64) -> bool {
    pool["properties"]["count"] == count && pool["properties"]["provisioningState"] == "Succeeded"
}

/// The API server of the management cluster stands behind managed clusters, too.
fn attach(stage: &Stage<'_>) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(&stage.management.server.kubeconfig)?;
    let config: Value = serde_saphyr::from_str(&text)?;
    let part = |list: &str, member: &str| {
        let found = config[list][0].get(member).cloned();
        embedded(found.with_context(|| format!("the kubeconfig has no {member}"))?)
    };
    let attached = AttachedKubernetes { cluster: part("clusters", "cluster")?, user: part("users", "user")? };
    stage.place.azure.azure.attach(KubernetesOfClusters::new(move |_| Some(attached.clone())));
    Ok(())
}

/// A part of a kubeconfig with the contents of the files that it names: Azure's kubeconfigs name none.
fn embedded(mut part: Value) -> anyhow::Result<Value> {
    for file in ["certificate-authority", "client-certificate", "client-key"] {
        let Some(path) = part.as_object_mut().and_then(|members| members.remove(file)) else { continue };
        let path = path.as_str().unwrap_or_default().to_owned();
        let content = std::fs::read(&path).with_context(|| path.clone())?;
        part[format!("{file}-data")] = STANDARD.encode(content).into();
    }
    Ok(part)
}
