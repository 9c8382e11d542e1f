//! Names of registries: they are hosts, so no two registries of any subscription share one.

use azure_types::ResourceId;
use serde_json::Value;

use super::login_server;
use crate::name_availability;
use azure_engine::provider::{AzureState, ProviderCall};
use azure_engine::refusal::{Code, Handled, Refusal, Result};

/// Azure CLI's users quote code and words.
const IN_USE: Code = Code::azures(409, "AlreadyInUse");

/// Whether a name is valid for a registry.
pub(super) fn fits(name: &str) -> bool {
    (5..=50).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric())
}

fn invalid_words(name: &str) -> String {
    format!(
        "The registry name '{name}' is invalid: it may have alphanumeric characters only, and must have between 5 and 50 \
         of them."
    )
}

/// The refusal of an invalid registry name.
pub(super) fn invalid(name: &str) -> Refusal {
    Code::ours(400, "InvalidResourceName").says(invalid_words(name))
}

/// Whether a new registry may have the name.
pub(super) fn check_free(azure: &AzureState, id: &ResourceId) -> Result<()> {
    match login_server::find(azure, id.name()) {
        None => Ok(()),
        Some(_) => Err(IN_USE
            .says(format_args!("The registry DNS name {} is already in use.", login_server::of(id.name())))),
    }
}

/// POST `checkNameAvailability`.
pub(super) fn availability(azure: &mut AzureState, call: &ProviderCall<'_>) -> Handled<Value> {
    let name = name_availability::asked(call)?;
    let taken = login_server::find(azure, name).is_some();
    Some(Ok(match (fits(name), taken) {
        (false, _) => name_availability::refused("Invalid", invalid_words(name)),
        (true, true) => {
            name_availability::refused("AlreadyExists", format!("The registry {name} is already in use."))
        }
        (true, false) => name_availability::free(),
    }))
}
