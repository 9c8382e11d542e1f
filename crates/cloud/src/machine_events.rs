//! What a cloud announces for a machine.

use std::time::Duration;

use async_trait::async_trait;

/// What happens to a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MachineEventType {
    /// It pauses for some seconds.
    Freeze,
    /// It restarts.
    Reboot,
    /// It moves to another host.
    Redeploy,
    /// The cloud takes it back.
    Preempt,
    /// It is deleted.
    Terminate,
    /// Something that nobody here knows.
    Other,
}

impl MachineEventType {
    /// Whether the machine does not come back.
    pub fn ends_machine(self) -> bool {
        matches!(self, Self::Preempt | Self::Terminate)
    }
}

/// Something that will soon happen to a machine, or takes place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MachineEvent {
    /// Its id, which no other event ever has.
    pub id: String,
    /// What happens.
    pub event_type: MachineEventType,
    /// What the cloud calls that.
    pub name: String,
    /// Whether other machines are part of it: approval is for them, too.
    pub is_shared: bool,
    /// Whether it takes place now.
    pub has_started: bool,
    /// When it may start at the earliest, in the cloud's words; may be empty.
    pub not_before: String,
    /// How long the machine is away; `None` where nobody knows.
    pub duration: Option<Duration>,
    /// Why, in the cloud's words; may be empty.
    pub description: String,
}

/// What is announced for one machine.
#[async_trait]
pub trait MachineEvents: Send + Sync + 'static {
    /// What will soon happen to the machine, or takes place. What is over is in it no more.
    ///
    /// # Errors
    /// Nobody can say; the text tells why.
    async fn upcoming(&self) -> Result<Vec<MachineEvent>, String>;

    /// Lets an event start before its time.
    ///
    /// # Errors
    /// The cloud does not take it; the text tells why.
    async fn approve(&self, event: &str) -> Result<(), String>;
}
