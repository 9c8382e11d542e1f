//! Calls of the Compute provider beside its resources: the catalogue of sizes, and resources by location.

use serde_json::{Value, json};

use crate::compute::shared::catalogue;
use crate::compute::shared::public_gallery;
use crate::compute::shared::publishers;
use crate::compute::shared::quota;
use crate::compute::tables::type_names::{MACHINE_TYPE, SET_TYPE};
use azure_engine::document::location::normal_location;
use azure_engine::document::text;
use azure_engine::provider::{AzureState, Expand, ProviderCall};
use azure_engine::refusal::Refusal;

pub(crate) fn answer(azure: &mut AzureState, call: &ProviderCall<'_>) -> Option<Result<Value, Refusal>> {
    if call.method != "GET" {
        return None;
    }
    let words: Vec<String> = call.segments.iter().map(|segment| segment.to_ascii_lowercase()).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (location, below) = match words.as_slice() {
        ["skus"] => return Some(catalogue::catalogue(azure, call)),
        ["locations", location, ..] => (normal_location(location), call.segments.get(2..)?),
        _ => return None,
    };
    Some(Ok(match words.get(2..)? {
        ["publishers", ..] => return publishers::answer(call.subscription, &location, below),
        ["communitygalleries" | "sharedgalleries", ..] => {
            return public_gallery::answer(azure, &location, below);
        }
        ["vmsizes"] => catalogue::sizes(),
        ["usages"] => quota::usages(azure, call.subscription, &location),
        ["virtualmachines"] => all_in(azure, call, MACHINE_TYPE, &location),
        ["virtualmachinescalesets"] => all_in(azure, call, SET_TYPE, &location),
        _ => return None,
    }))
}

/// All resources of a type that a subscription has in a location.
fn all_in(azure: &AzureState, call: &ProviderCall<'_>, resource_type: &str, location: &str) -> Value {
    let here = azure
        .store
        .of_type(resource_type)
        .filter(|record| record.id.subscription_id().eq_ignore_ascii_case(call.subscription))
        .filter(|record| text(&record.body, "location") == Some(location));
    let shown: Vec<Value> = here.map(|record| azure.present(record, Expand::default())).collect();
    json!({ "value": shown })
}
