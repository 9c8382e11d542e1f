//! The machines of a node pool: the instances of the scale set that Azure creates for it in the nodes' resource group.

use azure_types::ResourceId;
use serde_json::Value;

use crate::claimant::tag;
use crate::document::id_of;
use crate::kind::Kind;
use crate::managed_cluster::ManagedScope;
use crate::observed::Reading;
use crate::profile::provider_id;

/// Tags with which Azure names the pool of a scale set.
const POOL_TAGS: [&str; 2] = ["aks-managed-poolName", "poolName"];

/// The machines of a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Machines {
    /// `spec.providerIDList`, sorted.
    pub provider_ids: Vec<String>,
    /// `status.replicas`.
    pub replicas: i32,
}

/// The list that shows the scale sets of all pools of the cluster.
pub fn scale_sets_reading(scope: ManagedScope<'_>) -> Reading {
    let kind = Kind::named("Microsoft.Compute/virtualMachineScaleSets");
    Reading::List {
        group: scope.node_group(),
        resource_type: kind.resource_type,
        api_version: kind.api_version,
    }
}

/// The scale set of the pool with this name in Azure, among the listed ones; `None` if Azure has not created it yet.
pub fn scale_set_of(pool: &str, listed: &[Value]) -> Option<ResourceId> {
    let is_its = |document: &&Value| POOL_TAGS.iter().any(|key| tag(document, key) == Some(pool));
    listed.iter().find(is_its).and_then(|document| id_of(&document["id"]))
}

/// The list that shows the instances of a scale set.
pub fn instances_reading(scale_set: &ResourceId) -> Reading {
    let kind = Kind::named("Microsoft.Compute/virtualMachineScaleSets/virtualMachines");
    Reading::List {
        group: scale_set.clone(),
        resource_type: kind.resource_type,
        api_version: kind.api_version,
    }
}

/// The machines that this list shows.
pub fn machines(listed: &[Value]) -> Machines {
    let ids = listed.iter().filter_map(|document| document["id"].as_str());
    let mut provider_ids: Vec<String> = ids.map(provider_id).collect();
    provider_ids.sort();
    Machines { replicas: i32::try_from(provider_ids.len()).unwrap_or(i32::MAX), provider_ids }
}
