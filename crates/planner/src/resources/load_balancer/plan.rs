//! Plans one load balancer for a batch of Services.

use std::collections::BTreeMap;

use azure_types::LoadBalancer;
use k8s::ObjectKey;

use super::edit::{LoadBalancerEdit, LoadBalancerPlan};
use super::intent::{ClusterFacts, LoadBalancerIntent};
use super::retirement;
use crate::model::{Balancer, Cluster};
use crate::outcome::{Change, Refusal, Step, WholeDocument as _, proof};

/// Plans one load balancer for a batch of Services. The order of the batch does not matter; of several intents of one
/// Service the first counts. Pools that hold addresses are updated to the nodes with every write, also for an empty
/// batch.
pub fn plan(
    cluster: &Cluster,
    balancer: &Balancer,
    observed: Option<&LoadBalancer>,
    batch: &[LoadBalancerIntent],
    facts: ClusterFacts<'_>,
) -> LoadBalancerPlan {
    let mut members: BTreeMap<&ObjectKey, &LoadBalancerIntent> = BTreeMap::new();
    for intent in batch {
        members.entry(intent.key()).or_insert(intent);
    }
    let mut refused = BTreeMap::new();
    if let Some(basic) = observed.filter(|document| retirement::is_due(cluster, document)) {
        let asking = members.iter().filter(|(_, intent)| retirement::is_asked_for(intent));
        let asking: Vec<ObjectKey> = asking.map(|(key, _)| (*key).clone()).collect();
        match retirement::foreign_part(cluster, basic, facts) {
            None if asking.is_empty() => {}
            None => return retirement::plan(cluster, balancer, basic, asking),
            Some(part) => {
                let load_balancer = balancer.name.clone();
                let refusal = Refusal::BasicLoadBalancerShared { load_balancer, part };
                members.retain(|_, intent| !retirement::is_asked_for(intent));
                refused.extend(asking.into_iter().map(|key| (key, refusal.clone())));
            }
        }
    }
    members.retain(|_, intent| !matches!(intent, LoadBalancerIntent::Retired { .. }));
    loop {
        let mut draft = LoadBalancerEdit::new(cluster, balancer, observed, facts);
        draft.apply_batch(&members, facts.services);
        if draft.refused.is_empty() {
            return draft.finish(refused.into_iter().collect());
        }
        members.retain(|key, _| !draft.refused.contains_key(*key));
        refused.append(&mut draft.refused);
    }
}

/// The load balancer without a change that Azure accepted and later refused, under its current version: `before` is the
/// load balancer that the change was planned against, `now` is its state in Azure. Absent if nothing was changed.
pub fn undone(before: &LoadBalancer, now: &LoadBalancer) -> Option<LoadBalancer> {
    before.undone(now)
}

/// The write that reverts a refused change: `before` is the load balancer that the change was planned against, `now` is
/// its state in Azure. Azure accepts some changes and refuses them later, with the document half changed. Absent if
/// nothing was changed.
pub fn restore(
    cluster: &Cluster,
    balancer: &Balancer,
    before: Option<&LoadBalancer>,
    now: &LoadBalancer,
) -> Option<Step> {
    let (target, proof) = (cluster.load_balancer_id(balancer), proof::load_balancer(cluster, balancer));
    match before {
        Some(before) => before.restore(target, now, proof),
        None => now
            .is_failed()
            .then(|| Step::delete(target, now.etag.clone(), Change::Restored, Vec::new(), proof)),
    }
}
