//! Removes the leftovers of deleted Services and Nodes (8.4 steps 5 and 6).

use std::collections::BTreeSet;

use super::edit::SecurityGroupEdit;

/// Removes from managed rules every destination that is no longer used in the cluster and that is proven to have been
/// the cluster's. Without a proof it may belong to another cluster, whose rules have the same names: it stays.
pub(super) fn retain(draft: &mut SecurityGroupEdit<'_>, of_batch: &BTreeSet<String>) {
    let usage = draft.usage;
    let is_alive = |destination: &String| {
        of_batch.contains(destination) || destination.parse().is_ok_and(|address| usage.has(&address))
    };
    for entry in draft.entries.iter_mut().filter(|entry| entry.managed) {
        let gone: Vec<String> = entry
            .destinations
            .iter()
            .filter(|one| usage.proven.contains_key(*one) && !is_alive(one) && !usage.is_of_others(one))
            .cloned()
            .collect();
        for destination in gone {
            entry.take(&destination, None);
        }
    }
}
