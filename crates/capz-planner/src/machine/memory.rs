//! Which tags were applied before, as an annotation of the AzureMachine remembers it: without it nobody could tell what is
//! wanted no longer from what somebody else added.

use capz_api::Tags;
use serde_json::{Value, json};

use super::MachineScope;
use crate::goal::Withdrawn;

/// Additional tags of the virtual machine: `{"<key>": "<value>"}`.
pub const TAGS: &str = "sigs.k8s.io/cluster-api-provider-azure-last-applied-tags-vm";

/// The annotation once the tags are applied.
pub fn remembered_tags(scope: &MachineScope<'_>) -> String {
    json!(scope.additional_tags()).to_string()
}

/// Tags that are wanted no longer, and are still as we applied them.
pub(super) fn withdrawn(scope: &MachineScope<'_>, held: &Value) -> Vec<Withdrawn> {
    let wanted = scope.tags(Some(scope.role()), &scope.vm_name());
    tags_withdrawn(scope.annotations.get(TAGS).map(String::as_str), &wanted, held)
}

/// Tags that an annotation remembers, that are wanted no longer, and that are still as they were applied.
pub(crate) fn tags_withdrawn(memory: Option<&str>, wanted: &Tags, held: &Value) -> Vec<Withdrawn> {
    let applied: Tags = memory.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
    let is_wanted = |key: &str| wanted.keys().any(|known| known.eq_ignore_ascii_case(key));
    let is_held = |key: &str, value: &str| {
        held["tags"].as_object().is_some_and(|tags| {
            tags.iter().any(|(known, held)| known.eq_ignore_ascii_case(key) && held.as_str() == Some(value))
        })
    };
    applied
        .into_iter()
        .filter(|(key, value)| !is_wanted(key) && is_held(key, value))
        .map(|(key, _)| Withdrawn::Tag(key))
        .collect()
}
