//! Scheduled events: maintenance and evictions of machines, announced to them and to the machines beside them.
//!
//! Events are planned through the control API; restarts and redeployments by users show as events while
//! they run. An event starts when a machine approves it or when its time has come, lasts its duration
//! and is gone.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::compute::machine::spot::deleted_when_evicted;
use crate::compute::machine::{is_machine, machine_name};
use azure_engine::document::stored_reference;
use azure_engine::operation::{Completion, Status};
use azure_engine::provider::{AzureState, Timetable};
use azure_engine::refusal::{Refusal, Result};
use azure_engine::state::inner_request::PLATFORM;

/// What happens to the machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EventType {
    /// They pause for a few seconds.
    Freeze,
    /// They restart.
    Reboot,
    /// They move to another host.
    Redeploy,
    /// They are spot machines and are evicted.
    Preempt,
    /// They are deleted.
    Terminate,
}

impl EventType {
    /// How long before an event Azure announces it, and how long it takes, both in seconds.
    fn usual(self) -> (i64, i64) {
        match self {
            Self::Freeze => (900, 5),
            Self::Reboot => (900, 60),
            Self::Redeploy => (600, 60),
            Self::Preempt => (30, -1),
            Self::Terminate => (300, -1),
        }
    }
}

/// A planned event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EventPlan {
    /// What will happen.
    pub event_type: EventType,
    /// To which machines.
    pub machines: Vec<ResourceId>,
    /// Seconds until it happens without approval; Azure's minimum where it is missing.
    #[serde(default)]
    pub in_seconds: Option<i64>,
    /// Its duration in seconds; -1 if unknown.
    #[serde(default)]
    pub duration_seconds: Option<i64>,
    /// Why, in words.
    #[serde(default)]
    pub description: String,
    /// Whether a user wants it, rather than the platform.
    #[serde(default)]
    pub by_user: bool,
}

impl EventPlan {
    /// An event as Azure announces it.
    pub fn of(event_type: EventType, machines: Vec<ResourceId>) -> Self {
        Self {
            event_type,
            machines,
            in_seconds: None,
            duration_seconds: None,
            description: String::new(),
            by_user: false,
        }
    }
}

/// An event of unknown duration is over after this many seconds.
const UNKNOWN_DURATION: i64 = 60;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Event {
    id: String,
    plan: EventPlan,
    not_before: Timestamp,
    started: Option<Timestamp>,
}

impl Event {
    fn duration(&self) -> i64 {
        self.plan.duration_seconds.unwrap_or(self.plan.event_type.usual().1)
    }

    /// When it starts or ends by itself.
    fn due(&self) -> Timestamp {
        let Some(started) = self.started else { return self.not_before };
        let lasts = if self.duration() < 0 { UNKNOWN_DURATION } else { self.duration() };
        later(started, lasts)
    }
}

fn later(time: Timestamp, seconds: i64) -> Timestamp {
    time.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX)
}

/// The events of one simulated Azure.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScheduledEvents {
    list: Vec<Event>,
    planned: u64,
    /// What each group of machines saw last, and how often that had changed.
    seen: BTreeMap<String, (u64, String)>,
}

impl ScheduledEvents {
    /// How often what a group of machines sees has changed, now included.
    fn incarnation(&mut self, group: String, signature: String) -> u64 {
        let seen = self.seen.entry(group).or_insert_with(|| (1, String::new()));
        if seen.1 != signature {
            *seen = (seen.0 + 1, signature);
        }
        seen.0
    }

    /// Whether such an event is to come for a machine, or takes place.
    pub fn announces(&self, event_type: EventType, machine: &ResourceId) -> bool {
        self.list
            .iter()
            .any(|event| event.plan.event_type == event_type && event.plan.machines.contains(machine))
    }
}

