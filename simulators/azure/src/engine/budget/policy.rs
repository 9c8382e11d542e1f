//! What providers count: their policies, as data.

use std::time::Duration;

use super::figures::{Budgets, Figures, PolicyFigures, Refill};
use crate::engine::glob::matches;

/// Whose requests share a bucket. There is one for every region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Per {
    Subscription,
    Resource,
}

/// Who words the refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    /// ARM, on behalf of the provider: `ResourceRequestsThrottled`, and no header shows what is left.
    Gateway,
    /// The provider: `TooManyRequests` with the operation group, and a header for every policy.
    Provider,
}

/// One budget of a provider.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Policy {
    /// Name, unique within the provider; shown in headers and refusals.
    pub(crate) name: &'static str,
    pub(crate) per: Per,
    /// The requests that it counts: verb and full resource type, with wildcards. Besides HTTP's verbs
    /// there is `LIST`, a GET of a collection.
    pub(crate) on: &'static [(&'static str, &'static str)],
    /// Tokens in a full bucket.
    pub(crate) size: u32,
    /// Tokens that come back in a window.
    pub(crate) refill: u32,
    pub(crate) window: Duration,
    /// Whether tokens come back one by one, rather than all at the end of the window.
    pub(crate) steady: bool,
    pub(crate) wording: Wording,
}

/// A request as policies see it.
pub(crate) struct Counted<'a> {
    pub(crate) method: &'a str,
    pub(crate) resource_type: &'a str,
    /// Whether a collection is asked for.
    pub(crate) list: bool,
    /// Id of the resource; of a list the scope; of an operation its path.
    pub(crate) resource: &'a str,
}

impl Policy {
    /// Whether it counts a request.
    pub(crate) fn fits(&self, request: &Counted<'_>) -> bool {
        let verb = match request.method {
            "GET" | "HEAD" if request.list => "LIST",
            "HEAD" => "GET",
            method => method,
        };
        self.on.iter().any(|(on, kind)| matches(on, verb) && matches(kind, request.resource_type))
    }

    /// The name under which headers show it and options override it.
    pub(crate) fn full_name(&self, namespace: &str) -> String {
        format!("{namespace}/{}", self.name)
    }

    /// The figures in force; `None` where it is turned off.
    pub(crate) fn figures(&self, budgets: &Budgets, full_name: &str) -> Option<Figures> {
        let published = PolicyFigures { size: self.size, refill: self.refill };
        let PolicyFigures { size, refill } = match budgets.policies.get(full_name) {
            Some(overriden) => (*overriden)?,
            None => published,
        };
        let refill = match self.steady {
            true => Refill::Steady(f64::from(refill) / self.window.as_secs_f64().max(1.0)),
            false => Refill::Window(self.window),
        };
        Some(Figures { size: f64::from(size.max(1)), refill })
    }
}
