//! Faults, declared as data: which error the server produces, how often and for which requests. Their names and their
//! form in JSON are those of the simulated Azure.

use std::time::Duration;

use ring::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::status::ApiError;

/// A fault: the requests that it affects and what happens to them. Conditions that are left out match everything; texts
/// may contain `*` and `?` and are compared ignoring case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Its name in the journal.
    #[serde(default)]
    pub name: String,
    /// HTTP method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The API's verb: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// The resource by its plural, with or without its group, and with a slash before a subresource: `services`,
    /// `deployments.apps`, `services/status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    /// Name of the object; empty for lists and creations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Namespace of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Path of the request, without the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Name of the user: `kubernetes-admin`, `system:serviceaccount:default:robot`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The client's `User-Agent`: `kubectl/*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<String>,
    /// How many matching requests pass before the first is affected.
    #[serde(default)]
    pub skip: u64,
    /// How many matching requests are affected; `None` for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The share of the requests between `skip` and `count` that is affected, drawn from the seed: 0.1 affects about
    /// one in ten. `None` for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// What happens to an affected request.
    pub action: FaultAction,
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
        Self {
            name: String::new(),
            method: None,
            verb: None,
            resource_type: None,
            resource: None,
            namespace: None,
            path: None,
            user: None,
            user_agent: None,
            skip: 0,
            count: Some(1),
            share: None,
            action,
        }
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

    /// Skips that many matching requests first.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// Affects this many requests.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Affects that share of all requests, indefinitely.
    #[must_use]
    pub fn some(mut self, share: f64) -> Self {
        self.share = Some(share);
        self.count = None;
        self
    }

    /// Sets its name in the journal.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.to_owned();
        self
    }

    fn fits(&self, request: &Subject<'_>) -> bool {
        let fits = |pattern: &Option<String>, text: &str| pattern.as_deref().is_none_or(|p| matches(p, text));
        fits(&self.method, request.method)
            && fits(&self.verb, request.verb)
            && (fits(&self.resource_type, request.resource) || fits(&self.resource_type, request.qualified))
            && fits(&self.resource, request.name)
            && fits(&self.namespace, request.namespace)
            && fits(&self.path, request.path)
            && fits(&self.user, request.user)
            && fits(&self.user_agent, request.user_agent)
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

/// A fault that affects a request.
#[derive(Debug, Clone)]
pub(crate) struct Struck {
    pub(crate) name: String,
    pub(crate) action: FaultAction,
}

/// A fault in force, and how many requests it has matched.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Declared {
    fault: Fault,
    seen: u64,
}

impl Declared {
    /// Whether it can affect no further request.
    fn is_used_up(&self) -> bool {
        let last = self.fault.count.map(|count| self.fault.skip.saturating_add(count));
        last.is_some_and(|last| self.seen >= last)
    }
}

/// A lagging cache: a watch sees it until the faults that were in force at its start are cleared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lag {
    /// The number of changes that it lacks.
    pub(crate) changes: usize,
    era: u64,
}

/// The faults in force, in the order of their declaration.
#[derive(Debug, Default)]
pub(crate) struct Faults {
    declared: Vec<Declared>,
    /// How often all of them were cleared.
    era: u64,
}

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.declared.push(Declared { fault, seen: 0 });
    }

    pub(crate) fn clear(&mut self) {
        self.restore(Vec::new());
    }

    /// The faults in force, without those that are used up.
    pub(crate) fn list(&self) -> Vec<Fault> {
        let in_force = self.declared.iter().filter(|declared| !declared.is_used_up());
        in_force.map(|declared| declared.fault.clone()).collect()
    }

    pub(crate) fn declared(&self) -> &[Declared] {
        &self.declared
    }

    pub(crate) fn restore(&mut self, declared: Vec<Declared>) {
        self.declared = declared;
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

    /// The first fault that affects this request. Every matching fault counts the request.
    pub(crate) fn strike(&mut self, request: &Subject<'_>, seed: u64) -> Option<Struck> {
        let mut struck = None;
        let fitting =
            self.declared.iter_mut().enumerate().filter(|(_, declared)| declared.fault.fits(request));
        for (place, declared) in fitting {
            let number = declared.seen;
            let within = number >= declared.fault.skip && !declared.is_used_up();
            declared.seen += 1;
            let fault = &declared.fault;
            let drawn = fault.share.is_none_or(|share| draw(seed, place, &fault.name, number) < share);
            if within && drawn && struck.is_none() {
                struck = Some(Struck { name: fault.name.clone(), action: fault.action.clone() });
            }
        }
        struck
    }
}

/// A random number from 0 to 1 that depends only on the arguments, not on earlier draws.
fn draw(seed: u64, place: usize, name: &str, number: u64) -> f64 {
    let mut context = Context::new(&SHA256);
    context.update(&seed.to_be_bytes());
    context.update(format!("{place} {name} {number}").as_bytes());
    let digest = context.finish();
    let drawn = digest.as_ref().iter().take(4).fold(0_u32, |drawn, byte| drawn << 8 | u32::from(*byte));
    f64::from(drawn) / f64::from(u32::MAX)
}

/// Whether `pattern` (`*` any run of characters, `?` any one) matches the whole text, ignoring ASCII case.
fn matches(pattern: &str, text: &str) -> bool {
    fn from(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), left) => {
                from(rest, text) || left.is_some_and(|(_, left)| from(pattern, left))
            }
            (Some((want, rest)), Some((have, left))) => {
                (*want == b'?' || want.eq_ignore_ascii_case(have)) && from(rest, left)
            }
            _ => false,
        }
    }
    from(pattern.as_bytes(), text.as_bytes())
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
    fn a_fault_strikes_the_requests_between_skip_and_count() {
        let mut faults = Faults::default();
        faults.add(Fault::new(FaultAction::DropAnswer).verb("get").resource("deploy*").after(1).times(2));
        let struck: Vec<bool> = (0..5).map(|_| faults.strike(&get("a"), 1).is_some()).collect();
        assert_eq!(struck, [false, true, true, false, false]);
    }

    #[test]
    fn a_used_up_fault_is_not_shown_as_in_force() {
        let mut faults = Faults::default();
        faults.add(Fault::new(FaultAction::DropAnswer).named("twice").after(1).times(2));
        faults.add(Fault::new(FaultAction::DropAnswer).named("always").some(1.0));
        let mut listed = Vec::new();
        for _ in 0..4 {
            listed.push(faults.list().len());
            faults.strike(&get("a"), 1);
        }
        assert_eq!(listed, [2, 2, 2, 1]);
        assert_eq!(faults.list()[0].name, "always");
    }

    #[test]
    fn a_share_is_drawn_from_the_seed() {
        let run = |seed| -> Vec<bool> {
            let mut faults = Faults::default();
            faults.add(Fault::new(FaultAction::DropAnswer).some(0.25));
            (0..400).map(|_| faults.strike(&get("a"), seed).is_some()).collect()
        };
        let struck = run(1).into_iter().filter(|struck| *struck).count();
        assert!((70..130).contains(&struck), "{struck}");
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn conditions_are_all_met() {
        for (condition, fits) in [
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
            assert_eq!(fault.fits(&get("a")), fits, "{condition}");
            assert_eq!(
                serde_json::from_value::<Fault>(serde_json::to_value(&fault).unwrap()).unwrap(),
                fault
            );
        }
    }
}
