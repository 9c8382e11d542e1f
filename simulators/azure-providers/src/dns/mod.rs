//! DNS, a provider of its own in the namespace `Microsoft.Network`: private and public zones, their record sets, the links of
//! private zones to virtual networks, and the zone groups of private endpoints. No name server serves public zones.

mod link;
mod names;
mod private_zone;
mod protocol;
mod public_zone;
mod record_set;
mod service_zones;
mod zone_group;

use azure_engine::provider::{Provider, ResourceType};
use azure_engine::settings::limits::Limit;
use azure_engine::types::join::Join;
use azure_engine::types::names::{NameRule, ordinary};
use azure_engine::types::version::Since;

use self::record_set::RecordSets;

pub(crate) fn provider() -> Provider {
    let mut types: Vec<&'static dyn ResourceType> =
        vec![&private_zone::Zones, &link::Links, &zone_group::ZoneGroups, &public_zone::Zones];
    let record_sets = private_zone::RECORD_SETS.iter().chain(&public_zone::RECORD_SETS);
    types.extend(record_sets.map(|record_sets: &RecordSets| record_sets as &dyn ResourceType));
    Provider {
        limits: LIMITS,
        names: &NAMES,
        joins: &JOINS,
        since: &SINCE,
        ..Provider::new("Microsoft.Network", types)
    }
}

/// Members that documents of zones have since a version.
static SINCE: [Since; 1] = [Since {
    of: "Microsoft.Network/privateDnsZones",
    member: "properties/internalId",
    version: "2020-06-01",
}];

/// "Azure subscription and service limits, quotas, and constraints", private and public DNS.
static LIMITS: &[Limit] = &[
    Limit::of("privateDns.recordSetsPerZone", 25_000),
    Limit::of("privateDns.recordsPerRecordSet", 20),
    Limit::of("privateDns.linksPerZone", 1_000),
    Limit::of("privateDns.registrationLinksPerZone", 100),
    Limit::of("dns.recordSetsPerZone", 10_000),
    Limit::of("dns.recordsPerRecordSet", 20),
];

/// A caller that links a network or puts names into a zone must be allowed to join it.
static JOINS: [Join; 2] = [
    Join {
        of: "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
        members: &["virtualNetwork"],
        action: "Microsoft.Network/virtualNetworks/join/action",
    },
    Join {
        of: "Microsoft.Network/privateEndpoints/privateDnsZoneGroups",
        members: &["privateDnsZoneId"],
        action: "Microsoft.Network/privateDnsZones/join/action",
    },
];

static NAMES: [NameRule; 5] = [
    named("Microsoft.Network/privateDnsZones/virtualNetworkLinks", |name| ordinary(name, 80)),
    named("Microsoft.Network/privateDnsZones/*", names::is_relative),
    named("Microsoft.Network/privateDnsZones", names::is_zone),
    named("Microsoft.Network/dnsZones/*", names::is_relative),
    named("Microsoft.Network/dnsZones", names::is_zone),
];

const fn named(of: &'static str, fits: fn(&str) -> bool) -> NameRule {
    NameRule { of, fits, refusal: |_, name| names::bad(name) }
}
