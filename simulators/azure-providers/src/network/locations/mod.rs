//! What the Network provider answers below a location: whether a name is free, whether a private link
//! service can be seen, which services approve at once.

pub(crate) mod usages;

use serde_json::{Value, json};

use crate::network::private_link::{
    service::{all, approves, by_alias, visible},
    target,
};
use crate::network::public_ip;
use azure_engine::document::text;
use azure_engine::error::Refusal;
use azure_engine::location::normal_location;
use azure_engine::provider::{AzureState, Call};

/// Answers calls below `locations/{location}`.
pub(crate) fn answer(azure: &mut AzureState, call: &Call<'_>) -> Option<Result<Value, Refusal>> {
    let [locations, location, what] = call.segments else { return None };
    if !locations.eq_ignore_ascii_case("locations") {
        return None;
    }
    let location = normal_location(location);
    match (call.method, what.to_ascii_lowercase().as_str()) {
        ("GET", "usages") => Some(Ok(usages::of(azure, call.subscription, &location))),
        ("GET", "checkdnsnameavailability") => Some(name_availability(azure, call, &location)),
        ("GET", "autoapprovedprivatelinkservices") => {
            let services: Vec<Value> = all(azure)
                .filter(|service| text(&service.body, "location") == Some(&location))
                .filter(|service| approves(service, call.subscription))
                .filter(|service| {
                    let group = service.id.group_name().unwrap_or_default();
                    call.group.is_none_or(|asked| asked.eq_ignore_ascii_case(group))
                })
                .map(|service| json!({ "privateLinkService": service.id }))
                .collect();
            Some(Ok(json!({ "value": services })))
        }
        ("GET", "availableprivateendpointtypes") => {
            Some(Ok(json!({ "value": target::types(call.subscription, &location) })))
        }
        ("POST", "checkprivatelinkservicevisibility") => {
            let alias = text(call.body, "privateLinkServiceAlias").unwrap_or_default();
            let seen = by_alias(azure, alias)
                .filter(|service| text(&service.body, "location") == Some(&location))
                .is_some_and(|service| visible(service, call.subscription));
            Some(Ok(json!({ "visible": seen })))
        }
        _ => None,
    }
}

fn name_availability(azure: &AzureState, call: &Call<'_>, location: &str) -> Result<Value, Refusal> {
    // Query options are known by their lower-case names.
    let Some(label) = call.query.get("domainnamelabel").filter(|label| !label.is_empty()) else {
        return Err(Refusal::network(
            400,
            "InvalidDomainNameLabel",
            "The query option domainNameLabel is required.",
        ));
    };
    let label = public_ip::domain_name_label(label)?;
    Ok(json!({ "available": public_ip::domain_name_is_free(azure, &label, location) }))
}
