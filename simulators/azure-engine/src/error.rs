//! Refusals: Azure's error envelope with its status and headers.

use azure_types::ResourceId;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a document is called that cannot be read.
pub const UNREADABLE: &str = "InvalidRequestFormat";

/// A request that Azure refuses, or the reason why a long-running operation ended badly.
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
    /// What few refusals have.
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

/// Where it is known from that Azure refuses something so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// A recorded conversation, or Azure's public documents.
    Azures,
    /// Azure refuses it; code and words are ours.
    Ours,
}

/// A refusal before it is known what it is about: status, code and evidence in one line.
#[derive(Debug, Clone, Copy)]
pub struct Code {
    /// The HTTP status.
    pub status: u16,
    /// The code.
    pub code: &'static str,
    /// Whose they are.
    pub evidence: Evidence,
}

impl Code {
    /// A code of Azure's.
    pub const fn azures(status: u16, code: &'static str) -> Self {
        Self { status, code, evidence: Evidence::Azures }
    }

    /// A code of ours.
    pub const fn ours(status: u16, code: &'static str) -> Self {
        Self { status, code, evidence: Evidence::Ours }
    }

    /// The refusal in these words.
    pub fn says(self, words: impl std::fmt::Display) -> Refusal {
        Refusal::new(self.status, self.code, words.to_string())
    }

    /// The same with an empty list of inner errors, as Network sends it.
    pub fn details(self, words: impl std::fmt::Display) -> Refusal {
        Refusal::network(self.status, self.code, words.to_string())
    }
}

