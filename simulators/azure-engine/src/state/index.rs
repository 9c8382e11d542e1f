//! Follow-up of a change to a document: referenced documents, children, and operations that run on it.

use azure_types::ResourceId;

use crate::document::drop_listed;
use crate::provider::{AzureState, Record};
use crate::store::State;
use crate::store::reference::Role;

impl AzureState {
    /// Stores a record and informs the types of the resources that it points at.
    pub fn insert(&mut self, record: Record) {
        let changed = self.store.insert(record);
        self.referrers_changed(changed);
    }

    /// Brings everything up to date after a record was changed in place.
    pub fn changed(&mut self, id: &ResourceId) {
        let changed = self.store.reindex(id);
        self.referrers_changed(changed);
    }

    /// Removes a record, everything below it and what the service made for them.
    pub fn remove(&mut self, id: &ResourceId) {
        let below: Vec<ResourceId> = self.store.below(id).map(|record| record.id.clone()).collect();
        for id in below.iter().rev().chain([id]) {
            self.end_own_operation(id, "a deletion");
            let owned =
                self.store.get(id).map_or_else(Vec::new, |record| record.resource_type.owned(self, record));
            for owned in owned {
                self.remove(&owned);
            }
            let naming = self.naming(id);
            if let Some((record, changed)) = self.store.remove(id) {
                self.referrers_changed(changed);
                record.resource_type.after_removal(self, &record);
            }
            for id in naming {
                if let Some(resource_type) = self.store.get(&id).map(|record| record.resource_type) {
                    resource_type.after_named_is_gone(self, &id);
                }
            }
        }
    }

    /// The resources that only name another one.
    fn naming(&self, id: &ResourceId) -> Vec<ResourceId> {
        let referrers = self.store.referrers(id).filter(|referrer| referrer.role == Role::Names);
        referrers.filter_map(|referrer| Some(self.store.holder(&referrer.from)?.id.clone())).collect()
    }

    /// Marks a resource that goes by another one's operation: what runs on it alone ends.
    pub fn doom(&mut self, id: &ResourceId) {
        self.end_own_operation(id, "a deletion");
        if let Some(record) = self.store.get_mut(id) {
            record.state = State::Deleting;
            record.operation = None;
        }
    }

    /// Ends what runs on a resource; an operation that it shares with others goes on.
    fn end_own_operation(&mut self, id: &ResourceId, by: &str) {
        let record = self.store.get(id);
        let running = record.and_then(|record| self.operations.running(record.operation.as_ref()));
        let own = running.filter(|running| running.subject == *id).map(|running| running.key.clone());
        if let Some(key) = own {
            self.supersede(&key, by);
        }
    }

    /// Makes every other document that uses `target` by listing `{"id": target}` drop it from the list.
    pub fn release(&mut self, target: &ResourceId) {
        let own = self.store.holder(target).map(|holder| holder.id.clone());
        let mut holders: Vec<ResourceId> = self
            .store
            .referrers(target)
            .filter(|referrer| referrer.role == Role::Uses)
            .filter_map(|referrer| self.store.holder(&referrer.from))
            .map(|holder| holder.id.clone())
            .filter(|holder| Some(holder) != own.as_ref())
            .collect();
        holders.dedup();
        let target = target.to_lower();
        for holder in holders {
            if let Some(record) = self.store.get_mut(&holder) {
                drop_listed(&mut record.body, &target);
                record.version += 1;
            }
            self.changed(&holder);
        }
    }

    fn referrers_changed(&mut self, targets: Vec<ResourceId>) {
        self.revision += 1;
        let follow = self.options.etag_follows_back_references;
        for target in targets {
            let Some(holder) = self.store.holder(&target).map(|record| record.id.clone()) else { continue };
            let Some(record) = self.store.get_mut(&holder) else { continue };
            if follow && record.resource_type.protocol().counts_referrers {
                record.version += 1;
            }
            record.resource_type.after_referrers_changed(self, &holder);
        }
    }
}
