//! Whether a disk that exists is the one that a repeated request asks for.

use serde_json::Value;

use super::observed::ObservedDisk;
use crate::model::document::{tag, text};
use crate::model::topology::{DiskPlace, Requirement, Segments, Zone, zone_key};
use crate::model::topology::{ZONE_LABEL, normalize_region};
use crate::parameters::tags::PV_NAME;

/// The first difference between a disk and the document that would create it, in words. Sizes are not compared. A name that was
/// cut, or that a class gives, may be that of another volume: the tag for the volume's name shows it.
pub(super) fn difference(
    existing: ObservedDisk<'_>,
    desired: &Value,
    place: &DiskPlace,
    requirement: &Requirement,
    driver: &str,
) -> Option<String> {
    let wanted = ObservedDisk(desired);
    let same = |left: Option<&str>, right: Option<&str>| match (left, right) {
        (Some(left), Some(right)) => left.eq_ignore_ascii_case(right),
        (None, None) => true,
        _ => false,
    };
    let or_none = |text: Option<&str>| text.unwrap_or("none").to_owned();
    let differ = |what: &str, own: Option<&str>, other: Option<&str>| {
        (!same(own, other)).then(|| format!("{what} {} instead of {}", or_none(own), or_none(other)))
    };
    let region = normalize_region(text(existing.0, "/location").unwrap_or_default());
    let volume = |document: &Value| tag(document, PV_NAME).map(str::to_owned);
    let other_volume = match (volume(existing.0), volume(desired)) {
        (Some(own), Some(other)) if own != other => {
            Some(format!("volume {own} as its owner instead of {other}"))
        }
        _ => None,
    };
    other_volume
        .or_else(|| differ("SKU", existing.sku_name(), wanted.sku_name()))
        .or_else(|| differ("region", Some(&region), Some(&place.region)))
        .or_else(|| differ("content source", existing.source(), wanted.source()))
        .or_else(|| differ("disk encryption set", existing.encryption_set(), wanted.encryption_set()))
        .or_else(|| {
            let (own, other) = (existing.max_shares(), wanted.max_shares());
            (own != other).then(|| format!("maxShares {own} instead of {other}"))
        })
        .or_else(|| zone_difference(existing, place, requirement, driver))
}

/// A repeated request may prefer another zone, because its pod went to another node: the disk stays where it serves the request.
fn zone_difference(
    existing: ObservedDisk<'_>,
    place: &DiskPlace,
    requirement: &Requirement,
    driver: &str,
) -> Option<String> {
    let own = existing.single_zone();
    if own == place.zone.as_deref() {
        return None;
    }
    let key = zone_key(driver);
    let names_own = |segments: &Segments| {
        let labels = [ZONE_LABEL, key.as_str()].into_iter().filter_map(|key| segments.get(key));
        let mut zones = labels.filter_map(|label| Zone::parse(label, Some(&place.region)));
        zones.any(|zone| Some(zone.id.as_str()) == own)
    };
    if requirement.requisite.iter().chain(&requirement.preferred).any(names_own) {
        return None;
    }
    let or_none = |zone: Option<&str>| zone.unwrap_or("none").to_owned();
    Some(format!("zone {} instead of {}", or_none(own), or_none(place.zone.as_deref())))
}
