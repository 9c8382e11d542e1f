//! Names of vaults: they are hosts, so no two vaults of any subscription share one.

use azure_types::ResourceId;
use serde_json::Value;

use super::{host, soft_delete};
use crate::name_availability;
use azure_engine::provider::{AzureState, ProviderCall};
use azure_engine::refusal::{Code, Handled, Refusal, Result};

/// "Azure Key Vault REST API Error Codes".
const ALREADY_EXISTS: Code = Code::azures(409, "VaultAlreadyExists");

/// Whether a name is valid for a vault.
pub(super) fn fits(name: &str) -> bool {
    (3..=24).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        && !name.contains("--")
}

/// The refusal of an invalid vault name.
pub(super) fn invalid(name: &str) -> Refusal {
    Code::azures(400, "VaultNameNotValid").says(invalid_words(name))
}

fn invalid_words(name: &str) -> String {
    format!(
        "The vault name '{name}' is invalid. A vault's name must be between 3-24 alphanumeric characters. The name must \
         begin with a letter, end with a letter or digit, and not contain consecutive hyphens."
    )
}

fn taken_words(name: &str) -> String {
    format!(
        "The vault name '{name}' is already in use. Vault names are globally unique so it is possible that the name is \
         already taken, by a vault or by one that was deleted and not purged."
    )
}

/// Whether a new vault may have the name: no other vault has it, and no deleted one of the subscription.
pub(super) fn check_free(azure: &AzureState, id: &ResourceId) -> Result<()> {
    ALREADY_EXISTS.says_when(host::find(azure, id.name()).is_some(), taken_words(id.name()))?;
    match soft_delete::find(azure, id.name()) {
        None => Ok(()),
        Some(deleted) if deleted.id.subscription_id().eq_ignore_ascii_case(id.subscription_id()) => {
            // azure-sdk and Pulumi users quote code and words.
            Err(Code::azures(409, "ConflictError").says(
                "A vault with the same name already exists in deleted state. You need to either recover or purge \
                 existing key vault.",
            ))
        }
        Some(_) => Err(ALREADY_EXISTS.says(taken_words(id.name()))),
    }
}

/// POST `checkNameAvailability`.
pub(super) fn availability(azure: &mut AzureState, call: &ProviderCall<'_>) -> Handled<Value> {
    let name = name_availability::asked(call)?;
    let taken = host::find(azure, name).is_some() || soft_delete::find(azure, name).is_some();
    Some(Ok(match (fits(name), taken) {
        (false, _) => name_availability::refused("AccountNameInvalid", invalid_words(name)),
        (true, true) => name_availability::refused("AlreadyExists", taken_words(name)),
        (true, false) => name_availability::free(),
    }))
}
