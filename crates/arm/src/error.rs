//! Errors with Azure's own code and message as data, and their classification.
//!
//! The text of an error is complete and the same for each retry of a call: nothing is cut, and values that differ
//! between attempts (request IDs, seconds to wait) are read with [`Error::request_id`] and [`Error::retry_after`]. A
//! caller that writes a text somewhere with a limit, such as an event, cuts it there.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
use serde_json::Value;

/// One entry of an error's details.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Detail {
    /// Azure's code; empty when the entry has none.
    pub code: String,
    /// Azure's message; empty when the entry has none.
    pub message: String,
    /// The target of the detail.
    pub target: Option<String>,
}

/// An answer of Azure's that is an error, or an operation that ended with one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceError {
    /// The HTTP method of the call that failed.
    pub method: String,
    /// The subject of the call, in short: `loadBalancers/kubernetes`.
    pub subject: String,
    /// The resource, if the call was for one.
    pub resource: Option<ResourceId>,
    /// The HTTP status; 200 for operations that were accepted and failed later.
    pub status: u16,
    /// Azure's code; empty when the answer had none.
    pub code: String,
    /// Azure's message; empty when the answer had none.
    pub message: String,
    /// The target of the error, in Azure's words.
    pub target: Option<String>,
    /// Further codes and messages; those of nested details follow the one that they belong to.
    pub details: Vec<Detail>,
    /// Azure's id of the request, for a support case.
    pub request_id: Option<String>,
    /// How long Azure asks to wait.
    pub retry_after: Option<Duration>,
}

/// Why a call gave no result. Cheap to clone, so that one failed write can answer many callers.
#[derive(Debug, Clone, thiserror::Error)]
pub enum Error {
    /// Azure answered with an error, or an accepted operation failed.
    #[error("{0}")]
    Service(Arc<ServiceError>),
    /// The budget is closed for longer than calls wait; nothing was sent.
    #[error("{subject}: Azure's request budget is used up; nothing was sent")]
    BudgetClosed {
        /// The subject of the call.
        subject: String,
        /// When the budget opens again.
        retry_after: Duration,
    },
    /// No answer: connection, TLS, timeout. Whether Azure received the request is unknown.
    #[error("{subject}: no answer from Azure: {}", one_line(.reason))]
    Transport {
        /// The subject of the call.
        subject: String,
        /// The cause, outermost first.
        reason: String,
    },
    /// No token is available.
    #[error(
        "no token for Azure with the {credential}: {}{}",
        .code.as_ref().map(|code| format!("{code}: ")).unwrap_or_default(),
        one_line(.reason)
    )]
    Authentication {
        /// The credential: `client secret of client …`.
        credential: String,
        /// The authority's code, such as `AADSTS7000215`, if it gave one.
        code: Option<String>,
        /// The authority's message, in one line.
        reason: String,
        /// The authority's id of the request, for a support case.
        request_id: Option<String>,
        /// Whether the authority could not be reached or is busy, so that a retry may succeed.
        transient: bool,
    },
    /// The answer is not Azure's, or not the expected document.
    #[error("{subject}: answer not understood: {}", one_line(.reason))]
    Malformed {
        /// The subject of the call.
        subject: String,
        /// What is wrong with the answer.
        reason: String,
    },
    /// An operation was still running at its deadline. It may yet end either way.
    #[error("{subject}: operation still running after {} min", .after.as_secs() / 60)]
    OperationDeadline {
        /// The subject of the operation.
        subject: String,
        /// How long it was given.
        after: Duration,
    },
    /// Azure no longer knows the operation: read the resource to find its result.
    #[error("{subject}: Azure no longer knows the operation")]
    OperationLost {
        /// The subject of the operation.
        subject: String,
    },
    /// The configuration is invalid: endpoints, certificates, credentials.
    #[error("{}", one_line(.reason))]
    Configuration {
        /// One line, naming the setting and the remedy.
        reason: String,
    },
}

/// Codes of answers that mean "busy, try again", whatever their status.
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

