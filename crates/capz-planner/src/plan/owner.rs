//! Which resources are proven to be the cluster's, given the rules of its goals and what was observed.

use std::collections::BTreeMap;

use azure_types::ResourceId;
use ownership::{Evidence, Ownership, Proof, Rival};
use serde_json::Value;

use super::step::Action;
use crate::claimant::{Claimant, tag};
use crate::cluster;
use crate::goal::{Goal, OwnershipRule};
use crate::observed::{Observation, ObservedResources};
use crate::owner_tags::Borne;
use crate::references::ids_in;
use crate::{peering, tags, untagged};

/// The facts by which goals are judged.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// On whose behalf.
    pub claimant: Claimant<'a>,
    /// The observed state.
    pub observed: &'a ObservedResources,
    /// Our operations that run in Azure.
    pub running: &'a BTreeMap<ResourceId, Action>,
    /// Steps that Azure refused since the goals last changed, with its messages.
    pub refused: &'a BTreeMap<ResourceId, String>,
}

/// Goals, and the facts by which they are judged.
#[derive(Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) goals: &'a [Goal],
    pub(super) facts: Facts<'a>,
}

impl Judge<'_> {
    /// The ownership of an existing resource.
    pub(super) fn ownership(&self, goal: &Goal, held: &Value) -> Ownership {
        let claimant = self.facts.claimant;
        if claimant.keeps(&goal.id) {
            return Claimant::is_kept();
        }
        match &goal.ownership {
            OwnershipRule::ByName(rule) => {
                Ownership::Proven(claimant.proof(Evidence::Name { name: goal.id.name().to_owned(), rule }))
            }
            OwnershipRule::Recorded | OwnershipRule::Marked => self.untagged(goal, held),
            OwnershipRule::Joins(own) => peering::owner(claimant, &goal.id, held, own, self.whose_is(own)),
            OwnershipRule::Shown(evidence) => Ownership::Proven(claimant.proof(evidence.clone())),
            OwnershipRule::Foreign => Ownership::Unproven("it is used as it is".to_owned()),
            OwnershipRule::Tagged | OwnershipRule::TaggedWith(_) | OwnershipRule::TaggedFor(_) => {
                match goal.borne.ownership(claimant, held) {
                    // Clusters of other names share a group. Each has a first resource of its own in it, which decides
                    // nothing between them: the group belongs to the cluster whose ID it bears, and the others use it.
                    Ownership::Disputed(_) if let Some(other) = self.group_of_another(goal, held) => {
                        Ownership::Unproven(format!("it belongs to cluster {other}"))
                    }
                    Ownership::Disputed(rival) => match self.by_first(goal) {
                        Some(proof) => Ownership::Proven(proof),
                        None => Ownership::Disputed(rival),
                    },
                    known => known,
                }
            }
            OwnershipRule::Declared(member) => self.declared(goal, held, member),
            OwnershipRule::Inside(other) => match self.whose_is(other) {
                Ownership::Proven(_) => {
                    Ownership::Proven(claimant.proof(Evidence::Within { resource: other.to_string() }))
                }
                unproven => unproven,
            },
        }
    }

    /// The other cluster of this name that owns the resource which this one lies in or refers to: two clusters that
    /// began at the same moment may both have recorded it.
    pub(super) fn rival_around(&self, goal: &Goal, held: &Value) -> Option<Rival> {
        let around = goal.id.parent().into_iter().chain(ids_in(held)).filter(|id| !id.is_within(&goal.id));
        around.map(|id| self.whose_is(&id)).find_map(|owner| match owner {
            Ownership::Disputed(rival) => Some(rival),
            _ => None,
        })
    }

    /// The ownership of a resource that the object declares by this member.
    fn declared(&self, goal: &Goal, held: &Value, member: &str) -> Ownership {
        let claimant = self.facts.claimant;
        match goal.borne.ownership(claimant, held) {
            Ownership::Unproven(why) => {
                if let Some(rival) = claimant.rival_beside(held) {
                    return Ownership::Disputed(rival);
                }
                let is_given_up = tag(held, &tags::owner_key(claimant.cluster)) == Some(tags::SHARED);
                if claimant.marked_only || is_given_up {
                    return Ownership::Unproven(why);
                }
                Ownership::Proven(claimant.proof(Evidence::Declared { key: member.to_owned() }))
            }
            known => known,
        }
    }

    /// The cluster of another name that owns a group by its tags.
    pub(super) fn group_of_another(&self, goal: &Goal, held: &Value) -> Option<String> {
        tags::owner_in(held, self.facts.claimant.cluster)
            .filter(|_| goal.kind().is_group())
            .map(|(name, _)| name)
    }

    /// The ownership of a resource without tags.
    pub(super) fn untagged(&self, goal: &Goal, held: &Value) -> Ownership {
        let claimant = self.facts.claimant;
        if let Some(known) = untagged::by_metadata(claimant, held) {
            return known;
        }
        if goal.ownership == OwnershipRule::Marked {
            return Ownership::Unproven(format!("its metadata lacks {}", tags::ID));
        }
        if claimant.marked_only {
            return Ownership::Unproven(
                "another cluster takes precedence, and may have created it".to_owned(),
            );
        }
        match self.rival_around(goal, held) {
            Some(rival) => Ownership::Disputed(rival),
            None => Ownership::Proven(claimant.proof(Claimant::recorded())),
        }
    }

    /// The proof for a group that bears the ID of another cluster: that cluster wrote it at the same moment, and the
    /// first resource in it bears the ID of this one.
    pub(super) fn by_first(&self, goal: &Goal) -> Option<Proof> {
        let first = cluster::first::of(&goal.id, self.goals).filter(|_| goal.kind().is_group())?;
        let Observation::Present(held) = self.facts.observed.get(&first) else { return None };
        let claimant = self.facts.claimant;
        (Borne::of(claimant, held) == Borne::Id)
            .then(|| claimant.proof(Evidence::Refers { resource: first.to_string() }))
    }

    /// The ownership of a resource with tags that decides about others. A missing one is the cluster's if one of the
    /// goals creates it.
    pub(super) fn whose_is(&self, id: &ResourceId) -> Ownership {
        match self.facts.observed.get(id) {
            Observation::Present(held) => {
                let goal = self.goals.iter().find(|goal| goal.id == *id);
                goal.map_or(Borne::Nothing, |goal| goal.borne).ownership(self.facts.claimant, held)
            }
            Observation::Unknown => Ownership::Unknown,
            Observation::Absent if self.goals.iter().any(|goal| goal.id == *id && goal.wanted) => {
                Ownership::Proven(self.facts.claimant.proof(Claimant::recorded()))
            }
            Observation::Absent => Ownership::Unproven("it does not exist".to_owned()),
        }
    }
}
