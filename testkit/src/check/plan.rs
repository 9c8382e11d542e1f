//! A new provider finds nothing to do.

use std::collections::BTreeSet;

use azure_simulator::Azure;
use planner::Plan;

use super::services::{Services, published};
use crate::finding::Finding;
use crate::world::World;

/// The writes of a new provider, and the Services that it refuses.
pub(super) async fn check(
    world: &World,
    azure: &Azure,
    services: &Services,
) -> (Vec<Finding>, BTreeSet<String>) {
    let plan = match world.preview_at(azure).await {
        Ok(plan) => plan,
        Err(error) => return (vec![Finding::NoPlan { why: error }], BTreeSet::new()),
    };
    let refused: BTreeSet<String> = plan.refused.iter().map(|(key, _)| key.to_string()).collect();
    let mut findings = Vec::new();
    for (key, refusal) in &plan.refused {
        let service = key.to_string();
        if services.get(&service).is_some() && !world.is_refused(&service) {
            findings.push(Finding::RefusedInSilence { service, refusal: refusal.to_string() });
        }
    }
    for step in &plan.plan.steps {
        // Azure's refusals are in no plan: the Service's event has them.
        let excused = |key: &String| {
            let unserved = services.get(key).is_some_and(|service| published(service).next().is_none());
            refused.contains(key) || (unserved && world.is_refused(key))
        };
        let keys: Vec<String> = step.on_behalf_of.iter().map(ToString::to_string).collect();
        if keys.is_empty() || !keys.iter().all(excused) {
            let plan = Plan { steps: vec![step.clone()] };
            findings.push(Finding::PlanNotEmpty { step: plan.to_string() });
        }
    }
    (findings, refused)
}
