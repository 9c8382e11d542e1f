//! The budgets of calls to Azure, at the time of the scrape.

use std::time::Duration;

use crate::metrics::computed::{ComputedFamily, Series};
use crate::metrics::registry::Metrics;

/// One budget: what a subscription may still call of one group of operations.
#[derive(Debug, Clone)]
pub struct Budget {
    /// The subscription's id.
    pub subscription: String,
    /// The group of operations, such as `reads`.
    pub group: &'static str,
    /// The calls that are left by Azure's last answer, refilled since; `None` before Azure has said it.
    pub remaining: Option<f64>,
    /// The calls that a full budget has.
    pub capacity: f64,
    /// For how long calls are refused.
    pub closed: Vec<Closed>,
    /// The waiting calls of each class.
    pub waiting: Vec<(&'static str, usize)>,
}

/// For how long a budget, or a provider's part of it, is closed.
#[derive(Debug, Clone)]
pub struct Closed {
    /// The provider's namespace in lower case; empty for all.
    pub namespace: String,
    /// The time until it opens; zero if it is open.
    pub remaining: Duration,
}

/// Registers the metrics of the budgets that `read` returns.
pub fn register_budgets(metrics: &Metrics, read: impl Fn() -> Vec<Budget> + Send + Sync + 'static) {
    metrics.registry.compute(move || families(&read()));
}

fn families(budgets: &[Budget]) -> Vec<ComputedFamily> {
    let labels = |budget: &Budget| {
        vec![("subscription_id", budget.subscription.clone()), ("group", budget.group.to_owned())]
    };
    let with = |budget: &Budget, name: &'static str, value: &str| {
        let mut labels = labels(budget);
        labels.push((name, value.to_owned()));
        labels
    };
    let learned = || budgets.iter().filter_map(|budget| Some((budget, budget.remaining?)));
    let remaining: Vec<Series> = learned().map(|(budget, count)| (labels(budget), count)).collect();
    let capacity = learned().map(|(budget, _)| (labels(budget), budget.capacity)).collect();
    let closed = budgets.iter().flat_map(|budget| {
        budget
            .closed
            .iter()
            .map(move |closed| (with(budget, "namespace", &closed.namespace), closed.remaining.as_secs_f64()))
    });
    let waiting = budgets.iter().flat_map(|budget| {
        budget.waiting.iter().map(move |(class, count)| (with(budget, "class", class), *count as f64))
    });
    vec![
        ComputedFamily::gauge(
            "cerulean_azure_budget_remaining",
            "Calls that Azure's budget still permits",
            remaining,
        ),
        ComputedFamily::gauge("cerulean_azure_budget_capacity", "Calls that a full budget permits", capacity),
        ComputedFamily::gauge(
            "cerulean_azure_budget_closed_seconds",
            "Time until Azure takes calls again after it throttled, of a provider or (without namespace) of all",
            closed.collect(),
        ),
        ComputedFamily::gauge(
            "cerulean_azure_call_queue_depth",
            "Calls that wait for Azure's budget",
            waiting.collect(),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_shown_as_it_is_at_the_scrape() {
        let metrics = Metrics::default();
        register_budgets(&metrics, || {
            let closed = [("", 0), ("microsoft.network", 90)].map(|(namespace, seconds)| Closed {
                namespace: namespace.to_owned(),
                remaining: Duration::from_secs(seconds),
            });
            let writes = Budget {
                subscription: "s".into(),
                group: "writes",
                remaining: Some(17.0),
                capacity: 200.0,
                closed: closed.to_vec(),
                waiting: vec![("repair", 0), ("create", 3)],
            };
            // Nothing is known of this one yet.
            let reads =
                Budget { group: "reads", remaining: None, closed: vec![], waiting: vec![], ..writes.clone() };
            vec![writes, reads]
        });
        let text = metrics.encode();
        let of = "subscription_id=\"s\",group=\"writes\"";
        for line in [
            format!("cerulean_azure_budget_remaining{{{of}}} 17.0"),
            format!("cerulean_azure_budget_capacity{{{of}}} 200.0"),
            format!("cerulean_azure_budget_closed_seconds{{{of},namespace=\"\"}} 0.0"),
            format!("cerulean_azure_budget_closed_seconds{{{of},namespace=\"microsoft.network\"}} 90.0"),
            format!("cerulean_azure_call_queue_depth{{{of},class=\"create\"}} 3.0"),
        ] {
            assert!(text.contains(&line), "{line} is missing in\n{text}");
        }
        assert!(!text.contains("group=\"reads\""), "{text}");
    }
}
