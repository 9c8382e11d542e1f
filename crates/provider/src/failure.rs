//! Failures of calls to Azure, classified for the writers.

use std::time::Duration;

use azure_types::ResourceId;
use freshness::SharedError;
use planner::sequence::Stop;

use crate::scope::{self, Scope};
use crate::{Notice, ServiceError};

/// The meaning of a failed call for its caller. The names are gRPC's canonical codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Azure says that the resource (or its resource group) does not exist.
    NotFound,
    /// Another client changed the resource, or another operation superseded ours: read and plan again.
    Aborted,
    /// Azure is busy, throttles or has a server error: the same request may work later.
    Unavailable,
    /// Azure refuses a value that the Service's owner chose; a retry gets the same answer.
    InvalidArgument,
    /// Azure refuses the request, but not for good: something else has to happen first, such as the release of a name,
    /// an address or a slot.
    FailedPrecondition,
    /// Azure refuses the caller or the scope: permissions, policies, locks, registration.
    PermissionDenied,
    /// An operation has run for longer than the timeout: it may still end by itself.
    Overdue,
    /// It is unknown whether the request was carried out: there was no response, or an unreadable one.
    Unknown,
}

/// A call that failed.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    /// The classification.
    pub(crate) kind: Kind,
    /// Azure's code and words, or our own if Azure gave none.
    pub(crate) message: String,
    /// The wait that Azure asks for.
    pub(crate) after: Option<Duration>,
    /// The client's error, if a call failed.
    pub(crate) cause: Option<Box<arm::Error>>,
    /// Further notices for the Service's owner.
    pub(crate) notices: Vec<Notice>,
    /// Whether it concerns one or all owners of the shared resource.
    pub(crate) scope: Scope,
}

impl SharedError for Failure {
    fn retry_after(&self) -> Option<Duration> {
        self.after
    }

    fn with_retry_after(self, left: Duration) -> Self {
        Self { after: Some(left), ..self }
    }
}

impl Failure {
    /// A failure without a requested wait.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        let scope = match kind {
            Kind::InvalidArgument | Kind::FailedPrecondition => Scope::Unclear,
            _ => Scope::All,
        };
        Self { kind, message: message.into(), after: None, cause: None, notices: Vec::new(), scope }
    }

    /// Whether it concerns all owners of the shared resource, or passes by itself. Any other refusal may be caused by
    /// one owner: the writer searches for that owner.
    pub(crate) fn concerns_all(&self) -> bool {
        let is_refusal = matches!(
            self.kind,
            Kind::InvalidArgument | Kind::FailedPrecondition | Kind::PermissionDenied | Kind::NotFound
        );
        !is_refusal || self.scope == Scope::All
    }

    /// The same failure, judged for the owners of another shared resource than the one that the call was about.
    pub(crate) fn seen_from(mut self, shared: &ResourceId) -> Self {
        if let Some(cause) = &self.cause {
            self.scope = scope::of(cause, Some(shared));
        }
        self
    }

    /// Whether it may concern all owners: then the search for one owner is limited.
    pub(crate) fn may_concern_all(&self) -> bool {
        !matches!(self.kind, Kind::InvalidArgument | Kind::FailedPrecondition)
    }

    /// Whether one owner's request may cause this conflict, for as long as it is part of the write.
    pub(crate) fn may_be_a_conflict_of_one(&self) -> bool {
        matches!(self.kind, Kind::Aborted | Kind::Unavailable) && self.scope == Scope::Unclear
    }

    /// Whether one owner's part may cause this server error.
    pub(crate) fn may_be_a_fault_of_one(&self) -> bool {
        self.kind == Kind::Unavailable && self.scope == Scope::Unclear
    }

    /// Whether Azure accepted the request and failed later.
    pub(crate) fn is_late(&self) -> bool {
        self.cause.as_ref().and_then(|cause| cause.service()).is_some_and(|answer| answer.status == 200)
    }

    /// Whether Azure said that the resource does not exist.
    pub(crate) fn is_not_found(&self) -> bool {
        self.kind == Kind::NotFound
    }

    /// Whether the same request may work later: it was not the request that failed.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(self.kind, Kind::Aborted | Kind::Unavailable | Kind::Unknown)
    }

    /// Whether Azure's error has this code, at the top or in a detail.
    pub(crate) fn has_code(&self, code: &str) -> bool {
        self.cause.as_ref().is_some_and(|cause| cause.has_code(code))
    }

    /// The full error text, in which Azure may name the object that it refuses.
    pub(crate) fn full_text(&self) -> String {
        self.cause.as_ref().map_or_else(|| self.message.clone(), |cause| cause.full_text())
    }

    /// The same failure, with the attempted action before its message.
    pub(crate) fn while_doing(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The same failure, attributed to no single owner, so that it is terminal for none.
    pub(crate) fn not_attributable(self) -> Self {
        let kind = match self.kind {
            Kind::InvalidArgument => Kind::FailedPrecondition,
            kind => kind,
        };
        Self { kind, scope: Scope::All, ..self }
    }

    /// The failure to report: the earlier one, unless it was a lost race, which the next read settles.
    pub(crate) fn unless_told(self, before: Option<Self>) -> Self {
        before.filter(|before| before.kind != Kind::Aborted).unwrap_or(self)
    }

    /// The same failure with additional notices.
    pub(crate) fn with_notices(mut self, more: impl IntoIterator<Item = Notice>) -> Self {
        self.notices.extend(more);
        self
    }
}

/// The error for the owner of a Service: terminal only if the Service itself was refused.
impl From<Failure> for ServiceError {
    fn from(failure: Failure) -> Self {
        let Failure { kind, message, after, cause, notices, .. } = failure;
        match kind {
            // The planner's refusals already say what to change.
            Kind::InvalidArgument if cause.is_none() => Self::Refused { message: short(message), notices },
            Kind::InvalidArgument => Self::Refused { message: with_remedy(message), notices },
            _ => Self::Retry { message: short(message), after, notices },
        }
    }
}

/// Azure's refusal, and when it is tried again.
fn with_remedy(message: String) -> String {
    const REMEDY: &str = " (not tried again until the Service changes)";
    let mut message = k8s::shorten(message, k8s::MAX_EVENT_MESSAGE - REMEDY.len());
    message.push_str(REMEDY);
    message
}

/// A refusal by the planner.
impl From<planner::Refusal> for Failure {
    fn from(refusal: planner::Refusal) -> Self {
        let kind = if refusal.is_terminal() { Kind::InvalidArgument } else { Kind::FailedPrecondition };
        Self::new(kind, refusal.to_string())
    }
}

/// Why a Service's sequence cannot continue.
impl From<Stop> for Failure {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Refused(refusal) => refusal.into(),
            Stop::NotYet(wait) => Self::new(Kind::Unavailable, wait.to_string()),
        }
    }
}

/// The text, cut to the size limit of an event.
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
