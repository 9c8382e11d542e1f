//! The security group while a batch is applied: every rule, and the free priorities.

use std::collections::{BTreeSet, HashMap};

use azure_types::SecurityGroup;
use k8s::ObjectKey;

use super::entry::Entry;
use super::usage::ClusterUsage;
use crate::model::limits::{MAX_PRIORITY, MIN_PRIORITY};
use crate::service::WantedRule;

/// The priorities of the group's rules. None becomes free while a batch is planned: a rule that is added again keeps
/// its own.
pub(super) struct Priorities(BTreeSet<i32>);

impl Priorities {
    /// The number of priorities that are free for managed rules.
    pub(super) fn free(&self) -> usize {
        (MIN_PRIORITY..=MAX_PRIORITY).count() - self.0.range(MIN_PRIORITY..=MAX_PRIORITY).count()
    }

    /// Takes the first free priority.
    pub(super) fn take(&mut self, mut order: impl Iterator<Item = i32>) -> Option<i32> {
        order.find(|priority| self.0.insert(*priority))
    }
}

/// The security group while a batch is applied.
pub(super) struct Draft<'a> {
    pub usage: &'a ClusterUsage,
    pub entries: Vec<Entry>,
    /// Rules by their names in lower case.
    by_name: HashMap<String, usize>,
    pub(super) priorities: Priorities,
    /// Whether adjacent destinations are merged, because there are too many of them.
    pub(super) gathers: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn new(observed: &SecurityGroup, usage: &'a ClusterUsage) -> Self {
        let rules = observed.properties.iter().flat_map(|p| p.security_rules.iter().flatten());
        let entries: Vec<Entry> = rules.map(Entry::observed).collect();
        let priority = |entry: &Entry| entry.document.properties.as_ref().and_then(|p| p.priority);
        let mut by_name = HashMap::new();
        for (index, entry) in entries.iter().enumerate() {
            by_name.entry(entry.name().to_ascii_lowercase()).or_insert(index);
        }
        let priorities = Priorities(entries.iter().filter_map(priority).collect());
        Self { usage, entries, by_name, priorities, gathers: false }
    }

    pub fn find(&self, name: &str) -> Option<&Entry> {
        self.entries.get(*self.by_name.get(&name.to_ascii_lowercase())?)
    }

    /// Adds destinations to the rule of this content. Does nothing if there is no priority left for a new rule.
    pub fn add(&mut self, wanted: &WantedRule, key: Option<&ObjectKey>) {
        let name = wanted.name.to_ascii_lowercase();
        let index = match self.by_name.get(&name) {
            Some(index) => *index,
            None => {
                let range = MIN_PRIORITY..=MAX_PRIORITY;
                let priority = match wanted.is_deny() {
                    false => self.priorities.take(range),
                    true => self.priorities.take(range.rev()),
                };
                let Some(priority) = priority else { return };
                self.entries.push(Entry::new(wanted.name.clone(), priority));
                self.by_name.insert(name, self.entries.len() - 1);
                self.entries.len() - 1
            }
        };
        let Some(entry) = self.entries.get_mut(index) else { return };
        if !entry.managed {
            entry.managed = true;
            entry.read_destinations();
        }
        let asserted = wanted.assert(entry.document.properties.get_or_insert_default());
        entry.asserted |= asserted;
        let differs = entry.is_new || asserted || !wanted.destinations.is_subset(&entry.before);
        entry.added_for.extend(key.filter(|_| differs).cloned());
        entry.destinations.extend(wanted.destinations.iter().cloned());
    }
}
