//! Calls of the Network provider below a location: usages, and whether a name is free.

pub(crate) mod usages;

use serde_json::{Value, json};

use crate::network::public_ip;
use crate::network::shared::codes::INVALID_DOMAIN_NAME_LABEL;
use azure_engine::document::location::normal_location;
use azure_engine::provider::{AzureState, ProviderCall};
use azure_engine::refusal::{Handled, Result};

/// Answers calls below `locations/{location}`.
pub(crate) fn answer(azure: &mut AzureState, call: &ProviderCall<'_>) -> Handled<Value> {
    let [locations, location, what] = call.segments else { return None };
    if !locations.eq_ignore_ascii_case("locations") {
        return None;
    }
    let location = normal_location(location);
    match (call.method, what.to_ascii_lowercase().as_str()) {
        ("GET", "usages") => Some(Ok(usages::of(azure, call.subscription, &location))),
        ("GET", "checkdnsnameavailability") => Some(name_availability(azure, call, &location)),
        _ => None,
    }
}

fn name_availability(azure: &AzureState, call: &ProviderCall<'_>, location: &str) -> Result<Value> {
    // Query options are known by their lower-case names.
    let Some(label) = call.query.get("domainnamelabel").filter(|label| !label.is_empty()) else {
        return Err(INVALID_DOMAIN_NAME_LABEL.details("The query option domainNameLabel is required."));
    };
    let label = public_ip::domain_name_label(label)?;
    Ok(json!({ "available": public_ip::domain_name_is_free(azure, &label, location) }))
}
