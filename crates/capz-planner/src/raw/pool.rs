//! The ManagedClustersAgentPool in an AzureASOManagedMachinePool.

use capz_api::azure_aso_managed::RawResource;
use serde_json::{Map, Value, json};

use super::mutation::{is_of, set};
use crate::terminal::Terminal;

/// The kind of node pools.
const KIND: &str = "ManagedClustersAgentPool";
/// The value of [`crate::pool::EXTERNAL_REPLICAS`] on the MachinePool of a pool that Azure's autoscaler scales.
pub const MANAGED_BY_AKS: &str = "aks";

/// What other objects decide about a node pool.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pool<'a> {
    /// The version of Kubernetes of the MachinePool.
    pub version: Option<&'a str>,
    /// The replicas of the MachinePool.
    pub replicas: Option<i64>,
    /// The number of machines that Azure reports, if another party decides it: [`count_of`].
    pub decided_elsewhere: Option<i64>,
}

impl Pool<'_> {
    /// The resources, with the node pool as it is to be.
    ///
    /// # Errors
    /// There is no node pool, or it states another value for a member that the MachinePool decides.
    pub fn mutated(&self, resources: &[RawResource]) -> Result<Vec<Map<String, Value>>, Terminal> {
        let mut all: Vec<Map<String, Value>> = resources.iter().map(|it| it.0.clone()).collect();
        let pool = all.iter_mut().find(|object| is_of(object, KIND)).ok_or_else(|| {
            Terminal::configuration(
                "spec.resources has no ManagedClustersAgentPool of containerservice.azure.com: add the pool itself",
            )
        })?;
        if let Some(version) = self.version.filter(|version| !version.is_empty()) {
            let version = json!(version.trim_start_matches('v'));
            let from = "spec.template.spec.version of the MachinePool";
            set(pool, &["spec", "orchestratorVersion"], version, from)?;
        }
        if let Some(replicas) = self.replicas.filter(|_| self.decided_elsewhere.is_none()) {
            set(pool, &["spec", "count"], json!(replicas), "spec.replicas of the MachinePool")?;
        }
        Ok(all)
    }

    /// The node pool among these resources.
    pub fn of(resources: &[Map<String, Value>]) -> Option<&Map<String, Value>> {
        resources.iter().find(|object| is_of(object, KIND))
    }
}

/// The number of machines in Azure's document of a pool.
pub fn count_of(held: &Value) -> Option<i64> {
    held["properties"]["count"].as_i64()
}

/// What becomes of the annotation [`crate::pool::EXTERNAL_REPLICAS`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicasManager {
    /// It stays as it is.
    Stays,
    /// It is set to [`MANAGED_BY_AKS`].
    Aks,
    /// It is removed.
    Nobody,
}

/// Decides about the annotation of a pool's MachinePool, whose value now is `annotation`.
///
/// # Errors
/// The autoscaler is on, and the annotation names another manager.
pub fn replicas_manager(
    resources: &[RawResource],
    annotation: Option<&str>,
) -> Result<ReplicasManager, Terminal> {
    let pool = resources.iter().find(|object| is_of(&object.0, KIND));
    let is_autoscaled =
        pool.is_some_and(|pool| pool.0.get("spec").is_some_and(|spec| spec["enableAutoScaling"] == true));
    match (is_autoscaled, annotation) {
        (true, None) => Ok(ReplicasManager::Aks),
        (true, Some(MANAGED_BY_AKS)) => Ok(ReplicasManager::Stays),
        (true, Some(other)) => Err(Terminal::configuration(format!(
            "the pool's autoscaler is on (enableAutoScaling), but the annotation {} of its MachinePool is {other:?}: remove the \
             annotation, or turn the autoscaler off",
            crate::pool::EXTERNAL_REPLICAS
        ))),
        (false, Some(MANAGED_BY_AKS)) => Ok(ReplicasManager::Nobody),
        (false, _) => Ok(ReplicasManager::Stays),
    }
}