/// Codes of internal failures of Azure's that pass.
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
    /// Azure's answer, if there is one.
    pub fn service(&self) -> Option<&ServiceError> {
        match self {
            Self::Service(error) => Some(error),
            _ => None,
        }
    }

    /// Azure's code; empty if it gave none.
    pub fn code(&self) -> &str {
        self.service().map_or("", |error| &error.code)
    }

    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        self.service().map(|error| error.status)
    }

    /// The target of the error, in Azure's words, if it gave one.
    pub fn target(&self) -> Option<&str> {
        self.service()?.target.as_deref()
    }

    /// Further codes and messages of Azure's; empty where it gave none.
    pub fn details(&self) -> &[Detail] {
        self.service().map_or(&[], |error| &error.details)
    }

    /// Azure's ID of the request, for logs and support cases. It differs between attempts, so the error's text does not
    /// contain it.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Service(error) => error.request_id.as_deref(),
            Self::Authentication { request_id, .. } => request_id.as_deref(),
            _ => None,
        }
    }

    /// All texts in which Azure may have named the subject of a refusal: the error's text, its target and those of its
    /// details.
    pub fn full_text(&self) -> String {
        let mut text = self.to_string();
        let details = self.details().iter().filter_map(|detail| detail.target.as_deref());
        for target in self.target().into_iter().chain(details) {
            text.push(' ');
            text.push_str(&one_line(target));
        }
        text
    }

    /// Whether the code, or that of a detail, is this one, without regard to case.
    pub fn has_code(&self, code: &str) -> bool {
        self.service().is_some_and(|error| error.codes().any(|found| found.eq_ignore_ascii_case(code)))
    }

    /// How long to wait before the next attempt, if Azure or the budget says so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Service(error) => error.retry_after,
            Self::BudgetClosed { retry_after, .. } => Some(*retry_after),
            _ => None,
        }
    }

    /// Azure reports that the resource, its parent or its group does not exist. An unknown subscription or type, a
    /// gateway's own 404 page, or a lost operation do not count.
    pub fn is_not_found(&self) -> bool {
        self.service().is_some_and(|error| {
            let code = error.code.as_str();
            error.status == 404
                && code.ends_with("NotFound")
                && !matches!(code, "SubscriptionNotFound" | "TenantNotFound")
        })
    }

    /// The resource has changed since it was read: read it and plan again.
    pub fn is_precondition_failed(&self) -> bool {
        self.status() == Some(412)
    }

    /// Azure is busy with this resource or one that it refers to: the same request may succeed later.
    pub fn is_conflict_in_progress(&self) -> bool {
        self.service().is_some_and(|error| {
            error.codes().any(|code| one_of(IN_PROGRESS, code))
                || (error.status == 409
                    && matches!(error.code.as_str(), "OperationNotAllowed" | "Conflict")
                    && !error.speaks_of_quota())
        }) && !self.is_superseded()
    }

    /// A later write of the same resource superseded this one.
    pub fn is_superseded(&self) -> bool {
        self.service().is_some_and(|error| {
            error.codes().any(|code| {
                code.eq_ignore_ascii_case("CanceledAndSupersededDueToAnotherOperation")
                    || code.eq_ignore_ascii_case("OperationPreempted")
            })
        })
    }

    /// Azure, or our own budget on its behalf, asks for fewer calls.
    pub fn is_throttled(&self) -> bool {
        match self {
            Self::BudgetClosed { .. } => true,
            Self::Service(error) => error.is_throttling(),
            _ => false,
        }
    }

    /// The failure is likely to pass by itself: no answer, a timeout, a 5xx, an authority that does not answer. Whether
    /// a write took effect is unknown.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Transport { .. } | Self::OperationDeadline { .. } | Self::OperationLost { .. } => true,
            Self::Authentication { transient, .. } => *transient,
            Self::Service(error) => {
                matches!(error.status, 408 | 500..=599)
                    || (error.status == 200 && error.codes().any(|code| one_of(PASSING, code)))
            }
            _ => false,
        }
    }

    /// Azure does not recognize or does not trust the caller: no token, a bad token, no permission. An authority that
    /// merely cannot be reached is [`Error::is_transient`].
    pub fn is_authentication(&self) -> bool {
        match self {
            Self::Authentication { transient, .. } => !transient,
            Self::Service(error) => error.status == 401 || error.code.ends_with("AuthorizationFailed"),
            _ => false,
        }
    }

    /// Azure understood the request and refuses it: the same input will be refused again. This is final for the input,
    /// until it changes (or, for [`Error::is_limit`], until the limit does).
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

    /// A refusal because a quota or a limit is reached: resources have to be freed first.
    pub fn is_limit(&self) -> bool {
        self.service().is_some_and(|error| {
            error.codes().any(|code| code.ends_with("LimitReached") || code.contains("QuotaExceeded"))
                || (error.code == "OperationNotAllowed" && error.speaks_of_quota())
        })
    }
}

