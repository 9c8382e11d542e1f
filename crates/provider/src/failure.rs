//! Why a call to Azure did not do what it should, in the terms that writers decide by.

use std::time::Duration;

use crate::{Notice, ServiceError};

/// Longest text that goes to a user: events hold 1024 bytes.
const LONGEST: usize = 1024;

/// What a failed call means for the one who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Azure says that the resource (or its group) is not there.
    Missing,
    /// Somebody else changed the resource, or another operation superseded ours: read and plan again.
    Changed,
    /// Azure is busy, throttles or has a fault: the same request may work later.
    Busy,
    /// Azure refuses what was asked; asking again gives the same answer.
    Refused,
    /// Azure refuses what was asked, but not for good: a limit is reached, or what it refers to is missing.
    Limited,
    /// Azure refuses us, whatever is asked: permissions, policies, locks, registration.
    Denied,
    /// Nobody knows whether the request was carried out: no answer came, or an unreadable one.
    Unanswered,
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
}

impl Failure {
    /// A failure without a time to wait.
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), after: None }
    }

    /// Whether Azure said that the resource is not there.
    pub(crate) fn is_missing(&self) -> bool {
        self.kind == Kind::Missing
    }

    /// The same failure with a word on what was being done.
    pub(crate) fn while_doing(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// What the owner of a Service is told: terminal only where the Service itself was refused.
    pub(crate) fn into_service_error(self, notices: Vec<Notice>) -> ServiceError {
        match self.kind {
            Kind::Refused => refused(self.message, notices),
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

/// A refusal of the planner's.
pub(crate) fn of_refusal(refusal: planner::Refusal, notices: Vec<Notice>) -> ServiceError {
    let message = short(refusal.to_string());
    if refusal.is_terminal() {
        return ServiceError::Refused { message, notices };
    }
    ServiceError::Retry { message, after: None, notices }
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
