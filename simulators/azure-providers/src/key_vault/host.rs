//! Vaults by their names, which are hosts: no two vaults of any subscription share one.

use azure_engine::provider::{AzureState, Record};

/// The type of vaults.
pub(super) const RESOURCE_TYPE: &str = "Microsoft.KeyVault/vaults";

/// The suffix of vaults' hosts.
pub(super) const SUFFIX: &str = "vault.azure.net";

/// The vault of a name, in whatever subscription.
pub(super) fn find<'a>(azure: &'a AzureState, name: &str) -> Option<&'a Record> {
    azure.store.of_type(RESOURCE_TYPE).find(|record| record.id.name().eq_ignore_ascii_case(name))
}

/// The host of the vault of a name.
pub(super) fn of(name: &str) -> String {
    format!("{}.{SUFFIX}", name.to_ascii_lowercase())
}

/// The base URI of a vault's secrets.
pub(super) fn uri(vault: &Record) -> String {
    format!("https://{}/", of(vault.id.name()))
}
