//! Errors that carry Azure's own words, and what kind of trouble they mean.

use std::fmt;
use std::time::Duration;

use azure_types::ResourceId;
use serde::Deserialize;

/// The longest text that an [`Error`] displays, in characters: what fits into a Kubernetes event.
pub const MAX_DISPLAY: usize = 1024;

/// One entry of an error's details.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Detail {
    /// Azure's code.
    #[serde(default)]
    pub code: String,
    /// Azure's message.
    #[serde(default)]
    pub message: String,
    /// What the detail is about.
    #[serde(default)]
    pub target: Option<String>,
}

/// An answer of Azure's that is an error, or an operation that ended in one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceError {
    /// The HTTP method of the call that failed.
    pub method: String,
    /// What it was about, in short: `loadBalancers/kubernetes`.
    pub subject: String,
    /// The resource, where the call was about one.
    pub resource: Option<ResourceId>,
    /// The HTTP status; 200 for operations that were accepted and failed later.
    pub status: u16,
    /// Azure's code; empty when the answer had none.
    pub code: String,
    /// Azure's message; empty when the answer had none.
    pub message: String,
    /// What the error is about, in Azure's words.
    pub target: Option<String>,
    /// Further codes and messages.
    pub details: Vec<Detail>,
    /// Azure's id of the request, for a support case.
    pub request_id: Option<String>,
    /// How long Azure asks to wait.
    pub retry_after: Option<Duration>,
}

/// Why a call gave no result. Cheap to clone, so that one failed write can answer many callers.
#[derive(Debug, Clone)]
pub enum Error {
    /// Azure answered with an error, or an accepted operation failed.
    Service(Box<ServiceError>),
    /// The budget is closed for longer than calls wait; nothing was sent.
    BudgetClosed {
        /// What the call was about.
        subject: String,
        /// When the budget opens again.
        retry_after: Duration,
    },
    /// No answer came: connection, TLS, timeout. Whether Azure saw the request is not known.
    Transport {
        /// What the call was about.
        subject: String,
        /// What went wrong, outermost first.
        reason: String,
    },
    /// No token could be had.
    Authentication {
        /// Which credential: `client secret of client …`.
        credential: String,
        /// The authority's code, such as `AADSTS7000215`, where it gave one.
        code: Option<String>,
        /// What it said, in one line.
        reason: String,
    },
    /// The answer does not look like Azure's, or not like the expected document.
    Malformed {
        /// What the call was about.
        subject: String,
        /// What is odd.
        reason: String,
    },
    /// An operation was still running when its time was over. It may yet end either way.
    OperationDeadline {
        /// What the operation is about.
        subject: String,
        /// How long it was given.
        after: Duration,
    },
    /// Azure no longer knows the operation: read the resource to learn how it ended.
    OperationLost {
        /// What the operation is about.
        subject: String,
    },
    /// What the program was told to use cannot be used: endpoints, certificates, credentials.
    Configuration {
        /// One line, naming the setting and the remedy.
        reason: String,
    },
}

/// Codes of answers that mean "busy, ask again", whatever their status.
const IN_PROGRESS: &[&str] = &[
    "AnotherOperationInProgress",
    "RetryableError",
    "RetryableErrorDueToAnotherOperation",
    "ReferencedResourceNotProvisioned",
    "ResourceGroupBeingDeleted",
    "ConcurrentRequestConflict",
    "OperationInProgress",
    "ResourceBusy",
];

/// Codes of failures on Azure's side that pass.
const PASSING: &[&str] = &[
    "InternalServerError",
    "InternalExecutionError",
    "InternalError",
    "ServerError",
    "ServiceUnavailable",
    "GatewayTimeout",
    "ServerTimeout",
    "OperationTimedOut",
    "NetworkingInternalOperationError",
    "TooManyRequestsReceived",
];

impl Error {
    /// Azure's answer, where there is one.
    pub fn service(&self) -> Option<&ServiceError> {
        match self {
            Self::Service(error) => Some(error),
            _ => None,
        }
    }

    /// Azure's code; empty where it gave none.
    pub fn code(&self) -> &str {
        self.service().map_or("", |error| &error.code)
    }

    /// The HTTP status, where an answer came.
    pub fn status(&self) -> Option<u16> {
        self.service().map(|error| error.status)
    }

    /// Whether the code, or that of a detail, is this one, without regard to case.
    pub fn has_code(&self, code: &str) -> bool {
        self.service().is_some_and(|error| error.codes().any(|found| found.eq_ignore_ascii_case(code)))
    }

