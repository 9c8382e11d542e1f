//! The figures of budgets, as options and as buckets have them.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Token buckets of ARM for one subscription, region and principal, by class of request, and the budgets of providers.
/// The bucket of the whole subscription ("global") has `global_factor` times the size and refill.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Budgets {
    /// Tokens in a full bucket for GET and HEAD.
    pub reads: f64,
    /// Tokens in a full bucket for PUT, PATCH and POST.
    pub writes: f64,
    /// Tokens in a full bucket for DELETE.
    pub deletes: f64,
    /// Refill of read tokens per second.
    pub reads_per_second: f64,
    /// Refill of write tokens per second.
    pub writes_per_second: f64,
    /// Refill of delete tokens per second.
    pub deletes_per_second: f64,
    /// Size of the subscription-wide bucket relative to one principal's.
    pub global_factor: f64,
    /// Whether the budgets of providers are in force, too.
    pub providers: bool,
    /// Other figures for providers' policies, by full name such as `Microsoft.Compute/PutVMResource`;
    /// `null` turns one off.
    pub policies: BTreeMap<String, Option<PolicyFigures>>,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            reads: 250.0,
            writes: 200.0,
            deletes: 200.0,
            reads_per_second: 25.0,
            writes_per_second: 10.0,
            deletes_per_second: 10.0,
            global_factor: 15.0,
            providers: true,
            policies: BTreeMap::new(),
        }
    }
}

/// Other figures for one policy of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PolicyFigures {
    /// Tokens in a full bucket.
    pub size: u32,
    /// Tokens refilled in the policy's window: a minute for Compute's. A policy of five-minute windows ignores it: its
    /// bucket is full again at the end.
    pub refill: u32,
}

/// How a bucket is refilled.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Refill {
    /// That many tokens a second.
    Steady(f64),
    /// Completely, when that much time has passed since the first request.
    Window(Duration),
}

impl Refill {
    /// The time over which requests are measured.
    pub fn window(self) -> Duration {
        match self {
            Self::Steady(_) => Duration::from_secs(60),
            Self::Window(window) => window,
        }
    }
}

/// The size of a bucket, and its refill.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Tokens in a full bucket.
    pub size: f64,
    /// How they come back.
    pub refill: Refill,
}
