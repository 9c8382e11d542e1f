//! The GUID that network resources have.

use azure_engine::document::Object;
use azure_engine::provider::{AzureState, Proposal};

/// Gives a resource its GUID, which it keeps for life.
pub(crate) fn resource_guid(azure: &AzureState, proposal: &Proposal<'_>, properties: &mut Object) {
    let guid = proposal.old_member("properties/resourceGuid").cloned().unwrap_or_else(|| {
        azure.seed.guid("resource", proposal.id.as_str(), azure.store.incarnation(proposal.id)).into()
    });
    properties.insert("resourceGuid".into(), guid);
}
