//! The requests to Azure.

use azure_simulator::RequestKind;

use crate::world::World;

impl World {
    /// The number of successful writes (PUT, PATCH, POST) of a resource type since the journal was last cleared.
    pub fn writes(&self, resource_type: &str) -> usize {
        self.azure.journal().writes_of(resource_type).len()
    }

    /// Every request since the journal was last cleared that could have changed something, including refused ones, as
    /// `METHOD path status`.
    pub fn changes(&self) -> Vec<String> {
        let journal = self.azure.journal();
        let changing = journal
            .entries
            .iter()
            .filter(|entry| matches!(entry.kind, RequestKind::Write | RequestKind::Delete));
        changing.map(|entry| format!("{} {} {}", entry.method, entry.path, entry.status)).collect()
    }

    /// The statuses of all PUTs of a resource type, in order.
    pub fn put_statuses(&self, resource_type: &str) -> Vec<u16> {
        let journal = self.azure.journal();
        let puts = journal.entries.iter().filter(|entry| {
            entry.method == "PUT"
                && entry.resource_type.as_deref().is_some_and(|kind| kind.eq_ignore_ascii_case(resource_type))
        });
        puts.map(|entry| entry.status).collect()
    }
}
