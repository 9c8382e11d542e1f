//! Reconciles the machines of a scale set with its capacity: the zone of new ones, and which ones are deleted first.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::scale_set::flexible;
use crate::compute::scale_set::flexible_member;
use crate::compute::scale_set::members;
use crate::compute::scale_set::uniform;
use azure_engine::document::{at, flag, items, number};
use azure_engine::provider::{AzureState, Record};
use azure_engine::store::State;

/// Creates missing machines, or marks the surplus for deletion.
pub(crate) fn reconcile(azure: &mut AzureState, id: &ResourceId) {
    let Some(set) = azure.store.get(id) else { return };
    let capacity = number(&set.body, "sku/capacity").unwrap_or_default() as usize;
    let zones: Vec<String> =
        items(&set.body, "zones").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let flexible = flexible::is_flexible(set);
    if flexible && at(&set.body, "properties/virtualMachineProfile/networkProfile").is_none() {
        return;
    }
    // The zones stay in balance; within one, the newest machine goes unless the policy says otherwise.
    let oldest_first =
        items(&set.body, "properties/scaleInPolicy/rules").iter().any(|rule| rule == "OldestVM");
    let zone_of =
        |machine: &Record| items(&machine.body, "zones").first().and_then(Value::as_str).map(str::to_owned);
    let mut live: Vec<&Record> = members::all(azure, id);
    live.retain(|machine| machine.state != State::Deleting);
    let mut by_zone: BTreeMap<Option<String>, usize> = BTreeMap::new();
    for machine in &live {
        *by_zone.entry(zone_of(machine)).or_default() += 1;
    }
    if oldest_first {
        live.reverse();
    }
    let mut going = Vec::new();
    while live.len() > capacity {
        let free = live.iter().enumerate().filter(|(_, machine)| !protects(machine, "protectFromScaleIn"));
        let next = free.max_by_key(|(_, machine)| by_zone.get(&zone_of(machine)).copied());
        // Where all that are left are protected, none is deleted.
        let Some(gone) = next.map(|(at, _)| at).map(|at| live.remove(at)) else { break };
        *by_zone.entry(zone_of(gone)).or_default() -= 1;
        going.push(gone.id.clone());
    }
    let missing = capacity.saturating_sub(live.len());
    going.iter().for_each(|gone| azure.doom(gone));
    for _ in 0..missing {
        // The first of the zones with the fewest machines.
        let count = |zone: &&String| by_zone.get(&Some((*zone).clone())).copied().unwrap_or_default();
        let zone = zones.iter().min_by_key(count).cloned();
        *by_zone.entry(zone.clone()).or_default() += 1;
        if flexible { flexible_member::create(azure, id, zone) } else { uniform::create(azure, id, zone) }
    }
}

/// Whether an instance's protection policy has this member set.
pub(crate) fn protects(instance: &Record, member: &str) -> bool {
    flag(&instance.body, &format!("properties/protectionPolicy/{member}"))
}

/// Lowers the capacity by the number of machines that were deleted one by one.
pub(crate) fn lower(azure: &mut AzureState, id: &ResourceId, by: u64) {
    let Some(record) = azure.store.get_mut(id) else { return };
    record.version += 1;
    if let Some(capacity) = record.body.get_mut("sku").and_then(|sku| sku.get_mut("capacity")) {
        let left = capacity.as_u64().unwrap_or_default().saturating_sub(by);
        *capacity = left.into();
    }
}
