//! All machines of a scale set.

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::scale_set::flexible;
use crate::compute::tables::type_names::INSTANCE_TYPE;
use azure_engine::provider::{AzureState, Record};
use azure_engine::store::State;

/// The machines of a set, be they instances or machines of their own, oldest first.
pub(crate) fn all<'a>(azure: &'a AzureState, set: &ResourceId) -> Vec<&'a Record> {
    let mut machines = azure.store.of_type_below(INSTANCE_TYPE, set);
    machines.extend(flexible::all_members(azure, set));
    machines.sort_by_key(|machine| {
        let order = machine.hidden.get("order").and_then(Value::as_u64);
        (machine.id.name().parse::<u64>().ok(), machine.created, order)
    });
    machines
}

/// The ids of those that are not going.
pub(crate) fn instances(azure: &AzureState, set: &ResourceId) -> Vec<ResourceId> {
    let live = all(azure, set).into_iter().filter(|machine| machine.state != State::Deleting);
    live.map(|machine| machine.id.clone()).collect()
}
