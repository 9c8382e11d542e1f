//! Availability zones that documents name.

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::shared::catalogue;
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::words::fixed;
use azure_engine::document::{items, text};
use azure_engine::provider::{AzureState, Proposal, Record};
use azure_engine::refusal::{Code, Refusal, Result};

/// The number of zones that a type can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// A disk or machine is in one place.
    One,
    /// A scale set spreads.
    Many,
}

/// Checks that the zones of a document are zones of its region, and that it stays in them: a scale set may spread,
/// machines and disks stay. An empty list is left out.
pub(crate) fn check(azure: &AzureState, proposal: &Proposal<'_>, span: Span, body: &mut Value) -> Result<()> {
    check_known(azure, proposal.id, span, body)?;
    let zones = items(body, "zones");
    if let Some(old) = proposal.old.map(|old| items(&old.body, "zones")) {
        let left = old.iter().any(|zone| !zones.contains(zone));
        if left || (span == Span::One && old != zones) {
            return Err(fixed("zones"));
        }
    }
    if let (true, Some(document)) = (zones.is_empty(), body.as_object_mut()) {
        document.remove("zones");
    }
    Ok(())
}

fn check_known(azure: &AzureState, id: &ResourceId, span: Span, body: &Value) -> Result<()> {
    let Some(zones) = body.get("zones") else { return Ok(()) };
    let zones = zones.as_array().ok_or_else(|| Refusal::bad_format("Member 'zones' must be an array."))?;
    let location = text(body, "location").unwrap_or_default();
    let known = catalogue::zones(azure, location);
    let (kind, name) = (id.resource_type(), id.name());
    Code::azures(400, "LocationNotSupportAvailabilityZones").says_when(
        known.is_empty() && !zones.is_empty(),
        format_args!(
            "The resource '{kind}/{name}' does not support availability zones at location '{location}'."
        ),
    )?;
    let strange = zones.iter().any(|zone| !known.iter().any(|known| zone == known));
    let given = zones.iter().map(|zone| zone.as_str().map_or_else(|| zone.to_string(), str::to_owned));
    let given = given.collect::<Vec<_>>().join(",");
    Code::ours(400, "InvalidAvailabilityZone").says_when(strange, format_args!(
        "The zone(s) '{given}' for resource '{kind}/{name}' is not supported. The supported zones for location \
         '{location}' are '{}'", known.join(",")
    ))?;
    let kind = kind.split_once('/').map_or(kind.as_str(), |(_, kind)| kind);
    Code::ours(400, "ResourceTypeNotSupportMultiZones").says_when(
        span == Span::One && zones.len() > 1,
        format_args!(
            "The resource type '{kind}' does not support multiple availability zones. The \
             provided zones are '{given}'. Please provide a single availability zone."
        ),
    )
}

/// Disks that are replicated to all zones have no zone.
pub(crate) fn check_kind(sku: &str, body: &Value) -> Result<()> {
    let wrong = is_redundant(sku) && body.get("zones").is_some();
    let text = format_args!("A disk with sku '{sku}' cannot be created in an availability zone.");
    OPERATION_NOT_ALLOWED.says_when(wrong, text)
}

/// Whether a kind of disk is replicated to all zones, so that machines of every zone can attach it.
pub(crate) fn is_redundant(sku: &str) -> bool {
    sku.ends_with("_ZRS")
}

/// A machine that joins a scale set is in one of the set's zones, or in none where the set has none.
pub(crate) fn check_member(set: &Record, zone: Option<&Value>) -> Result<()> {
    let zones = items(&set.body, "zones");
    if zone.map_or(zones.is_empty(), |zone| zones.contains(zone)) {
        return Ok(());
    }
    let zones: Vec<&str> = zones.iter().filter_map(Value::as_str).collect();
    let text = format!(
        "A machine in zone '{}' cannot be in virtual machine scale set {}, whose zones are '{}'.",
        zone.and_then(Value::as_str).unwrap_or_default(),
        set.id,
        zones.join(",")
    );
    Err(Refusal::invalid_parameter("zones", text))
}
