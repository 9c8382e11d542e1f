//! Conflicts of a write with a running operation on its resource.

use serde_json::Value;

use crate::operation::Operation;
use crate::provider::{AzureState, Concurrency, Record};
use crate::refusal::words::Blocked;
use crate::refusal::{Refusal, Result};
use crate::store::State;

/// The host that Azure names in messages, whatever host a request used.
const HOST: &str = "https://management.azure.com";

impl AzureState {
    /// Refuses a request if the resource is being deleted, or if its operation neither ends nor gives way. Returns why
    /// the operation ends, if the request preempts it.
    pub(crate) fn check_idle(&self, record: &Record, asked: &Value) -> Result<Option<Refusal>> {
        let running = self.operations.running(record.operation.as_ref());
        let going = record.state == State::Deleting;
        let preempted = running.and_then(|_| record.resource_type.preempts(record, asked));
        let gives_way = running.is_none()
            || preempted.is_some()
            || record.resource_type.protocol().concurrency == Concurrency::Supersede;
        match (going, gives_way, running) {
            (false, true, _) => Ok(preempted),
            (true, _, running) => Err(self.going(record, running)),
            (false, false, running) => Err(self.busy(record, running)),
        }
    }

    fn going(&self, record: &Record, running: Option<&Operation>) -> Refusal {
        (record.resource_type.protocol().words.going)(&self.blocked(record, running))
    }

    fn busy(&self, record: &Record, running: Option<&Operation>) -> Refusal {
        (record.resource_type.protocol().words.busy)(&self.blocked(record, running))
    }

    fn blocked<'a>(&self, record: &'a Record, running: Option<&'a Operation>) -> Blocked<'a> {
        let (protocol, id) = (record.resource_type.protocol(), &record.id);
        let (subscription, namespace) = (id.subscription_id(), id.namespace().unwrap_or_default());
        let (location, segment) = (self.location(id), protocol.polling.segment);
        let key = running.map(|running| running.key.as_str()).unwrap_or_default();
        let version = protocol.api_versions.first().copied().unwrap_or_default();
        Blocked {
            id,
            noun: protocol.noun,
            operation: running.map(|running| (running.name.as_str(), running.key.as_str())),
            url: format!(
                "{HOST}/subscriptions/{subscription}/providers/{namespace}/locations/{location}/{segment}/{key}\
                 ?api-version={version}"
            ),
            wait: running.and_then(|running| self.poll_pause(running.due)).unwrap_or(1),
        }
    }
}
