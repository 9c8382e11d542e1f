//! The clusters that Azure manages and that manifests declare, each object as it is after admission.

use serde_json::Value;

use super::finder::Finder;
use super::own_pools::Pool;
use crate::plan::values::{beside_each_other, ranges, text, title};

/// A generation of kinds: members of objects, or whole resources of Azure Service Operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Generation {
    /// AzureManagedCluster, AzureManagedControlPlane, AzureManagedMachinePool.
    Members,
    /// AzureASOManagedCluster, AzureASOManagedControlPlane, AzureASOManagedMachinePool.
    Resources,
}

impl Generation {
    const ALL: [Self; 2] = [Self::Members, Self::Resources];

    /// The kinds of the cluster, its control plane and its pools.
    pub const fn kinds(self) -> [&'static str; 3] {
        match self {
            Self::Members => ["AzureManagedCluster", "AzureManagedControlPlane", "AzureManagedMachinePool"],
            Self::Resources => {
                ["AzureASOManagedCluster", "AzureASOManagedControlPlane", "AzureASOManagedMachinePool"]
            }
        }
    }
}

/// A cluster that Azure manages, with everything that belongs to it.
#[derive(Debug)]
pub struct Managed {
    /// The generation of its kinds.
    pub generation: Generation,
    /// The name of the Cluster.
    pub cluster: String,
    /// `clusterNetwork.services.cidrBlocks` of the Cluster.
    pub services: Vec<String>,
    /// `clusterNetwork.pods.cidrBlocks` of the Cluster.
    pub pods: Vec<String>,
    /// `clusterNetwork.apiServerPort` of the Cluster.
    pub port: Option<i32>,
    /// Its infrastructure, if it is declared.
    pub infrastructure: Option<Value>,
    /// Its control plane.
    pub control_plane: Value,
    /// Its node pools.
    pub pools: Vec<NodePool>,
    /// Pools of self-managed machines that join it.
    pub joining: Vec<Pool>,
}

/// A node pool.
#[derive(Debug)]
pub struct NodePool {
    /// The pool.
    pub object: Value,
    /// The MachinePool that owns it.
    pub owner: Value,
}

/// Finds the clusters, and notes what belongs to none.
pub fn find(finder: &mut Finder<'_>) -> Vec<Managed> {
    let mut all = Vec::new();
    for generation in Generation::ALL {
        let [infrastructure, control_plane, pool] = generation.kinds();
        for object in finder.of(control_plane) {
            all.extend(cluster(finder, generation, object));
        }
        for kind in [infrastructure, pool] {
            note_unused(finder, kind, &all);
        }
    }
    all
}

fn cluster(finder: &mut Finder<'_>, generation: Generation, control_plane: &Value) -> Option<Managed> {
    let [infrastructure, ..] = generation.kinds();
    let owner = finder.cluster_of(control_plane, "controlPlaneRef");
    if owner.is_none() {
        finder.notes.push(format!(
            "no Cluster refers to {}: nothing is created for it before, and a Cluster of the same name is assumed",
            title(control_plane)
        ));
    }
    let nothing = Value::Null;
    let owner = owner.unwrap_or(&nothing);
    let name = match text(owner, "/metadata/name") {
        "" => text(control_plane, "/metadata/name"),
        name => name,
    };
    let named = match text(owner, "/spec/infrastructureRef/name") {
        "" => name,
        named => named,
    };
    let infrastructure = finder.beside(control_plane, infrastructure, named).cloned();
    let infrastructure = infrastructure.and_then(|object| finder.admit(object, None));
    let control_plane = finder.admit(control_plane.clone(), None)?;
    let pools = pools(finder, generation, &control_plane, name);
    let mut joining = finder.pools_of(&control_plane, name);
    if generation == Generation::Resources {
        for pool in joining.drain(..) {
            finder.refuse(
                &pool.object,
                "its Cluster has an AzureASOManagedControlPlane: pools of self-managed machines join clusters with an \
                 AzureCluster or an AzureManagedControlPlane alone",
            );
        }
    }
    let port = owner.pointer("/spec/clusterNetwork/apiServerPort").and_then(Value::as_i64);
    Some(Managed {
        generation,
        cluster: name.to_owned(),
        services: ranges(owner, "services"),
        pods: ranges(owner, "pods"),
        port: port.and_then(|port| port.try_into().ok()),
        infrastructure,
        control_plane,
        pools,
        joining,
    })
}

fn pools(
    finder: &mut Finder<'_>,
    generation: Generation,
    control_plane: &Value,
    cluster: &str,
) -> Vec<NodePool> {
    let [.., kind] = generation.kinds();
    let mut pools = Vec::new();
    for owner in finder.of("MachinePool") {
        if text(owner, "/spec/clusterName") != cluster || !beside_each_other(owner, control_plane) {
            continue;
        }
        let reference =
            |member: &str| text(owner, &format!("/spec/template/spec/infrastructureRef/{member}"));
        let pool = finder.beside(owner, kind, reference("name")).filter(|_| reference("kind") == kind);
        let Some(object) = pool.and_then(|pool| finder.admit(pool.clone(), None)) else { continue };
        pools.push(NodePool { object, owner: owner.clone() });
    }
    // The order in which the controllers see them.
    pools.sort_by_key(|pool| text(&pool.object, "/metadata/name").to_owned());
    pools
}

/// Notes the objects of a kind that belong to none of these clusters.
fn note_unused(finder: &mut Finder<'_>, kind: &str, clusters: &[Managed]) {
    let used = |object: &Value| {
        let title = title(object);
        let all = clusters
            .iter()
            .flat_map(|it| it.infrastructure.iter().chain(it.pools.iter().map(|it| &it.object)));
        all.into_iter().any(|used| self::title(used) == title)
    };
    for object in finder.of(kind) {
        let title = title(object);
        if !used(object) && !finder.refused.iter().any(|(refused, _)| *refused == title) {
            let missing = if kind.ends_with("Pool") { "no MachinePool of a cluster" } else { "no Cluster" };
            finder.notes.push(format!(
                "{title}: {missing} with an {} in the manifests refers to it: it is not planned",
                kind.replace("MachinePool", "ControlPlane").replace("ManagedCluster", "ManagedControlPlane")
            ));
        }
    }
}