    /// How long to wait before the next try, where Azure or the budget says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Service(error) => error.retry_after,
            Self::BudgetClosed { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Azure says that the resource, its parent or its group does not exist. An unknown subscription or
    /// type, a gateway's own 404 page, a lost operation are none of that.
    pub fn is_not_found(&self) -> bool {
        self.service().is_some_and(|error| {
            let code = error.code.as_str();
            error.status == 404
                && code.ends_with("NotFound")
                && !matches!(code, "SubscriptionNotFound" | "TenantNotFound")
        })
    }

    /// The resource changed since it was read: read it again and decide again.
    pub fn is_precondition_failed(&self) -> bool {
        self.status() == Some(412)
    }

    /// Azure is busy with this resource or one that it refers to: the same request may succeed later.
    pub fn is_conflict_in_progress(&self) -> bool {
        self.service().is_some_and(|error| {
            error.codes().any(|code| one_of(IN_PROGRESS, code))
                || (error.status == 409 && matches!(error.code.as_str(), "OperationNotAllowed" | "Conflict"))
        }) && !self.is_superseded()
    }

    /// A later write on the same resource took the place of this one.
    pub fn is_superseded(&self) -> bool {
        self.service().is_some_and(|error| {
            error.codes().any(|code| {
                code.eq_ignore_ascii_case("CanceledAndSupersededDueToAnotherOperation")
                    || code.eq_ignore_ascii_case("OperationPreempted")
            })
        })
    }

    /// Azure, or our own budget in its name, asks for fewer calls.
    pub fn is_throttled(&self) -> bool {
        match self {
            Self::BudgetClosed { .. } => true,
            Self::Service(error) => error.is_throttling(),
            _ => false,
        }
    }

    /// The failure is likely to pass by itself: no answer, a timeout, a 5xx. Whether a write took effect
    /// is not known.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Transport { .. } | Self::OperationDeadline { .. } | Self::OperationLost { .. } => true,
            Self::Service(error) => {
                matches!(error.status, 408 | 500..=599)
                    || (error.status == 200 && error.codes().any(|code| one_of(PASSING, code)))
            }
            _ => false,
        }
    }

    /// Azure does not know or does not trust the caller: no token, a bad token, no permission.
    pub fn is_authentication(&self) -> bool {
        match self {
            Self::Authentication { .. } => true,
            Self::Service(error) => error.status == 401 || error.code.ends_with("AuthorizationFailed"),
            _ => false,
        }
    }

    /// Azure understood the request and refuses it: the same input will be refused again. This is the
    /// end for the input, until it changes (or, for [`Error::is_limit`], until the limit does).
    pub fn is_refusal(&self) -> bool {
        let Some(error) = self.service() else { return false };
        let other = self.is_not_found()
            || self.is_precondition_failed()
            || self.is_conflict_in_progress()
            || self.is_superseded()
            || self.is_throttled()
            || self.is_transient()
            || self.is_authentication();
        // 200 is an operation that was accepted and then failed.
        !other && matches!(error.status, 200 | 400 | 403 | 405 | 409 | 413 | 422)
    }

    /// A refusal because a quota or a limit is reached: others must give something up first.
    pub fn is_limit(&self) -> bool {
        self.service().is_some_and(|error| {
            error.codes().any(|code| code.ends_with("LimitReached") || code.contains("QuotaExceeded"))
        })
    }
}

fn one_of(list: &[&str], code: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(code))
}

impl ServiceError {
    /// The code and those of all details.
    pub fn codes(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.code.as_str()).chain(self.details.iter().map(|detail| detail.code.as_str()))
    }

    /// Whether the answer asks for fewer calls; Network's 429 for a busy resource does not.
    pub(crate) fn is_throttling(&self) -> bool {
        let counted = self.codes().any(|code| {
            one_of(&["TooManyRequests", "TooManyRequestsReceived", "SubscriptionRequestsThrottled"], code)
        });
        counted || (self.status == 429 && !self.codes().any(|code| one_of(IN_PROGRESS, code)))
    }

    /// Whether the whole subscription is throttled, and not one provider's part of it.
    pub(crate) fn throttles_subscription(&self) -> bool {
        self.codes()
            .any(|code| one_of(&["SubscriptionRequestsThrottled", "TenantRequestsThrottled", ""], code))
    }

    /// Reads code, message and details from a body: the envelope `{"error":{…}}`, or the bare object.
    pub(crate) fn read_body(&mut self, body: &[u8]) {
        let envelope = serde_json::from_slice::<Envelope>(body).unwrap_or_default();
        let error = envelope.error.unwrap_or(Body {
            code: envelope.code,
            message: envelope.message,
            target: envelope.target,
            details: envelope.details,
        });
        self.code = error.code.unwrap_or_default();
        self.message = error.message.unwrap_or_default();
        self.target = error.target;
        self.details = error.details.unwrap_or_default();
    }
}

