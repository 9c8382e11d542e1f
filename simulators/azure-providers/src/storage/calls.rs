//! Calls of the provider beside its resources.

use azure_engine::provider::{AzureState, ProviderCall};
use azure_engine::refusal::Refusal;
use serde_json::{Value, json};

use super::account::{name_availability, sku};
use super::tables::ACCOUNTS;

pub(super) fn answer(azure: &mut AzureState, call: &ProviderCall<'_>) -> Option<Result<Value, Refusal>> {
    let same = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
    match (call.method, call.segments) {
        ("POST", [word]) if same(word, "checkNameAvailability") => Some(name_availability(azure, call.body)),
        ("GET", [word]) if same(word, "skus") => Some(Ok(sku::list(azure))),
        ("GET", [word]) if same(word, "deletedAccounts") => Some(Ok(json!({ "value": [] }))),
        ("GET", [word, location, usages]) if same(word, "locations") && same(usages, "usages") => {
            Some(Ok(usages_in(azure, call.subscription, location)))
        }
        _ => None,
    }
}

/// How many accounts a region has, and how many it may have.
fn usages_in(azure: &AzureState, subscription: &str, location: &str) -> Value {
    let accounts = azure.store.of_type(ACCOUNTS).filter(|account| {
        account.id.subscription_id().eq_ignore_ascii_case(subscription)
            && azure.location(&account.id).eq_ignore_ascii_case(location)
    });
    json!({
        "value": [{
            "unit": "Count",
            "currentValue": accounts.count(),
            "limit": azure.limit("storage.accountsPerRegion"),
            "name": { "value": "StorageAccounts", "localizedValue": "Storage Accounts" },
        }]
    })
}
