//! Plans one load balancer for a batch of Services.

use std::collections::BTreeMap;

use azure_types::LoadBalancer;
use k8s::ObjectKey;

use super::edit::{Draft, LoadBalancerPlan};
use super::intent::{Known, LoadBalancerIntent};
use super::parts::is_failed;
use super::retirement;
use crate::model::{Balancer, Cluster};
use crate::outcome::{Action, Change, Document, Purpose, Refusal, Step, proof, rewrite};

/// Plans one load balancer for a batch of Services. The order of the batch does not matter; of several intents of one
/// Service the first counts. Pools that hold addresses are updated to the nodes with every write, also for an empty
/// batch.
pub fn plan(
    cluster: &Cluster,
    balancer: &Balancer,
    observed: Option<&LoadBalancer>,
    batch: &[LoadBalancerIntent],
    known: Known<'_>,
) -> LoadBalancerPlan {
    let mut members: BTreeMap<&ObjectKey, &LoadBalancerIntent> = BTreeMap::new();
    for intent in batch {
        members.entry(intent.key()).or_insert(intent);
    }
    let mut refused = BTreeMap::new();
    if let Some(basic) = observed.filter(|document| retirement::is_due(cluster, document)) {
        let asking = members.iter().filter(|(_, intent)| retirement::is_asked_for(intent));
        let asking: Vec<ObjectKey> = asking.map(|(key, _)| (*key).clone()).collect();
        match retirement::foreign_part(cluster, basic, known) {
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
        let mut draft = Draft::new(cluster, balancer, observed, known);
        draft.apply_batch(&members, known.services);
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
    let is_changed = is_failed(now) && before.etag != now.etag;
    is_changed.then(|| LoadBalancer { etag: now.etag.clone(), ..before.clone() })
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
    if !is_failed(now) || before.is_some_and(|before| before.etag == now.etag) {
        return None;
    }
    let (target, version) = (cluster.load_balancer_id(balancer), now.etag.clone());
    let proof = proof::load_balancer(cluster, balancer);
    Some(match before {
        Some(before) => {
            rewrite::restore(target, Document::LoadBalancer(Box::new(before.clone())), version, proof)
        }
        None => Step {
            action: Action::Delete,
            target,
            if_match: version,
            document: None,
            changes: vec![Change::Restored],
            purpose: Purpose::Restore,
            on_behalf_of: Vec::new(),
            ownership: vec![proof],
        },
    })
}
