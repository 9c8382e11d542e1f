//! The API server's errors: every failure is a `Status` object.
//!
//! Codes, reasons and messages follow the API conventions ("Response Status Kind") and kube-apiserver's responses,
//! because clients match on them.

use serde_json::{Value, json};

use crate::conversion::Pending;
use crate::object::invalid::Invalid;
use crate::registry::Kind;

/// A failed request, which becomes a `Status` object in the response.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`. Empty if the API server sets none.
    pub reason: String,
    /// The message for users.
    pub message: String,
    /// The `details` member: name, group, kind, uid, causes, retryAfterSeconds. Null if there are no details.
    pub details: Value,
    /// Token for the rest of an expired list, without consistency.
    pub continue_token: Option<String>,
    /// Conversions that the request needs first: it is tried again after them.
    pub(crate) pending: Option<Box<Pending>>,
}

impl ApiError {
    pub(crate) fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message: message.into(),
            details: Value::Null,
            continue_token: None,
            pending: None,
        }
    }

    /// Nothing was done, because a conversion webhook must be called first.
    pub(crate) fn pending(why: &str, pending: Pending) -> Self {
        Self { pending: Some(Box::new(pending)), ..Self::internal(why) }
    }

    pub(crate) fn with_details(self, details: Value) -> Self {
        Self { details, ..self }
    }

    pub(crate) fn about(self, kind: &Kind, name: &str) -> Self {
        self.with_details(details(&kind.group, &kind.plural, name))
    }

    fn detail(mut self, member: &str, value: Value) -> Self {
        if !self.details.is_object() {
            self.details = json!({});
        }
        self.details[member] = value;
        self
    }

    fn causes(self, causes: Value) -> Self {
        self.detail("causes", causes)
    }

    /// Sets the time until the next attempt, in seconds.
    #[must_use]
    pub fn retry_after(self, seconds: u32) -> Self {
        self.detail("retryAfterSeconds", seconds.into())
    }

    /// Seconds that the client has to wait, if any.
    #[must_use]
    pub fn retry_after_seconds(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    pub(crate) fn not_found(kind: &Kind, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{} {name:?} not found", kind.resource())).about(kind, name)
    }

    pub(crate) fn no_such_resource() -> Self {
        let message = "the server could not find the requested resource";
        Self::new(404, "NotFound", message).with_details(json!({}))
    }

    pub(crate) fn already_exists(kind: &Kind, name: &str) -> Self {
        Self::new(409, "AlreadyExists", format!("{} {name:?} already exists", kind.resource()))
            .about(kind, name)
    }

    pub(crate) fn conflict(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.resource());
        Self::new(409, "Conflict", message).about(kind, name)
    }

    /// A delete whose preconditions are not met; it names the kind, unlike other conflicts.
    pub(crate) fn precondition(kind: &Kind, name: &str, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", kind.qualified_kind());
        Self::new(409, "Conflict", message).with_details(details(&kind.group, &kind.kind, name))
    }

    pub(crate) fn modified(kind: &Kind, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(kind, name, why)
    }

    pub(crate) fn forbidden(kind: &Kind, name: &str, why: &str) -> Self {
        Self::new(403, "Forbidden", format!("{} {name:?} is forbidden: {why}", kind.resource()))
            .about(kind, name)
    }

    pub(crate) fn namespace_terminating(kind: &Kind, name: &str, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        Self::forbidden(kind, name, &why).causes(json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": "metadata.namespace",
        }]))
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    pub(crate) fn invalid(kind: &Kind, name: &str, field: &str, message: &str) -> Self {
        let cause = Invalid { field: field.to_owned(), message: message.to_owned() };
        Self::invalid_causes(kind, name, &[cause])
    }

    /// An invalid object with all its errors. The message contains duplicate errors once.
    pub(crate) fn invalid_causes(kind: &Kind, name: &str, causes: &[Invalid]) -> Self {
        let mut said: Vec<String> = Vec::new();
        for cause in causes.iter().map(ToString::to_string) {
            if !said.contains(&cause) {
                said.push(cause);
            }
        }
        let said = match said.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes = causes.iter().map(|cause| {
            let reason = if cause.is_wrong_type() { Some("FieldValueTypeInvalid") } else { None };
            field_cause(&cause.field, &cause.message, reason)
        });
        Self::unprocessable((&kind.group, &kind.kind), name, &said, causes.collect())
    }

    fn unprocessable((group, kind): (&str, &str), name: &str, said: &str, causes: Value) -> Self {
        let dot = if group.is_empty() { "" } else { "." };
        let message = format!("{kind}{dot}{group} {name:?} is invalid: {said}");
        Self::new(422, "Invalid", message).with_details(details(group, kind, name)).causes(causes)
    }

    /// A patch whose result is not an object of its kind.
    pub(crate) fn invalid_patch(cause: &Invalid) -> Self {
        Self::new(422, "Invalid", format!(" \"\" is invalid: {cause}")).causes(json!([field_cause(
            &cause.field,
            &cause.message,
            None
        )]))
    }

    /// A write without the `resourceVersion` that its kind requires; it names the resource, unlike other invalid
    /// objects.
    pub(crate) fn version_required(kind: &Kind, name: &str) -> Self {
        let message = "Invalid value: 0: must be specified for an update";
        Self::invalid_request((&kind.group, &kind.plural), name, "metadata.resourceVersion", message)
    }

    /// An invalid request option: `options` is `ListOptions`, `PatchOptions` and the like.
    pub(crate) fn invalid_option(options: &str, field: &str, message: &str) -> Self {
        Self::invalid_request(("meta.k8s.io", options), "", field, message)
    }

    /// An invalid request that is not an object of the store, such as a TokenRequest.
    pub(crate) fn invalid_request(kind: (&str, &str), name: &str, field: &str, message: &str) -> Self {
        let said = format!("{field}: {message}");
        Self::unprocessable(kind, name, &said, json!([field_cause(field, message, None)]))
    }

    /// A valid JSON patch that does not apply to the object. The message does not say which operation failed.
    pub(crate) fn patch_failed() -> Self {
        Self::new(422, "Invalid", "the server rejected our request due to an error in our request")
            .with_details(json!({}))
    }

    pub(crate) fn apply_conflict(message: String, conflicts: &[String]) -> Self {
        let causes = conflicts
            .iter()
            .map(|conflict| {
                let (message, field) = conflict.rsplit_once(": ").unwrap_or((conflict, ""));
                json!({ "reason": "FieldManagerConflict", "message": message, "field": field })
            })
            .collect();
        Self::new(409, "Conflict", message).causes(Value::Array(causes))
    }

    /// An error on the server's side.
    pub(crate) fn internal(why: &str) -> Self {
        Self::new(500, "InternalError", format!("Internal error occurred: {why}"))
            .causes(json!([{ "message": why }]))
    }

    /// A hook refused the request; `result` is its Status, if any.
    pub(crate) fn denied(hook: &str, result: &Value) -> Self {
        let text = |member: &str| result.get(member).and_then(Value::as_str).unwrap_or_default();
        let code = result.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
        let message = match (text("message"), text("reason")) {
            ("", "") => format!("admission webhook {hook:?} denied the request without explanation"),
            ("", said) | (said, _) => format!("admission webhook {hook:?} denied the request: {said}"),
        };
        let code = code.unwrap_or_default().max(400);
        let details = result.get("details").cloned().unwrap_or_default();
        Self::new(code, text("reason"), message).with_details(details)
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    pub(crate) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(405, "MethodNotAllowed", message).with_details(json!({}))
    }

    pub(crate) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(406, "NotAcceptable", message)
    }

    pub(crate) fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// A patch of a type that no kind supports.
    pub(crate) fn unknown_media_type() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type").with_details(json!({}))
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
    }

    /// The version of a watch or list is no longer available.
    pub(crate) fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(410, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    /// The version of a list page is no longer available; `token` continues at the newest one.
    pub(crate) fn continue_expired(token: String) -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. You can start \
                       a new list without the continue parameter, or use the continue token in this response to \
                       retrieve the remainder of the results. Continuing with the provided token results in an \
                       inconsistent list - objects that were created, modified, or deleted between the time the \
                       first chunk was returned and now may show up in the list.";
        Self { continue_token: Some(token), ..Self::new(410, "Expired", message) }
    }

    /// The requested version does not exist yet.
    pub(crate) fn version_too_large(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        Self::new(504, "Timeout", format!("Timeout: {message}"))
            .causes(json!([{ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" }]))
            .retry_after(1)
    }

    /// The `Status` object.
    #[must_use]
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.as_str().into();
        }
        if !self.details.is_null() {
            status["details"] = self.details.clone();
        }
        if let Some(token) = &self.continue_token {
            status["metadata"] = json!({ "continue": token });
        }
        status
    }
}

/// The response to a successful request without an object.
pub(crate) fn done() -> Value {
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201 })
}

