//! Why a call to Azure did not do what it should, in the terms that writers decide by.

use std::time::Duration;

use azure_types::ResourceId;
use planner::sequence::Stop;

use crate::scope::{self, Scope};
use crate::{Notice, ServiceError};

/// What a failed call means for the one who made it. The names are gRPC's canonical ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Azure says that the resource (or its group) is not there.
    NotFound,
    /// Somebody else changed the resource, or another operation superseded ours: read and plan again.
    Aborted,
    /// Azure is busy, throttles or has a fault: the same request may work later.
    Unavailable,
    /// Azure refuses a value that the Service's owner chose; asking again gives the same answer.
    InvalidArgument,
    /// Azure refuses what was asked, but not for good: something else has to happen first, such as somebody
    /// giving up a name, an address or a place.
    FailedPrecondition,
    /// Azure refuses the caller, or the place: permissions, policies, locks, registration.
    PermissionDenied,
    /// An operation has been running for longer than it is waited for: it may end by itself.
    Overdue,
    /// Nobody knows whether the request was carried out: no answer came, or an unreadable one.
    Unknown,
}

/// A call that failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// What it means.
    pub(crate) kind: Kind,
    /// Azure's code and words, or ours where Azure said nothing.
    pub(crate) message: String,
    /// How long Azure asks to wait.
    pub(crate) after: Option<Duration>,
    /// The client's error, where a call failed.
    pub(crate) cause: Option<Box<arm::Error>>,
    /// What to tell the Service's owner besides.
    pub(crate) notices: Vec<Notice>,
    /// Whether it concerns one or all of the owners that share the resource.
    pub(crate) scope: Scope,
}

impl Failure {
    /// A failure without a time to wait.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        let scope = match kind {
            Kind::InvalidArgument | Kind::FailedPrecondition => Scope::Unclear,
            _ => Scope::All,
        };
        Self { kind, message: message.into(), after: None, cause: None, notices: Vec::new(), scope }
    }

    /// Whether it concerns all owners that share the resource, or passes by itself. Any other refusal may be about one owner:
    /// the writer searches for that owner.
    pub(crate) fn concerns_all(&self) -> bool {
        let is_refusal = matches!(
            self.kind,
            Kind::InvalidArgument | Kind::FailedPrecondition | Kind::PermissionDenied | Kind::NotFound
        );
        !is_refusal || self.scope == Scope::All
    }

    /// The same failure, judged for the owners that share another resource than the one that the call was about.
    pub(crate) fn seen_from(mut self, shared: &ResourceId) -> Self {
        if let Some(cause) = &self.cause {
            self.scope = scope::of(cause, Some(shared));
        }
        self
    }

    /// Whether it may concern all: then the search for one owner has a limit.
    pub(crate) fn may_concern_all(&self) -> bool {
        !matches!(self.kind, Kind::InvalidArgument | Kind::FailedPrecondition)
    }

    /// Whether it may be in the way of one owner alone, and for as long as that one asks.
    pub(crate) fn may_be_a_conflict_of_one(&self) -> bool {
        matches!(self.kind, Kind::Aborted | Kind::Unavailable) && self.scope == Scope::Unclear
    }

    /// Whether it is a trouble of Azure's that a part of one owner may bring about.
    pub(crate) fn may_be_a_fault_of_one(&self) -> bool {
        self.kind == Kind::Unavailable && self.scope == Scope::Unclear
    }

    /// Whether Azure accepted what was asked and failed on the way.
    pub(crate) fn is_late(&self) -> bool {
        self.cause.as_ref().and_then(|cause| cause.service()).is_some_and(|answer| answer.status == 200)
    }

    /// Whether Azure said that the resource is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        self.kind == Kind::NotFound
    }

    /// Whether the same request may work later: nothing is wrong with what was asked.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.kind, Kind::Aborted | Kind::Unavailable | Kind::Unknown)
    }

    /// Whether Azure gave this code, itself or in a detail.
    pub(crate) fn has_code(&self, code: &str) -> bool {
        self.cause.as_ref().is_some_and(|cause| cause.has_code(code))
    }

    /// Everything in which Azure may have named what it refuses.
    pub(crate) fn full_text(&self) -> String {
        self.cause.as_ref().map_or_else(|| self.message.clone(), |cause| cause.full_text())
    }

    /// The same failure with a word on what was being done.
    pub(crate) fn while_doing(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The same failure as nobody's in particular: no answer is terminal because of it.
    pub(crate) fn not_attributable(self) -> Self {
        let kind = match self.kind {
            Kind::InvalidArgument => Kind::FailedPrecondition,
            kind => kind,
        };
        Self { kind, scope: Scope::All, ..self }
    }

    /// Of this failure and one that came before it, the one to tell: a lost race is settled by reading again.
    pub(crate) fn unless_told(self, before: Option<Self>) -> Self {
        before.filter(|before| before.kind != Kind::Aborted).unwrap_or(self)
    }

    /// The same failure with more to tell.
    pub(crate) fn with_notices(mut self, more: impl IntoIterator<Item = Notice>) -> Self {
        self.notices.extend(more);
        self
    }
}

/// What the owner of a Service is told: terminal only where the Service itself was refused.
impl From<Failure> for ServiceError {
    fn from(failure: Failure) -> Self {
        let Failure { kind, message, after, cause, notices, .. } = failure;
        match kind {
            // What the planner refuses says by itself what to change.
            Kind::InvalidArgument if cause.is_none() => Self::Refused { message: short(message), notices },
            Kind::InvalidArgument => Self::Refused { message: with_remedy(message), notices },
            _ => Self::Retry { message: short(message), after, notices },
        }
    }
}

/// Azure's refusal, and when it will be reconsidered.
fn with_remedy(message: String) -> String {
    const REMEDY: &str = " (not tried again until the Service changes)";
    let mut message = k8s::shorten(message, k8s::MAX_EVENT_MESSAGE - REMEDY.len());
    message.push_str(REMEDY);
    message
}

/// A refusal of the planner's.
impl From<planner::Refusal> for Failure {
    fn from(refusal: planner::Refusal) -> Self {
        let kind = if refusal.is_terminal() { Kind::InvalidArgument } else { Kind::FailedPrecondition };
        Self::new(kind, refusal.to_string())
    }
}

/// Why a Service's sequence cannot go on.
impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(refusal) => refusal.into(),
            Stop::NotYet(wait) => Self::new(Kind::Unavailable, wait.to_string()),
        }
    }
}

/// The text, cut to what an event holds.
pub(crate) fn short(message: String) -> String {
    k8s::shorten(message, k8s::MAX_EVENT_MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_for_events_keep_within_their_limit_and_keep_the_remedy() {
        let message = with_remedy("ä".repeat(2000));
        assert!(message.len() <= k8s::MAX_EVENT_MESSAGE, "{}", message.len());
        assert!(message.ends_with("until the Service changes)"));
        assert_eq!(short("fine".into()), "fine");
    }
}
