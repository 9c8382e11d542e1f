//! The properties of a node pool.

use std::collections::BTreeMap;

use capz_api::Quantity;
use capz_api::azure_managed_machine_pool::{AzureManagedMachinePoolSpec, PoolScaling};
use serde_json::{Value, json};

use super::node_config;
use crate::document::{items, list, text, without_nulls};
use crate::goal::GoalError;
use crate::kubernetes_version::KubernetesVersion;
use crate::managed_cluster::{ManagedScope, higher};
use crate::patches;

/// The prefix of labels and taints that Azure sets itself.
pub(super) const AZURES_OWN: &str = "kubernetes.azure.com/";
const SYSTEM: &str = "System";

/// A node pool: its AzureManagedMachinePool after defaulting, and the MachinePool that owns it.
#[derive(Debug, Clone, Copy)]
pub struct AgentPool<'a> {
    /// The name of the AzureManagedMachinePool.
    pub name: &'a str,
    /// Its specification.
    pub spec: &'a AzureManagedMachinePoolSpec,
    /// Its annotations.
    pub annotations: &'a BTreeMap<String, String>,
    /// The version of Kubernetes, from the MachinePool.
    pub version: Option<&'a str>,
    /// The desired number of machines, from the MachinePool.
    pub replicas: Option<i32>,
}

impl<'a> AgentPool<'a> {
    /// The name of the node pool in Azure.
    pub fn azure_name(&self) -> &'a str {
        text(&self.spec.name).unwrap_or(self.name)
    }
}

/// The pools with which a managed cluster is created.
///
/// # Errors
/// A cluster cannot be created with these pools.
pub fn profiles(scope: ManagedScope<'_>, pools: &[AgentPool<'_>]) -> Result<Value, GoalError> {
    if !pools.iter().any(|pool| pool.spec.mode.as_deref() == Some(SYSTEM)) {
        return Err(GoalError::NotNow(format!(
            "failed to fetch azuremanagedMachine pool with mode {SYSTEM}, require at least 1 system node pool: create an \
             AzureManagedMachinePool of this cluster with spec.mode: {SYSTEM}, and its MachinePool"
        )));
    }
    let control_plane = text(&scope.spec.version).and_then(|version| KubernetesVersion::parse(version).ok());
    let is_newer = |pool: &&AgentPool<'_>| {
        let version = pool.version.and_then(|version| KubernetesVersion::parse(version).ok());
        version > control_plane
    };
    if let Some(pool) = pools.iter().find(is_newer) {
        return Err(GoalError::NotNow(format!(
            "the version {} of the MachinePool of AzureManagedMachinePool {} is higher than that of the control plane, {}: lower the \
             one, or raise the other",
            pool.version.unwrap_or_default(),
            pool.name,
            scope.spec.version.as_deref().unwrap_or_default()
        )));
    }
    let mut sorted: Vec<&AgentPool<'_>> = pools.iter().collect();
    sorted.sort_by_key(|pool| pool.azure_name());
    let profile = |pool: &AgentPool<'_>| {
        let mut profile = document(scope, pool, None)?["properties"].take();
        profile["name"] = json!(pool.azure_name());
        Ok(profile)
    };
    sorted.into_iter().map(profile).collect()
}

/// The document of a pool. `held` are the observed properties.
///
/// # Errors
/// A patch cannot be read.
pub(super) fn document(
    scope: ManagedScope<'_>,
    pool: &AgentPool<'_>,
    held: Option<&Value>,
) -> Result<Value, GoalError> {
    let mut document = json!({ "properties": properties(scope, pool, held) });
    let patches = pool.spec.aso_managed_clusters_agent_pool_patches.as_deref();
    patches::apply("ManagedClustersAgentPool", "asoManagedClustersAgentPoolPatches", patches, &mut document)?;
    // Taints that Azure sets itself stay.
    let azures = held
        .into_iter()
        .flat_map(|held| list(&held["nodeTaints"]))
        .filter(|taint| taint.as_str().is_some_and(|taint| taint.starts_with(AZURES_OWN)));
    if let Some(taints) = document["properties"]["nodeTaints"].as_array_mut() {
        taints.extend(azures.cloned());
    }
    Ok(document)
}

