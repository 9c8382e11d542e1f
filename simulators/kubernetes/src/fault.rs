//! Faults of the simulated Kubernetes: what they match and what they do. Their names and their form in JSON are those of
//! the simulated Azure.

use std::time::Duration;

use faults::is_met;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::status::ApiError;

faults::fault! {
    conditions {
        /// HTTP method.
        method,
        /// The API's verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
        verb,
        /// The resource by its plural, with or without its group, and with a slash before a subresource: `services`,
        /// `deployments.apps`, `services/status`.
        resource_type,
        /// Name of the object; empty for lists and creations.
        resource,
        /// Namespace of the object.
        namespace,
        /// Path of the request, without the query.
        path,
        /// Name of the user: `kubernetes-admin`, `system:serviceaccount:default:robot`.
        user,
        /// The client's `User-Agent`: `kubectl/*`.
        user_agent,
    }
    action: FaultAction
}

/// What happens to an affected request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum FaultAction {
    /// Refuses it; nothing is done.
    Fail {
        /// HTTP status.
        status: u16,
        /// `reason` of the Status, such as `InternalError`; the usual one of the HTTP status if empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        code: String,
        /// `message` of the Status.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// Refuses it with 429.
    Throttle {
        /// Seconds for `Retry-After`; no header if `None`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u32>,
    },
    /// Does the work, and then returns an error, such as 504 `Timeout`.
    FailAfter {
        /// HTTP status.
        status: u16,
        /// `reason` of the Status; the usual one of the HTTP status if empty.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        code: String,
        /// `message` of the Status.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        message: String,
    },
    /// Delays the work.
    Delay {
        /// Milliseconds.
        ms: u64,
    },
    /// Lets another client change the object before the work is done: its resource version, and all earlier reads of
    /// it, are stale then.
    Interfere {
        /// Merged into the object, as in JSON merge patch.
        patch: Value,
    },
    /// Does the work, and then loses the response: the connection breaks before it is complete.
    DropAnswer,
    /// Loses the request: the connection breaks and nothing is done.
    DropRequest,
    /// Starts a watch, and breaks its connection.
    DropWatch {
        /// After that many milliseconds.
        #[serde(default)]
        after_ms: u64,
    },
    /// Returns a list as of some changes ago, and delays a watch by as many changes, like a lagging cache. Only
    /// requests that allow stale data are affected: those with a `resourceVersion`, `0` included, that is not newer. A
    /// watch lags until it ends, or until all faults are cleared.
    Stale {
        /// The number of changes of this kind that the cache lacks.
        changes: usize,
    },
}

impl FaultAction {
    /// Delays the work by this time.
    #[must_use]
    pub fn delay(time: Duration) -> Self {
        Self::Delay { ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX) }
    }

    /// The error with which a request is refused before anything is done, if this is such a fault.
    pub(crate) fn refusal(&self) -> Option<ApiError> {
        match self {
            Self::Fail { status, code, message } => Some(refusal(*status, code, message)),
            Self::Throttle { retry_after } => {
                let refusal = refusal(429, "", "Too many requests, please try again later.");
                Some(match retry_after {
                    Some(seconds) => refusal.retry_after(*seconds),
                    None => refusal,
                })
            }
            _ => None,
        }
    }

    /// The error that a request gets although its work was done.
    pub(crate) fn refusal_after(&self) -> Option<ApiError> {
        match self {
            Self::FailAfter { status, code, message } => Some(refusal(*status, code, message)),
            _ => None,
        }
    }
}

fn refusal(status: u16, code: &str, message: &str) -> ApiError {
    let usual = match status {
        400 => "BadRequest",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "NotFound",
        409 => "Conflict",
        410 => "Expired",
        422 => "Invalid",
        429 => "TooManyRequests",
        500 => "InternalError",
        503 => "ServiceUnavailable",
        504 => "Timeout",
        _ => "",
    };
    let injected = format!("injected fault: status {status}");
    ApiError::new(
        status,
        if code.is_empty() { usual } else { code },
        if message.is_empty() { &injected } else { message },
    )
}

impl Fault {
    /// A fault that affects the next request of any kind, once; narrow it with the other methods. In JSON, a fault
    /// without a count affects all requests.
    #[must_use]
    pub fn new(action: FaultAction) -> Self {
        Self::of_all_requests(action).times(1)
    }

    /// A fault that refuses the next request with this HTTP status, once.
    #[must_use]
    pub fn status(status: u16) -> Self {
        Self::new(FaultAction::Fail { status, code: String::new(), message: String::new() })
    }

