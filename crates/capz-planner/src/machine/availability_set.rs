//! The availability set of a machine in a region without zones.

use azure_types::ResourceId;
use serde_json::json;

use super::names;
use super::scope::{GROUP_LABELS, MachineScope};
use crate::goal::{Goal, GoalError};
use crate::machine_inputs::MachineInputs;
use crate::service;
use crate::sku::{ALIGNED, AVAILABILITY_SETS, capability};

/// The set, if the machine is in one: not where zones, spot prices, the edge zone or a scale set decide its place, and
/// not for a worker without a group.
pub(super) fn id(scope: &MachineScope<'_>) -> Option<ResourceId> {
    let placed = !scope.cluster.zones.is_empty()
        || scope.spec.spot_vm_options.is_some()
        || scope.cluster.spec.extended_location.is_some()
        || scope.zone().is_some()
        || scope.spec.virtual_machine_scale_set_id.is_some();
    if placed {
        return None;
    }
    let group = if scope.is_control_plane() {
        "control-plane"
    } else {
        GROUP_LABELS.iter().find_map(|label| scope.owner.labels.get(*label))?
    };
    Some(scope.cluster.compute("availabilitySets", &names::availability_set(scope.cluster.cluster, group)))
}

pub(super) fn goal(scope: &MachineScope<'_>, inputs: &MachineInputs) -> Result<Option<Goal>, GoalError> {
    let Some(id) = id(scope) else { return Ok(None) };
    let domains = inputs
        .skus
        .get(ALIGNED, AVAILABILITY_SETS)
        .ok()
        .and_then(|sku| sku.capability(capability::MAX_FAULT_DOMAINS)?.parse::<u32>().ok())
        .ok_or_else(|| {
            GoalError::NotNow(format!(
                "unable to get required availability set SKU capability {}",
                capability::MAX_FAULT_DOMAINS
            ))
        })?;
    let document = json!({
        "location": scope.cluster.location(),
        "sku": { "name": ALIGNED },
        // Machines with different tags share it.
        "tags": scope.cluster.tags(Some("common"), Some(id.name())),
        "properties": { "platformFaultDomainCount": domains },
    });
    Ok(Some(Goal::new(id, &service::AVAILABILITY_SET, document).once()))
}
