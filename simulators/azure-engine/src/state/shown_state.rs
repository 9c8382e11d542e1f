//! A document's `provisioningState`: the name of its state, or that of its running operation.

use std::borrow::Cow;

use azure_types::ResourceId;
use serde_json::Value;

use crate::operation::Status;
use crate::provider::{AzureState, Record};
use crate::store::State;

impl AzureState {
    /// A resource's `provisioningState`: that of its running operation, or else its type's name of its state.
    pub fn state_name<'a>(&'a self, record: &'a Record) -> &'a str {
        let underway = matches!(record.state, State::Creating | State::Updating);
        let running = self.operations.running(record.operation.as_ref()).filter(|_| underway);
        let own = running.filter(|running| running.subject == record.id);
        own.and_then(|running| running.shown.as_deref())
            .unwrap_or_else(|| record.resource_type.protocol().states.of(record.state))
    }

    /// Sets the shown state of a resource while its present operation runs.
    pub fn show_state(&mut self, id: &ResourceId, word: impl Into<Cow<'static, str>>) {
        let key = self.store.get(id).and_then(|record| record.operation.clone());
        if let Some(operation) = key.and_then(|key| self.operations.get_mut(&key))
            && operation.status == Status::InProgress
            && operation.subject == *id
        {
            operation.shown = Some(word.into());
            self.revision += 1;
        }
    }

    /// The word for a change of a resource, as its type says.
    pub(crate) fn state_of_write(&self, record: &Record, old: Option<&Value>) -> Option<&'static str> {
        record.resource_type.state_during_write(old?, &record.body)
    }
}
