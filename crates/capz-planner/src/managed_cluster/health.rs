//! The health of a managed cluster, as Azure Resource Health reports it.

use std::time::Duration;

use azure_types::ResourceId;
use capz_api::Condition;
use serde_json::Value;

use crate::condition::{Severity, holds};
use crate::observed::Reading;

/// The condition.
pub const RESOURCE_HEALTH: &str = "AzureResourceAvailable";

const API_VERSION: &str = "2020-05-01";
/// How long after its creation a cluster may be degraded.
const STARTING: Duration = Duration::from_secs(3600);

/// The request for the health of a resource.
pub fn reading(resource: &ResourceId) -> Reading {
    let id = resource.resource("Microsoft.ResourceHealth", "availabilityStatuses", "current");
    Reading::Get { id, api_version: API_VERSION }
}

/// The condition according to Azure's answer; `age` is the time since the object was created.
pub fn condition(answer: &Value, age: Duration) -> Condition {
    let properties = &answer["properties"];
    let text = |member: &str| properties[member].as_str().unwrap_or_default();
    let severity = match text("availabilityState") {
        "Available" => return holds(RESOURCE_HEALTH),
        "Unavailable" => Some(Severity::Error),
        "Degraded" | "Unknown" if age < STARTING => return holds(RESOURCE_HEALTH),
        "Degraded" | "Unknown" => Some(Severity::Warning),
        _ => None,
    };
    let named = |text: String| Some(text).filter(|text| !text.is_empty());
    Condition {
        condition: Some(RESOURCE_HEALTH.to_owned()),
        status: Some("False".to_owned()),
        reason: named(in_one_word(text("reasonType"))),
        severity: severity.map(|severity| severity.as_str().to_owned()),
        message: named(text("summary").to_owned()),
        ..Condition::default()
    }
}

/// Words as one: each begins with a capital, and nothing is between them.
fn in_one_word(words: &str) -> String {
    words
        .split_whitespace()
        .map(|word| {
            let mut letters = word.chars();
            letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
        })
        .collect()
}
