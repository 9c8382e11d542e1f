//! Azure's limits for one security group (8.4 step 7), checked before a Service's rules are added.

use k8s::ObjectKey;

use super::entry::RuleEntry;
use super::rule::items;
use crate::outcome::Refusal;

/// Rules in a group.
const MAX_RULES: usize = 1000;

/// Source entries in all rules together.
const MAX_SOURCES: usize = 4000;

/// Destination entries in all rules together.
const MAX_DESTINATIONS: usize = 4000;

/// The limited quantities that a group holds, or that a Service adds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub rules: usize,
    pub sources: usize,
    pub destinations: usize,
    /// Rules that need a priority.
    pub new_names: usize,
}

impl Counts {
    /// The counts of these rules as they are stored.
    pub fn stored(entries: &[RuleEntry]) -> Self {
        let stored = entries.iter().filter_map(|entry| entry.document.properties.as_ref());
        let destinations =
            stored.map(|p| items(&p.destination_address_prefix, &p.destination_address_prefixes).count());
        Self { destinations: destinations.sum(), ..Self::of(entries) }
    }

    /// The counts of these rules, with each destination counted by itself.
    pub fn of(entries: &[RuleEntry]) -> Self {
        let mut counts = Self::default();
        for entry in entries.iter().filter(|entry| !entry.is_empty()) {
            counts.rules += 1;
            let Some(p) = &entry.document.properties else { continue };
            counts.sources += items(&p.source_address_prefix, &p.source_address_prefixes).count();
            counts.destinations += if entry.managed {
                entry.destinations.len()
            } else {
                items(&p.destination_address_prefix, &p.destination_address_prefixes).count()
            };
        }
        counts
    }

    pub fn add(&mut self, growth: &Self) {
        self.rules += growth.rules;
        self.sources += growth.sources;
        self.destinations += growth.destinations;
    }
}

/// The limits of a group.
pub(super) struct Limits(Counts);

impl Limits {
    /// Azure's limits for a group with these counts: what it already holds, it may keep.
    pub fn of(observed: &Counts) -> Self {
        Self(Counts {
            rules: MAX_RULES.max(observed.rules),
            sources: MAX_SOURCES.max(observed.sources),
            destinations: MAX_DESTINATIONS.max(observed.destinations),
            new_names: 0,
        })
    }

    /// The limit of destinations.
    pub fn destinations(&self) -> usize {
        self.0.destinations
    }

    /// The first limit that the group would exceed by growing. Destinations are checked last.
    pub fn exceeded_by(&self, counts: &Counts, growth: &Counts) -> Option<Exceeded> {
        let check = |what, count: usize, growth: usize, limit: usize| {
            let count = count + growth;
            (growth > 0 && count > limit).then_some(Exceeded { what, count, limit })
        };
        let limits = &self.0;
        check("rules", counts.rules, growth.rules, limits.rules)
            .or_else(|| check("source IP addresses", counts.sources, growth.sources, limits.sources))
            .or_else(|| check(DESTINATIONS, counts.destinations, growth.destinations, limits.destinations))
    }
}

const DESTINATIONS: &str = "destination IP addresses";

/// A limit that the group would exceed.
pub(super) struct Exceeded {
    what: &'static str,
    count: usize,
    limit: usize,
}

impl Exceeded {
    /// Whether only the limit of destinations is exceeded.
    pub fn is_of_destinations(&self) -> bool {
        self.what == DESTINATIONS
    }

    /// The refusal of the Service whose rules would exceed it.
    pub fn refusal(self, service: &ObjectKey) -> Refusal {
        let Self { what, count, limit } = self;
        Refusal::SecurityGroupFull { service: service.clone(), what, count, limit }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_quantity_grows_by_itself() {
        let counts = |rules, sources, destinations| Counts { rules, sources, destinations, new_names: 0 };
        let mut sum = counts(2, 30, 400);
        sum.add(&counts(3, 50, 700));
        assert_eq!(sum, counts(5, 80, 1100));
    }
}