/// The response to a delete that took effect at once.
pub(crate) fn deleted(kind: &Kind, name: &str, uid: &str) -> Value {
    let mut details = details(&kind.group, &kind.plural, name);
    details["uid"] = uid.into();
    json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details })
}

fn details(group: &str, kind: &str, name: &str) -> Value {
    let mut details = json!({ "kind": kind });
    for (member, value) in [("name", name), ("group", group)] {
        if !value.is_empty() {
            details[member] = value.into();
        }
    }
    details
}

/// The cause of an invalid field; the wording of its message tells the reason.
fn field_cause(field: &str, message: &str, reason: Option<&str>) -> Value {
    const REASONS: &[(&str, &str)] = &[
        ("Required value", "FieldValueRequired"),
        ("Duplicate value", "FieldValueDuplicate"),
        ("Unsupported value", "FieldValueNotSupported"),
        ("Forbidden", "FieldValueForbidden"),
        ("Not found", "FieldValueNotFound"),
        ("Too many", "FieldValueTooMany"),
        ("Too long", "FieldValueTooLong"),
    ];
    let by_wording = REASONS.iter().find(|(start, _)| message.starts_with(start));
    let reason = reason.unwrap_or(by_wording.map_or("FieldValueInvalid", |(_, reason)| reason));
    json!({ "reason": reason, "message": message, "field": field })
}
