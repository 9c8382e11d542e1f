//! Names of shares, and refusals that are the same for all requests about shares.

use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal};
use azure_types::ResourceId;

use super::super::protocol::said;

pub(super) const RESOURCE_TYPE: &str = "Microsoft.Storage/storageAccounts/fileServices/shares";

/// The refusal of a value that the file service reads from a header.
pub(super) fn bad_header(azure: &AzureState) -> Refusal {
    Code::azures(400, "InvalidHeaderValue")
        .says(said(azure, "The value for one of the HTTP headers is not in the correct format."))
}

/// The refusal of an absent share.
pub(crate) fn absent(azure: &AzureState) -> Refusal {
    Code::azures(404, "ShareNotFound").says(said(azure, "The specified share does not exist."))
}

/// The account that a share is in.
pub(super) fn account_of(share: &ResourceId) -> Option<ResourceId> {
    share.parent()?.parent()
}
