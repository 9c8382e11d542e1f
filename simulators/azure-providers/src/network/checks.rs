//! Checks that several types share.

use azure_types::ResourceId;
use serde_json::{Value, json};

use azure_engine::document::{Object, integer};
use azure_engine::error::Refusal;
use azure_engine::provider::{AzureState, Proposal};

/// A whole number between bounds, with a default.
pub(super) fn bounded(
    properties: &mut Object,
    member: &str,
    range: std::ops::RangeInclusive<i64>,
    default: Option<i64>,
    subject: &ResourceId,
) -> Result<(), Refusal> {
    let value = integer(properties, member)?.or(default);
    let Some(value) = value else { return Ok(()) };
    if !range.contains(&value) {
        return Err(Refusal::network(
            400,
            "InvalidPropertyValue",
            format!(
                "Value {value} of '{member}' of {subject} is outside the range {} to {}.",
                range.start(),
                range.end()
            ),
        ));
    }
    properties.insert(member.into(), value.into());
    Ok(())
}

/// Checks the zones of a document: those of the region, each once.
pub(super) fn check_zones(
    azure: &AzureState,
    subject: &ResourceId,
    document: &mut Object,
) -> Result<(), Refusal> {
    let Some(zones) = document.get("zones") else { return Ok(()) };
    let Some(zones) = zones.as_array() else {
        return Err(Refusal::bad_format("Member 'zones' must be an array."));
    };
    if zones.is_empty() {
        document.remove("zones");
        return Ok(());
    }
    let known = &azure.options.zones;
    if known.is_empty() {
        return Err(Refusal::network(
            400,
            "ResourceAvailabilityZonesNotSupported",
            format!("Resource {subject} has zones, but its region does not support availability zones."),
        ));
    }
    let mut seen = std::collections::HashSet::new();
    for zone in zones {
        let text = zone.as_str().unwrap_or_default();
        if !known.iter().any(|known| known == text) || !seen.insert(text) {
            return Err(Refusal::network(
                400,
                "InvalidAvailabilityZone",
                format!(
                    "The zone {zone} of resource {subject} is invalid or given twice. The region's zones are {}.",
                    known.join(", ")
                ),
            ));
        }
    }
    Ok(())
}

/// How many resources of a type a subscription has in the region of a proposal.
pub(super) fn count_in_region(azure: &AzureState, resource_type: &str, proposal: &Proposal<'_>) -> u64 {
    let subscription = ResourceId::subscription(proposal.id.subscription_id());
    let location = proposal.body.get("location");
    let all = azure.store.of_type_below(resource_type, &subscription);
    all.into_iter().filter(|record| record.body.get("location") == location).count() as u64
}

/// Refuses to delete what others point at, in Azure's code and the words that `says` makes of who they are.
pub(super) fn check_unused(
    azure: &AzureState,
    id: &ResourceId,
    code: &str,
    says: impl FnOnce(&[&str]) -> String,
) -> Result<(), Refusal> {
    let users: Vec<&str> = azure.store.referrers(id).map(|referrer| referrer.from.as_str()).collect();
    if users.is_empty() { Ok(()) } else { Err(Refusal::network(400, code, says(&users))) }
}

/// Zones are chosen once.
pub(super) fn check_zones_unchanged(proposal: &Proposal<'_>) -> Result<(), Refusal> {
    let none = json!([]);
    let zones = |value: Option<&Value>| value.cloned().unwrap_or_else(|| none.clone());
    let old = proposal.old.map(|old| zones(old.body.get("zones")));
    if old.is_none_or(|old| old == zones(proposal.body.get("zones"))) {
        return Ok(());
    }
    Err(Refusal::network(
        400,
        "ResourceAvailabilityZonesCannotBeModified",
        format!(
            "Resource {} has an existing availability zone constraint, which cannot be changed.",
            proposal.id
        ),
    ))
}
