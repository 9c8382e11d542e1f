//! Refusals: Azure's error envelope with its status and headers.

mod code;
pub mod words;

use azure_types::ResourceId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use self::code::{Code, Evidence};

const INVALID_JSON: Code = Code::azures(400, "InvalidJson");
const INVALID_REQUEST_FORMAT: Code = Code::azures(400, "InvalidRequestFormat");
const INVALID_RESOURCE_TYPE: Code = Code::azures(404, "InvalidResourceType");
const REFERENCED_RESOURCE_NOT_PROVISIONED: Code = Code::azures(429, "ReferencedResourceNotProvisioned");
const TOO_MANY_REQUESTS: Code = Code::azures(429, "TooManyRequests");

/// The code for an unreadable document.
pub const UNREADABLE: &str = INVALID_REQUEST_FORMAT.code;

/// What something that can be refused returns.
pub type Result<T, E = Refusal> = std::result::Result<T, E>;

/// The outcome of a request; `None` where something else handles it.
pub type Handled<T> = Option<Result<T>>;

/// A refused request, or the failure of a long-running operation.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Serialize, Deserialize)]
#[error("{status} {code}: {message}")]
pub struct Refusal {
    /// HTTP status of the answer; for a failed operation the status the same error would have had.
    pub status: u16,
    /// Azure's error code, such as `InvalidResourceReference`.
    pub code: String,
    /// Azure's text.
    pub message: String,
    /// The member or policy at fault, where the provider names one.
    pub target: Option<Box<str>>,
    /// Inner errors. `None` leaves the member out, as ARM's own answers do.
    pub details: Option<Vec<Detail>>,
    /// Seconds for the `Retry-After` header.
    pub retry_after: Option<u32>,
    /// Whether ARM itself answers, so that `x-ms-failure-cause: gateway` is sent.
    pub gateway: bool,
    /// Rarer parts.
    pub extra: Option<Box<Extra>>,
}

/// The rarer parts of a [`Refusal`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Extra {
    /// Compute's `innererror`.
    pub inner: Option<Value>,
    /// Value of the `WWW-Authenticate` header.
    pub challenge: Option<String>,
}

impl Code {
    /// The refusal with this message.
    pub fn says(self, words: impl std::fmt::Display) -> Refusal {
        Refusal::new(self.status, self.code, words.to_string())
    }

    /// Refuses if `wrong` is true.
    ///
    /// # Errors
    /// The refusal, as [`Code::says`] makes it.
    pub fn says_when(self, wrong: bool, words: impl std::fmt::Display) -> Result<()> {
        if wrong { Err(self.says(words)) } else { Ok(()) }
    }

    /// The same with an empty list of inner errors, as Network sends it.
    pub fn details(self, words: impl std::fmt::Display) -> Refusal {
        Refusal::network(self.status, self.code, words.to_string())
    }

    /// Refuses if `wrong` is true.
    ///
    /// # Errors
    /// The refusal, as [`Code::details`] makes it.
    pub fn details_when(self, wrong: bool, words: impl std::fmt::Display) -> Result<()> {
        if wrong { Err(self.details(words)) } else { Ok(()) }
    }
}

/// One of the inner errors of a [`Refusal`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Azure's error code.
    pub code: String,
    /// Azure's text.
    pub message: String,
    /// The subject, if the provider gives one.
    pub target: Option<String>,
}

impl Detail {
    fn body(&self) -> Value {
        let mut body = json!({ "code": self.code, "message": self.message });
        if let Some(target) = &self.target {
            body["target"] = json!(target);
        }
        body
    }
}

