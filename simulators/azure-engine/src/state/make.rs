//! Actions of services without a request: resources that come with another one, such as a machine's interfaces, and
//! work that continues after a request was answered.

use std::time::Duration;

use azure_types::ResourceId;
use jiff::Timestamp;

use crate::document::Object;
use crate::operation::Completion;
use crate::operation::execution::Execution;
use crate::provider::{AzureState, EndedOperation, Proposal, Record};
use crate::refusal::Result;
use crate::types::protocol::Readiness;

impl AzureState {
    /// The record that a PUT would store; refused as the PUT would be. The provider is found by the id's type.
    pub fn draft(&self, id: &ResourceId, body: Object) -> Result<Record> {
        let resource_type = self.resource_type(&id.resource_type()).ok_or_else(|| self.not_found(id))?;
        let body = self.judge(resource_type, Proposal::of_service(id, body))?;
        let record = Record::new(resource_type, id, body, Timestamp::UNIX_EPOCH);
        // Services wait for resources that are on their way.
        self.check_references_as(&record, Readiness::UnderWay)?;
        Ok(record)
    }

    /// Creates a resource as a PUT would, at once.
    pub fn make(&mut self, id: &ResourceId, body: Object) -> Result<()> {
        let draft = self.draft(id, body)?;
        let (resource_type, created) = (draft.resource_type, self.now());
        self.insert(Record { created, ..draft });
        resource_type.after_write(self, id, None);
        resource_type.after_operation(
            self,
            id,
            EndedOperation { completion: &Completion::Write, failed: false },
        );
        Ok(())
    }

    /// Schedules a later step of a resource type: [`Writing::after_operation`] gets the step when it is due.
    /// Without a time, the latency of an action of that name decides. Returns the operation's key.
    ///
    /// [`Writing::after_operation`]: crate::provider::Writing::after_operation
    pub fn later(&mut self, subject: &ResourceId, step: &str, wait: Option<Duration>) -> Option<String> {
        let record = self.store.get(subject)?;
        let (resource_type, held) = (record.resource_type, record.operation.clone());
        let execution = Execution { latency: wait, ..Execution::default() };
        let name = resource_type.operation_name(step);
        let started =
            self.start(subject, resource_type, "POST", name, Completion::Step(step.into()), &execution);
        // The resource itself is not busy with it.
        if let Some(record) = self.store.get_mut(subject) {
            record.operation = held;
        }
        Some(started.key)
    }
}