fn one_of(list: &[&str], code: &str) -> bool {
    list.iter().any(|known| known.eq_ignore_ascii_case(code))
}

impl ServiceError {
    /// The code and those of all details, empty ones left out.
    pub fn codes(&self) -> impl Iterator<Item = &str> {
        let details = self.details.iter().map(|detail| detail.code.as_str());
        std::iter::once(self.code.as_str()).chain(details).filter(|code| !code.is_empty())
    }

    /// Whether a message names a quota: Compute also refuses cores beyond a quota with its code for "busy".
    fn speaks_of_quota(&self) -> bool {
        let messages = self.details.iter().map(|detail| &detail.message).chain([&self.message]);
        messages.into_iter().any(|message| message.to_ascii_lowercase().contains("quota"))
    }

    /// Whether the answer asks for fewer calls; Network's 429 for a busy resource does not.
    pub(crate) fn is_throttling(&self) -> bool {
        let counted = self.codes().any(|code| {
            one_of(&["TooManyRequests", "TooManyRequestsReceived", "SubscriptionRequestsThrottled"], code)
        });
        counted || (self.status == 429 && !self.codes().any(|code| one_of(IN_PROGRESS, code)))
    }

    /// Whether the whole subscription is throttled, and not only one provider's part of it.
    pub(crate) fn throttles_subscription(&self) -> bool {
        self.codes().next().is_none()
            || self
                .codes()
                .any(|code| one_of(&["SubscriptionRequestsThrottled", "TenantRequestsThrottled"], code))
    }

    /// Reads code, message and details from a body: the envelope `{"error":{…}}`, or the bare object. A member of an
    /// unexpected type is left out instead of hiding the rest.
    pub(crate) fn read_body(&mut self, body: &[u8]) {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = body.get("error").filter(|error| error.is_object()).unwrap_or(&body);
        let Detail { code, message, target } = Detail::read(error);
        (self.code, self.message, self.target) = (code, message, target);
        self.details.clear();
        read_details(error, 0, &mut self.details);
    }
}

impl Detail {
    fn read(value: &Value) -> Self {
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        Self {
            code: text("code").unwrap_or_default(),
            message: text("message").unwrap_or_default(),
            target: text("target"),
        }
    }
}

fn read_details(error: &Value, depth: u32, found: &mut Vec<Detail>) {
    /// Resource Manager nests a provider's error in its own, rarely twice.
    const MAX_DEPTH: u32 = 5;
    if depth >= MAX_DEPTH {
        return;
    }
    for entry in error.get("details").and_then(Value::as_array).into_iter().flatten() {
        let detail = Detail::read(entry);
        if detail != Detail::default() {
            found.push(detail);
        }
        read_details(entry, depth + 1, found);
    }
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

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: ", self.method, self.subject)?;
        if self.status != 200 {
            write!(f, "{} ", self.status)?;
        }
        let code = if self.code.is_empty() { "(no code)" } else { &self.code };
        let message = one_line(&self.message);
        write!(f, "{code}: {}", if message.is_empty() { "no message" } else { &message })?;
        // The details contain the cause if the outer code only says that something failed.
        for detail in &self.details {
            let text = one_line(&detail.message);
            let says_more = !(text.is_empty() || text == message);
            match (detail.code.as_str(), says_more) {
                (code, false) if code.is_empty() || code == self.code => {}
                (code, false) => write!(f, " [{code}]")?,
                ("", true) => write!(f, " [{text}]")?,
                (code, true) => write!(f, " [{code}: {text}]")?,
            }
        }
        Ok(())
    }
}

