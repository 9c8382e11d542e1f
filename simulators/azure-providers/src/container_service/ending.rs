//! Ends operations on a cluster or a pool before their time.

use azure_engine::operation::Status;
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal};
use azure_engine::store::State;
use azure_types::ResourceId;

/// Ends the operation with a failure.
pub(super) fn fail(azure: &mut AzureState, id: &ResourceId, refusal: Refusal) {
    let running = azure.store.get(id).and_then(|record| record.operation.clone());
    if running.is_some_and(|key| azure.operations.set_ending(&key, Status::Failed(refusal))) {
        return;
    }
    if let Some(record) = azure.store.get_mut(id) {
        record.state = State::Failed;
    }
}

/// Aborts the operation.
pub(super) fn abort(azure: &mut AzureState, id: &ResourceId) {
    let running = azure.store.get(id).and_then(|record| azure.operations.running(record.operation.as_ref()));
    if let Some(key) = running.map(|running| running.key.clone()) {
        azure.end(
            &key,
            Status::Canceled(
                Code::ours(409, "OperationCanceled").says("The operation was canceled by the user."),
            ),
        );
    }
}

/// Marks an aborted resource.
pub(super) fn aborted(azure: &mut AzureState, id: &ResourceId) {
    if let Some(record) = azure.store.get_mut(id) {
        record.state = State::Canceled;
    }
}
