//! Availability zones that documents name.

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::shared::catalogue;
use crate::compute::tables::codes::OPERATION_NOT_ALLOWED;
use crate::compute::tables::words::fixed;
use azure_engine::document::{Object, items};
use azure_engine::error::{Code, Refusal};
use azure_engine::provider::{AzureState, Record};

const LOCATION_NOT_SUPPORT_AVAILABILITY_ZONES: Code =
    Code::azures(400, "LocationNotSupportAvailabilityZones");
const INVALID_AVAILABILITY_ZONE: Code = Code::ours(400, "InvalidAvailabilityZone");
const RESOURCE_TYPE_NOT_SUPPORT_MULTI_ZONES: Code = Code::ours(400, "ResourceTypeNotSupportMultiZones");

/// How many zones a type can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// A disk or machine is in one place.
    One,
    /// A scale set spreads.
    Many,
}

/// Checks that the zones of a document are zones of its region. No zones at all are left out.
pub(crate) fn check(
    azure: &AzureState,
    id: &ResourceId,
    span: Span,
    body: &mut Object,
) -> Result<(), Refusal> {
    let Some(zones) = body.get("zones") else { return Ok(()) };
    let Some(zones) = zones.as_array() else {
        return Err(Refusal::bad_format("Member 'zones' must be an array."));
    };
    if zones.is_empty() {
        body.remove("zones");
        return Ok(());
    }
    let location = body.get("location").and_then(Value::as_str).unwrap_or_default();
    let known = catalogue::zones(azure, location);
    let named = format!("{}/{}", id.resource_type(), id.name());
    if known.is_empty() {
        return Err(LOCATION_NOT_SUPPORT_AVAILABILITY_ZONES.says(format_args!(
            "The resource '{named}' does not support availability zones at location '{location}'."
        )));
    }
    let is_known = |zone: &Value| known.iter().any(|known| zone == known);
    let given = zones.iter().map(|zone| zone.as_str().map_or_else(|| zone.to_string(), str::to_owned));
    let given = given.collect::<Vec<_>>().join(",");
    if !zones.iter().all(is_known) {
        return Err(INVALID_AVAILABILITY_ZONE.says(format_args!(
            "The zone(s) '{given}' for resource '{named}' is not supported. The supported zones for location \
                 '{location}' are '{}'",
            known.join(",")
        )));
    }
    if span == Span::One && zones.len() > 1 {
        let kind = id.resource_type();
        let kind = kind.split_once('/').map_or(kind.as_str(), |(_, kind)| kind);
        return Err(RESOURCE_TYPE_NOT_SUPPORT_MULTI_ZONES.says(format_args!(
            "The resource type '{kind}' does not support multiple availability zones. The provided zones are \
                 '{given}'. Please provide a single availability zone."
        )));
    }
    Ok(())
}

/// Zones can be added to a scale set, but not taken from it: machines may be there.
pub(crate) fn check_kept(old: &Record, body: &Object) -> Result<(), Refusal> {
    let zones = body.get("zones").and_then(Value::as_array).map_or(&[] as &[Value], Vec::as_slice);
    match items(&old.body, "zones").iter().all(|zone| zones.contains(zone)) {
        true => Ok(()),
        false => Err(fixed("zones")),
    }
}

/// Where disks and machines are stays.
pub(crate) fn check_same(old: &Record, body: &Object) -> Result<(), Refusal> {
    let zones = body.get("zones").and_then(Value::as_array).map_or(&[] as &[Value], Vec::as_slice);
    if items(&old.body, "zones") == zones { Ok(()) } else { Err(fixed("zones")) }
}

/// Disks that are kept in all zones are in none of them.
pub(crate) fn check_kind(sku: &str, body: &Object) -> Result<(), Refusal> {
    if !is_redundant(sku) || !body.contains_key("zones") {
        return Ok(());
    }
    Err(OPERATION_NOT_ALLOWED
        .says(format_args!("A disk with sku '{sku}' cannot be created in an availability zone.")))
}

/// Whether a kind of disk is kept in all zones, so that machines of every zone can have it.
pub(crate) fn is_redundant(sku: &str) -> bool {
    sku.ends_with("_ZRS")
}

/// A machine that joins a scale set stands where the set does: in one of its zones, or in none where it has none.
pub(crate) fn check_member(set: &Record, zone: Option<&str>) -> Result<(), Refusal> {
    let zones = items(&set.body, "zones");
    let fits = match zone {
        Some(zone) => zones.iter().any(|known| known == zone),
        None => zones.is_empty(),
    };
    if fits {
        return Ok(());
    }
    let zones: Vec<&str> = zones.iter().filter_map(Value::as_str).collect();
    Err(Refusal::invalid_parameter(
        "zones",
        format!(
            "A machine in zone '{}' cannot be in virtual machine scale set {}, whose zones are '{}'.",
            zone.unwrap_or_default(),
            set.id,
            zones.join(",")
        ),
    ))
}
