//! The whole state as one document: saved, and restored elsewhere or later.
//!
//! Times in the future are stored as distances from the moment of saving, because a state may be restored at any time.
//! What can be derived (referrers, addresses in use) is not stored.

use std::borrow::Cow;
use std::collections::BTreeMap;

use azure_types::ResourceId;
use faults::Declared;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::Instant;

use crate::fault::Fault;
use crate::journal::Journal;
use crate::operation::{Completion, Operation, OperationStyle, Status};
use crate::provider::{AzureState, Record};
use crate::settings::actors::{Actors, SavedActors};
use crate::settings::budget::Budgets;
use crate::settings::budget::SavedBucket;
use crate::settings::consistency::Consistency;
use crate::settings::latency::LatencyProfile;
use crate::settings::time_left::{after, distance};
use crate::store::State;

/// The format of a saved state; raised when an older program could not read it.
const FORMAT: u64 = 1;

/// Why a saved state cannot be restored.
#[derive(Debug, thiserror::Error)]
pub enum BadSnapshot {
    /// It is not a saved state.
    #[error("not a saved state of a simulated Azure: {0}")]
    Unreadable(#[source] serde_json::Error),
    /// A newer program has written it.
    #[error("the saved state has format {0}, but this program supports only formats up to {FORMAT}")]
    Format(u64),
    /// It holds a type that is not simulated here.
    #[error("the saved state has a resource of type {0}, which is not simulated here")]
    UnknownType(String),
    /// It belongs to a subscription that this Azure does not have.
    #[error("the saved state belongs to the subscription {0}, which this Azure does not have")]
    UnknownSubscription(String),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Snapshot {
    format: u64,
    seed: u64,
    time: Timestamp,
    requests: u64,
    revision: u64,
    latency: LatencyProfile,
    budgets: Option<Budgets>,
    limits: BTreeMap<String, u64>,
    #[serde(default)]
    consistency: Consistency,
    resources: Vec<SavedRecord>,
    incarnations: BTreeMap<String, u64>,
    #[serde(default)]
    forgotten_incarnations: u64,
    operations: Vec<SavedOperation>,
    /// Keys of ended operations, the oldest first.
    ended: Vec<String>,
    operations_started: u64,
    faults: Vec<Declared<Fault>>,
    #[serde(default)]
    actors: SavedActors,
    buckets: Vec<SavedBucket>,
    journal: Journal,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedRecord {
    id: ResourceId,
    #[serde(rename = "type")]
    resource_type: String,
    body: Value,
    hidden: crate::document::Object,
    version: u64,
    state: State,
    operation: Option<String>,
    created: Timestamp,
    incarnation: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct SavedOperation {
    key: String,
    number: u64,
    name: String,
    /// The type of its resource; older states do not have it, and the type follows from the id then.
    #[serde(default)]
    resource_type: Option<String>,
    subject: ResourceId,
    started: Timestamp,
    ended: Option<Timestamp>,
    /// Nanoseconds from the moment of saving.
    due_in: Option<u64>,
    status: Status,
    completion: Completion,
    ending: Option<Status>,
    #[serde(rename = "manner")]
    operation_style: OperationStyle,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shown: Option<Cow<'static, str>>,
    /// Nanoseconds from the moment of saving.
    readable_for: Option<u64>,
}

impl AzureState {
    /// The whole state.
    pub fn save(&mut self) -> Result<Value, serde_json::Error> {
        self.settle();
        let (now, time) = (Instant::now(), self.now());
        let ((incarnations, forgotten_incarnations), ended) =
            (self.store.incarnations(), self.operations.ended());
        let resources = self.store.all().map(|record| SavedRecord {
            id: record.id.clone(),
            resource_type: record.resource_type.name().into(),
            body: record.body.clone(),
            hidden: record.hidden.clone(),
            version: record.version,
            state: record.state,
            operation: record.operation.clone(),
            created: record.created,
            incarnation: record.incarnation,
        });
        let operations = self.operations.all().into_iter().cloned().map(|operation| SavedOperation {
            key: operation.key,
            number: operation.number,
            name: operation.name,
            resource_type: Some(operation.protocol.resource_type.to_owned()),
            subject: operation.subject,
            started: operation.started,
            ended: operation.ended,
            due_in: operation.due.map(|due| distance(now, due)),
            status: operation.status,
            completion: operation.completion,
            ending: operation.ending,
            operation_style: operation.operation_style,
            shown: operation.shown,
            readable_for: operation.readable_until.map(|until| distance(now, until)),
        });
        let mut saved = serde_json::to_value(Snapshot {
            format: FORMAT,
            seed: self.seed.0,
            time,
            requests: self.requests,
            revision: self.revision,
            latency: self.latency.clone(),
            budgets: self.budgets.clone(),
            limits: self.limits.overrides(),
            consistency: self.consistency,
            resources: resources.collect(),
            incarnations,
            forgotten_incarnations,
            operations: operations.collect(),
            ended,
            operations_started: self.operations.count(),
            faults: self.faults.declared().to_vec(),
            actors: self.actors.save(now),
            buckets: self.buckets.save(now),
            journal: self.journal.after(0),
        })?;
        for kept in &self.timetables {
            saved[kept.name()] = kept.save()?;
        }
        Ok(saved)
    }

    /// Replaces the state with a saved one. Returns the times at which running operations end. Nothing is changed if it
    /// cannot be restored.
    pub fn restore(&mut self, saved: Value) -> Result<Vec<Instant>, BadSnapshot> {
        let format = saved.get("format").and_then(Value::as_u64);
        if let Some(format) = format.filter(|format| *format > FORMAT) {
            return Err(BadSnapshot::Format(format));
        }
        let timetables = self
            .timetables
            .iter()
            .map(|kept| kept.read(saved.get(kept.name()).cloned().unwrap_or_else(|| serde_json::json!({}))))
            .collect::<Result<Vec<_>, _>>()
            .map_err(BadSnapshot::Unreadable)?;
        let saved: Snapshot = serde_json::from_value(saved).map_err(BadSnapshot::Unreadable)?;
        let mut records = Vec::with_capacity(saved.resources.len());
        for record in saved.resources {
            let subscription = record.id.subscription_id();
            if self.subscription(subscription).is_none() {
                return Err(BadSnapshot::UnknownSubscription(subscription.into()));
            }
            let resource_type = self
                .resource_type(&record.resource_type)
                .ok_or(BadSnapshot::UnknownType(record.resource_type))?;
            records.push(Record {
                id: record.id,
                resource_type,
                body: record.body,
                hidden: record.hidden,
                version: record.version,
                state: record.state,
                operation: record.operation,
                created: record.created,
                incarnation: record.incarnation,
            });
        }
        let now = Instant::now();
        let mut operations = Vec::with_capacity(saved.operations.len());
        for operation in saved.operations {
            let name = operation.resource_type.unwrap_or_else(|| operation.subject.resource_type());
            let resource_type = self.resource_type(&name).ok_or(BadSnapshot::UnknownType(name))?;
            operations.push(Operation {
                key: operation.key,
                number: operation.number,
                name: operation.name,
                protocol: resource_type.protocol(),
                subject: operation.subject,
                started: operation.started,
                ended: operation.ended,
                due: operation.due_in.map(|left| after(now, left)),
                status: operation.status,
                completion: operation.completion,
                ending: operation.ending,
                operation_style: operation.operation_style,
                shown: operation.shown,
                readable_until: operation.readable_for.map(|left| after(now, left)),
            });
        }
        let ends = operations
            .iter()
            .filter(|operation| operation.status == Status::InProgress)
            .filter_map(|operation| operation.due)
            .collect();
        self.seed = crate::settings::seed::Seed(saved.seed);
        self.set_time(saved.time);
        self.requests = saved.requests;
        // Watchers must see that everything may have changed.
        self.revision = saved.revision.max(self.revision) + 1;
        self.latency = saved.latency;
        self.budgets = saved.budgets;
        self.set_consistency(saved.consistency);
        // A limit that this program does not know cannot be kept.
        let mut limits = saved.limits;
        limits.retain(|name, _| self.limits.all().contains_key(name));
        let _ = self.limits.set(limits);
        self.timetables = timetables;
        self.store.restore(records, (saved.incarnations, saved.forgotten_incarnations));
        self.add_built_in();
        self.operations.restore(operations, saved.ended, saved.operations_started);
        self.faults.restore(saved.faults);
        self.actors = Actors::restore(saved.actors, now);
        self.buckets.restore(saved.buckets, now);
        self.journal.restore(saved.journal);
        Ok(ends)
    }
}
