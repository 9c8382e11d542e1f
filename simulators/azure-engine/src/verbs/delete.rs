//! DELETE of resources, of child documents, and of parts that are stored elsewhere.

use serde_json::Value;

use crate::answer::{Answer, Note, OperationLinks};
use crate::document::name;
use crate::journal::differences;
use crate::operation::Completion;
use crate::operation::execution::{Execution, Started};
use crate::provider::{AzureState, Expand, PartWrite};
use crate::refusal::{Refusal, Result};
use crate::request::Conditions;
use crate::store::State;
use crate::verbs::action::milliseconds;
use crate::verbs::resolve::Resolved;
use crate::verbs::write::DocumentWrite;

impl AzureState {
    /// DELETE of a resource or of a child document.
    pub fn delete(
        &mut self,
        resolved: &Resolved,
        conditions: &Conditions,
        execution: &Execution,
    ) -> Result<Answer> {
        if resolved.list {
            return Err(Refusal::method_not_allowed("DELETE"));
        }
        self.require_group(&resolved.id)?;
        let (resource_type, id) = (resolved.resource_type, &resolved.id);
        if !resolved.below.is_empty() {
            return self.delete_child(resolved, conditions, execution);
        }
        let Some(record) = self.store.get(id) else {
            if let Some(parent) = id.parent().filter(|parent| parent.namespace().is_some())
                && self.store.get(&parent).is_none()
                && self.document(&parent).is_none()
            {
                return Err(Refusal::parent_not_found("delete", resource_type.name(), &parent));
            }
            return Ok(Answer::empty(204));
        };
        self.check_conditions(id, Some(record), conditions)?;
        let running = self.operations.running(record.operation.as_ref());
        if let (State::Deleting, Some(running)) = (record.state, running) {
            let started = Started { key: running.key.clone(), latency: None };
            return Ok(Answer {
                operation: Some(self.links(id, resource_type, &started, true)),
                ..Answer::empty(202)
            });
        }
        resource_type.before_delete(self, record)?;
        self.check_unused(record)?;
        // An operation that the resource shares with others continues without it.
        let own = running.filter(|running| running.subject == *id);
        let superseded = own.map(|running| running.key.clone());
        let was_going = record.state == State::Deleting;
        let name = resource_type.operation_name("Delete");
        let before = record.body.clone();
        let shown = resource_type.protocol().shows_deleted.then(|| self.present(record, Expand::default()));
        if let Some(record) = self.store.get_mut(id) {
            record.state = State::Deleting;
            record.version += 1;
        }
        self.revision += 1;
        if !was_going {
            resource_type.after_delete(self, id);
        }
        let mut execution = execution.clone();
        execution.at_once |= resource_type.protocol().synchronous_delete;
        let started = self.start(id, resource_type, "DELETE", name.clone(), Completion::Delete, &execution);
        if let Some(superseded) = superseded {
            self.supersede(&superseded, &format!("{name} ({})", started.key));
        }
        Ok(Answer {
            operation: (!resource_type.protocol().synchronous_delete)
                .then(|| self.links(id, resource_type, &started, true)),
            note: Note { changes: differences(Some(&before), None), operation_ms: milliseconds(&started) },
            body: shown,
            ..Answer::empty(resource_type.protocol().delete_status)
        })
    }

    fn delete_child(
        &mut self,
        resolved: &Resolved,
        conditions: &Conditions,
        execution: &Execution,
    ) -> Result<Answer> {
        let Some((collection, Some(child))) = Self::child_target(resolved.resource_type, &resolved.below)
        else {
            return self.delete_view(resolved, execution);
        };
        if !collection.writable {
            return Err(Refusal::method_not_allowed("DELETE"));
        }
        self.require_writable_group(&resolved.id)?;
        let record = self
            .store
            .get(&resolved.id)
            .ok_or_else(|| Refusal::parent_not_found("delete", &resolved.full_type, &resolved.id))?;
        let mut parent = record.body.as_object().cloned().unwrap_or_default();
        let gone = parent
            .get_mut("properties")
            .and_then(|properties| properties.get_mut(collection.name))
            .and_then(Value::as_array_mut)
            .is_some_and(|children| {
                let count = children.len();
                children.retain(|item| !name(item).eq_ignore_ascii_case(child));
                children.len() < count
            });
        if !gone {
            return Ok(Answer::empty(204));
        }
        let answer =
            self.write(&DocumentWrite::of("DELETE", resolved, conditions, execution, None), parent)?;
        let operation = answer.operation.map(|links| OperationLinks { result_url: true, ..links });
        Ok(Answer { operation, note: answer.note, ..Answer::empty(202) })
    }

    /// DELETE of a part of a resource that is stored elsewhere.
    fn delete_view(&mut self, resolved: &Resolved, execution: &Execution) -> Result<Answer> {
        self.require_writable_group(&resolved.id)?;
        let (id, resource_type) = (self.require(resolved)?.id.clone(), resolved.resource_type);
        let below: Vec<&str> = resolved.below.iter().map(String::as_str).collect();
        let deleted = resource_type.write_below(self, &id, PartWrite { below: &below, body: None });
        if !deleted.ok_or_else(|| self.not_writable(resolved, "DELETE"))?? {
            return Ok(Answer::empty(204));
        }
        self.revision += 1;
        if let Some(record) = self.store.get_mut(&id) {
            record.state = State::Updating;
        }
        let name = format!("Delete{}ChildOperation", resource_type.protocol().noun);
        let started = self.start(&id, resource_type, "DELETE", name, Completion::Write, execution);
        Ok(Answer {
            operation: Some(self.links(&id, resource_type, &started, true)),
            note: Note { changes: vec![resolved.below.join("/")], operation_ms: milliseconds(&started) },
            ..Answer::empty(202)
        })
    }
}
