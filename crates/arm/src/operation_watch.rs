//! When an operation of Azure is polled: when earlier ones of its kind were done ([`freshness::LearnedDurations`]).
//! Azure's `Retry-After` takes precedence; the longer of both pauses applies.

use std::sync::Arc;
use std::time::Duration;

use clock::Clock;
use freshness::{LearnedDurations, Polls};
use tokio::time::Instant;

use crate::operation::Operation;

/// How long earlier operations of each kind took.
pub(crate) type OperationDurations = Arc<LearnedDurations<OperationKind>>;

/// The kind of an operation, by which its duration is known: the method, and the resource type in lower case.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct OperationKind {
    method: String,
    resource_type: String,
}

impl OperationKind {
    fn of(operation: &Operation) -> Self {
        let resource_type = operation.resource.resource_type().to_ascii_lowercase();
        Self { method: operation.method.clone(), resource_type }
    }
}

/// Says when to check an operation, and records the results. For callers that wait in another way than
/// [`crate::Client::wait`], such as by a list that shows many resources.
#[derive(Debug)]
pub struct OperationWatch {
    durations: OperationDurations,
    kind: OperationKind,
    polls: Polls,
    age_before: Duration,
    begin: Instant,
}

impl OperationWatch {
    pub(crate) fn new(durations: &OperationDurations, clock: &Clock, operation: &Operation) -> Self {
        let kind = OperationKind::of(operation);
        let polls = durations.polls(&kind);
        let started = Duration::from_millis(operation.started);
        let age_before = clock.since_1970().saturating_sub(started);
        Self { durations: Arc::clone(durations), kind, polls, age_before, begin: Instant::now() }
    }

    /// How long the operation has been running.
    pub fn age(&self) -> Duration {
        self.age_before.saturating_add(self.begin.elapsed())
    }

    /// The pause before the first poll; zero if the duration of such operations is unknown.
    pub fn first_pause(&mut self) -> Duration {
        let age = self.age();
        self.polls.first(age)
    }

    /// The operation still runs. Returns the pause before the next poll, between a quarter of a second and five. An
    /// earlier poll, such as by a list for others, does not delay the one that is due.
    pub fn still_runs(&mut self) -> Duration {
        let age = self.age();
        self.polls.missed(age)
    }

    /// A poll had no answer, and Azure asks for this pause. Returns the pause before the next one.
    pub(crate) fn unanswered(&mut self, asked: Option<Duration>) -> Duration {
        self.polls.unanswered(asked)
    }

    /// The operation has succeeded.
    pub fn succeeded(self) {
        let age = self.age();
        self.durations.learn(self.kind, &self.polls, age);
    }
}
