//! All machines of a scale set.

use azure_types::ResourceId;

use crate::compute::scale_set::flexible;
use crate::compute::tables::type_names::INSTANCE_TYPE;
use azure_engine::provider::AzureState;
use azure_engine::store::State;

/// The ids of all instances of a set, deleted ones left out.
pub(crate) fn instances(azure: &AzureState, id: &ResourceId) -> Vec<ResourceId> {
    if azure.store.get(id).is_some_and(flexible::is_flexible) {
        return flexible::members(azure, id);
    }
    azure
        .store
        .of_type_below(INSTANCE_TYPE, id)
        .into_iter()
        .filter(|instance| instance.state != State::Deleting)
        .map(|instance| instance.id.clone())
        .collect()
}
