//! Failures of calls to Azure for Services and their owners.

use cloud::{Notice, ServiceError};
use planner::sequence::Stop;
pub(crate) use writer::Kind;

/// A call that failed, with notices for the Service's owner.
pub(crate) type Failure = writer::Failure<Notice>;

/// The error for the owner of a Service: terminal only if the Service itself was refused.
pub(crate) fn service_error(failure: Failure) -> ServiceError {
    let Failure { kind, message, after, cause, notices, .. } = failure;
    match kind {
        // The planner's refusals already say what to change.
        Kind::InvalidArgument if cause.is_none() => {
            ServiceError::Refused { message: short(message), notices }
        }
        Kind::InvalidArgument => ServiceError::Refused { message: with_remedy(message), notices },
        _ => ServiceError::Retry { message: short(message), after, notices },
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
pub(crate) fn refused(refusal: planner::Refusal) -> Failure {
    let kind = if refusal.is_terminal() { Kind::InvalidArgument } else { Kind::FailedPrecondition };
    Failure::new(kind, refusal.to_string())
}

/// Why a Service's sequence cannot continue.
pub(crate) fn stopped(stop: Stop) -> Failure {
    match stop {
        Stop::Refused(refusal) => refused(refusal),
        Stop::NotYet(wait) => Failure::new(Kind::Unavailable, wait.to_string()),
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
