//! Which tags were applied before, as an annotation of the AzureMachine remembers it: without it nobody could tell what is
//! wanted no longer from what somebody else added.

use capz_api::Tags;
use serde_json::json;

use super::MachineScope;

/// Additional tags of the virtual machine, and of what belongs to it: `{"<key>": "<value>"}`.
pub const TAGS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-tags-vm";

/// The annotation once the tags are applied.
pub fn remembered_tags(scope: &MachineScope<'_>) -> String {
    json!(scope.additional_tags()).to_string()
}

/// The tags that an annotation remembers. One that cannot be read remembers nothing: what it was about stays in Azure.
pub(crate) fn applied_tags(memory: Option<&String>) -> Tags {
    memory.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}