/// One of the inner errors of a [`Refusal`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Detail {
    /// Azure's error code.
    pub code: String,
    /// Azure's text.
    pub message: String,
    /// What it is about, where the provider says so.
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
    pub fn network(status: u16, code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { details: Some(Vec::new()), ..Self::new(status, code, message) }
    }

    /// Adds an inner error.
    pub fn with_detail(mut self, code: &str, message: impl Into<String>) -> Self {
        let detail = Detail { code: code.into(), message: message.into(), target: None };
        self.details.get_or_insert_default().push(detail);
        self
    }

    /// Says after how many seconds to try again.
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

    /// The inner object, as it also stands in the answer of a failed operation.
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
        Self::new(
            429,
            "SubscriptionRequestsThrottled",
            format!(
                "Number of requests for subscription '{subscription}' and operation '{operation}' exceeded the backend \
                 storage limit. Please try again after '{wait}' seconds."
            ),
        )
        .with_retry_after(wait)
    }

    /// ARM's answer when a budget that it keeps for a provider is used up. `window` is in seconds.
    pub fn action_throttled(action: &str, size: f64, window: u64, wait: u32) -> Self {
        let (hours, minutes, seconds) = (window / 3_600, window / 60 % 60, window % 60);
        Self::new(
            429,
            "ResourceRequestsThrottled",
            format!(
                "Number of requests for action '{action}' exceeded the limit of '{size}' for time interval \
                 '{hours:02}:{minutes:02}:{seconds:02}'. Please try again after '{wait}' seconds."
            ),
        )
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
        let mut refusal = Self::new(
            429,
            "OperationNotAllowed",
            "The server rejected the request because too many requests have been received for this subscription.",
        );
        refusal.details = Some(vec![Detail {
            code: "TooManyRequests".into(),
            message: facts,
            target: Some(policy.into()),
        }]);
        let inner = Some(json!({ "internalErrorCode": "TooManyRequestsReceived" }));
        refusal.extra = Some(Box::new(Extra { inner, challenge: None }));
        refusal.with_retry_after(wait)
    }

    /// ARM's answer when a provider has said nothing for too long.
    pub fn gateway_timeout(resource_type: &str) -> Self {
        let namespace = resource_type.split('/').next().unwrap_or_default();
        Self::new(
            504,
            "GatewayTimeout",
            format!(
                "The gateway did not receive a response from '{namespace}' within the specified time period."
            ),
        )
        .by_gateway()
    }

    /// A resource group is absent.
    pub fn group_not_found(group: &str) -> Self {
        Self::new(404, "ResourceGroupNotFound", format!("Resource group '{group}' could not be found."))
            .by_gateway()
    }

    /// A tracked resource (or anything below it) is absent; `type_path` is `{ns}/{type}/{name}[/...]`.
    pub fn resource_not_found(type_path: &str, group: &str) -> Self {
        Self::new(
            404,
            "ResourceNotFound",
            format!(
                "The Resource '{type_path}' under resource group '{group}' was not found. \
                 For more details please go to https://aka.ms/ARMResourceNotFoundFix"
            ),
        )
        .by_gateway()
    }

    /// A child document is absent.
    pub fn child_not_found(id: &ResourceId) -> Self {
        Self::network(404, "NotFound", format!("Resource {id} not found."))
    }

    /// The resource above the one asked for is absent.
    pub fn parent_not_found(verb: &str, child_type: &str, parent: &ResourceId) -> Self {
        Self::new(
            404,
            "ParentResourceNotFound",
            format!(
                "Failed to perform '{verb}' on resource(s) of type '{child_type}', \
                 because the parent resource '{parent}' could not be found."
            ),
        )
        .by_gateway()
    }

    /// A document points at what is absent.
    pub fn invalid_reference(to: &ResourceId, from: &ResourceId) -> Self {
        Self::network(
            400,
            "InvalidResourceReference",
            format!(
                "Resource {to} referenced by resource {from} was not found. Please make sure that the referenced \
                 resource exists, and that both resources are in the same region."
            ),
        )
    }

    /// A document points at what is being changed.
    pub fn not_provisioned(to: &ResourceId, from: &ResourceId, state: &str, operation: &str) -> Self {
        Self::network(429, "RetryableError", "A retryable error occurred.")
            .with_detail(
                "ReferencedResourceNotProvisioned",
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
        Self::new(
            404,
            "InvalidResourceNamespace",
            format!("The resource namespace '{namespace}' is invalid."),
        )
    }

    /// Something below a resource that its type does not have.
    pub fn unknown_below(full_type: &str) -> Self {
        let text = format!("The resource type '{full_type}' could not be found in the namespace.");
        Self::new(404, "InvalidResourceType", text)
    }

    /// The provider has no such type.
    pub fn unknown_type(namespace: &str, resource_type: &str, version: &str) -> Self {
        Self::new(
            404,
            "InvalidResourceType",
            format!(
                "The resource type '{resource_type}' could not be found in the namespace '{namespace}' for api version \
                 '{version}'."
            ),
        )
    }

    /// A body that the Network provider cannot read into its types.
    pub fn bad_format(message: impl Into<String>) -> Self {
        Self::unreadable("InvalidJson", message)
    }

    /// A document that the provider cannot read, and why.
    pub fn unreadable(code: &str, reason: impl Into<String>) -> Self {
        Self::new(400, UNREADABLE, "Cannot parse the request.").with_detail(code, reason)
    }

    /// A type is not to be had in a location; `regions` are those in which it is.
    pub fn no_such_location(location: &str, resource_type: &str, regions: &str) -> Self {
        let what = format!("resource type '{resource_type}'");
        Self::new(
            400,
            "LocationNotAvailableForResourceType",
            format!(
                "The provided location '{location}' is not available for {what}. List of available regions for the \
                 resource type is '{regions}'."
            ),
        )
    }

    /// ARM itself cannot read the body.
    pub fn bad_content(reason: impl std::fmt::Display) -> Self {
        Self::new(
            400,
            "InvalidRequestContent",
            format!("The request content was invalid and could not be deserialized: '{reason}'."),
        )
    }

    /// A member holds what it must not.
    pub fn invalid_parameter(target: &str, message: impl Into<String>) -> Self {
        Self::new(400, "InvalidParameter", message).at(target)
    }

    /// What is asked for has no such method.
    pub fn method_not_allowed(method: &str) -> Self {
        Self::new(405, "MethodNotAllowed", format!("The request does not support the method '{method}'."))
    }

    /// A member should hold a resource id and does not.
    pub fn bad_id(id: &str, path: &str) -> Self {
        Self::new(
            400,
            "LinkedInvalidPropertyId",
            format!(
                "Property id '{id}' at path '{path}' is invalid. Expect fully qualified resource Id that start with \
                 '/subscriptions/{{subscriptionId}}' or '/providers/{{resourceProviderNamespace}}/'."
            ),
        )
    }
}
