//! The state of one simulated Azure, and what happens to it as time goes on.

use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::budget::Buckets;
use super::document::{Object, items, name};
use super::error::Refusal;
use super::fault::Faults;
use super::history::Consistency;
use super::journal::JournalBook;
use super::limits::Limits;
use super::operation::{Completion, Operation, OperationStyle, Operations, Status};
use super::resource_type::{ChildCollection, Expand, Provider, ResourceType, Role, WireDialect};
use super::seed::Seed;
use super::store::{Record, State, Store};
use crate::actors::Actors;
use crate::imds::scheduled_events::ScheduledEvents;
use crate::options::{Budgets, Options};

/// How one request's work is to run: chosen by faults, and by builders that want no delay.
#[derive(Debug, Clone, Default)]
pub(crate) struct Execution {
    /// Finish before answering.
    pub(crate) at_once: bool,
    /// End so, rather than well.
    pub(crate) ending: Option<Status>,
    pub(crate) stall: bool,
    pub(crate) latency: Option<Duration>,
    /// How the operation can be followed.
    pub(crate) operation_style: OperationStyle,
    /// The principal of the actor who asks; `None` for clients.
    pub(crate) by: Option<String>,
}

/// The state of one simulated Azure.
pub(crate) struct AzureState {
    pub(crate) options: Arc<Options>,
    pub(crate) providers: Vec<Provider>,
    pub(crate) seed: Seed,
    pub(crate) store: Store,
    pub(crate) operations: Operations,
    pub(crate) journal: JournalBook,
    pub(crate) faults: Faults,
    pub(crate) actors: Actors,
    /// Request budgets, changeable while it runs.
    pub(crate) budgets: Option<Budgets>,
    pub(crate) buckets: Buckets,
    pub(crate) limits: Limits,
    /// How far reads lag, changeable while it runs.
    pub(crate) consistency: Consistency,
    /// What machines are told that will happen to them.
    pub(crate) events: ScheduledEvents,
    pub(crate) requests: u64,
    /// Raised by everything that changes what a reader would see.
    pub(crate) revision: u64,
    /// Latencies, changeable while it runs.
    pub(crate) latency: super::latency::LatencyProfile,
    /// The wall-clock time at `origin`.
    start: Timestamp,
    origin: Option<Instant>,
    /// The time at which something is being done that was due before now.
    moment: Option<Instant>,
}

/// An operation that was started (or was over at once).
pub(crate) struct Started {
    pub(crate) key: String,
    pub(crate) latency: Option<Duration>,
}

/// How exact Azure's clocks are, in nanoseconds: its documents show seven digits.
const TICK: i128 = 100;

impl AzureState {
    pub(crate) fn new(options: Arc<Options>, providers: Vec<Provider>) -> Self {
        let consistency = options.consistency;
        let mut azure = Self {
            seed: Seed(options.seed),
            journal: JournalBook::with_capacity(options.journal_capacity),
            latency: options.latency.clone(),
            budgets: options.budgets.clone(),
            consistency,
            limits: Limits::new(&providers, options.limits.clone()),
            providers,
            store: Store::default(),
            operations: Operations::default(),
            faults: Faults::of(&options.faults),
            actors: Actors::of(&options.actors),
            start: options.start,
            options,
            buckets: Buckets::default(),
            events: ScheduledEvents::default(),
            requests: 0,
            revision: 0,
            origin: None,
            moment: None,
        };
        azure.set_consistency(consistency);
        azure
    }

    /// The time on tokio's clock; while something overdue is being done, the time when it was due.
    pub(crate) fn instant(&self) -> Instant {
        self.moment.unwrap_or_else(Instant::now)
    }

    /// The simulated wall-clock time.
    pub(crate) fn now(&mut self) -> Timestamp {
        // The origin is the first look at the clock, so that a state can be made outside a runtime.
        if self.origin.is_none() {
            self.origin = Some(self.instant());
        }
        self.time()
    }

