//! Plans the security group for a batch of Services.

use std::collections::BTreeMap;

use azure_types::SecurityGroup;
use k8s::{Notice, ObjectKey};

use super::batch::{self, Member};
use super::intent::AccessIntent;
use super::repair;
use super::usage::ClusterUsage;
use crate::model::Cluster;
use crate::outcome::{Refusal, Step};

/// The plan of the security group.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SecurityGroupPlan {
    /// The one write, if anything differs.
    pub step: Option<Step>,
    /// The refused Services, in order of their keys; their rules stay as they are.
    pub refused: Vec<(ObjectKey, Refusal)>,
    /// The notices for the owners of Services.
    pub notices: Vec<Notice>,
}

/// The Services whose parts Azure's error text names: by the name of a rule or by address. Empty if it names none of
/// the batch.
pub fn services_named_in(error_text: &str, batch: &[AccessIntent]) -> Vec<ObjectKey> {
    let text = error_text.to_lowercase();
    let named = |intent: &&AccessIntent| {
        intent.owner().is_named_in(&text)
            || intent.wanted().iter().any(|rule| text.contains(&rule.name.to_lowercase()))
            || intent.addresses().any(|address| crate::model::words::names_word(&text, &address.to_string()))
    };
    crate::outcome::plan::ordered(batch.iter().filter(named).map(|intent| intent.key().clone()))
}

/// Plans the security group for a batch of Services. The order of the batch does not matter; of several intents of one
/// Service the first counts. Open addresses that were the cluster's and are not used in it any more are closed, also
/// for an empty batch.
pub fn plan(
    cluster: &Cluster,
    observed: &SecurityGroup,
    batch: &[AccessIntent],
    usage: &ClusterUsage,
) -> SecurityGroupPlan {
    let mut members: BTreeMap<&ObjectKey, &AccessIntent> = BTreeMap::new();
    for intent in batch {
        members.entry(intent.key()).or_insert(intent);
    }
    let mut refused: BTreeMap<ObjectKey, Refusal> = BTreeMap::new();
    let has_rules = observed.properties.as_ref().is_some_and(|p| p.security_rules.is_some());
    for (key, intent) in &members {
        let refusal = match intent {
            _ if !has_rules => {
                Refusal::SecurityGroupWithoutRules { name: observed.name.clone().unwrap_or_default() }
            }
            AccessIntent::Present { addresses, .. } if addresses.is_empty() => {
                Refusal::NoAddressYet { service: (*key).clone() }
            }
            _ => continue,
        };
        refused.insert((*key).clone(), refusal);
    }
    members.retain(|key, _| !refused.contains_key(*key));
    let notices = members
        .values()
        .filter_map(|intent| match intent {
            AccessIntent::Present { service, .. } => Some(service.access.notices(&service.key)),
            AccessIntent::Absent { .. } => None,
        })
        .flatten()
        .collect();
    let members: Vec<Member<'_>> = members.into_values().map(Member::new).collect();
    let (step, unserved) = batch::plan(cluster, observed, usage, members);
    refused.extend(unserved);
    let step = step.filter(|_| has_rules).or_else(|| repair::repair(cluster, observed));
    SecurityGroupPlan { step, refused: refused.into_iter().collect(), notices }
}
