//! What Azure takes in one security group (8.4 step 7).

use k8s::ObjectKey;

use super::Draft;
use super::rule::items;
use crate::refusal::Refusal;

/// Rules in a group.
const MAX_RULES: usize = 1000;
/// Source entries in all rules together.
const MAX_SOURCES: usize = 4000;
/// Destination entries in all rules together.
const MAX_DESTINATIONS: usize = 4000;

/// A limit that the group would pass.
pub(super) struct Exceeded {
    what: &'static str,
    count: usize,
    limit: usize,
}

impl Exceeded {
    /// The refusal of the Service whose rules would pass it.
    pub fn refusal(self, service: &ObjectKey) -> Refusal {
        let Self { what, count, limit } = self;
        Refusal::SecurityGroupFull { service: service.clone(), what, count, limit }
    }
}

/// Which limit the group would pass, if any.
pub(super) fn exceeded(draft: &Draft<'_>) -> Option<Exceeded> {
    let (mut rules, mut sources, mut destinations) = (0, 0, 0);
    for entry in draft.entries.iter().filter(|entry| !entry.is_empty()) {
        rules += 1;
        let Some(properties) = &entry.document.properties else { continue };
        sources += items(&properties.source_address_prefix, &properties.source_address_prefixes).count();
        destinations += if entry.managed {
            entry.destinations.len()
        } else {
            items(&properties.destination_address_prefix, &properties.destination_address_prefixes).count()
        };
    }
    let exceeded = |what, count, limit| (count > limit).then_some(Exceeded { what, count, limit });
    exceeded("rules", rules, MAX_RULES)
        .or_else(|| exceeded("source IP addresses", sources, MAX_SOURCES))
        .or_else(|| exceeded("destination IP addresses", destinations, MAX_DESTINATIONS))
}
