//! Requests work outside, and takes its results.

use azure_types::ResourceId;
use serde_json::Value;

use crate::operation::outside::OutsideTask;
use crate::operation::{Completion, Status};
use crate::provider::AzureState;
use crate::refusal::Refusal;

impl AzureState {
    /// Requests work on a resource. It replaces earlier work.
    pub fn ask_outside(&mut self, id: &ResourceId, what: Value) {
        if !self.outside.listens {
            return;
        }
        self.outside.requested += 1;
        let number = self.outside.requested;
        self.outside.waiting.insert(id.to_lower(), number);
        self.outside.failures.remove(&id.to_lower());
        self.outside.queue.push(OutsideTask { id: id.clone(), number, what });
        self.revision += 1;
    }

    /// Takes the work that was requested and not begun.
    pub fn take_outside_tasks(&mut self) -> Vec<OutsideTask> {
        std::mem::take(&mut self.outside.queue)
    }

    /// Whether work on a resource is not done.
    pub fn is_waiting(&self, id: &ResourceId) -> bool {
        self.outside.listens && self.outside.waiting.contains_key(&id.to_lower())
    }

    /// Takes the result of work. A result for work that was requested again since is ignored.
    pub fn finish_outside_task(&mut self, id: &ResourceId, number: u64, answer: &Value) {
        let key = id.to_lower();
        if self.outside.waiting.get(&key) != Some(&number) {
            return;
        }
        self.outside.waiting.remove(&key);
        self.revision += 1;
        if let Some(resource_type) = self.store.get(id).map(|record| record.resource_type)
            && let Some(refusal) = resource_type.after_outside_work(self, id, answer)
        {
            self.outside.failures.insert(key, refusal);
        }
        for key in std::mem::take(&mut self.outside.held) {
            self.finish_unless_held(&key);
        }
    }

    /// Ends a due operation, or lets it wait for work outside.
    pub(crate) fn finish_unless_held(&mut self, key: &str) {
        let (waits, failure) = if self.outside.listens { self.outside_of(key) } else { (false, None) };
        if waits {
            return self.outside.held.push(key.to_owned());
        }
        if let Some(refusal) = failure {
            self.operations.set_ending(key, Status::Failed(refusal));
        }
        self.finish(key);
    }

    /// Whether an operation waits for work outside, and how that failed.
    fn outside_of(&mut self, key: &str) -> (bool, Option<Refusal>) {
        let Some(operation) = self.operations.get(key) else { return (false, None) };
        if operation.completion != Completion::Write || operation.status != Status::InProgress {
            return (false, None);
        }
        let subject = operation.subject.clone();
        let Some(record) = self.store.get(&subject) else { return (false, None) };
        let ids = record.resource_type.awaited_outside(self, &subject);
        if ids.iter().any(|id| self.is_waiting(id)) {
            return (true, None);
        }
        let failures = ids.iter().filter_map(|id| self.outside.failures.remove(&id.to_lower()));
        (false, failures.last())
    }
}
