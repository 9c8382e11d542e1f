//! The events that a cloud announces for a machine.

use std::time::Duration;

use async_trait::async_trait;

/// The effect of an event on its machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineEventType {
    /// The machine pauses for some seconds.
    Freeze,
    /// The machine restarts.
    Reboot,
    /// The machine moves to another host.
    Redeploy,
    /// The cloud takes the machine back.
    Preempt,
    /// The machine is deleted.
    Terminate,
    /// An unknown type of event.
    Other,
}

impl MachineEventType {
    /// Whether the event ends the machine for good.
    pub fn ends_machine(self) -> bool {
        matches!(self, Self::Preempt | Self::Terminate)
    }
}

/// An event that affects a machine soon, or now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineEvent {
    /// The event's id, which is never reused.
    pub id: String,
    /// The effect.
    pub event_type: MachineEventType,
    /// The cloud's name of the type.
    pub name: String,
    /// Whether the event affects other machines, too; an approval covers them as well.
    pub is_shared: bool,
    /// Whether the event has started.
    pub has_started: bool,
    /// The earliest start, as the cloud writes it; may be empty.
    pub not_before: String,
    /// How long the machine is unavailable, if known.
    pub duration: Option<Duration>,
    /// The cloud's description; may be empty.
    pub description: String,
}

/// The announced events of one machine.
#[async_trait]
pub trait MachineEvents: Send + Sync + 'static {
    /// The events that affect the machine soon, or now. Events that have ended are not included.
    ///
    /// # Errors
    /// The events cannot be read; the text says why.
    async fn upcoming(&self) -> Result<Vec<MachineEvent>, String>;

    /// Lets an event start early.
    ///
    /// # Errors
    /// The cloud does not accept it; the text says why.
    async fn approve(&self, event: &str) -> Result<(), String>;
}
