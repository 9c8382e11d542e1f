//! Another zone for a machine without a chosen zone if Azure lacks capacity: each zone of its size is tried once.

use azure_types::ResourceId;
use ownership::Evidence;

use super::scope::MachineScope;
use crate::goal::{Goal, OwnershipRule};
use crate::observed::{Observation, ObservedResources};
use crate::plan::failure_cause;
use crate::service;
use crate::sku::Sku;

/// Azure's codes for a lack of capacity.
const NO_ROOM: [&str; 5] = [
    "AllocationFailed",
    "ZonalAllocationFailed",
    "OverconstrainedAllocationRequest",
    "OverconstrainedZonalAllocationRequest",
    "SkuNotAvailable",
];

/// The annotation with the next zone, if the message reports a lack of capacity in the last one; `None` if the owner
/// has chosen the zone, or none is left.
pub fn next_zone(scope: &MachineScope<'_>, size: &Sku, words: &str) -> Option<String> {
    let spec = scope.spec;
    let is_chosen = scope.chosen_zone().is_some()
        || scope.has_provider_id()
        || spec.capacity_reservation_group_id.is_some()
        || spec.virtual_machine_scale_set_id.is_some()
        || scope.cluster.spec.extended_location.is_some();
    if is_chosen || !NO_ROOM.iter().any(|code| words.contains(code)) {
        return None;
    }
    let tried: Vec<&str> = scope.tried_zones().collect();
    let is_known = |zone: &str| scope.cluster.zones.iter().any(|known| known == zone);
    let next = size.zones().find(|zone| is_known(zone) && !tried.contains(zone))?;
    Some(tried.into_iter().chain([next]).collect::<Vec<_>>().join(","))
}

/// The remains of an attempt in another zone that have to be deleted before the machine is created in this one: the
/// failed machine, and the disks that are known to be its own. `None` if nothing is left, or the machine is that of
/// this zone.
pub(super) fn remains(scope: &MachineScope<'_>, observed: &ObservedResources) -> Option<Vec<Goal>> {
    let zone = scope.tried_zones().last().filter(|_| !scope.has_provider_id())?;
    let vm = scope.vm();
    let is_failed = match observed.get(&vm) {
        Observation::Present(held) => {
            held["zones"][0].as_str() != Some(zone) && failure_cause(held).is_some()
        }
        Observation::Absent => false,
        Observation::Unknown => return None,
    };
    // A disk with the name of one of the machine's may be foreign: it is the machine's own if it was attached to it. It
    // is not read again.
    let disks: Vec<ResourceId> = scope
        .disks()
        .into_iter()
        .filter(|id| match observed.get(id) {
            Observation::Present(held) => {
                held["managedBy"].as_str().is_some_and(|by| by.eq_ignore_ascii_case(vm.as_str()))
            }
            Observation::Absent => false,
            Observation::Unknown => is_failed,
        })
        .collect();
    if !is_failed && (observed.get(&vm) != Observation::Absent || disks.is_empty()) {
        return None;
    }
    let mut goals = vec![Goal::gone(vm.clone(), &service::VIRTUAL_MACHINE).forced().after(disks.clone())];
    let attached = Evidence::Refers { resource: vm.to_string() };
    goals.extend(
        disks
            .into_iter()
            .map(|id| Goal::gone(id, &service::DISKS).owned(OwnershipRule::Shown(attached.clone()))),
    );
    Some(goals)
}
