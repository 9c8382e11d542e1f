//! The course of operations: start, end and supersession, and due actions.

use std::time::Duration;

use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;
use tokio::time::Instant;

use crate::operation::execution::{Execution, Started};
use crate::operation::{Completion, FAILURE, Operation, Status};
use crate::provider::{AzureState, EndedOperation, Record, ResourceType};
use crate::refusal::Refusal;
use crate::store::State;
use crate::types::protocol::KeyForm;

impl AzureState {
    /// Starts an operation on a resource. The caller has set the resource's state already.
    pub fn start(
        &mut self,
        subject: &ResourceId,
        resource_type: &'static dyn ResourceType,
        verb: &str,
        name: String,
        completion: Completion,
        execution: &Execution,
    ) -> Started {
        let number = self.operations.next_number();
        let mut key = self.seed.guid("operation", subject.as_str(), number);
        match resource_type.protocol().polling.key {
            KeyForm::Guid => {}
            KeyForm::Job => {
                let job = json!({ "jobId": format!("RESOURCEGROUPDELETIONJOB-{key}"), "jobLocation": self.options.region });
                key = URL_SAFE_NO_PAD.encode(job.to_string());
            }
            KeyForm::Named(word) => {
                let tracking = self.seed.guid("tracking", &key, 0);
                key = STANDARD.encode(format!("{word};{name};{key}_{tracking}"));
            }
        }
        let draw = self.seed.number("latency", subject.as_str(), number);
        let latency = match (execution.at_once, execution.stall, execution.latency) {
            (true, _, _) => Some(Duration::ZERO),
            (_, true, _) => None,
            (_, _, Some(latency)) => Some(latency),
            _ => {
                let action = match &completion {
                    Completion::Action(action, _) | Completion::Step(action) => Some(action.as_str()),
                    _ => None,
                };
                Some(self.latency.of(verb, resource_type.name(), action, draw))
            }
        };
        let operation = Operation {
            key: key.clone(),
            number,
            name,
            protocol: resource_type.protocol(),
            subject: subject.clone(),
            started: self.now(),
            ended: None,
            due: latency.map(|latency| self.instant() + latency),
            status: Status::InProgress,
            completion,
            ending: execution.ending.clone(),
            operation_style: execution.operation_style,
            shown: None,
            readable_until: None,
        };
        if let Some(record) = self.store.get_mut(subject) {
            record.operation = Some(key.clone());
        }
        self.operations.start(operation);
        if execution.at_once {
            self.finish(&key);
        }
        Started { key, latency }
    }

    /// Runs everything that is due by now, in order: operations end, actors act.
    pub fn settle(&mut self) {
        let now = Instant::now();
        loop {
            let operation = self.operations.next_due().filter(|due| *due <= now);
            let action = self.actors.due(now).filter(|due| *due <= now);
            let next = self
                .timetables
                .iter()
                .filter_map(|kept| Some((kept.due()?, kept.attend())))
                .min_by_key(|(due, _)| *due);
            let next = next.and_then(|(due, attend)| Some((self.instant_of(due)?, attend)));
            let next = next.filter(|(due, _)| *due <= now);
            let Some(due) = operation.into_iter().chain(action).chain(next.map(|(due, _)| due)).min() else {
                break;
            };
            self.moment = Some(due);
            self.store.history.moment = self.moment;
            if operation == Some(due) {
                if let Some(key) = self.operations.take_due(due) {
                    self.finish_unless_held(&key);
                }
            } else if action == Some(due) {
                self.act_for_actors(due);
            } else if let Some((_, attend)) = next {
                attend(self);
            }
        }
        self.moment = None;
        self.store.history.moment = None;
    }

    /// Ends an operation with its chosen ending.
    pub fn finish(&mut self, key: &str) {
        let now = self.now();
        let Some(operation) = self.operations.end(key, now) else { return };
        operation.status = operation.ending.take().unwrap_or(Status::Succeeded);
        let failure = operation.status != Status::Succeeded;
        let ended = match operation.status {
            Status::Succeeded => State::Succeeded,
            Status::Canceled(_) => State::Canceled,
            _ => State::Failed,
        };
        let why = match &operation.status {
            Status::Failed(why) => Some(json!({ "code": why.code, "message": why.message })),
            _ => None,
        };
        let (subject, completion) = (operation.subject.clone(), operation.completion.clone());
        self.revision += 1;
        let Some(resource_type) = self.store.get(&subject).map(|record| record.resource_type) else { return };
        match (&completion, failure) {
            (Completion::Delete, false) => self.remove(&subject),
            (Completion::Report(_) | Completion::Step(_), _) => {}
            _ => {
                // A resource that is being deleted stays so, whatever else has ended.
                let going =
                    |record: &Record| record.state == State::Deleting && completion != Completion::Delete;
                if let Some(record) = self.store.get_mut(&subject).filter(|record| !going(record)) {
                    record.state = ended;
                    match why {
                        Some(why) => record.hidden.insert(FAILURE.into(), why),
                        None => record.hidden.remove(FAILURE),
                    };
                    if resource_type.protocol().counts_ends {
                        record.version += 1;
                    }
                }
            }
        }
        if completion == Completion::Delete && failure {
            self.spare(&subject);
        }
        resource_type.after_operation(
            self,
            &subject,
            EndedOperation { completion: &completion, failed: failure },
        );
    }

    /// Keeps the resources that would have been deleted with one whose deletion has failed.
    fn spare(&mut self, subject: &ResourceId) {
        let below: Vec<ResourceId> = self
            .store
            .below(subject)
            .filter(|record| {
                record.state == State::Deleting
                    && self.operations.running(record.operation.as_ref()).is_none()
            })
            .map(|record| record.id.clone())
            .collect();
        for id in below {
            if let Some(record) = self.store.get_mut(&id) {
                record.state = State::Succeeded;
            }
        }
    }

    /// Ends a running operation now; `false` if no operation of that key runs.
    pub fn end(&mut self, key: &str, status: Status) -> bool {
        if !self.operations.set_ending(key, status) {
            return false;
        }
        self.finish(key);
        true
    }

    /// Ends a running operation as `Canceled`, because another one supersedes it.
    pub fn supersede(&mut self, key: &str, by_name: &str) {
        self.cancel(key, |operation| {
            (operation.protocol.words.superseded)(&operation.name, &operation.key, by_name)
        });
    }

    /// Ends a running operation as `Canceled`, without effect.
    pub(crate) fn cancel(&mut self, key: &str, why: impl FnOnce(&Operation) -> Refusal) {
        let now = self.now();
        if let Some(operation) = self.operations.end(key, now) {
            operation.status = Status::Canceled(why(operation));
        }
    }
}
