//! The policies by which providers count requests, as data.

use std::time::Duration;

use super::figures::{Budgets, Figures, PolicyFigures, Refill};
use faults::glob::matches;

/// The scope of a bucket. There is one for every region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// All of the subscription.
    Subscription,
    /// Requests about one resource.
    Resource,
}

/// The wording of the refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wording {
    /// ARM, on behalf of the provider: `ResourceRequestsThrottled`, and no header shows what is left.
    Gateway,
    /// The provider: `TooManyRequests` with the operation group, and a header for every policy.
    Provider,
    /// The provider: `TooManyRequests` with the policy's name, and no header shows what is left.
    Window,
}

/// One budget of a provider.
#[derive(Debug, Clone, Copy)]
pub struct Policy {
    /// Name, unique within the provider; shown in headers and refusals.
    pub name: &'static str,
    /// The scope of its buckets.
    pub per: Per,
    /// The requests that it counts: verb and full resource type, with wildcards. Besides HTTP's verbs
    /// there is `LIST`, a GET of a collection.
    pub on: &'static [(&'static str, &'static str)],
    /// Tokens in a full bucket.
    pub size: u32,
    /// Tokens refilled in a window.
    pub refill: u32,
    /// The window.
    pub window: Duration,
    /// Whether tokens are refilled one by one, rather than all at the end of the window.
    pub steady: bool,
    /// The wording of the refusal.
    pub wording: Wording,
}

/// A request as policies see it.
pub struct Counted<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The full type.
    pub resource_type: &'a str,
    /// Whether it reads a collection.
    pub list: bool,
    /// Id of the resource; of a list the scope; of an operation its path.
    pub resource: &'a str,
}

impl Policy {
    /// Whether it counts a request.
    pub fn fits(&self, request: &Counted<'_>) -> bool {
        let verb = match request.method {
            "GET" | "HEAD" if request.list => "LIST",
            "HEAD" => "GET",
            method => method,
        };
        self.on.iter().any(|(on, kind)| matches(on, verb) && matches(kind, request.resource_type))
    }

    /// The name under which headers show it and options override it.
    pub fn full_name(&self, namespace: &str) -> String {
        format!("{namespace}/{}", self.name)
    }

    /// The figures in force; `None` if it is turned off.
    pub fn figures(&self, budgets: &Budgets, full_name: &str) -> Option<Figures> {
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