    /// Only for this verb.
    #[must_use]
    pub fn verb(mut self, verb: &str) -> Self {
        self.verb = Some(verb.to_owned());
        self
    }

    /// Only for this resource, by its plural, with a slash before a subresource: `services`, `services/status`.
    #[must_use]
    pub fn resource(mut self, resource_type: &str) -> Self {
        self.resource_type = Some(resource_type.to_owned());
        self
    }

    /// Only for objects of this name.
    #[must_use]
    pub fn name(mut self, name: &str) -> Self {
        self.resource = Some(name.to_owned());
        self
    }

    fn matches(&self, request: &Subject<'_>) -> bool {
        is_met(&self.method, request.method)
            && is_met(&self.verb, request.verb)
            && (is_met(&self.resource_type, request.resource)
                || is_met(&self.resource_type, request.qualified))
            && is_met(&self.resource, request.name)
            && is_met(&self.namespace, request.namespace)
            && is_met(&self.path, request.path)
            && is_met(&self.user, request.user)
            && is_met(&self.user_agent, request.user_agent)
    }
}

/// The properties of a request that faults match.
pub(crate) struct Subject<'a> {
    pub(crate) method: &'a str,
    pub(crate) verb: &'a str,
    /// `services/status`.
    pub(crate) resource: &'a str,
    /// The same with the group.
    pub(crate) qualified: &'a str,
    pub(crate) name: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) path: &'a str,
    pub(crate) user: &'a str,
    pub(crate) user_agent: &'a str,
}

/// The effect of a fault on a request.
pub(crate) type Effect = faults::Effect<FaultAction>;

/// A fault in force, and how many requests it has matched.
pub(crate) type Declared = faults::Declared<Fault>;

/// A lagging cache: a watch sees it until the faults that were in force at its start are cleared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lag {
    /// The number of changes that it lacks.
    pub(crate) changes: usize,
    era: u64,
}

/// The faults in force.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    declared: faults::Faults<Fault>,
    /// How often all of them were replaced.
    era: u64,
}

impl Faults {
    pub(crate) fn declare(&mut self, fault: Fault) {
        self.declared.declare(fault);
    }

    pub(crate) fn clear(&mut self) {
        self.restore(Vec::new());
    }

    /// The faults in force, without those that are used up.
    pub(crate) fn list(&self) -> Vec<Fault> {
        self.declared.list()
    }

    pub(crate) fn declared(&self) -> &[Declared] {
        self.declared.declared()
    }

    pub(crate) fn restore(&mut self, declared: Vec<Declared>) {
        self.declared.restore(declared);
        self.era += 1;
    }

    /// A lag of that many changes, from now on.
    pub(crate) fn lag(&self, changes: usize) -> Lag {
        Lag { changes, era: self.era }
    }

    /// Whether the faults of a lag are still in force.
    pub(crate) fn lasts(&self, lag: &Lag) -> bool {
        lag.era == self.era
    }

    /// The effect of the first fault that affects this request. Every matching fault counts the request.
    pub(crate) fn affecting(&mut self, request: &Subject<'_>, seed: u64) -> Option<Effect> {
        self.declared.affecting(seed, |fault| fault.matches(request))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn get(name: &str) -> Subject<'_> {
        Subject {
            method: "GET",
            verb: "get",
            resource: "deployments",
            qualified: "deployments.apps",
            name,
            namespace: "default",
            path: "/x",
            user: "kubernetes-admin",
            user_agent: "kubectl/v1.33",
        }
    }

    #[test]
    fn conditions_are_all_met() {
        for (condition, matches) in [
            (r#""verb": "GET""#, true),
            (r#""resourceType": "deployments.apps""#, true),
            (r#""resourceType": "deployments/status""#, false),
            (r#""namespace": "kube-*""#, false),
            (r#""userAgent": "kubectl/*", "user": "*admin""#, true),
            (r#""resource": "?", "path": "/?""#, true),
            (r#""resource": "a*b""#, false),
        ] {
            let text = format!(r#"{{{condition}, "action": {{"do": "throttle", "retryAfter": 7}}}}"#);
            let fault: Fault = serde_json::from_str(&text).unwrap();
            assert_eq!(fault.matches(&get("a")), matches, "{condition}");
            assert_eq!(
                serde_json::from_value::<Fault>(serde_json::to_value(&fault).unwrap()).unwrap(),
                fault
            );
        }
    }
}
