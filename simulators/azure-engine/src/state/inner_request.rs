//! Requests from inside the simulator: actions of actors and the platform on resources. They have no token, and no
//! budget counts them.

use azure_types::ResourceId;
use serde_json::Value;

use crate::answer::Answer;
use crate::journal::{JournalEntry, RequestKind};
use crate::operation::execution::Execution;
use crate::provider::AzureState;
use crate::refusal::Result;
use crate::request::Conditions;

/// The principal in the journal where Azure itself acts.
pub const PLATFORM: &str = "platform";

impl AzureState {
    /// Performs a request of a principal, and writes it into the journal.
    pub fn ask(
        &mut self,
        principal: &str,
        method: &str,
        id: &ResourceId,
        action: Option<&str>,
        body: Value,
    ) -> Result<Answer> {
        self.requests += 1;
        let (sequence, time) = (self.requests, self.now());
        let path = action.map_or_else(|| id.to_string(), |action| format!("{id}/{action}"));
        let execution = Execution { by: Some(principal.to_owned()), ..Execution::default() };
        let outcome = self.resolve_id(id).and_then(|mut resolved| {
            let conditions = Conditions::default();
            match method {
                "PUT" => self.put(&resolved, body, &conditions, &execution),
                "PATCH" => self.patch(&resolved, body, &conditions, &execution),
                "DELETE" => self.delete(&resolved, &conditions, &execution),
                _ => {
                    resolved.below.extend(action.map(str::to_owned));
                    self.act(&resolved, &body, &execution)
                }
            }
        });
        let note = outcome.as_ref().map(|answer| answer.note.clone()).unwrap_or_default();
        let refusal = outcome.as_ref().err();
        let resource_type = self.store.get(id).map(|record| record.resource_type.name().to_owned());
        self.journal.record(JournalEntry {
            sequence,
            time,
            method: method.to_owned(),
            path,
            api_version: None,
            status: outcome.as_ref().map_or_else(|refusal| refusal.status, |answer| answer.status),
            code: refusal.map(|refusal| refusal.code.clone()),
            message: refusal.map(|refusal| refusal.message.clone()),
            kind: if method == "DELETE" { RequestKind::Delete } else { RequestKind::Write },
            resource_type,
            resource: Some(id.to_string()),
            answer_ms: None,
            operation_ms: note.operation_ms,
            client_request_id: None,
            user_agent: None,
            changes: note.changes,
            fault: None,
            principal: Some(principal.to_owned()),
        });
        self.revision += 1;
        outcome
    }
}
