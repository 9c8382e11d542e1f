//! The public state of a budget.

use serde::{Deserialize, Serialize};

/// The scope of a budget, within subscription and region.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "kind", content = "id")]
pub enum BudgetScope {
    /// All requests of the subscription.
    Subscription,
    /// Those of one principal, by object id.
    Principal(String),
    /// Those about one resource, by lower-case id.
    Resource(String),
}

/// The present state of one used budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BudgetState {
    /// `reads`, `writes` and `deletes` are Resource Manager's own; a provider's are
    /// `{namespace}/{policy}`.
    pub policy: String,
    /// The subscription; empty for requests about none.
    pub subscription: String,
    /// The region.
    pub region: String,
    /// The scope of the counted requests.
    pub scope: BudgetScope,
    /// What is left.
    pub tokens: f64,
    /// What a full budget has.
    pub size: f64,
    /// Its average refill rate.
    pub refill_per_second: f64,
    /// The window, if the budget is refilled at its end rather than steadily.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub window_seconds: Option<u64>,
    /// How many requests it has refused.
    pub refused: u64,
}