    /// The simulated wall-clock time, for those who may only look.
    pub(crate) fn time(&self) -> Timestamp {
        let now = self.instant();
        let passed = self.origin.map(|origin| now.saturating_duration_since(origin)).unwrap_or_default();
        let passed = jiff::SignedDuration::try_from(passed).unwrap_or_default();
        let time = self.start.checked_add(passed).unwrap_or(Timestamp::MAX);
        let ticks = time.as_nanosecond() - time.as_nanosecond().rem_euclid(TICK);
        Timestamp::from_nanosecond(ticks).unwrap_or(time)
    }

    /// When the simulated clock shows a time.
    fn instant_of(&mut self, time: Timestamp) -> Option<Instant> {
        let origin = *self.origin.get_or_insert_with(Instant::now);
        let ahead = Duration::try_from(time.duration_since(self.start)).unwrap_or_default();
        origin.checked_add(ahead)
    }

    /// Sets the simulated wall clock, which goes on from there.
    pub(crate) fn set_time(&mut self, time: Timestamp) {
        self.start = time;
        self.origin = Some(Instant::now());
    }

    /// The provider of a namespace.
    pub(crate) fn provider(&self, namespace: &str) -> Option<&Provider> {
        self.providers.iter().find(|provider| provider.namespace.eq_ignore_ascii_case(namespace))
    }

