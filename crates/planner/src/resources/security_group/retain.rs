//! Removes the leftovers of deleted Services and Nodes (8.4 steps 5 and 6).

use std::collections::BTreeSet;

use super::edit::Draft;

/// Removes from managed rules every destination that is no longer used in the cluster and that is proven to have been
/// the cluster's. Without a proof it may belong to another cluster, whose rules have the same names: it stays.
pub(super) fn retain(draft: &mut Draft<'_>, of_batch: &BTreeSet<String>) {
    let usage = draft.usage;
    let addresses = usage.service_addresses.iter().chain(&usage.node_addresses);
    let mut alive: BTreeSet<String> = addresses.map(ToString::to_string).collect();
    alive.extend(of_batch.iter().cloned());
    for entry in draft.entries.iter_mut().filter(|entry| entry.managed) {
        let gone: Vec<String> = entry
            .destinations
            .iter()
            .filter(|one| {
                !alive.contains(*one) && usage.proven.contains_key(*one) && !usage.is_of_others(one)
            })
            .cloned()
            .collect();
        for destination in gone {
            entry.take(&destination, None);
        }
    }
}
