//! Availability zones of a resource.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::network::shared::codes::ZONES_CHANGED;
use azure_engine::document::Object;
use azure_engine::provider::{AzureState, Proposal};
use azure_engine::refusal::{Code, Refusal, Result};

/// Checks the zones of a document: those of the region, each once.
pub(crate) fn check_zones(azure: &AzureState, subject: &ResourceId, document: &mut Object) -> Result<()> {
    let Some(zones) = document.get("zones") else { return Ok(()) };
    let zones = zones.as_array().ok_or_else(|| Refusal::bad_format("Member 'zones' must be an array."))?;
    if zones.is_empty() {
        document.remove("zones");
        return Ok(());
    }
    let known = &azure.options.zones;
    Code::ours(400, "ResourceAvailabilityZonesNotSupported").details_when(
        known.is_empty(),
        format_args!("Resource {subject} has zones, but its region does not support availability zones."),
    )?;
    let mut seen = std::collections::HashSet::new();
    for zone in zones {
        let text = zone.as_str().unwrap_or_default();
        Code::ours(400, "InvalidAvailabilityZone").details_when(
            !known.iter().any(|known| known == text) || !seen.insert(text),
            format_args!(
                "The zone {zone} of resource {subject} is invalid or given twice. The region's zones are {}.",
                known.join(", ")
            ),
        )?;
    }
    Ok(())
}

/// Zones are fixed at creation.
pub(crate) fn check_zones_unchanged(proposal: &Proposal<'_>) -> Result<()> {
    let none = json!([]);
    let zones = |value: Option<&Value>| value.cloned().unwrap_or_else(|| none.clone());
    let old = proposal.old.map(|old| zones(old.body.get("zones")));
    if old.is_none_or(|old| old == zones(proposal.body.get("zones"))) {
        return Ok(());
    }
    Err(ZONES_CHANGED.details(format_args!(
        "Resource {} has an existing availability zone constraint, which cannot be changed.",
        proposal.id
    )))
}
