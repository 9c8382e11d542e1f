//! The end of operations on machines and instances.

use azure_types::ResourceId;

use crate::compute::machine::disk_change;
use crate::compute::tables::type_names::MACHINE_TYPE;
use azure_engine::provider::AzureState;
use azure_engine::store::State;

/// Ends the creation or change of a machine or an instance.
pub(crate) fn settle(azure: &mut AzureState, id: &ResourceId, failed: bool) {
    disk_change::end(azure, id, failed);
    let Some(record) = azure.store.get_mut(id).filter(|record| record.state != State::Deleting) else {
        return;
    };
    record.state = if failed { State::Failed } else { State::Succeeded };
    if !failed && record.hidden.get("power").is_none() {
        record.hidden.insert("power".into(), "running".into());
        // Recorded: the end of a machine's creation is a change of its own, that of an instance's is not.
        record.version += u64::from(record.resource_type.name() == MACHINE_TYPE);
    }
    azure.revision += 1;
}
