//! Faults, declared as data.

use azure_types::ResourceId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::glob::matches;
use crate::operation::execution::Execution;
use crate::operation::{OperationEnd, OperationStyle, OperationUrls, RetryAfterStyle, Status};
use crate::refusal::Refusal;
use crate::refusal::code::Code;
use crate::settings::latency::bounded;
use crate::settings::seed::Seed;

const TOO_MANY_REQUESTS: Code = Code::azures(429, "TooManyRequests");

/// A fault: the requests that it strikes and its action. Conditions that are left out match everything; texts may hold
/// `*` and `?` and are compared ignoring case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Fault {
    /// Name under which the journal mentions it.
    #[serde(default)]
    pub name: String,
    /// HTTP method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Full resource type, such as `Microsoft.Network/loadBalancers`; polls of operations have
    /// `{namespace}/locations/operations`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_type: Option<String>,
    /// Name of the resource: the last segment of its id. Lists have an empty name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// Path of the request, without the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// How many matching requests pass before the first is struck.
    #[serde(default)]
    pub skip: u64,
    /// How many matching requests are struck; no number means all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The share of the requests between `skip` and `count` that is struck, drawn from the seed: 0.1
    /// strikes about one in ten. Without it all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The action on a struck request.
    pub action: FaultAction,
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
    /// A fault that strikes every request; narrow it with the other methods.
    pub fn new(action: FaultAction) -> Self {
        Self {
            name: String::new(),
            method: None,
            resource_type: None,
            resource: None,
            path: None,
            skip: 0,
            count: None,
            share: None,
            action,
        }
    }

    /// Strikes one method only.
    #[must_use]
    pub fn on_method(mut self, method: &str) -> Self {
        self.method = Some(method.into());
        self
    }

    /// Strikes one resource type only (wildcards allowed).
    #[must_use]
    pub fn on_type(mut self, resource_type: &str) -> Self {
        self.resource_type = Some(resource_type.into());
        self
    }

    /// Strikes resources of this name only (wildcards allowed).
    #[must_use]
    pub fn on_resource(mut self, name: &str) -> Self {
        self.resource = Some(name.into());
        self
    }

    /// Lets that many fitting requests pass first.
    #[must_use]
    pub fn after(mut self, skip: u64) -> Self {
        self.skip = skip;
        self
    }

    /// Strikes that many requests, then no more.
    #[must_use]
    pub fn times(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Strikes that share of the requests only.
    #[must_use]
    pub fn some(mut self, share: f64) -> Self {
        self.share = Some(share);
        self
    }

    /// Gives it a name for the journal.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    fn fits(&self, request: &Subject<'_>) -> bool {
        let fits = |pattern: &Option<String>, text: &str| pattern.as_deref().is_none_or(|p| matches(p, text));
        fits(&self.method, request.method)
            && fits(&self.resource_type, request.resource_type)
            && fits(&self.resource, request.name)
            && fits(&self.path, request.path)
    }
}