/// The properties of a pool. `held` are the observed ones.
fn properties(scope: ManagedScope<'_>, pool: &AgentPool<'_>, held: Option<&Value>) -> Value {
    let spec = pool.spec;
    let scaling = scaling(pool, held);
    let disk = spec.os_disk_size_gb.filter(|size| *size > 0);
    without_nulls(json!({
        "count": count(pool, held),
        "orchestratorVersion": version(scope, pool, held),
        "vmSize": text(&spec.sku),
        "osType": text(&spec.os_type),
        "osDiskType": text(&spec.os_disk_type),
        "osDiskSizeGB": disk,
        "kubeletDiskType": text(&spec.kubelet_disk_type),
        "mode": text(&spec.mode),
        "maxPods": spec.max_pods,
        "availabilityZones": items(&spec.availability_zones),
        "scaleSetPriority": text(&spec.scale_set_priority),
        "scaleDownMode": text(&spec.scale_down_mode),
        "spotMaxPrice": spec.spot_max_price.as_ref().and_then(price),
        "enableAutoScaling": scaling.is_some(),
        "minCount": scaling.and_then(|scaling| scaling.min_size),
        "maxCount": scaling.and_then(|scaling| scaling.max_size),
        "nodeTaints": taints(spec),
        "nodeLabels": spec.node_labels,
        "tags": spec.additional_tags,
        "enableUltraSSD": spec.enable_ultra_ssd,
        "enableNodePublicIP": spec.enable_node_public_ip,
        "enableFIPS": spec.enable_fips,
        "enableEncryptionAtHost": spec.enable_encryption_at_host,
        "nodePublicIPPrefixID": text(&spec.node_public_ip_prefix_id),
        "vnetSubnetID": scope.subnet(text(&spec.subnet_name)).as_str(),
        "kubeletConfig": spec.kubelet_config.as_ref().map(node_config::kubelet),
        "linuxOSConfig": spec.linux_os_config.as_ref().map(node_config::linux),
        "type": "VirtualMachineScaleSets",
    }))
}

/// The bounds of Azure's autoscaler. Azure enables it only for a pool within its bounds, and does not scale by the same
/// write: a pool outside of them is scaled first.
fn scaling<'a>(pool: &AgentPool<'a>, held: Option<&Value>) -> Option<&'a PoolScaling> {
    let is_enabled = held.is_none_or(|held| held["enableAutoScaling"] == true);
    let is_within = || held.is_some_and(|held| held["count"] == count(pool, Some(held)));
    pool.spec.scaling.as_ref().filter(|_| is_enabled || is_within())
}

/// The number of machines: the MachinePool's, or Azure's while its autoscaler decides.
fn count(pool: &AgentPool<'_>, held: Option<&Value>) -> i64 {
    let declared = i64::from(pool.replicas.unwrap_or(1));
    let Some(scaling) = pool.spec.scaling.as_ref() else { return declared };
    let (least, most) = (scaling.min_size.unwrap_or_default(), scaling.max_size.unwrap_or(i64::MAX));
    let current = held.and_then(|held| held["count"].as_i64()).unwrap_or(declared);
    // Azure refuses a number outside of the bounds.
    current.min(most).max(least)
}

/// The version: the MachinePool's, or that of the control plane if Azure upgrades it by itself. It is never lower than
/// the pool's.
fn version(scope: ManagedScope<'_>, pool: &AgentPool<'_>, held: Option<&Value>) -> Option<String> {
    let declared = pool.version.into_iter().chain(scope.auto_upgrade_version);
    higher(declared.clone())?;
    let known = held.into_iter().flat_map(|held| {
        ["orchestratorVersion", "currentOrchestratorVersion"].into_iter().filter_map(|it| held[it].as_str())
    });
    higher(declared.chain(known))
}

fn taints(spec: &AzureManagedMachinePoolSpec) -> Vec<String> {
    let part = |text: &Option<String>| text.clone().unwrap_or_default();
    let declared = spec.taints.iter().flatten();
    declared
        .map(|taint| format!("{}={}:{}", part(&taint.key), part(&taint.value), part(&taint.effect)))
        .collect()
}

/// The price as a number, whole if it can be.
fn price(price: &Quantity) -> Option<Value> {
    let price = price.as_f64()?;
    // Azure answers with whole numbers where a price is one.
    #[allow(clippy::cast_possible_truncation)]
    let whole = price as i64;
    Some(if price.fract() == 0.0 { json!(whole) } else { json!(price) })
}
