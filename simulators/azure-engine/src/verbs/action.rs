//! POST actions, and the URLs of the operations that writes and actions start.

use azure_types::ResourceId;
use serde_json::Value;

use crate::answer::{Answer, Note, OperationLinks};
use crate::operation::Completion;
use crate::operation::execution::{Execution, Started};
use crate::provider::{AzureState, Concurrency, ResourceType};
use crate::refusal::{Code, Refusal, Result};
use crate::store::State;
use crate::verbs::resolve::Resolved;

impl AzureState {
    /// POST of an action.
    pub fn act(&mut self, resolved: &Resolved, body: &Value, execution: &Execution) -> Result<Answer> {
        let action = &resolved.below.join("/");
        if action.is_empty() {
            return Err(Refusal::method_not_allowed("POST"));
        }
        self.require_writable_group(&resolved.id)?;
        let record = self.require(resolved)?;
        let (resource_type, id) = (record.resource_type, record.id.clone());
        let preempted = match resource_type.acts_during_operations(action) {
            true => None,
            false => self.check_idle(record, body)?,
        };
        let superseded =
            self.operations.running(record.operation.as_ref()).map(|running| running.key.clone());
        let may = resource_type.protocol().may_act(action);
        let done =
            may.then(|| resource_type.act(self, &id, action, body)).flatten().unwrap_or_else(|| {
                Err(Code::azures(404, "InvalidResourceType")
                    .says(format_args!("The action '{action}' is not known for '{id}'.")))
            })?;
        self.revision += 1;
        if let Some(answer) = done.answer {
            return Ok(Answer { note: Note { changes: vec![action.clone()], operation_ms: None }, ..answer });
        }
        let reports = matches!(done.completion, Completion::Report(_));
        let superseded = superseded.filter(|_| !reports || preempted.is_some());
        let held = self.store.get(&id).and_then(|record| record.operation.clone());
        if let Some(record) =
            self.store.get_mut(&id).filter(|record| !reports && record.state != State::Deleting)
        {
            record.state = State::Updating;
        }
        let started = self.start(
            &id,
            resource_type,
            "POST",
            resource_type.operation_name(action),
            done.completion,
            execution,
        );
        if let (false, Some(word)) = (reports, resource_type.protocol().states.during(action)) {
            self.show_state(&id, word);
        }
        // A later write must not supersede an operation that only reports.
        if let (true, Concurrency::Supersede, Some(record)) =
            (reports, resource_type.protocol().concurrency, self.store.get_mut(&id))
        {
            record.operation = held;
        }
        match (superseded, preempted) {
            (Some(superseded), Some(why)) => self.cancel(&superseded, |_| why),
            (Some(superseded), None) => self.supersede(&superseded, action),
            (None, _) => {}
        }
        Ok(Answer {
            operation: Some(self.links(&id, resource_type, &started, true)),
            note: Note { changes: vec![action.clone()], operation_ms: milliseconds(&started) },
            ..Answer::empty(202)
        })
    }

    /// The URLs of an operation on a resource.
    pub fn links(
        &self,
        id: &ResourceId,
        resource_type: &'static dyn ResourceType,
        started: &Started,
        result: bool,
    ) -> OperationLinks {
        let due =
            self.operations.get(&started.key).filter(|o| o.ended.is_none()).map(|operation| operation.due);
        OperationLinks {
            key: started.key.clone(),
            urls: resource_type.protocol().polling.urls,
            segment: resource_type.protocol().polling.segment,
            namespace: id.namespace().unwrap_or_default().to_owned(),
            group: id.group_name().map(str::to_owned),
            location: self.location(id),
            result_url: result,
            retry_after: due.and_then(|due| self.poll_pause(due)),
        }
    }
}

pub(crate) fn milliseconds(started: &Started) -> Option<u64> {
    started.latency.map(|latency| u64::try_from(latency.as_millis()).unwrap_or(u64::MAX))
}
