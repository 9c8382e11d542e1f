//! What the Compute provider answers beside its resources: the catalogue of sizes, and what it has in a
//! location.

use serde_json::{Value, json};

use crate::compute::shared::catalogue;
use crate::compute::shared::public_gallery;
use crate::compute::shared::publishers;
use crate::compute::shared::quota;
use crate::compute::tables::type_names::{MACHINE_TYPE, SET_TYPE};
use azure_engine::document::text;
use azure_engine::error::Refusal;
use azure_engine::location::normal_location;
use azure_engine::provider::{AzureState, Call, Expand};

pub(crate) fn answer(azure: &mut AzureState, call: &Call<'_>) -> Option<Result<Value, Refusal>> {
    if call.method != "GET" {
        return None;
    }
    match call.segments {
        [skus] if skus.eq_ignore_ascii_case("skus") => Some(catalogue::catalogue(azure, call)),
        [locations, location, rest @ ..]
            if locations.eq_ignore_ascii_case("locations")
                && rest.first().is_some_and(|first| first.eq_ignore_ascii_case("publishers")) =>
        {
            publishers::answer(call.subscription, &normal_location(location), rest)
        }
        [locations, location, rest @ ..]
            if locations.eq_ignore_ascii_case("locations")
                && rest.first().is_some_and(|first| first.to_ascii_lowercase().ends_with("galleries")) =>
        {
            public_gallery::answer(azure, &normal_location(location), rest)
        }
        [locations, location, what] if locations.eq_ignore_ascii_case("locations") => {
            let location = normal_location(location);
            match what.to_ascii_lowercase().as_str() {
                "vmsizes" => Some(Ok(catalogue::sizes())),
                "usages" => Some(Ok(quota::usages(azure, call.subscription, &location))),
                "virtualmachines" => Some(Ok(all_in(azure, call, MACHINE_TYPE, &location))),
                "virtualmachinescalesets" => Some(Ok(all_in(azure, call, SET_TYPE, &location))),
                _ => None,
            }
        }
        _ => None,
    }
}

/// All resources of a type that a subscription has in a location.
fn all_in(azure: &AzureState, call: &Call<'_>, resource_type: &str, location: &str) -> Value {
    let here = azure
        .store
        .of_type(resource_type)
        .filter(|record| record.id.subscription_id().eq_ignore_ascii_case(call.subscription))
        .filter(|record| text(&record.body, "location") == Some(location));
    let shown: Vec<Value> = here.map(|record| azure.present(record, Expand::default())).collect();
    json!({ "value": shown })
}