impl Timetable for ScheduledEvents {
    fn name(&self) -> &'static str {
        "scheduledEvents"
    }

    fn due(&self) -> Option<Timestamp> {
        self.list.iter().map(Event::due).min()
    }

    fn attend(&self) -> fn(&mut AzureState) {
        attend_events
    }

    fn save(&self) -> Result<Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn read(&self, saved: Value) -> Result<Box<dyn Timetable>, serde_json::Error> {
        Ok(Box::new(serde_json::from_value::<Self>(saved)?))
    }
}

/// An event as the machines see it.
struct Shown {
    id: String,
    kind: EventType,
    names: Vec<String>,
    /// Until when it waits for approval; `None` once it has started.
    not_before: Option<Timestamp>,
    description: String,
    by_user: bool,
    duration: i64,
}

/// The events that are to come or take place.
fn planned(azure: &AzureState) -> &[Event] {
    azure.timetable::<ScheduledEvents>().map_or(&[], |events| &events.list)
}

/// Announces an event. Gives its id.
pub fn plan_event(azure: &mut AzureState, plan: EventPlan) -> Result<String> {
    if plan.machines.is_empty() {
        return Err(Refusal::invalid_parameter("machines", "An event is of one machine at least."));
    }
    if let Some(absent) = plan.machines.iter().find(|id| !azure.store.get(id).is_some_and(is_machine)) {
        return Err(azure.not_found(absent));
    }
    let now = azure.now();
    let number = azure.timetable::<ScheduledEvents>().map_or(0, |events| events.planned) + 1;
    let id = azure.seed.guid("scheduled event", "", number).to_uppercase();
    let wait = plan.in_seconds.unwrap_or(plan.event_type.usual().0).max(0);
    let event = Event { id: id.clone(), not_before: later(now, wait), started: None, plan };
    if let Some(events) = azure.timetable_mut::<ScheduledEvents>() {
        events.planned = number;
        events.list.push(event);
    }
    azure.revision += 1;
    Ok(id)
}

/// Cancels an event; `false` where there is no event of that id.
pub fn cancel_event(azure: &mut AzureState, id: &str) -> bool {
    let Some(events) = azure.timetable_mut::<ScheduledEvents>() else { return false };
    let before = events.list.len();
    events.list.retain(|event| !event.id.eq_ignore_ascii_case(id));
    events.list.len() < before
}

/// Starts and ends the events whose time has come.
pub fn attend_events(azure: &mut AzureState) {
    let now = azure.now();
    let due: Vec<(String, bool)> = planned(azure)
        .iter()
        .filter(|event| event.due() <= now)
        .map(|event| (event.id.clone(), event.started.is_some()))
        .collect();
    for (id, started) in due {
        if started {
            cancel_event(azure, &id);
        } else {
            start_event(azure, &id);
        }
    }
}

fn start_event(azure: &mut AzureState, id: &str) {
    let now = azure.now();
    let Some(events) = azure.timetable_mut::<ScheduledEvents>() else { return };
    let mut waiting = events.list.iter_mut().filter(|event| event.started.is_none());
    let Some(event) = waiting.find(|event| event.id.eq_ignore_ascii_case(id)) else { return };
    event.started = Some(now);
    let (kind, machines) = (event.plan.event_type, event.plan.machines.clone());
    azure.revision += 1;
    for machine in machines {
        // An action that is refused is skipped: the event passes.
        let _ = match kind {
            EventType::Terminate => azure.ask(PLATFORM, "DELETE", &machine, None, Value::Null),
            EventType::Preempt if deleted_when_evicted(azure, &machine) == Some(true) => {
                azure.ask(PLATFORM, "DELETE", &machine, None, Value::Null)
            }
            EventType::Preempt => azure.ask(PLATFORM, "POST", &machine, Some("deallocate"), Value::Null),
            // The platform does these below the machine: nothing of it shows in its documents.
            EventType::Freeze | EventType::Reboot | EventType::Redeploy => continue,
        };
    }
}

/// The group of machines that see the same events: their scale set, their availability set, or the machine.
fn hearing_group(azure: &AzureState, machine: &ResourceId) -> String {
    if let Some(set) = machine.parent().filter(|parent| parent.namespace().is_some()) {
        return set.to_lower();
    }
    let body = azure.store.get(machine).map(|record| &record.body);
    let named = |path| body.and_then(|body| stored_reference(body, path));
    let group =
        named("properties/virtualMachineScaleSet/id").or_else(|| named("properties/availabilitySet/id"));
    group.unwrap_or_else(|| machine.clone()).to_lower()
}

