//! The ids of an identity.

use azure_types::ResourceId;

use azure_engine::provider::AzureState;

/// The id of something of this provider in the provider's own spelling.
pub(super) fn own_spelling(id: &ResourceId) -> String {
    id.as_str().replacen("/resourceGroups/", "/resourcegroups/", 1)
}

/// The ids of an identity: constant during its life, new ones after it was deleted and recreated.
pub(super) struct Ids {
    pub(super) principal: String,
    pub(super) client: String,
}

impl Ids {
    pub(super) fn of(azure: &AzureState, id: &ResourceId, incarnation: u64) -> Self {
        Self {
            principal: azure.seed.guid("principal", id.as_str(), incarnation),
            client: azure.seed.guid("client", id.as_str(), incarnation),
        }
    }
}