#[derive(Default, Deserialize)]
struct Envelope {
    #[serde(default, deserialize_with = "lenient")]
    error: Option<Body>,
    #[serde(default, deserialize_with = "lenient")]
    code: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    message: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    target: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    details: Option<Vec<Detail>>,
}

#[derive(Default, Deserialize)]
struct Body {
    #[serde(default, deserialize_with = "lenient")]
    code: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    message: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    target: Option<String>,
    #[serde(default, deserialize_with = "lenient")]
    details: Option<Vec<Detail>>,
}

/// A member of an unexpected shape is left out instead of hiding the rest of the error.
fn lenient<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: serde::de::DeserializeOwned,
{
    let value = serde_json::Value::deserialize(deserializer)?;
    Ok(serde_json::from_value(value).ok())
}

/// One line without control characters.
pub(crate) fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Cuts a text to `max` characters, marking the cut.
fn cut(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(max.saturating_sub(1)).collect();
    short.push('…');
    short
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut head = format!("{} {}: ", self.method, self.subject);
        if self.status != 200 {
            head.push_str(&format!("{} ", self.status));
        }
        head.push_str(if self.code.is_empty() { "(no code)" } else { &self.code });
        head.push_str(": ");
        let mut message = one_line(&self.message);
        // The details hold the point where the outer code only says that something failed.
        for detail in &self.details {
            let known = detail.code.is_empty() || detail.code == self.code;
            if !(known && (detail.message.is_empty() || detail.message == self.message)) {
                message.push_str(&format!(" [{}: {}]", detail.code, one_line(&detail.message)));
            }
        }
        if message.is_empty() {
            message.push_str("no message");
        }
        let tail = self.request_id.as_ref().map(|id| format!(" (request id {id})")).unwrap_or_default();
        let room = MAX_DISPLAY.saturating_sub(head.chars().count() + tail.chars().count());
        f.write_str(&cut(&format!("{head}{}{tail}", cut(&message, room)), MAX_DISPLAY))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Service(error) => return error.fmt(f),
            Self::BudgetClosed { subject, retry_after } => {
                format!(
                    "{subject}: Azure's request budget is used up, closed for {} s",
                    retry_after.as_secs()
                )
            }
            Self::Transport { subject, reason } => {
                format!("{subject}: no answer from Azure: {}", one_line(reason))
            }
            Self::Authentication { credential, code, reason } => {
                let code = code.as_ref().map(|code| format!("{code}: ")).unwrap_or_default();
                format!("no token for Azure with the {credential}: {code}{}", one_line(reason))
            }
            Self::Malformed { subject, reason } => {
                format!("{subject}: answer not understood: {}", one_line(reason))
            }
            Self::OperationDeadline { subject, after } => {
                format!("{subject}: operation still running after {} min", after.as_secs() / 60)
            }
            Self::OperationLost { subject } => format!("{subject}: Azure no longer knows the operation"),
            Self::Configuration { reason } => one_line(reason),
        };
        f.write_str(&cut(&text, MAX_DISPLAY))
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(status: u16, body: &str) -> Error {
        let mut error = ServiceError {
            method: "PUT".into(),
            subject: "loadBalancers/x".into(),
            resource: None,
            status,
            code: String::new(),
            message: String::new(),
            target: None,
            details: Vec::new(),
            request_id: Some("r1".into()),
            retry_after: None,
        };
        error.read_body(body.as_bytes());
        Error::Service(Box::new(error))
    }

    fn coded(status: u16, code: &str) -> Error {
        service(status, &format!(r#"{{"error":{{"code":"{code}","message":"m"}}}}"#))
    }

    #[test]
    fn one_plain_line_with_everything_for_a_support_case() {
        let error = service(
            400,
            r#"{"error":{"code":"PrivateIPAddressNotInSubnet","message":"Private\r\n address 10.9.9.9\tis outside.","details":[]}}"#,
        );
        assert_eq!(
            error.to_string(),
            "PUT loadBalancers/x: 400 PrivateIPAddressNotInSubnet: Private address 10.9.9.9 is outside. (request id r1)"
        );
        let nested = service(
            429,
            r#"{"error":{"code":"RetryableError","message":"Busy.","details":[{"code":"ReferencedResourceNotProvisioned","message":"ip1"}]}}"#,
        );
        assert_eq!(
            nested.to_string(),
            "PUT loadBalancers/x: 429 RetryableError: Busy. [ReferencedResourceNotProvisioned: ip1] (request id r1)"
        );
    }

    #[test]
    fn long_messages_are_cut_and_keep_the_request_id() {
        let long = "ü".repeat(5000);
        let text = service(400, &format!(r#"{{"code":"C","message":"{long}"}}"#)).to_string();
        assert_eq!(text.chars().count(), MAX_DISPLAY);
        assert!(text.ends_with("… (request id r1)"), "{text}");
    }

    #[test]
    fn every_shape_of_envelope_is_read() {
        for (body, code, message) in [
            (r#"{"error":{"code":"A","message":"b"}}"#, "A", "b"),
            (r#"{"code":"A","message":"b"}"#, "A", "b"),
            (r#"{"error":{"code":"A","message":"b","details":"oops","innererror":{"x":1}}}"#, "A", "b"),
            (r#"{"error":{"code":7,"message":"b"}}"#, "", "b"),
            (r#"{"error":"text"}"#, "", ""),
            ("<html>502</html>", "", ""),
            ("", "", ""),
        ] {
            let error = service(400, body);
            let found = error.service().unwrap();
            assert_eq!((found.code.as_str(), found.message.as_str()), (code, message), "{body}");
        }
    }

    /// Each error has one kind; what it means for a retry hangs on it.
    #[test]
    fn kinds() {
        type Kind = fn(&Error) -> bool;
        let kinds: [(&str, Kind); 8] = [
            ("not found", Error::is_not_found),
            ("precondition", Error::is_precondition_failed),
            ("conflict", Error::is_conflict_in_progress),
            ("superseded", Error::is_superseded),
            ("throttled", Error::is_throttled),
            ("transient", Error::is_transient),
            ("authentication", Error::is_authentication),
            ("refusal", Error::is_refusal),
        ];
        let superseded = r#"{"error":{"code":"Canceled","message":"m","details":[{"code":"CanceledAndSupersededDueToAnotherOperation","message":"m"}]}}"#;
        let not_provisioned =
            r#"{"error":{"code":"RetryableError","details":[{"code":"ReferencedResourceNotProvisioned"}]}}"#;
        let compute_throttled = r#"{"error":{"code":"OperationNotAllowed","details":[{"code":"TooManyRequests","message":"{}"}]}}"#;
        for (error, expected) in [
            (coded(404, "ResourceNotFound"), "not found"),
            (coded(404, "ResourceGroupNotFound"), "not found"),
            (coded(404, "NotFound"), "not found"),
            (coded(404, "ParentResourceNotFound"), "not found"),
            (coded(404, "SubscriptionNotFound"), "none"),
            (coded(404, "InvalidResourceType"), "none"),
            (service(404, "<html>"), "none"),
            (coded(412, "PreconditionFailed"), "precondition"),
            (coded(409, "AnotherOperationInProgress"), "conflict"),
            (coded(429, "AnotherOperationInProgress"), "conflict"),
            (service(429, not_provisioned), "conflict"),
            (coded(409, "OperationNotAllowed"), "conflict"),
            (coded(409, "ResourceGroupBeingDeleted"), "conflict"),
            (service(200, superseded), "superseded"),
            (coded(200, "OperationPreempted"), "superseded"),
            (coded(429, "SubscriptionRequestsThrottled"), "throttled"),
            (service(429, compute_throttled), "throttled"),
            (service(429, ""), "throttled"),
            (coded(503, "ServiceUnavailable"), "transient"),
            (coded(408, "RequestTimeout"), "transient"),
            (coded(200, "InternalServerError"), "transient"),
            (coded(401, "ExpiredAuthenticationToken"), "authentication"),
            (coded(403, "AuthorizationFailed"), "authentication"),
            (coded(403, "LinkedAuthorizationFailed"), "authentication"),
            (coded(403, "RequestDisallowedByPolicy"), "refusal"),
            (coded(400, "PrivateIPAddressNotInSubnet"), "refusal"),
            (coded(200, "PrivateIPAddressInUse"), "refusal"),
            (coded(409, "ScopeLocked"), "refusal"),
            (coded(400, "PublicIPCountLimitReached"), "refusal"),
        ] {
            let mut found: Vec<&str> =
                kinds.iter().filter(|(_, is)| is(&error)).map(|(name, _)| *name).collect();
            if found.is_empty() {
                found.push("none");
            }
            assert_eq!(found, [expected], "{error}");
        }
        assert!(coded(400, "PublicIPCountLimitReached").is_limit());
        assert!(!coded(400, "PrivateIPAddressInUse").is_limit());
    }
}
