//! Calls about a location.

use azure_engine::provider::{AzureState, ProviderCall};
use azure_engine::refusal::Refusal;
use serde_json::{Value, json};

use super::{kubernetes_version, trusted_access};

/// Answers a GET below `locations/{location}`.
pub(super) fn answer(_azure: &mut AzureState, call: &ProviderCall<'_>) -> Option<Result<Value, Refusal>> {
    let [locations, location, what, rest @ ..] = call.segments else { return None };
    if !locations.eq_ignore_ascii_case("locations") || call.method != "GET" {
        return None;
    }
    let id = |below: &str| {
        let subscription = call.subscription;
        format!(
            "/subscriptions/{subscription}/providers/Microsoft.ContainerService/locations/{location}/{below}"
        )
    };
    match (what.to_ascii_lowercase().as_str(), rest) {
        ("kubernetesversions", []) => Some(Ok(kubernetes_version::by_minor())),
        ("orchestrators", []) => Some(Ok(json!({
            "id": id("orchestrators"),
            "name": "default",
            "type": "Microsoft.ContainerService/locations/orchestrators",
            "properties": { "orchestrators": kubernetes_version::orchestrators() },
        }))),
        ("trustedaccessroles", []) => Some(Ok(trusted_access::roles())),
        ("osoptions", ["default"]) => Some(Ok(json!({
            "id": id("osOptions/default"),
            "name": "default",
            "type": "Microsoft.ContainerService/locations/osOptions",
            "properties": { "osOptionPropertyList": [
                { "os-type": "Linux", "enable-fips-image": true },
                { "os-type": "Windows", "enable-fips-image": false },
            ] },
        }))),
        _ => None,
    }
}
