//! Calls to Azure. Failures are classified for the writers, and every write is logged.

use std::fmt::Write as _;
use std::sync::Arc;

use arm::{Accepted, ApiVersion, Class, Client, Listing, Operation, OperationGroup, OperationWatch};
use azure_types::ResourceId;
use futures::future::join_all;
use planner::{Action, Document, Purpose, Step, change};
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::failure::{Failure, Kind};
use crate::resource_list::ResourceList;

/// Error codes of refusals of a value that the Service's owner chose: the same value is refused again. Every other
/// refusal may pass without a change of the Service, because something else is released or created first (a DNS label,
/// an address, a slot), so it is retried with growing delays.
const TERMINAL: &[&str] = &[
    "DomainNameLabelReserved",
    "InvalidDomainNameLabel",
    "InvalidIPAddressFormat",
    "InvalidIpTagType",
    "InvalidParameter",
    "InvalidPropertyValue",
    "InvalidRequestContent",
    "InvalidRequestFormat",
    "InvalidResourceName",
    "InvalidTagNameCharacters",
    "InvalidTagNameLength",
    "InvalidTagValueLength",
    "LinkedInvalidPropertyId",
    "LoadBalancingRuleWithAllProtocolNotSupported",
    "PrivateIPAddressInReservedRange",
    "PrivateIPAddressNotInSubnet",
    "ProbeRequestPathRequired",
    "SecurityRuleInvalidAddressPrefix",
    "SecurityRuleInvalidPortRange",
];

/// A failed call, classified for the writers.
pub(crate) fn failure(error: arm::Error) -> Failure {
    Failure::of(error, TERMINAL)
}

/// The client with the error types of this crate. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Azure {
    client: Client,
}

/// A write that Azure has accepted.
#[derive(Debug)]
pub(crate) struct Begun<T> {
    /// The document after the write; `None` for deletions.
    pub(crate) document: Option<T>,
    /// The operation to wait for; `None` if the write has already succeeded.
    pub(crate) operation: Option<Operation>,
}

impl Azure {
    pub(crate) fn new(client: Client) -> Self {
        Self { client }
    }

    /// Whether a call of this class would be sent at once.
    pub(crate) fn has_room(&self, subscription: &str, group: OperationGroup, class: Class) -> bool {
        self.client.budgets().has_room(subscription, group, class)
    }

    /// Reads a whole list page by page, and keeps of each document only what `keep` returns; `class` is that of the
    /// most urgent task that waits for it.
    pub(crate) async fn list<T: DeserializeOwned, K>(
        &self,
        listing: &Listing,
        version: ApiVersion,
        query: &[(&str, &str)],
        class: Class,
        keep: impl Fn(T) -> K,
    ) -> Result<Vec<K>, Failure> {
        self.client.list_map(listing, version, query, class, keep).await.map_err(failure)
    }