/// Callers that waited for the same request get its failure; a later one asks again, within the budget.
impl freshness::SharedError for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(status: u16, body: &str) -> Error {
        let mut error = ServiceError {
            method: "PUT".into(),
            subject: "loadBalancers/x".into(),
            status,
            request_id: Some("r1".into()),
            ..ServiceError::default()
        };
        error.read_body(body.as_bytes());
        Error::Service(Arc::new(error))
    }

    fn coded(status: u16, code: &str) -> Error {
        service(status, &format!(r#"{{"error":{{"code":"{code}","message":"m"}}}}"#))
    }

    #[test]
    fn one_plain_line_in_azures_words() {
        let error = service(
            400,
            r#"{"error":{"code":"PrivateIPAddressNotInSubnet","message":"Private\r\n address 10.9.9.9\tis outside.","details":[]}}"#,
        );
        assert_eq!(
            error.to_string(),
            "PUT loadBalancers/x: 400 PrivateIPAddressNotInSubnet: Private address 10.9.9.9 is outside."
        );
        for (details, expected) in [
            (
                r#"[{"code":"ReferencedResourceNotProvisioned","message":"ip1"}]"#,
                "Busy. [ReferencedResourceNotProvisioned: ip1]",
            ),
            (r#"[{"code":"ReferencedResourceNotProvisioned"}]"#, "Busy. [ReferencedResourceNotProvisioned]"),
            (r#"[{"code":"RetryableError","message":"Busy."}]"#, "Busy."),
            (r#"[{"message":"ip1"}]"#, "Busy. [ip1]"),
            (r#"[{"code":"A","message":"b","details":[{"code":"C","message":"d"}]}]"#, "Busy. [A: b] [C: d]"),
            (r#"[{"code":7,"message":"b"},"odd",{"code":"C","message":"d"}]"#, "Busy. [b] [C: d]"),
        ] {
            let body =
                format!(r#"{{"error":{{"code":"RetryableError","message":"Busy.","details":{details}}}}}"#);
            let text = service(429, &body).to_string();
            assert_eq!(text, format!("PUT loadBalancers/x: 429 RetryableError: {expected}"));
        }
    }

    /// Events are aggregated if their texts are equal, so a text must not change between attempts.
    #[test]
    fn the_text_is_the_same_for_each_attempt() {
        let body = r#"{"error":{"code":"SubnetIsFull","message":"m"}}"#;
        let Error::Service(first) = service(400, body) else { panic!() };
        let mut second = (*first).clone();
        second.request_id = Some("r2".into());
        second.retry_after = Some(Duration::from_secs(9));
        let second = Error::Service(Arc::new(second));
        assert_eq!(first.to_string(), second.to_string());
        assert_eq!((second.request_id(), second.retry_after()), (Some("r2"), Some(Duration::from_secs(9))));
        let closed = |seconds| {
            Error::BudgetClosed { subject: "GET x".into(), retry_after: Duration::from_secs(seconds) }
                .to_string()
        };
        assert_eq!(closed(3), closed(4));
    }

    /// The subject of a refusal may be anywhere in a long message, in a detail, or only in a target.
    #[test]
    fn long_messages_are_whole_and_data_stays_data() {
        let long = format!("{}/publicIPAddresses/last", "ü".repeat(5000));
        let body = format!(
            r#"{{"code":"C","message":"{long}","target":"t0","details":[{{"code":"D","message":"m","target":"t1"}}]}}"#
        );
        let error = service(400, &body);
        assert!(error.to_string().contains(&long));
        assert_eq!((error.code(), error.target()), ("C", Some("t0")));
        assert_eq!(error.details()[0].target.as_deref(), Some("t1"));
        assert!(error.full_text().ends_with("/publicIPAddresses/last [D: m] t0 t1"));
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

    /// Each error has one kind, which decides about retries.
    #[test]
    fn kinds() {
        type Predicate = fn(&Error) -> bool;
        let kinds: [(&str, Predicate); 8] = [
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
        let cores = r#"{"error":{"code":"OperationNotAllowed","message":"Operation could not be completed as it results in exceeding approved standardDSv3Family Cores quota."}}"#;
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
            (service(409, cores), "refusal"),
        ] {
            let mut found: Vec<&str> =
                kinds.iter().filter(|(_, is)| is(&error)).map(|(name, _)| *name).collect();
            if found.is_empty() {
                found.push("none");
            }
            assert_eq!(found, [expected], "{error}");
        }
        assert!(coded(400, "PublicIPCountLimitReached").is_limit());
        assert!(service(409, cores).is_limit());
        assert!(!coded(409, "OperationNotAllowed").is_limit());
        assert!(!coded(400, "PrivateIPAddressInUse").is_limit());
    }
}
