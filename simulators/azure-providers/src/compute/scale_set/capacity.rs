//! As many machines as a scale set's capacity says: which zone a new one goes to, and which machine
//! goes first.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::scale_set::flexible;
use crate::compute::scale_set::flexible_member;
use crate::compute::scale_set::uniform;
use crate::compute::tables::type_names::INSTANCE_TYPE;
use azure_engine::document::{at, items};
use azure_engine::provider::{AzureState, Record};
use azure_engine::store::State;

/// A machine of a set.
struct Member {
    zone: String,
    /// Higher for younger machines.
    age: u64,
    protected: bool,
    id: ResourceId,
}

/// Makes the machines that are missing, or marks the surplus for deletion.
pub(crate) fn reconcile(azure: &mut AzureState, id: &ResourceId) {
    let Some(set) = azure.store.get(id) else { return };
    let capacity = at(&set.body, "sku/capacity").and_then(Value::as_u64).unwrap_or_default() as usize;
    let zones: Vec<String> =
        items(&set.body, "zones").iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let flexible = flexible::is_flexible(set);
    let has_model = at(&set.body, "properties/virtualMachineProfile/networkProfile").is_some();
    // The zones stay in balance; within one, the newest machine goes unless the policy says otherwise.
    let oldest_first = at(&set.body, "properties/scaleInPolicy/rules")
        .and_then(Value::as_array)
        .is_some_and(|rules| rules.iter().any(|rule| rule == "OldestVM"));
    let rank = |age: u64| if oldest_first { u64::MAX - age } else { age };
    if flexible && !has_model {
        return;
    }
    let mut live = members(azure, id, flexible);
    let mut by_zone: BTreeMap<String, usize> = BTreeMap::new();
    for member in &live {
        *by_zone.entry(member.zone.clone()).or_default() += 1;
    }
    while live.len() > capacity {
        let going = live
            .iter()
            .enumerate()
            .filter(|(_, member)| !member.protected)
            .max_by_key(|(_, member)| (by_zone.get(&member.zone).copied(), rank(member.age)))
            .map(|(at, _)| at);
        // Where all that are left are protected, nobody goes.
        let Some(gone) = going.map(|at| live.swap_remove(at)) else { break };
        *by_zone.entry(gone.zone).or_default() -= 1;
        azure.doom(&gone.id);
    }
    for _ in live.len()..capacity {
        // The first of the zones with the fewest machines.
        let zone = zones.iter().min_by_key(|zone| by_zone.get(*zone).copied().unwrap_or_default()).cloned();
        if let Some(zone) = &zone {
            *by_zone.entry(zone.clone()).or_default() += 1;
        }
        if flexible {
            flexible_member::create(azure, id, zone);
        } else {
            uniform::create(azure, id, zone);
        }
    }
}

fn members(azure: &AzureState, id: &ResourceId, flexible: bool) -> Vec<Member> {
    let member = |age: u64, record: &Record| Member {
        zone: items(&record.body, "zones").first().and_then(Value::as_str).unwrap_or_default().to_owned(),
        age,
        protected: protects(record, "protectFromScaleIn"),
        id: record.id.clone(),
    };
    if flexible {
        let ids = flexible::members(azure, id);
        let records = ids.iter().filter_map(|id| azure.store.get(id));
        return records.zip(0..).map(|(record, age)| member(age, record)).collect();
    }
    let instances = azure.store.of_type_below(INSTANCE_TYPE, id);
    instances
        .into_iter()
        .filter(|instance| instance.state != State::Deleting)
        .map(|instance| member(instance.id.name().parse().unwrap_or_default(), instance))
        .collect()
}

/// Whether an instance's protection policy says so.
pub(crate) fn protects(instance: &Record, member: &str) -> bool {
    at(&instance.body, &format!("properties/protectionPolicy/{member}")) == Some(&Value::Bool(true))
}

/// Lowers the capacity by the number of machines that were taken out one by one.
pub(crate) fn lower(azure: &mut AzureState, id: &ResourceId, by: u64) {
    let Some(record) = azure.store.get_mut(id) else { return };
    record.version += 1;
    if let Some(capacity) = record.body.get_mut("sku").and_then(|sku| sku.get_mut("capacity")) {
        let left = capacity.as_u64().unwrap_or_default().saturating_sub(by);
        *capacity = left.into();
    }
}
