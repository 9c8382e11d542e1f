//! Registries by their names, which are hosts, called login servers: no two registries of any subscription share one.

use azure_engine::provider::{AzureState, Record};

/// The type of registries.
pub(super) const RESOURCE_TYPE: &str = "Microsoft.ContainerRegistry/registries";

/// The suffix of login servers.
pub(super) const SUFFIX: &str = "azurecr.io";

/// The registry of a name, in whatever subscription.
pub(super) fn find<'a>(azure: &'a AzureState, name: &str) -> Option<&'a Record> {
    azure.store.of_type(RESOURCE_TYPE).find(|record| record.id.name().eq_ignore_ascii_case(name))
}

/// The login server of the registry of a name.
pub(super) fn of(name: &str) -> String {
    format!("{}.{SUFFIX}", name.to_ascii_lowercase())
}