impl FaultAction {
    /// The refusal of a struck request that is not performed, if this is such a fault.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Self::Fail { status, code, message } => Some(Refusal::new(*status, code, message)),
            Self::Throttle { retry_after } => Some(Refusal {
                retry_after: *retry_after,
                ..TOO_MANY_REQUESTS.says("The request is being throttled.")
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

/// A fault that struck.
#[derive(Debug, Clone)]
pub struct Struck {
    /// The fault's name.
    pub name: String,
    /// What it does.
    pub action: FaultAction,
}

/// The faults in force.
#[derive(Default)]
pub struct Faults {
    declared: Vec<Declared>,
}

/// A fault in force, and how many requests it has fitted.
#[derive(Clone, Serialize, Deserialize)]
pub struct Declared {
    fault: Fault,
    seen: u64,
}

impl Declared {
    /// Whether no further request can be struck.
    fn is_used_up(&self) -> bool {
        let last = self.fault.count.map(|count| self.fault.skip.saturating_add(count));
        last.is_some_and(|last| self.seen >= last)
    }
}

impl Faults {
    /// These faults, in force.
    pub fn of(faults: &[Fault]) -> Self {
        let mut all = Self::default();
        faults.iter().for_each(|fault| all.declare(fault.clone()));
        all
    }

    /// Puts a fault in force, in place of one of the same name.
    pub fn declare(&mut self, fault: Fault) {
        self.declared.push(Declared { fault, seen: 0 });
    }

    /// The faults with their counts.
    pub fn declared(&self) -> &[Declared] {
        &self.declared
    }

    /// Restores the saved form.
    pub fn restore(&mut self, declared: Vec<Declared>) {
        self.declared = declared;
    }

    /// Removes all.
    pub fn clear(&mut self) {
        self.declared.clear();
    }

    /// The faults in force, without used-up ones.
    pub fn list(&self) -> Vec<Fault> {
        let in_force = self.declared.iter().filter(|declared| !declared.is_used_up());
        in_force.map(|declared| declared.fault.clone()).collect()
    }

    /// The first fault that strikes this request. Every matching fault counts the request.
    pub fn strike(&mut self, request: &Subject<'_>, seed: Seed) -> Option<Struck> {
        let mut struck = None;
        let fitting =
            self.declared.iter_mut().enumerate().filter(|(_, declared)| declared.fault.fits(request));
        for (place, declared) in fitting {
            let number = declared.seen;
            let within = number >= declared.fault.skip && !declared.is_used_up();
            declared.seen += 1;
            let fault = &declared.fault;
            let drawn = fault.share.is_none_or(|share| {
                let draw = seed.number("fault", &format!("{place} {}", fault.name), number) % 1_000_000;
                (draw as f64) < share * 1_000_000.0
            });
            if within && drawn && struck.is_none() {
                struck = Some(Struck { name: fault.name.clone(), action: fault.action.clone() });
            }
        }
        struck
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, FaultAction, Faults, Seed, Subject};

    fn put(name: &str) -> Subject<'_> {
        Subject { method: "PUT", resource_type: "Microsoft.Network/loadBalancers", name, path: "/x" }
    }

    #[test]
    fn a_fault_strikes_the_requests_between_skip_and_count() {
        let mut faults = Faults::default();
        faults.declare(
            Fault::new(FaultAction::DropAnswer).on_method("put").on_type("*/loadBalancers").after(1).times(2),
        );
        let struck: Vec<bool> = (0..5).map(|_| faults.strike(&put("a"), Seed(1)).is_some()).collect();
        assert_eq!(struck, [false, true, true, false, false]);
    }

    #[test]
    fn a_used_up_fault_is_not_shown_as_in_force() {
        let mut faults = Faults::default();
        faults.declare(Fault::new(FaultAction::DropAnswer).named("twice").after(1).times(2));
        faults.declare(Fault::new(FaultAction::DropAnswer).named("always"));
        let mut listed = Vec::new();
        for _ in 0..4 {
            listed.push(faults.list().len());
            faults.strike(&put("a"), Seed(1));
        }
        assert_eq!(listed, [2, 2, 2, 1]);
        assert_eq!(faults.list()[0].name, "always");
        assert_eq!(faults.declared().len(), 2, "a saved state keeps the place of each, which draws go by");
    }

    #[test]
    fn a_share_is_drawn_from_the_seed() {
        let run = |seed| -> Vec<bool> {
            let mut faults = Faults::default();
            faults.declare(Fault::new(FaultAction::DropAnswer).some(0.25));
            (0..400).map(|_| faults.strike(&put("a"), Seed(seed)).is_some()).collect()
        };
        let struck = run(1).into_iter().filter(|struck| *struck).count();
        assert!((70..130).contains(&struck), "{struck}");
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }

    #[test]
    fn a_fault_is_plain_data() {
        let text =
            r#"{"method":"PUT","resource":"kube*","count":1,"action":{"do":"throttle","retryAfter":7}}"#;
        let fault: Fault = serde_json::from_str(text).unwrap();
        assert_eq!(fault.action, FaultAction::Throttle { retry_after: Some(7) });
        assert_eq!(serde_json::from_value::<Fault>(serde_json::to_value(&fault).unwrap()).unwrap(), fault);
    }
}
