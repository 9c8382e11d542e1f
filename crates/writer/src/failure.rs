//! Failures of calls to Azure, classified for the writers.

use std::convert::Infallible;
use std::time::Duration;

use azure_types::ResourceId;
use freshness::SharedError;

use crate::scope::{self, Scope};

/// The meaning of a failed call for its caller. The names are gRPC's canonical codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Azure says that the resource (or its resource group) does not exist.
    NotFound,
    /// Another client changed the resource, or another operation superseded ours: read and plan again.
    Aborted,
    /// Azure is busy, throttles or has a server error: the same request may work later.
    Unavailable,
    /// Azure refuses a value that the owner of the intent chose; a retry gets the same answer.
    InvalidArgument,
    /// Azure refuses the request, but not for good: something else has to happen first, such as the release of a name,
    /// an address or a slot.
    FailedPrecondition,
    /// There is no room for it here.
    ResourceExhausted,
    /// Azure refuses the caller or the scope: permissions, policies, locks, registration.
    PermissionDenied,
    /// An operation has run for longer than the timeout: it may still end by itself.
    Overdue,
    /// It is unknown whether the request was carried out: there was no response, or an unreadable one.
    Unknown,
}

/// Error codes of refusals that concern the caller or the scope, never a single object of a batch.
const ABOUT_US: &[&str] = &[
    "RequestDisallowedByPolicy",
    "ScopeLocked",
    "MissingSubscriptionRegistration",
    "ReadOnlyDisabledSubscription",
    "SubscriptionNotFound",
    "InvalidAuthenticationTokenTenant",
];

impl Kind {
    /// Classifies an error of the client. `terminal` are the error codes of refusals of a value that the owner of an
    /// intent chose: the same value is refused again. Every other refusal may pass without a change of the intent.
    pub fn of(error: &arm::Error, terminal: &[&str]) -> Self {
        let has_one_of = |codes: &[&str]| codes.iter().any(|code| error.has_code(code));
        if error.is_not_found() {
            Self::NotFound
        } else if error.is_precondition_failed() || error.is_superseded() {
            Self::Aborted
        } else if error.is_authentication() || error.status() == Some(403) || has_one_of(ABOUT_US) {
            Self::PermissionDenied
        } else if error.is_throttled() || error.is_conflict_in_progress() {
            Self::Unavailable
        } else if error.is_transient() {
            if error.service().is_some() { Self::Unavailable } else { Self::Unknown }
        } else if error.is_refusal() {
            if has_one_of(terminal) { Self::InvalidArgument } else { Self::FailedPrecondition }
        } else {
            match error {
                arm::Error::Malformed { .. } => Self::Unknown,
                _ => Self::PermissionDenied,
            }
        }
    }
}

/// A call that failed. `N` is the type of its notices: none by default.
#[derive(Debug, Clone)]
pub struct Failure<N = Infallible> {
    /// The classification.
    pub kind: Kind,
    /// Azure's code and words, or our own if Azure gave none.
    pub message: String,
    /// The wait that Azure asks for.
    pub after: Option<Duration>,
    /// The client's error, if a call failed.
    pub cause: Option<Box<arm::Error>>,
    /// Further notices for the owner.
    pub notices: Vec<N>,
    /// Whether it concerns one or all owners of the shared resource.
    pub scope: Scope,
}

impl<N: Clone> SharedError for Failure<N> {
    fn retry_after(&self) -> Option<Duration> {
        self.after
    }

    fn with_retry_after(self, left: Duration) -> Self {
        Self { after: Some(left), ..self }
    }
}

impl<N> Failure<N> {
    /// A failure without a requested wait.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        let scope = match kind {
            Kind::InvalidArgument | Kind::FailedPrecondition | Kind::ResourceExhausted => Scope::Unclear,
            _ => Scope::All,
        };
        Self { kind, message: message.into(), after: None, cause: None, notices: Vec::new(), scope }
    }

    /// A failed call, classified with the user's table of [terminal](Kind::of) codes.
    pub fn of(error: arm::Error, terminal: &[&str]) -> Self {
        let (kind, message, after) = (Kind::of(&error, terminal), error.to_string(), error.retry_after());
        let scope = scope::of(&error, None);
        Self { kind, message, after, cause: Some(Box::new(error)), notices: Vec::new(), scope }
    }

    /// Whether it concerns all owners of the shared resource, or passes by itself. Any other refusal may be caused by
    /// one owner: the writer searches for that owner.
    pub fn concerns_all(&self) -> bool {
        let is_refusal = matches!(
            self.kind,
            Kind::InvalidArgument
                | Kind::FailedPrecondition
                | Kind::ResourceExhausted
                | Kind::PermissionDenied
                | Kind::NotFound
        );
        !is_refusal || self.scope == Scope::All
    }

    /// The same failure, judged for the owners of another shared resource than the one that the call was about.
    pub fn seen_from(mut self, shared: &ResourceId) -> Self {
        if let Some(cause) = &self.cause {
            self.scope = scope::of(cause, Some(shared));
        }
        self
    }

    /// Whether it may concern all owners: then the search for one owner is limited.
    pub fn may_concern_all(&self) -> bool {
        !matches!(self.kind, Kind::InvalidArgument | Kind::FailedPrecondition | Kind::ResourceExhausted)
    }

    /// Whether one owner's request may cause this conflict, for as long as it is part of the write.
    pub fn may_be_a_conflict_of_one(&self) -> bool {
        matches!(self.kind, Kind::Aborted | Kind::Unavailable) && self.scope == Scope::Unclear
    }

    /// Whether one owner's part may cause this server error.
    pub fn may_be_a_fault_of_one(&self) -> bool {
        self.kind == Kind::Unavailable && self.scope == Scope::Unclear
    }

    /// Whether Azure accepted the request and failed later.
    pub fn is_late(&self) -> bool {
        self.cause.as_ref().and_then(|cause| cause.service()).is_some_and(|answer| answer.status == 200)
    }

    /// Whether Azure said that the resource does not exist.
    pub fn is_not_found(&self) -> bool {
        self.kind == Kind::NotFound
    }

    /// Whether the same request may work later: it was not the request that failed.
    pub fn may_pass(&self) -> bool {
        matches!(self.kind, Kind::Aborted | Kind::Unavailable | Kind::Unknown)
    }

    /// Whether Azure's error has this code, at the top or in a detail.
    pub fn has_code(&self, code: &str) -> bool {
        self.cause.as_ref().is_some_and(|cause| cause.has_code(code))
    }

    /// The full error text, in which Azure may name the object that it refuses.
    pub fn full_text(&self) -> String {
        self.cause.as_ref().map_or_else(|| self.message.clone(), |cause| cause.full_text())
    }

    /// The same failure, with the attempted action before its message.
    pub fn while_doing(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The same failure, attributed to no single owner, so that it is terminal for none.
    pub fn not_attributable(self) -> Self {
        let kind = match self.kind {
            Kind::InvalidArgument => Kind::FailedPrecondition,
            kind => kind,
        };
        Self { kind, scope: Scope::All, ..self }
    }

    /// The failure to report: the earlier one, unless it was a lost race, which the next read settles.
    pub fn unless_told(self, before: Option<Self>) -> Self {
        before.filter(|before| before.kind != Kind::Aborted).unwrap_or(self)
    }

    /// The same failure with additional notices.
    pub fn with_notices(mut self, more: impl IntoIterator<Item = N>) -> Self {
        self.notices.extend(more);
        self
    }
}