impl Refusal {
    /// A refusal by ARM itself: no details.
    pub fn new(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.into(),
            message: message.into(),
            target: None,
            details: None,
            retry_after: None,
            gateway: false,
            extra: None,
        }
    }

    /// A refusal by the Network provider, which sends `details` even when it has none.
    pub(crate) fn network(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { details: Some(Vec::new()), ..Self::new(status, code, message) }
    }

    /// Adds an inner error.
    pub fn with_detail(mut self, code: &str, message: impl Into<String>) -> Self {
        let detail = Detail { code: code.into(), message: message.into(), target: None };
        self.details.get_or_insert_default().push(detail);
        self
    }

    /// Sets the time until a retry, in seconds.
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Names the member at fault.
    pub fn at(mut self, target: &str) -> Self {
        self.target = Some(target.into());
        self
    }

    fn by_gateway(mut self) -> Self {
        self.gateway = true;
        self
    }

    /// The body: `{"error":{...}}`.
    pub fn body(&self) -> Value {
        json!({ "error": self.error() })
    }

    /// The inner object, which the answer of a failed operation has, too.
    pub fn error(&self) -> Value {
        let mut error = json!({ "code": self.code, "message": self.message });
        if let Some(target) = &self.target {
            error["target"] = json!(target);
        }
        if let Some(details) = &self.details {
            error["details"] = details.iter().map(Detail::body).collect();
        }
        if let Some(inner) = self.extra.as_ref().and_then(|extra| extra.inner.as_ref()) {
            error["innererror"] = inner.clone();
        }
        error
    }

    /// ARM's answer when its own budget is used up.
    pub fn subscription_throttled(subscription: &str, operation: &str, wait: u32) -> Self {
        Code::azures(429, "SubscriptionRequestsThrottled").says(format_args!(
                "Number of requests for subscription '{subscription}' and operation '{operation}' exceeded the backend \
                 storage limit. Please try again after '{wait}' seconds."
            ),
        )
        .with_retry_after(wait)
    }

    /// ARM's answer when a budget that it keeps for a provider is used up. `window` is in seconds.
    pub fn action_throttled(action: &str, size: f64, window: u64, wait: u32) -> Self {
        let (hours, minutes, seconds) = (window / 3_600, window / 60 % 60, window % 60);
        Code::azures(429, "ResourceRequestsThrottled")
            .says(format_args!(
                "Number of requests for action '{action}' exceeded the limit of '{size}' for time interval \
                 '{hours:02}:{minutes:02}:{seconds:02}'. Please try again after '{wait}' seconds."
            ))
            .with_retry_after(wait)
    }

    /// The refusal of a provider whose budget is used up, with the budget's name.
    pub fn operation_throttled(policy: &str, wait: u32) -> Self {
        TOO_MANY_REQUESTS
            .says(format_args!(
                "The request is being throttled as the limit has been reached for operation type - {policy}. For more \
                 information, see - https://aka.ms/srpthrottlinglimits"
            ))
            .with_retry_after(wait)
    }

    /// Compute's answer when one of its budgets is used up.
    pub fn group_throttled(
        policy: &str,
        window: &[String; 2],
        allowed: f64,
        measured: u64,
        wait: u32,
    ) -> Self {
        let [start, end] = window;
        let facts = format!(
            "{{\"operationGroup\":\"{policy}\",\"startTime\":\"{start}\",\"endTime\":\"{end}\",\
             \"allowedRequestCount\":{allowed},\"measuredRequestCount\":{measured}}}"
        );
        let mut refusal = Code::azures(429, "OperationNotAllowed").says(
            "The server rejected the request because too many requests have been received for this \
             subscription.",
        );
        refusal.details = Some(vec![Detail {
            code: TOO_MANY_REQUESTS.code.into(),
            message: facts,
            target: Some(policy.into()),
        }]);
        let inner = Some(json!({ "internalErrorCode": "TooManyRequestsReceived" }));
        refusal.extra = Some(Box::new(Extra { inner, challenge: None }));
        refusal.with_retry_after(wait)
    }

    /// ARM's answer when a provider does not answer in time.
    pub fn gateway_timeout(resource_type: &str) -> Self {
        let namespace = resource_type.split('/').next().unwrap_or_default();
        Code::azures(504, "GatewayTimeout")
            .says(format_args!(
                "The gateway did not receive a response from '{namespace}' within the specified time period."
            ))
            .by_gateway()
    }

    /// The refusal for an absent resource group.
    pub fn group_not_found(group: &str) -> Self {
        Code::azures(404, "ResourceGroupNotFound")
            .says(format_args!("Resource group '{group}' could not be found."))
            .by_gateway()
    }

    /// A tracked resource (or anything below it) is absent; `type_path` is `{ns}/{type}/{name}[/...]`.
    pub fn resource_not_found(type_path: &str, group: &str) -> Self {
        Code::azures(404, "ResourceNotFound")
            .says(format_args!(
                "The Resource '{type_path}' under resource group '{group}' was not found. \
                 For more details please go to https://aka.ms/ARMResourceNotFoundFix"
            ))
            .by_gateway()
    }

    /// A child document is absent.
    pub fn child_not_found(id: &ResourceId) -> Self {
        Code::azures(404, "NotFound").details(format_args!("Resource {id} not found."))
    }

    /// The resource above the one asked for is absent.
    pub fn parent_not_found(verb: &str, child_type: &str, parent: &ResourceId) -> Self {
        let child_type = child_type.split_once('/').map_or(child_type, |(_, below)| below);
        Code::azures(404, "ParentResourceNotFound")
            .says(format_args!(
                "Failed to perform '{verb}' on resource(s) of type '{child_type}', \
                 because the parent resource '{parent}' could not be found."
            ))
            .by_gateway()
    }

    /// The refusal of a reference to an absent resource.
    pub fn invalid_reference(to: &ResourceId, from: &ResourceId) -> Self {
        Code::azures(400, "InvalidResourceReference").details(format_args!(
            "Resource {to} referenced by resource {from} was not found. Please make sure that the referenced \
                 resource exists, and that both resources are in the same region."
        ))
    }

    /// The refusal of a reference to a resource that is being changed.
    pub fn not_provisioned(to: &ResourceId, from: &ResourceId, state: &str, operation: &str) -> Self {
        Code::azures(429, "RetryableError").details("A retryable error occurred.")
            .with_detail(
                REFERENCED_RESOURCE_NOT_PROVISIONED.code,
                format!(
                    "Cannot proceed with operation because resource {to} used by resource {from} is not in Succeeded \
                     state. Resource is in {state} state and the last operation that updated/is updating the resource \
                     is {operation}."
                ),
            )
            .with_retry_after(10)
    }

    /// No provider has this namespace.
    pub fn unknown_namespace(namespace: &str) -> Self {
        Code::azures(404, "InvalidResourceNamespace")
            .says(format_args!("The resource namespace '{namespace}' is invalid."))
    }

    /// Something below a resource that its type does not have.
    pub fn unknown_below(full_type: &str) -> Self {
        let text = format!("The resource type '{full_type}' could not be found in the namespace.");
        INVALID_RESOURCE_TYPE.says(text)
    }

    /// The provider has no such type.
    pub fn unknown_type(namespace: &str, resource_type: &str, version: &str) -> Self {
        INVALID_RESOURCE_TYPE.says(format_args!(
                "The resource type '{resource_type}' could not be found in the namespace '{namespace}' for api version \
                 '{version}'."
            ),
        )
    }

    /// A body that the Network provider cannot read into its types.
    pub fn bad_format(message: impl Into<String>) -> Self {
        Self::unreadable(INVALID_JSON.code, message)
    }

    /// A document that the provider cannot read, and why.
    pub fn unreadable(code: &str, reason: impl Into<String>) -> Self {
        INVALID_REQUEST_FORMAT.says("Cannot parse the request.").with_detail(code, reason)
    }

    /// Where a document is unreadable: under another code, with the reason as the message. Some providers say no more.
    #[must_use]
    pub fn with_reason_alone(mut self, code: &str) -> Self {
        if self.code == UNREADABLE {
            if let Some(reason) = self.details.take().and_then(|details| details.into_iter().next()) {
                self.message = reason.message;
            }
            self.code = code.into();
        }
        self
    }

    /// The refusal of a type in a location that does not have it; `regions` are those that have it.
    pub fn no_such_location(location: &str, resource_type: &str, regions: &str) -> Self {
        let what = format!("resource type '{resource_type}'");
        Code::azures(400, "LocationNotAvailableForResourceType").says(format_args!(
                "The provided location '{location}' is not available for {what}. List of available regions for the \
                 resource type is '{regions}'."
            ),
        )
    }

    /// ARM itself cannot read the body.
    pub fn bad_content(reason: impl std::fmt::Display) -> Self {
        Code::azures(400, "InvalidRequestContent")
            .says(format_args!("The request content was invalid and could not be deserialized: '{reason}'."))
    }

    /// The refusal of an invalid member.
    pub fn invalid_parameter(target: &str, message: impl Into<String>) -> Self {
        Code::azures(400, "InvalidParameter").says(message.into()).at(target)
    }

    /// Refuses a member if `wrong` is true.
    ///
    /// # Errors
    /// The refusal, as [`Refusal::invalid_parameter`] makes it.
    pub fn invalid_when(wrong: bool, target: &str, message: impl std::fmt::Display) -> Result<(), Self> {
        if wrong { Err(Self::invalid_parameter(target, message.to_string())) } else { Ok(()) }
    }

    /// The refusal of a method.
    pub fn method_not_allowed(method: &str) -> Self {
        Code::ours(405, "MethodNotAllowed")
            .says(format_args!("The request does not support the method '{method}'."))
    }

    /// The refusal of a member without a valid resource id.
    pub fn bad_id(id: &str, path: &str) -> Self {
        Code::azures(400, "LinkedInvalidPropertyId").says(format_args!(
                "Property id '{id}' at path '{path}' is invalid. Expect fully qualified resource Id that start with \
                 '/subscriptions/{{subscriptionId}}' or '/providers/{{resourceProviderNamespace}}/'."
            ),
        )
    }
}
