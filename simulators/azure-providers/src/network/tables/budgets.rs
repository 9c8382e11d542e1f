//! Request budgets of Network: per subscription and region, in windows of five minutes ("Understand how Azure Resource
//! Manager throttles requests"). Polls of operations count as reads.

use std::time::Duration;

use azure_engine::settings::budget::policy::{Per, Policy, Wording};

const fn five_minutes(name: &'static str, on: &'static [(&'static str, &'static str)], size: u32) -> Policy {
    Policy {
        name,
        per: Per::Subscription,
        on,
        size,
        refill: size,
        window: Duration::from_secs(300),
        steady: false,
        wording: Wording::Gateway,
    }
}

pub(crate) static POLICIES: [Policy; 2] = [
    five_minutes("Writes", &[("PUT", "*"), ("PATCH", "*"), ("POST", "*"), ("DELETE", "*")], 1_000),
    five_minutes("Reads", &[("GET", "*"), ("LIST", "*")], 10_000),
];