    /// Reads one resource; a missing resource is a failure with Azure's own words.
    pub(crate) async fn get_required<T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        version: ApiVersion,
        query: &[(&str, &str)],
        class: Class,
    ) -> Result<T, Failure> {
        self.client.get_with(id, version, query, class).await.map_err(failure)
    }

    /// Reads one resource; `None` if Azure says that it does not exist. `class` is that of the most urgent task that
    /// waits for it.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        id: &ResourceId,
        version: ApiVersion,
        class: Class,
    ) -> Result<Option<T>, Failure> {
        self.client.get_optional(id, version, class).await.map_err(failure)
    }

    /// Writes a shared document as a step says, waits for the operation, and returns the resulting document. Server
    /// errors are left to the writer, which searches for the owner that causes them.
    pub(crate) async fn put<T: DeserializeOwned>(
        &self,
        step: &Step,
        version: ApiVersion,
    ) -> Result<T, Failure> {
        let started = Instant::now();
        let document = required(step)?;
        let etag = step.if_match.as_deref();
        let client = self.client.giving_faults_back();
        let result = match step.action {
            Action::Create => client.create_and_wait(&step.target, version, document, class(step)).await,
            _ => client.put_and_wait(&step.target, version, document, etag, class(step)).await,
        };
        finished(step, started, result)
    }

    /// Writes a document as a step says, and stores the answer in the cache of its type. A failed write may still have
    /// changed the resource: it is read again.
    pub(crate) async fn put_known<T: DeserializeOwned + Send + Sync + 'static>(
        &self,
        step: &Step,
        version: ApiVersion,
        known: Option<&ResourceList<T>>,
    ) -> Result<Arc<T>, Failure> {
        match (self.put(step, version).await, known) {
            (Ok(document), Some(known)) => Ok(known.store(document)),
            (Ok(document), None) => Ok(Arc::new(document)),
            (Err(failure), known) => {
                if let Some(known) = known {
                    known.invalidate();
                }
                Err(failure)
            }
        }
    }

    /// Writes a document as a step says, without waiting for the operation.
    pub(crate) async fn begin_put<T: DeserializeOwned>(
        &self,
        step: &Step,
        version: ApiVersion,
    ) -> Result<Begun<T>, Failure> {
        let started = Instant::now();
        let document = required(step)?;
        let etag = step.if_match.as_deref();
        let result = match step.action {
            Action::Create => self.client.create(&step.target, version, document, class(step)).await,
            _ => self.client.put(&step.target, version, document, etag, class(step)).await,
        };
        finished(step, started, result)
            .map(|accepted: Accepted<T>| Begun { document: accepted.body, operation: accepted.operation })
    }

    /// Writes several resources, each by its own step. At most `parallel` requests are sent at a time; the operations
    /// that they start run concurrently (LB-202), since each takes Azure long and they are independent.
    ///
    /// Of each returned document only what `keep` returns is kept. A step is sent when its `cleared` future completes;
    /// the future's output is held until the step has ended.
    pub(crate) async fn put_all<'a, T: DeserializeOwned, K, F: Future>(
        &self,
        steps: &'a [Step],
        version: ApiVersion,
        parallel: usize,
        keep: impl Fn(T) -> K,
        cleared: impl Fn(&'a Step) -> F,
    ) -> Vec<(&'a Step, Result<K, Failure>)> {
        let (turns, keep, cleared) = (&Semaphore::new(parallel), &keep, &cleared);
        let put = async |step: &'a Step| {
            (step, self.put_in_turn(step, version, turns, cleared(step)).await.map(keep))
        };
        join_all(steps.iter().map(put)).await
    }

    async fn put_in_turn<T: DeserializeOwned, G>(
        &self,
        step: &Step,
        version: ApiVersion,
        turns: &Semaphore,
        cleared: impl Future<Output = G>,
    ) -> Result<T, Failure> {
        let (begun, _cleared): (Begun<T>, G) = {
            // The semaphore is never closed; if it were, the request would still be sent.
            let _turn = turns.acquire().await.ok();
            // A thousand steps may wait here: what a request needs lives on the heap, and only while the request runs.
            let cleared = cleared.await;
            (Box::pin(self.begin_put(step, version)).await?, cleared)
        };
        if let Some(operation) = &begun.operation {
            Box::pin(self.outcome(operation)).await?;
        } else if let Some(document) = begun.document {
            return Ok(document);
        }
        let gone = || Failure::new(Kind::NotFound, format!("{} is gone", step.target));
        Box::pin(self.get(&step.target, version, class(step))).await?.ok_or_else(gone)
    }

    /// Deletes a resource and waits until it is gone.
    pub(crate) async fn delete(&self, step: &Step, version: ApiVersion) -> Result<(), Failure> {
        let started = Instant::now();
        let result = self.client.delete_and_wait(&step.target, version, Class::Delete).await;
        finished(step, started, result)
    }

    /// Requests the deletion of the version that the step names, without waiting for the operation.
    pub(crate) async fn begin_delete(&self, step: &Step, version: ApiVersion) -> Result<Begun<()>, Failure> {
        let started = Instant::now();
        let result = self.client.delete(&step.target, version, step.if_match.as_deref(), Class::Delete).await;
        finished(step, started, result)
            .map(|accepted| Begun { document: None, operation: accepted.operation })
    }

    /// Calls an action of a resource, such as `migrateToIpBased`, and waits for the operation.
    pub(crate) async fn act(
        &self,
        id: &ResourceId,
        action: &str,
        version: ApiVersion,
        body: &Value,
    ) -> Result<(), Failure> {
        let accepted: Accepted<Value> =
            self.client.post(id, action, version, Some(body), Class::Create).await.map_err(failure)?;
        info!(action, resource = %id, "asked Azure");
        match accepted.operation {
            Some(operation) => self.outcome(&operation).await,
            None => Ok(()),
        }
    }

    /// Schedules the reads of a resource while an operation changes it.
    pub(crate) fn watch(&self, operation: &Operation) -> OperationWatch {
        self.client.watch(operation)
    }

    /// Waits for an operation and returns its outcome.
    pub(crate) async fn outcome(&self, operation: &Operation) -> Result<(), Failure> {
        self.client.wait(operation).await.map_err(failure)
    }
}

fn required(step: &Step) -> Result<&Document, Failure> {
    let missing =
        || Failure::new(Kind::PermissionDenied, format!("the plan for {} holds no document", step.target));
    step.document.as_ref().ok_or_else(missing)
}

