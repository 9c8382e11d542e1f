//! Upcoming events of this machine.
//!
//! Azure shows every machine of a scale set, or of an availability set, the events of all of them. Only those of the
//! machine itself matter here; approving an event approves it for all of its machines.

use std::time::Duration;

use crate::document::{Event, EventList};

/// The type of an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventType {
    /// It pauses for some seconds.
    Freeze,
    /// It restarts.
    Reboot,
    /// It moves to another host, without its temporary disk.
    Redeploy,
    /// It is a spot machine and is taken back.
    Preempt,
    /// It is deleted.
    Terminate,
    /// A type of Azure's that this release does not know.
    Other(String),
}

impl From<&str> for EventType {
    fn from(text: &str) -> Self {
        match text {
            "Freeze" => Self::Freeze,
            "Reboot" => Self::Reboot,
            "Redeploy" => Self::Redeploy,
            "Preempt" => Self::Preempt,
            "Terminate" => Self::Terminate,
            other => Self::Other(other.to_owned()),
        }
    }
}

/// A scheduled or running event of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduledEvent {
    /// Its id.
    pub id: String,
    /// The type.
    pub event_type: EventType,
    /// Whether it affects other machines: approval covers them, too.
    pub is_shared: bool,
    /// Whether it is running.
    pub has_started: bool,
    /// Its earliest start, in Azure's words; empty once it has started.
    pub not_before: String,
    /// How long the machine is away; `None` if that is unknown.
    pub duration: Option<Duration>,
    /// The reason, in Azure's words.
    pub description: String,
}

/// The events of one machine in Azure's list.
pub(crate) fn of_machine(name: &str, list: EventList) -> Vec<ScheduledEvent> {
    let is_own = |event: &Event| event.resources.iter().any(|one| one.eq_ignore_ascii_case(name));
    let read = |event: Event| ScheduledEvent {
        event_type: event.event_type.as_str().into(),
        is_shared: event.resources.len() > 1,
        has_started: event.event_status.eq_ignore_ascii_case("Started"),
        duration: u64::try_from(event.duration_in_seconds).ok().map(Duration::from_secs),
        id: event.event_id,
        not_before: event.not_before,
        description: event.description,
    };
    list.events.into_iter().filter(is_own).map(read).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// NODE-220
    #[test]
    fn node_220_events_of_other_machines_are_left_out() {
        let list = json!({"DocumentIncarnation": 2, "Events": [
            {"EventId": "A", "EventType": "Freeze", "ResourceType": "VirtualMachine", "Resources": ["Pool_0", "pool_1"],
             "EventStatus": "Scheduled", "NotBefore": "Mon, 19 Sep 2016 18:29:47 GMT", "Description": "Host maintenance.",
             "EventSource": "Platform", "DurationInSeconds": 9},
            {"EventId": "B", "EventType": "Reboot", "Resources": ["pool_10"]},
            {"EventId": "C", "EventType": "Melt", "Resources": ["pool_1"], "EventStatus": "Started", "NotBefore": null,
             "DurationInSeconds": -1},
        ]});
        let of = |name: &str| of_machine(name, serde_json::from_value(list.clone()).unwrap());
        let own = of("POOL_1");
        assert_eq!(own.len(), 2);
        assert_eq!(
            own[0],
            ScheduledEvent {
                id: "A".into(),
                event_type: EventType::Freeze,
                is_shared: true,
                has_started: false,
                not_before: "Mon, 19 Sep 2016 18:29:47 GMT".into(),
                duration: Some(Duration::from_secs(9)),
                description: "Host maintenance.".into(),
            }
        );
        assert_eq!(own[1].event_type, EventType::Other("Melt".into()));
        assert!(own[1].has_started && !own[1].is_shared && own[1].duration.is_none());
        assert_eq!(of("pool_10").len(), 1);
        assert_eq!(of("pool"), []);
        assert_eq!(of_machine("pool_1", serde_json::from_value(json!({"Events": null})).unwrap()), []);
    }
}
