//! Why a call to Azure did not do what it should, in the terms that writers decide by.

use std::time::Duration;

use planner::sequence::Stop;

use crate::{Notice, ServiceError};

/// Longest text that goes to a user: events hold 1024 bytes.
const LONGEST: usize = 1024;

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
    /// Azure refuses us, whatever is asked: permissions, policies, locks, registration.
    PermissionDenied,
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
}

impl Failure {
    /// A failure without a time to wait.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), after: None, cause: None }
    }

    /// Whether Azure said that the resource is not there.
    pub(crate) fn is_not_found(&self) -> bool {
        self.kind == Kind::NotFound
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
            Kind::InvalidArgument | Kind::FailedPrecondition => Kind::PermissionDenied,
            kind => kind,
        };
        Self { kind, ..self }
    }

    /// What the owner of a Service is told: terminal only where the Service itself was refused.
    pub(crate) fn into_service_error(self, notices: Vec<Notice>) -> ServiceError {
        match self.kind {
            Kind::InvalidArgument => refused(self.message, notices),
            _ => ServiceError::Retry { message: short(self.message), after: self.after, notices },
        }
    }
}

/// A terminal answer, which says when it will be reconsidered.
pub(crate) fn refused(message: String, notices: Vec<Notice>) -> ServiceError {
    const REMEDY: &str = " (not tried again until the Service changes)";
    let mut message = cut(message, LONGEST - REMEDY.len());
    message.push_str(REMEDY);
    ServiceError::Refused { message, notices }
}

/// An answer that asks for another try.
pub(crate) fn retry(message: impl Into<String>, after: Option<Duration>) -> ServiceError {
    ServiceError::Retry { message: short(message.into()), after, notices: Vec::new() }
}

impl From<Failure> for ServiceError {
    fn from(failure: Failure) -> Self {
        failure.into_service_error(Vec::new())
    }
}

/// A refusal of the planner's.
pub(crate) fn of_refusal(refusal: planner::Refusal) -> ServiceError {
    let message = short(refusal.to_string());
    if refusal.is_terminal() {
        return ServiceError::Refused { message, notices: Vec::new() };
    }
    ServiceError::Retry { message, after: None, notices: Vec::new() }
}

/// Why a Service's sequence cannot go on.
pub(crate) fn of_stop(stop: Stop) -> ServiceError {
    match stop {
        Stop::Refused(refusal) => of_refusal(refusal),
        Stop::NotYet(what) => retry(what, None),
    }
}

/// The same error with more to tell.
pub(crate) fn with_notices(error: ServiceError, more: Vec<Notice>) -> ServiceError {
    let joined = |mut notices: Vec<Notice>| {
        notices.extend(more);
        notices
    };
    match error {
        ServiceError::Refused { message, notices } => {
            ServiceError::Refused { message, notices: joined(notices) }
        }
        ServiceError::Retry { message, after, notices } => {
            ServiceError::Retry { message, after, notices: joined(notices) }
        }
    }
}

/// The text, cut to what an event holds.
pub(crate) fn short(message: String) -> String {
    cut(message, LONGEST)
}

fn cut(mut message: String, longest: usize) -> String {
    const MORE: &str = "…";
    if message.len() > longest {
        let mut end = longest - MORE.len();
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(MORE);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_for_events_keep_within_their_limit_and_keep_the_remedy() {
        let ServiceError::Refused { message, .. } = refused("ä".repeat(2000), Vec::new()) else { panic!() };
        assert!(message.len() <= LONGEST, "{}", message.len());
        assert!(message.ends_with("until the Service changes)"));
        assert_eq!(short("fine".into()), "fine");
    }
}