/// The priority class of a step and of the reads it waits for. A fault blocks everything else, so repairs and rollbacks
/// of refused changes go first. Hundreds of Services, deletions among them, wait for one write of a shared resource: it
/// does not queue behind the public IPs of later Services.
pub(crate) fn class(step: &Step) -> Class {
    let is_of_one_service = matches!(step.document, Some(Document::PublicIp(_) | Document::PrivateLink(_)));
    match (step.purpose, step.action) {
        (Purpose::Repair | Purpose::Restore, _) => Class::Repair,
        (Purpose::Change, Action::Create | Action::Update) if is_of_one_service => Class::Create,
        (Purpose::Change, _) => Class::Delete,
    }
}

/// Maximum number of Services in a log line: with namespaces some 400 characters, which a terminal still shows.
const MAX_OWNERS: usize = 8;

/// The Services that a step is for, as shown in logs, shortened if there are hundreds. `None` if it is for all
/// Services; the changes then name the load balancer.
fn owners(step: &Step) -> Option<String> {
    let mut text = String::new();
    for key in step.on_behalf_of.iter().take(MAX_OWNERS) {
        let separator = if text.is_empty() { "" } else { ", " };
        // Writing to a string cannot fail.
        let _ = write!(text, "{separator}{key}");
    }
    if let Some(more) = step.on_behalf_of.len().checked_sub(MAX_OWNERS).filter(|more| *more > 0) {
        let _ = write!(text, " and {more} more");
    }
    (!text.is_empty()).then_some(text)
}

fn finished<T>(step: &Step, started: Instant, result: Result<T, arm::Error>) -> Result<T, Failure> {
    let duration_ms = started.elapsed().as_millis();
    let action = match step.action {
        Action::Create => "create",
        Action::Update => "update",
        Action::Delete => "delete",
    };
    let changes = change::in_words(&step.changes);
    match result {
        Ok(value) => {
            info!(action, resource = %step.target, owners = owners(step), duration_ms, changes, "wrote to Azure");
            Ok(value)
        }
        Err(error) => {
            let (owners, request_id) = (owners(step), error.request_id());
            // It is read and planned again: not an error.
            if Kind::of(&error, TERMINAL) == Kind::Aborted {
                info!(action, resource = %step.target, owners, duration_ms, changes, %error, request_id,
                    "another write came first");
            } else {
                warn!(action, resource = %step.target, owners, duration_ms, changes, %error, request_id,
                    "a write to Azure failed");
            }
            Err(failure(error))
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s::ObjectKey;

    use super::*;

    fn step(action: Action, purpose: Purpose) -> Step {
        let target = ResourceId::group("s", "rg").resource("Microsoft.Network", "publicIPAddresses", "pip");
        let on_behalf_of = Vec::new();
        Step {
            action,
            target,
            if_match: None,
            document: None,
            changes: Vec::new(),
            purpose,
            on_behalf_of,
            ownership: Vec::new(),
        }
    }

    #[test]
    fn repairs_queue_before_what_many_wait_for_and_that_before_what_is_one_services() {
        let public_ip = || Some(Document::PublicIp(Box::default()));
        let load_balancer = || Some(Document::LoadBalancer(Box::default()));
        for (action, document, purpose, expected) in [
            (Action::Create, public_ip(), Purpose::Change, Class::Create),
            (Action::Update, public_ip(), Purpose::Change, Class::Create),
            (Action::Create, load_balancer(), Purpose::Change, Class::Delete),
            (Action::Update, load_balancer(), Purpose::Change, Class::Delete),
            (Action::Delete, None, Purpose::Change, Class::Delete),
            (Action::Update, public_ip(), Purpose::Repair, Class::Repair),
            (Action::Update, load_balancer(), Purpose::Restore, Class::Repair),
            (Action::Delete, None, Purpose::Restore, Class::Repair),
        ] {
            let step = Step { document, ..step(action, purpose) };
            assert_eq!(class(&step), expected, "{step:?}");
        }
    }

    #[test]
    fn a_line_of_the_log_names_some_owners_and_has_no_empty_field() {
        let mut step = step(Action::Update, Purpose::Change);
        assert_eq!(owners(&step), None);
        step.on_behalf_of = vec![ObjectKey::new("shop", "web")];
        assert_eq!(owners(&step).as_deref(), Some("shop/web"));
        step.on_behalf_of = (0..10).map(|number| ObjectKey::new("shop", format!("s{number}"))).collect();
        assert!(owners(&step).unwrap().ends_with("shop/s7 and 2 more"), "{:?}", owners(&step));
    }
}
