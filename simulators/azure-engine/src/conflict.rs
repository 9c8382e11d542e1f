//! What a write gets while something else goes on with its resource.

use super::error::Refusal;
use super::operation::Operation;
use super::store::State;
use crate::provider::{AzureState, Concurrency, Record, WireDialect};

/// The host that Azure names in texts, whatever host was asked.
const HOST: &str = "https://management.azure.com";

impl AzureState {
    /// Refuses a write where the resource is going, or where its operation neither ends nor gives way.
    pub(super) fn check_idle(&self, record: &Record) -> Result<(), Refusal> {
        let running = self.operations.running(record.operation.as_ref());
        let going = record.state == State::Deleting;
        let gives_way =
            running.is_none() || record.resource_type.protocol().concurrency == Concurrency::Supersede;
        match (going, gives_way, running) {
            (false, true, _) => Ok(()),
            (true, _, running) => Err(self.going(record, running)),
            (false, false, running) => Err(self.busy(record, running)),
        }
    }

    fn going(&self, record: &Record, running: Option<&Operation>) -> Refusal {
        let (resource_type, id) = (record.resource_type, &record.id);
        if resource_type.dialect() == WireDialect::Compute {
            let (noun, name) = (resource_type.protocol().noun, id.name());
            let text = format!("'Put on {noun}' is not allowed on '{name}' since it is marked for deletion.");
            return Refusal::new(409, "OperationNotAllowed", text);
        }
        let mut text = "Another operation on this or dependent resource is in progress.".to_owned();
        if let Some(running) = running {
            let (subscription, namespace) = (id.subscription_id(), id.namespace().unwrap_or_default());
            let (location, segment, key) =
                (self.location(id), resource_type.protocol().polling.segment, &running.key);
            let version = resource_type.protocol().api_versions.first().copied().unwrap_or_default();
            text = format!(
                "{text} To retrieve status of the operation use uri: {HOST}/subscriptions/{subscription}/providers/\
                 {namespace}/locations/{location}/{segment}/{key}?api-version={version}."
            );
        }
        Refusal::network(409, "AnotherOperationInProgress", text)
    }

    fn busy(&self, record: &Record, running: Option<&Operation>) -> Refusal {
        if record.resource_type.dialect() == WireDialect::Compute {
            return Refusal::new(
                409,
                "Conflict",
                "The request failed due to conflict with a concurrent request. To resolve it, please refer to \
                 https://aka.ms/activitylog to get more details on the conflicting requests.",
            );
        }
        let (name, key) = running.map_or(("", ""), |running| (&running.name, &running.key));
        let wait = running.and_then(|running| self.poll_pause(running.due)).unwrap_or(1);
        Refusal::network(429, "RetryableError", "A retryable error occurred.")
            .with_detail(
                "RetryableErrorDueToAnotherOperation",
                format!(
                    "Operation {name} ({key}) is updating resource {}. The call can be retried in {wait} seconds.",
                    record.id
                ),
            )
            .with_retry_after(u32::try_from(wait).unwrap_or(u32::MAX))
    }
}
