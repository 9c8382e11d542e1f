//! Soft delete ("Azure Key Vault soft-delete overview"): the retention of deleted items and vaults, and the vaults that
//! can be recovered.

use serde_json::Value;

use azure_engine::provider::{AzureState, Record};

/// The type of deleted vaults.
pub(super) const RESOURCE_TYPE: &str = "Microsoft.KeyVault/deletedVaults";

/// Whether a vault has purge protection.
pub(super) fn is_protected(vault: &Value) -> bool {
    vault.pointer("/properties/enablePurgeProtection").and_then(Value::as_bool) == Some(true)
}

/// The retention of deleted items in days.
pub(super) fn retention(vault: &Value) -> i64 {
    vault.pointer("/properties/softDeleteRetentionInDays").and_then(Value::as_i64).unwrap_or(90)
}

/// The deleted vault of a name, in whatever subscription.
pub(super) fn find<'a>(azure: &'a AzureState, name: &str) -> Option<&'a Record> {
    azure.store.of_type(RESOURCE_TYPE).find(|record| record.id.name().eq_ignore_ascii_case(name))
}

/// Removes the entry of a deleted vault: it was recovered or purged.
pub(super) fn forget(azure: &mut AzureState, name: &str) {
    let found = find(azure, name).map(|record| record.id.clone());
    if let Some(id) = found {
        azure.remove(&id);
    }
}