    /// The resource type of a full name such as `Microsoft.Network/loadBalancers`.
    pub(crate) fn resource_type(&self, name: &str) -> Option<&'static dyn ResourceType> {
        let namespace = name.split('/').next().unwrap_or_default();
        let types = &self.provider(namespace)?.resource_types;
        types.iter().copied().find(|known| known.name().eq_ignore_ascii_case(name))
    }

    /// The subscription in the spelling of the options, if it exists.
    pub(crate) fn subscription(&self, subscription: &str) -> Option<&str> {
        std::iter::once(&self.options.subscription)
            .chain(&self.options.more_subscriptions)
            .find(|known| known.eq_ignore_ascii_case(subscription))
            .map(String::as_str)
    }

    /// The etag of a record.
    pub(crate) fn etag(&self, record: &Record) -> String {
        match record.resource_type.dialect() {
            WireDialect::Network => {
                // A resource that was deleted and made anew must not answer to its old etags.
                let subject = format!("{}#{}", record.id, record.incarnation);
                format!("W/\"{}\"", self.seed.guid("etag", &subject, record.version))
            }
            WireDialect::Compute | WireDialect::Manager => format!("\"{}\"", record.version),
        }
    }

    /// The location of a record, or of its nearest ancestor that has one.
    pub(crate) fn location(&self, id: &ResourceId) -> String {
        let mut next = Some(id.clone());
        while let Some(id) = next {
            if let Some(location) =
                self.store.get(&id).and_then(|r| r.body.get("location")).and_then(Value::as_str)
            {
                return location.into();
            }
            next = id.parent();
        }
        self.options.region.clone()
    }

    /// Stores a record and tells those that it points at.
    pub(crate) fn insert(&mut self, record: Record) {
        let changed = self.store.insert(record);
        self.referrers_changed(changed);
    }

    /// Brings everything up to date after a record was changed in place.
    pub(crate) fn changed(&mut self, id: &ResourceId) {
        let changed = self.store.reindex(id);
        self.referrers_changed(changed);
    }

    /// Removes a record, everything below it and what the service made for them.
    pub(crate) fn remove(&mut self, id: &ResourceId) {
        let below: Vec<ResourceId> = self.store.below(id).map(|record| record.id.clone()).collect();
        for id in below.iter().rev().chain([id]) {
            self.end_own_operation(id, "a deletion");
            let owned =
                self.store.get(id).map_or_else(Vec::new, |record| record.resource_type.owned(self, record));
            for owned in owned {
                self.remove(&owned);
            }
            if let Some((_, changed)) = self.store.remove(id) {
                self.referrers_changed(changed);
            }
        }
    }

    /// Marks a resource that goes by another one's operation: what runs on it alone ends.
    pub(crate) fn doom(&mut self, id: &ResourceId) {
        self.end_own_operation(id, "a deletion");
        if let Some(record) = self.store.get_mut(id) {
            record.state = State::Deleting;
            record.operation = None;
        }
    }

    /// Ends what runs on a resource; an operation that it shares with others goes on.
    fn end_own_operation(&mut self, id: &ResourceId, by: &str) {
        let record = self.store.get(id);
        let running = record.and_then(|record| self.operations.running(record.operation.as_ref()));
        let own = running.filter(|running| running.subject == *id).map(|running| running.key.clone());
        if let Some(key) = own {
            self.supersede(&key, by);
        }
    }

    /// Makes every other document that uses `target` by listing `{"id": target}` drop it from the list.
    pub(crate) fn release(&mut self, target: &ResourceId) {
        let own = self.store.holder(target).map(|holder| holder.id.clone());
        let mut holders: Vec<ResourceId> = self
            .store
            .referrers(target)
            .filter(|referrer| referrer.role == Role::Uses)
            .filter_map(|referrer| self.store.holder(&referrer.from))
            .map(|holder| holder.id.clone())
            .filter(|holder| Some(holder) != own.as_ref())
            .collect();
        holders.dedup();
        let target = target.to_lower();
        for holder in holders {
            if let Some(record) = self.store.get_mut(&holder) {
                super::document::drop_listed(&mut record.body, &target);
                record.version += 1;
            }
            self.changed(&holder);
        }
    }

    fn referrers_changed(&mut self, targets: Vec<ResourceId>) {
        self.revision += 1;
        let follow = self.options.etag_follows_back_references;
        for target in targets {
            let Some(holder) = self.store.holder(&target).map(|record| record.id.clone()) else { continue };
            let Some(record) = self.store.get_mut(&holder) else { continue };
            if follow && record.resource_type.dialect() == WireDialect::Network {
                record.version += 1;
            }
            record.resource_type.referrers_changed(self, &holder);
        }
    }

    /// The child document that an id names inside a record.
    pub(crate) fn find_child<'a>(
        &self,
        record: &'a Record,
        id: &ResourceId,
    ) -> Option<(&'static ChildCollection, &'a Value)> {
        let rest = id.as_str().get(record.id.as_str().len() + 1..)?;
        let (collection, child) = rest.split_once('/')?;
        let collection = record.resource_type.protocol().child_collection(collection)?;
        let found = items(record.body.get("properties")?, collection.name)
            .iter()
            .find(|item| name(item).eq_ignore_ascii_case(child))?;
        Some((collection, found))
    }

    /// Checks that everything a document is about to point at exists and is ready.
    pub(crate) fn check_references(&self, candidate: &Record) -> Result<(), Refusal> {
        self.check_references_as(candidate, candidate.resource_type.dialect())
    }

    /// The same, as strict as providers of a dialect are.
    pub(crate) fn check_references_as(
        &self,
        candidate: &Record,
        dialect: WireDialect,
    ) -> Result<(), Refusal> {
        let references = candidate.resource_type.references(candidate);
        for reference in references.into_iter().filter(|reference| reference.role != Role::Names) {
            if reference.to.is_within(&candidate.id) {
                if self.find_child(candidate, &reference.to).is_none() {
                    return Err(Refusal::invalid_reference(&reference.to, &reference.from));
                }
                continue;
            }
            let holder = self
                .store
                .holder(&reference.to)
                .filter(|holder| {
                    holder.id == reference.to || self.find_child(holder, &reference.to).is_some()
                })
                .filter(|holder| same_region(holder, candidate))
                .ok_or_else(|| Refusal::invalid_reference(&reference.to, &reference.from))?;
            match (dialect, holder.state) {
                (_, State::Succeeded) => {}
                (WireDialect::Network | WireDialect::Manager, _) => {
                    self.check_provisioned(holder, &reference.to, &reference.from)?;
                }
                // Compute waits for the network by itself, but not for what will not come.
                (WireDialect::Compute, State::Creating | State::Updating) => {}
                (WireDialect::Compute, state) => {
                    return Err(Refusal::new(
                        409,
                        "Conflict",
                        format!(
                            "Resource {} is in {} state and cannot be used.",
                            reference.to,
                            state.as_str()
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Checks that what a document is about to point at is not being changed, as Network wants it.
    pub(crate) fn check_provisioned(
        &self,
        holder: &Record,
        to: &ResourceId,
        from: &ResourceId,
    ) -> Result<(), Refusal> {
        if holder.state == State::Succeeded {
            return Ok(());
        }
        let last = holder.operation.as_ref().and_then(|key| self.operations.get(key)).map_or_else(
            || holder.resource_type.operation_name("Put"),
            |operation| format!("{} ({})", operation.name, operation.key),
        );
        Err(Refusal::not_provisioned(to, from, holder.state.as_str(), &last))
    }

    /// Starts an operation on a resource. The caller has set the resource's state already.
    pub(crate) fn start(
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
        if resource_type.dialect() == WireDialect::Manager {
            use base64::Engine as _;
            let job = json!({ "jobId": format!("RESOURCEGROUPDELETIONJOB-{key}"), "jobLocation": self.options.region });
            key = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(job.to_string());
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
            dialect: resource_type.dialect(),
            subject: subject.clone(),
            started: self.now(),
            ended: None,
            due: latency.map(|latency| self.instant() + latency),
            status: Status::InProgress,
            completion,
            ending: execution.ending.clone(),
            operation_style: execution.operation_style,
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

    /// Does everything that is due by now, in the order in which it is due: operations end, actors act.
    pub(crate) fn settle(&mut self) {
        let now = Instant::now();
        loop {
            let operation = self.operations.next_due().filter(|due| *due <= now);
            let action = self.actors.due(now).filter(|due| *due <= now);
            let event = self.events.due().and_then(|due| self.instant_of(due)).filter(|due| *due <= now);
            let Some(due) = operation.into_iter().chain(action).chain(event).min() else { break };
            self.moment = Some(due);
            self.store.history.moment = self.moment;
            if operation == Some(due) {
                if let Some(key) = self.operations.take_due(due) {
                    self.finish(&key);
                }
            } else if action == Some(due) {
                Actors::act(self, due);
            } else {
                self.attend_events();
            }
        }
        self.moment = None;
        self.store.history.moment = None;
    }

    /// Ends an operation, in the way that was chosen for it.
    pub(crate) fn finish(&mut self, key: &str) {
        let now = self.now();
        let Some(operation) = self.operations.end(key, now) else { return };
        operation.status = operation.ending.take().unwrap_or(Status::Succeeded);
        let failure = operation.status != Status::Succeeded;
        let (subject, completion) = (operation.subject.clone(), operation.completion.clone());
        self.revision += 1;
        let Some(resource_type) = self.store.get(&subject).map(|record| record.resource_type) else { return };
        match (&completion, failure) {
            (Completion::Delete, false) => self.remove(&subject),
            (Completion::Report(_) | Completion::Step(_), _) => {}
            _ => {
                // Who is going stays so, whatever else has ended.
                let going =
                    |record: &Record| record.state == State::Deleting && completion != Completion::Delete;
                if let Some(record) = self.store.get_mut(&subject).filter(|record| !going(record)) {
                    record.state = if failure { State::Failed } else { State::Succeeded };
                    if resource_type.dialect() == WireDialect::Network {
                        record.version += 1;
                    }
                }
            }
        }
        if completion == Completion::Delete && failure {
            self.spare(&subject);
        }
        resource_type.after_operation(self, &subject, &completion, failure);
    }

    /// Keeps what was to go with a resource whose deletion has failed.
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

    /// Ends a running operation now; `false` where none of that key runs.
    pub(crate) fn end(&mut self, key: &str, status: Status) -> bool {
        if !self.operations.set_ending(key, status) {
            return false;
        }
        self.finish(key);
        true
    }

    /// Ends a running operation as `Canceled`, because another one takes its place.
    pub(crate) fn supersede(&mut self, key: &str, by_name: &str) {
        let now = self.now();
        let Some(operation) = self.operations.end(key, now) else { return };
        let refusal = match operation.dialect {
            WireDialect::Network | WireDialect::Manager => {
                Refusal::network(409, "Canceled", "Operation was canceled.").with_detail(
                    "CanceledAndSupersededDueToAnotherOperation",
                    format!(
                        "Operation {} ({}) was canceled and superseded by operation {by_name}.",
                        operation.name, operation.key
                    ),
                )
            }
            WireDialect::Compute => Refusal::new(
                409,
                "OperationPreempted",
                "Operation execution has been preempted by a more recent operation.",
            ),
        };
        operation.status = Status::Canceled(refusal);
    }

    /// A document as a GET shows it.
    pub(crate) fn present(&self, record: &Record, expand: Expand) -> Value {
        let mut document = record.body.as_object().cloned().unwrap_or_default();
        document.insert("id".into(), record.id.as_str().into());
        document.insert("name".into(), record.id.name().into());
        document.insert("type".into(), record.resource_type.name().into());
        self.present_identity(record, &mut document);
        let etag = self.etag(record);
        let mut properties = super::document::take_properties(&mut document);
        properties.insert("provisioningState".into(), record.state.as_str().into());
        for collection in record.resource_type.protocol().child_collections {
            if let Some(Value::Array(children)) = properties.get_mut(collection.name) {
                for child in children {
                    self.complete_child(record, collection, &etag, child);
                }
            }
        }
        document.insert("properties".into(), Value::Object(properties));
        if record.resource_type.protocol().etagged {
            document.insert("etag".into(), etag.into());
        }
        record.resource_type.present(self, record, &mut document, expand);
        Value::Object(document)
    }

    /// A child document as a GET shows it.
    pub(crate) fn present_child(
        &self,
        record: &Record,
        collection: &'static ChildCollection,
        child: &Value,
    ) -> Value {
        let mut child = child.clone();
        self.complete_child(record, collection, &self.etag(record), &mut child);
        child
    }

    fn complete_child(
        &self,
        record: &Record,
        collection: &'static ChildCollection,
        etag: &str,
        child: &mut Value,
    ) {
        let id = record.id.child(collection.name, name(child));
        let Value::Object(document) = child else { return };
        let mut properties: Object = super::document::take_properties(document);
        properties.insert("provisioningState".into(), record.state.as_str().into());
        for (member, segment) in collection.back_references {
            let wanted = format!("/{}/", segment.to_ascii_lowercase());
            let list: Vec<Value> = self
                .store
                .referrers(&id)
                .filter(|referrer| referrer.role == Role::Uses)
                .filter(|referrer| segment.is_empty() || is_of(&referrer.from, &wanted))
                .map(|referrer| json!({ "id": referrer.from }))
                .collect();
            if !list.is_empty() {
                properties.insert((*member).into(), list.into());
            }
        }
        record.resource_type.present_child(self, record, collection.name, &id, &mut properties);
        document.insert("id".into(), id.as_str().into());
        document.insert("type".into(), format!("{}/{}", record.resource_type.name(), collection.name).into());
        document.insert("etag".into(), etag.into());
        document.insert("properties".into(), Value::Object(properties));
    }
}

/// Whether two documents are in one region, as far as both say where they are.
fn same_region(one: &Record, other: &Record) -> bool {
    match (one.body.get("location"), other.body.get("location")) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    }
}

/// Whether the last (type, name) pair of an id is of a type, given as `/type/` in lower case.
pub(crate) fn is_of(id: &ResourceId, wanted: &str) -> bool {
    let text = id.to_lower();
    text.rfind('/').is_some_and(|at| text[..=at].ends_with(wanted))
}
