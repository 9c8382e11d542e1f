//! What Azure takes in one security group (8.4 step 7).

use super::Draft;
use super::rule::items;

/// Rules in a group.
const MAX_RULES: usize = 1000;
/// Source entries in all rules together.
const MAX_SOURCES: usize = 4000;
/// Destination entries in all rules together.
const MAX_DESTINATIONS: usize = 4000;

/// Which limit the group would pass, in words.
pub(super) fn exceeded(draft: &Draft<'_>) -> Option<String> {
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
    let told =
        |what: &str, count: usize, limit: usize| Some(format!("{count} {what}, and Azure takes {limit}"));
    if rules > MAX_RULES {
        told("rules", rules, MAX_RULES)
    } else if sources > MAX_SOURCES {
        told("source addresses", sources, MAX_SOURCES)
    } else if destinations > MAX_DESTINATIONS {
        told("destination addresses", destinations, MAX_DESTINATIONS)
    } else {
        None
    }
}