fn events_of(azure: &AzureState, machine: &ResourceId) -> Vec<Shown> {
    let group = hearing_group(azure, machine);
    let heard = |machines: &[ResourceId]| {
        let there: Vec<String> = machines
            .iter()
            .filter(|id| azure.store.get(id).is_some() && hearing_group(azure, id) == group)
            .map(machine_name)
            .collect();
        (!there.is_empty()).then_some(there)
    };
    let planned = planned(azure).iter().filter_map(|event| {
        Some(Shown {
            id: event.id.clone(),
            kind: event.plan.event_type,
            names: heard(&event.plan.machines)?,
            not_before: event.started.is_none().then_some(event.not_before),
            description: event.plan.description.clone(),
            by_user: event.plan.by_user,
            duration: event.duration(),
        })
    });
    let operations = azure.operations.all();
    let by_users = operations.iter().filter(|o| o.status == Status::InProgress).filter_map(|operation| {
        let Completion::Action(action, targets) = &operation.completion else { return None };
        let kind = match action.to_ascii_lowercase().as_str() {
            "restart" | "reimage" => EventType::Reboot,
            "redeploy" => EventType::Redeploy,
            _ => return None,
        };
        let named = targets.as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut machines: Vec<ResourceId> = named.filter_map(|id| ResourceId::parse(id).ok()).collect();
        if machines.is_empty() {
            machines.push(operation.subject.clone());
        }
        Some(Shown {
            id: operation.key.to_uppercase(),
            kind,
            names: heard(&machines)?,
            not_before: None,
            description: format!("A user asked for the action {action}."),
            by_user: true,
            duration: -1,
        })
    });
    planned.chain(by_users).collect()
}

/// The document that a machine reads, as a version has it.
pub fn events_document(azure: &mut AzureState, machine: &ResourceId, version: &str) -> Value {
    let shown = events_of(azure, machine);
    let signature: Vec<String> =
        shown.iter().map(|e| format!("{}:{}:{}", e.id, e.not_before.is_some(), e.names.len())).collect();
    let signature = signature.join(",");
    let group = hearing_group(azure, machine);
    let kept = azure.timetable_mut::<ScheduledEvents>();
    let incarnation = kept.map_or(1, |events| events.incarnation(group, signature));
    let events: Vec<Value> = shown
        .into_iter()
        .map(|event| {
            let when = event.not_before.map(|at| at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string());
            let mut document = json!({
                "EventId": event.id,
                "EventType": event.kind,
                "ResourceType": "VirtualMachine",
                "Resources": event.names,
                "EventStatus": if event.not_before.is_some() { "Scheduled" } else { "Started" },
                // Empty once it has started.
                "NotBefore": when.unwrap_or_default(),
            });
            if version >= "2019-04-01" {
                document["Description"] = event.description.into();
            }
            if version >= "2019-08-01" {
                document["EventSource"] = if event.by_user { "User" } else { "Platform" }.into();
            }
            if version >= "2020-07-01" {
                document["DurationInSeconds"] = event.duration.into();
            }
            document
        })
        .collect();
    json!({ "DocumentIncarnation": incarnation, "Events": events })
}

/// Approval by a machine; `false` where it names an event that the machine does not see.
pub fn approve_events(azure: &mut AzureState, machine: &ResourceId, ids: &[String]) -> bool {
    let seen = events_of(azure, machine);
    if !ids.iter().all(|id| seen.iter().any(|event| event.id.eq_ignore_ascii_case(id))) {
        return false;
    }
    ids.iter().for_each(|id| start_event(azure, id));
    true
}

/// Every planned event, for the control API.
pub fn planned_events(azure: &AzureState) -> Vec<Value> {
    planned(azure).iter().map(|event| json!(event)).collect()
}
