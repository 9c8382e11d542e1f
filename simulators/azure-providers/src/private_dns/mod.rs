//! Private DNS, a provider of its own in the namespace `Microsoft.Network`: zones, their record sets, their links to
//! virtual networks, and the zone groups of private endpoints.

mod link;
pub(crate) mod names;
pub(crate) mod protocol;
pub(crate) mod record_set;
mod service_zones;
mod zone;
mod zone_group;

use azure_engine::provider::{Provider, ResourceType};
use azure_engine::settings::limits::Limit;
use azure_engine::types::join::Join;
use azure_engine::types::names::NameRule;
use azure_engine::types::version::Since;

use self::record_set::RecordSets;

pub(crate) fn provider() -> Provider {
    let mut types: Vec<&'static dyn ResourceType> = vec![&zone::Zones, &link::Links, &zone_group::ZoneGroups];
    types.extend(zone::RECORD_SETS.iter().map(|record_sets: &RecordSets| record_sets as &dyn ResourceType));
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

/// "Azure subscription and service limits, quotas, and constraints", private DNS.
static LIMITS: &[Limit] = &[
    Limit::of("privateDns.recordSetsPerZone", 25_000),
    Limit::of("privateDns.recordsPerRecordSet", 20),
    Limit::of("privateDns.linksPerZone", 1_000),
    Limit::of("privateDns.registrationLinksPerZone", 100),
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

static NAMES: [NameRule; 3] = [
    NameRule {
        of: "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
        fits: |name| azure_engine::types::names::ordinary(name, 80),
        refusal: |_, name| names::bad(name),
    },
    NameRule {
        of: "Microsoft.Network/privateDnsZones/*",
        fits: names::is_relative,
        refusal: |_, name| names::bad(name),
    },
    NameRule {
        of: "Microsoft.Network/privateDnsZones",
        fits: names::is_zone,
        refusal: |_, name| names::bad(name),
    },
];
