//! How the provisioning of an instance ends.

use azure_types::ResourceId;

use azure_engine::provider::AzureState;
use azure_engine::store::State;

/// Ends whatever an instance was in.
pub(crate) fn settle(azure: &mut AzureState, id: &ResourceId, failed: bool) {
    let Some(record) = azure.store.get_mut(id).filter(|record| record.state != State::Deleting) else {
        return;
    };
    if failed {
        record.state = State::Failed;
    } else {
        record.state = State::Succeeded;
        if record.hidden.get("power").is_none() {
            record.hidden.insert("power".into(), "running".into());
        }
    }
    azure.revision += 1;
}
