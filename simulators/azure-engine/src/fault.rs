//! Faults of the simulated Azure: what they match and what they do.

use azure_types::ResourceId;
use faults::{Faults, is_met};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::operation::execution::Execution;
use crate::operation::{OperationEnd, OperationStyle, OperationUrls, RetryAfterStyle, Status};
use crate::refusal::{Code, Refusal};
use crate::settings::latency::bounded;
use crate::settings::seed::Seed;

faults::fault! {
    conditions {
        /// HTTP method.
        method,
        /// Full resource type, such as `Microsoft.Network/loadBalancers`; polls of operations have
        /// `{namespace}/locations/operations`.
        resource_type,
        /// Name of the resource: the last segment of its id. Lists have an empty name.
        resource,
        /// Path of the request, without the query.
        path,
    }
    action: FaultAction
}

/// The action of a fault on a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum FaultAction {
    /// Refuse it; nothing is done.
    Fail {
        /// HTTP status.
        status: u16,
        /// Azure's error code.
        code: String,
        /// Azure's error text.
        #[serde(default)]
        message: String,
    },
    /// Refuse it with 429.
    Throttle {
        /// Seconds for `Retry-After`; no header without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u32>,
    },
    /// Perform the request, then answer with an error all the same, such as 504 `GatewayTimeout`.
    FailAfter {
        /// HTTP status.
        status: u16,
        /// Azure's error code.
        code: String,
        /// Azure's error text.
        #[serde(default)]
        message: String,
    },
    /// Perform the request that much later.
    Delay {
        /// Milliseconds.
        ms: u64,
    },
    /// Before doing the work, change a resource as another client would: its etag, and all that was read before, are
    /// stale then.
    Interfere {
        /// The resource to change; without it the one that the request is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<ResourceId>,
        /// Merged into the document, as in JSON merge patch.
        patch: Value,
    },
    /// Answer that it is done, and do nothing: Azure says that it will do it later, and never does.
    Pretend {
        /// HTTP status of the answer, which has no body.
        status: u16,
    },
    /// Perform the request, then lose the answer: the connection breaks before it is complete.
    DropAnswer,
    /// Lose the request: the connection breaks and nothing was done.
    DropRequest,
    /// Accept it, but let its long-running operation fail: the resource stays `Failed`.
    FailOperation {
        /// Azure's error code.
        code: String,
        /// Azure's error text.
        #[serde(default)]
        message: String,
    },
    /// Accept it, but let its long-running operation end `Canceled`: the resource stays `Failed`.
    CancelOperation,
    /// Accept it, but let its long-running operation run for ever.
    StallOperation,
    /// Accept it, but let polls of its long-running operation find nothing, as if it had expired.
    ForgetOperation,
    /// Accept it, but let its long-running operation be followed in another of Azure's ways.
    OperationStyle {
        /// The URLs that the answer carries; the provider's own without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        urls: Option<OperationUrls>,
        /// How answers say when to ask again; as the options say without.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<RetryAfterStyle>,
    },
    /// Accept it, but let its long-running operation take this long.
    SlowOperation {
        /// Milliseconds.
        ms: u64,
    },
}

impl Fault {
    /// A fault that affects every request; narrow it with the other methods.
    pub fn new(action: FaultAction) -> Self {
        Self::of_all_requests(action)
    }

    /// Only for this method.
    #[must_use]
    pub fn on_method(mut self, method: &str) -> Self {
        self.method = Some(method.into());
        self
    }

    /// Only for this resource type (wildcards allowed).
    #[must_use]
    pub fn on_type(mut self, resource_type: &str) -> Self {
        self.resource_type = Some(resource_type.into());
        self
    }

    /// Only for resources of this name (wildcards allowed).
    #[must_use]
    pub fn on_resource(mut self, name: &str) -> Self {
        self.resource = Some(name.into());
        self
    }

    fn matches(&self, request: &Subject<'_>) -> bool {
        is_met(&self.method, request.method)
            && is_met(&self.resource_type, request.resource_type)
            && is_met(&self.resource, request.name)
            && is_met(&self.path, request.path)
    }
}

impl FaultAction {
    /// The refusal of a struck request that is not performed, if this is such a fault.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Fail { status, code, message } => Some(Refusal::new(*status, code, message)),
            Self::Throttle { retry_after } => Some(Refusal {
                retry_after: *retry_after,
                ..Code::azures(429, "TooManyRequests").says("The request is being throttled.")
            }),
            _ => None,
        }
    }

    /// The error of a struck request that was performed.
    pub fn refusal_after(&self) -> Option<Refusal> {
        match self {
            Self::FailAfter { status, code, message } => Some(Refusal::new(*status, code, message)),
            _ => None,
        }
    }

    /// The execution of a struck request.
    pub fn execution(&self) -> Execution {
        let operation_style = OperationStyle::default();
        match self {
            Self::FailOperation { code, message } => {
                let failed = Status::Failed(Refusal::network(400, code, message));
                Execution { ending: Some(failed), ..Execution::default() }
            }
            Self::CancelOperation => {
                Execution { ending: Some(OperationEnd::Canceled.status()), ..Execution::default() }
            }
            Self::StallOperation => Execution { stall: true, ..Execution::default() },
            Self::SlowOperation { ms } => Execution { latency: Some(bounded(*ms)), ..Execution::default() },
            Self::ForgetOperation => Execution {
                operation_style: OperationStyle { forgotten: true, ..operation_style },
                ..Execution::default()
            },
            Self::OperationStyle { urls, retry_after } => {
                let operation_style =
                    OperationStyle { urls: *urls, retry_after: *retry_after, ..operation_style };
                Execution { operation_style, ..Execution::default() }
            }
            _ => Execution::default(),
        }
    }
}

/// The parts of a request that faults match.
pub struct Subject<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The full type asked for.
    pub resource_type: &'a str,
    /// The name of the resource; empty for lists.
    pub name: &'a str,
    /// The path as sent.
    pub path: &'a str,
}

/// The effect of a fault on a request.
pub type Effect = faults::Effect<FaultAction>;

/// The effect of the first fault that affects this request. Every matching fault counts the request.
pub fn affecting(faults: &mut Faults<Fault>, request: &Subject<'_>, seed: Seed) -> Option<Effect> {
    faults.affecting(seed.0, |fault| fault.matches(request))
}

#[cfg(test)]
mod tests {
    use super::{Fault, FaultAction, Subject};

    #[test]
    fn a_fault_matches_requests_and_is_plain_data() {
        for (conditions, matches) in [
            (r#""method": "put", "resource": "kube*""#, true),
            (r#""resourceType": "*/loadBalancers", "path": "/?""#, true),
            (r#""method": "GET""#, false),
            (r#""resource": "other""#, false),
            (r#""path": "/x/*""#, false),
        ] {
            let text =
                format!(r#"{{{conditions}, "count": 1, "action": {{"do": "throttle", "retryAfter": 7}}}}"#);
            let fault: Fault = serde_json::from_str(&text).unwrap();
            let (resource_type, name) = ("Microsoft.Network/loadBalancers", "kubernetes");
            let request = Subject { method: "PUT", resource_type, name, path: "/x" };
            assert_eq!(fault.matches(&request), matches, "{conditions}");
            assert_eq!(fault.action, FaultAction::Throttle { retry_after: Some(7) });
            assert_eq!(
                serde_json::from_value::<Fault>(serde_json::to_value(&fault).unwrap()).unwrap(),
                fault
            );
        }
    }
}
