//! Public DNS, a provider of its own in the namespace `Microsoft.Network`: zones and their record sets. No name server
//! serves them.

mod zone;

use azure_engine::provider::{Provider, ResourceType};
use azure_engine::settings::limits::Limit;
use azure_engine::types::names::NameRule;

use crate::private_dns::names;

pub(crate) fn provider() -> Provider {
    let mut types: Vec<&'static dyn ResourceType> = vec![&zone::Zones];
    types.extend(zone::RECORD_SETS.iter().map(|record_sets| record_sets as &dyn ResourceType));
    Provider { limits: LIMITS, names: &NAMES, ..Provider::new("Microsoft.Network", types) }
}

/// "Azure subscription and service limits, quotas, and constraints", public DNS.
static LIMITS: &[Limit] =
    &[Limit::of("dns.recordSetsPerZone", 10_000), Limit::of("dns.recordsPerRecordSet", 20)];

static NAMES: [NameRule; 2] = [
    NameRule {
        of: "Microsoft.Network/dnsZones/*",
        fits: names::is_relative,
        refusal: |_, name| names::bad(name),
    },
    NameRule { of: "Microsoft.Network/dnsZones", fits: names::is_zone, refusal: |_, name| names::bad(name) },
];
