//! The first contact with a resource: one that exists before the cluster has recorded that it will create it. A tag
//! with the cluster's name may then be another cluster's, and a resource without tags may belong to any owner.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use ownership::Ownership;
use serde_json::Value;

use super::memory::Memory;
use crate::claimant::Claimant;
use crate::compare;
use crate::document::id_of;
use crate::goal::{Goal, OwnershipRule};
use crate::observed::{Observation, ObservedResources, Reading};
use crate::peering;
use crate::plan;
use crate::service;
use crate::tags;
use crate::untagged;

/// Goals whose resource the cluster has not recorded.
pub fn unrecorded(goals: Vec<Goal>, memory: &Memory) -> Vec<Goal> {
    goals.into_iter().filter(|goal| !memory.has(&goal.id)).collect()
}

/// The lists that show whether a network is already linked, under another name, to an existing zone: a zone has at most
/// one link to a network.
pub fn links_of_zones(goals: &[Goal], observed: &ObservedResources) -> BTreeSet<Reading> {
    let links = goals.iter().filter(|goal| *goal.service == service::DNS_LINKS);
    links
        .filter(|goal| observed.get(&goal.id) == Observation::Absent)
        .filter_map(|goal| {
            goal.id
                .parent()
                .filter(|zone| matches!(observed.get(zone), Observation::Present(_)))
                .zip(Some(goal))
        })
        .map(|(zone, goal)| Reading::List {
            group: zone,
            resource_type: goal.kind().resource_type,
            api_version: goal.kind().api_version,
        })
        .collect()
}

/// The links that are not needed because another link of these serves the same network.
pub fn linked_already(goals: &[Goal], links: &[Value]) -> BTreeSet<ResourceId> {
    let network =
        |document: &Value| document.pointer("/properties/virtualNetwork/id")?.as_str().map(str::to_lowercase);
    let zone = |link: &Value| id_of(&link["id"])?.parent();
    let goals = goals.iter().filter(|goal| *goal.service == service::DNS_LINKS);
    goals
        .filter(|goal| {
            links
                .iter()
                .any(|link| zone(link) == goal.id.parent() && network(link) == network(&goal.document))
        })
        .map(|goal| goal.id.clone())
        .collect()
}

/// The existing resources of these goals that show no owner: they are used as they are, and never written or deleted.
/// The goals are those that the cluster has not recorded.
///
/// # Errors
/// A resource belongs to another cluster, may belong to one, or is in the way.
pub fn contact<'a>(
    claimant: impl Into<Claimant<'a>>,
    goals: &[Goal],
    observed: &ObservedResources,
) -> Result<BTreeSet<ResourceId>, String> {
    let claimant = claimant.into();
    if let Some((goal, rival)) = plan::owned_beside(claimant, goals, observed) {
        return Err(claimant.disputed(&goal.name_for_people(), &rival));
    }
    let mut strangers = BTreeSet::new();
    for goal in goals {
        let Observation::Present(held) = observed.get(&goal.id) else { continue };
        match &goal.ownership {
            OwnershipRule::Tagged
            | OwnershipRule::TaggedWith(_)
            | OwnershipRule::TaggedFor(_)
            | OwnershipRule::Declared(_) => match claimant.by_tags(held) {
                Ownership::Disputed(rival) => {
                    return Err(claimant.disputed(&goal.name_for_people(), &rival));
                }
                Ownership::Proven(_) if !has_id(held) => {
                    return Err(claimant.unrecorded(&goal.name_for_people()));
                }
                _ if matches!(goal.ownership, OwnershipRule::Declared(_))
                    && let Some(rival) = claimant.rival_beside(held) =>
                {
                    return Err(claimant.disputed(&goal.name_for_people(), &rival));
                }
                _ => {}
            },
            OwnershipRule::Joins(_) => match peering::rival(&goal.document, held) {
                Some(rival) => return Err(claimant.disputed(&goal.name_for_people(), &rival)),
                None => {
                    strangers.insert(goal.id.clone());
                }
            },
            OwnershipRule::Recorded => match untagged::by_metadata(claimant, held) {
                // The annotation was lost, or is older than the record.
                Some(Ownership::Proven(_)) => {}
                Some(Ownership::Disputed(rival)) => return Err(goal.disputed(claimant, &rival)),
                _ if is_served(goal, held) => {
                    strangers.insert(goal.id.clone());
                }
                _ => return Err(in_the_way(goal)),
            },
            OwnershipRule::Inside(_)
            | OwnershipRule::Marked
            | OwnershipRule::ByName(_)
            | OwnershipRule::Shown(_)
            | OwnershipRule::Foreign => {}
        }
    }
    Ok(strangers)
}

fn has_id(held: &Value) -> bool {
    held["tags"]
        .as_object()
        .is_some_and(|tags| tags.iter().any(|(key, id)| key.eq_ignore_ascii_case(tags::ID) && *id != ""))
}

/// Whether an existing resource contains everything desired.
fn is_served(goal: &Goal, held: &Value) -> bool {
    compare::merge(goal.kind(), &goal.document, held, &[]).1.is_empty()
}

fn in_the_way(goal: &Goal) -> String {
    let inside = goal.id.parent().map(|parent| crate::kind::describe(&parent)).unwrap_or_default();
    let remedy = match *goal.service == service::FLEET_MEMBER {
        true => "Name another member or fleet (spec.fleetsMember)",
        false => "Name another zone (spec.networkSpec.privateDNSZoneName)",
    };
    format!(
        "{} exists already in {inside}, says something else, and was not made by this cluster: it may be another cluster's, and is \
         left alone. {remedy}, or delete it if it is of no use to anyone",
        goal.name_for_people()
    )
}
