//! Cluster API's core for clusters that Azure manages, as far as examples need it.

use serde_json::{Value, json};

use super::page::Place;
use super::stage::{
    INFRASTRUCTURE, Made, VERSION, admit, label, machine_owner, machine_pool, merged, own, text,
};
use crate::world::{NAMESPACE, SUBSCRIPTION, World};

/// The cluster of node pools whose example names none.
const DEFAULT_CLUSTER: &str = "my-aks";
/// The Secret with the credential of raw resources that name none.
const CREDENTIAL: &str = "aso-credential";

/// The kinds of a generation.
struct Generation {
    cluster: &'static str,
    control_plane: &'static str,
    pool: &'static str,
}

const GENERATIONS: [Generation; 2] = [
    Generation {
        cluster: "AzureManagedCluster",
        control_plane: "AzureManagedControlPlane",
        pool: "AzureManagedMachinePool",
    },
    Generation {
        cluster: "AzureASOManagedCluster",
        control_plane: "AzureASOManagedControlPlane",
        pool: "AzureASOManagedMachinePool",
    },
];

fn generation(kind: &str) -> Option<&'static Generation> {
    GENERATIONS.iter().find(|it| [it.cluster, it.control_plane, it.pool].contains(&kind))
}

/// Whether a kind is a part of a cluster that Azure manages.
pub fn is_part(kind: &str) -> bool {
    generation(kind).is_some()
}

/// Applies a part of a managed cluster. What the section does not contain is added: the Cluster, its infrastructure, and
/// a System pool.
///
/// # Errors
/// It is refused with this message.
pub fn apply(
    world: &World,
    mut object: Value,
    all: &[&Value],
    gates: capz_api::Gates,
    made: &mut Made,
) -> Result<(), String> {
    let (kind, name) = (text(&object["kind"]), text(&object["metadata"]["name"]));
    let generation = generation(&kind).unwrap();
    if kind == generation.pool {
        let mut owner = machine_owner(&object, all);
        let of_section = all.iter().find(|it| it["kind"] == generation.control_plane);
        let named = owner.machine["clusterName"].as_str().map(str::to_owned);
        owner.cluster = named
            .or(of_section.map(|it| text(&it["metadata"]["name"])))
            .unwrap_or_else(|| DEFAULT_CLUSTER.to_owned());
        if owner.cluster == DEFAULT_CLUSTER && world.get("Cluster", DEFAULT_CLUSTER).is_none() {
            crate::managed::cluster(world, DEFAULT_CLUSTER, json!({}));
            crate::managed::pool(world, DEFAULT_CLUSTER, "system", json!({ "mode": "System" }));
        }
        label(&mut object, &owner.cluster);
        own(&mut object, &machine_pool(world, &kind, &owner));
        admit(world, &kind, object, gates)?;
        made.actors.push(Place { kind, name: owner.name });
        return Ok(());
    }
    let cluster = cluster(world, generation, &kind, &name, all);
    let cluster_name = text(&cluster["metadata"]["name"]);
    label(&mut object, &cluster_name);
    own(&mut object, &cluster);
    complete(&mut object);
    admit(world, &kind, object, gates)?;
    made.actors.push(Place { kind: kind.clone(), name: name.clone() });
    let declares = |kind: &str| all.iter().any(|it| it["kind"] == kind);
    if kind.contains("ASO") && world.get("Secret", CREDENTIAL).is_none() {
        let members = [
            ("AZURE_SUBSCRIPTION_ID", SUBSCRIPTION),
            ("AZURE_TENANT_ID", "t"),
            ("AZURE_CLIENT_ID", "c"),
            ("AZURE_CLIENT_SECRET", "s"),
        ];
        world.put_secret(CREDENTIAL, &members);
    }
    if kind == "AzureManagedControlPlane" {
        if !declares(generation.cluster) {
            let object = part(generation.cluster, &name, json!({}));
            apply(world, object, all, gates, made)?;
        }
        if !declares(generation.pool) {
            let spec = json!({ "name": "system", "mode": "System", "sku": "Standard_D2s_v3" });
            let object = part(generation.pool, &format!("{name}-system"), spec);
            let owner = json!({ "kind": "MachinePool", "metadata": { "name": format!("{name}-system") },
                "spec": { "clusterName": cluster_name, "template": { "spec": {
                    "infrastructureRef": { "kind": generation.pool, "name": format!("{name}-system") } } } } });
            apply(world, object, &[&owner], gates, made)?;
        }
    }
    Ok(())
}

/// Adds what examples leave out.
pub fn complete(object: &mut Value) {
    if object["kind"] == "AzureManagedControlPlane" {
        let defaults = json!({ "location": "eastus", "version": VERSION,
            "identityRef": { "kind": "AzureClusterIdentity", "name": "identity" } });
        object["spec"] = merged(&defaults, &object["spec"]);
    }
}

fn part(kind: &str, name: &str, spec: Value) -> Value {
    json!({ "apiVersion": format!("{INFRASTRUCTURE}/v1beta1"), "kind": kind,
        "metadata": { "name": name, "namespace": NAMESPACE }, "spec": spec })
}

/// The Cluster that refers to this object; without one in the section, a Cluster of the same name.
fn cluster(world: &World, generation: &Generation, kind: &str, name: &str, all: &[&Value]) -> Value {
    let refers = |reference: &Value| {
        reference["kind"] == kind && reference["name"].as_str().is_some_and(|it| it == name)
    };
    let declared = all.iter().find(|it| {
        it["kind"] == "Cluster"
            && (refers(&it["spec"]["controlPlaneRef"]) || refers(&it["spec"]["infrastructureRef"]))
    });
    let cluster_name = declared.map_or(name.to_owned(), |it| text(&it["metadata"]["name"]));
    if let Some(known) = world.get("Cluster", &cluster_name) {
        return known;
    }
    let spec = declared.map_or(
        json!({ "clusterNetwork": { "services": { "cidrBlocks": ["192.168.0.0/16"] } } }),
        |declared| declared["spec"].clone(),
    );
    let reference = |member: &str, kind: &str| {
        let named = spec[member]["name"].as_str().unwrap_or(&cluster_name);
        json!({ "apiGroup": INFRASTRUCTURE, "kind": kind, "name": named })
    };
    let references = json!({ "infrastructureRef": reference("infrastructureRef", generation.cluster),
        "controlPlaneRef": reference("controlPlaneRef", generation.control_plane) });
    let cluster = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
        "metadata": { "name": cluster_name, "namespace": NAMESPACE }, "spec": merged(&spec, &references),
    }));
    cluster.value().clone()
}
