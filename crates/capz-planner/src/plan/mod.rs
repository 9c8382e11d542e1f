//! The steps that can be taken now, and what the other goals wait for.

mod alone;
mod order;
mod owner;
mod step;

use std::collections::BTreeMap;

use azure_types::ResourceId;
use ownership::{Ownership, Rival};
use serde_json::Value;

pub(crate) use self::alone::{compared, failure_cause};
pub use self::owner::Facts;
pub use self::step::{Action, State, Step};

use self::order::Order;
use self::owner::Judge;
use crate::claimant::Claimant;
use crate::compare;
use crate::goal::Goal;
use crate::observed::{Observation, ObservedResources};

/// The states of all goals, in the order in which they were given.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Plan {
    /// Goals with their states.
    pub items: Vec<(Goal, State)>,
}

impl Plan {
    /// The steps that can be taken now, in parallel.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.items.iter().filter_map(|(_, state)| match state {
            State::Now(step) => Some(step),
            _ => None,
        })
    }

    /// Whether all goals are reached.
    pub fn is_reached(&self) -> bool {
        self.items.iter().all(|(_, state)| state.is_there())
    }

    /// Foreign resources that use others, although all their users on behalf of this object are deleted. They may have
    /// been deleted since they were read.
    pub fn left_to_others(&self) -> impl Iterator<Item = &ResourceId> {
        let is_used = |id: &ResourceId| {
            self.items.iter().any(|(goal, state)| goal.after.contains(id) && *state != State::Reached)
        };
        let left = self.items.iter().filter(move |(goal, state)| {
            !goal.wanted && goal.kept_while_used.is_some() && *state == State::Foreign && !is_used(&goal.id)
        });
        left.map(|(goal, _)| &goal.id)
    }

    /// Resources that should be deleted, and stay because foreign ones use them: a sentence for each.
    pub fn in_use(&self) -> Vec<String> {
        let named = |id: &ResourceId| {
            self.items.iter().find(|(goal, _)| goal.id == *id).map(|(goal, _)| goal.name_for_people())
        };
        let stays = self.items.iter().filter_map(|(goal, state)| match state {
            State::InUse(user) => {
                Some(format!("{} stays, too: {} uses it", goal.name_for_people(), named(user)?))
            }
            _ => None,
        });
        stays.collect()
    }

    /// Changes by others since the creation to members that are not written again: a sentence for each resource.
    pub fn changed_by_others(&self, observed: &ObservedResources) -> Vec<String> {
        let reporting = self.items.iter().filter(|(goal, _)| !goal.reported.is_null());
        let changed = reporting.filter_map(|(goal, _)| {
            let Observation::Present(held) = observed.get(&goal.id) else { return None };
            let changes = compare::differences(goal.kind(), &goal.reported, held);
            let words: Vec<String> = changes.iter().map(ToString::to_string).collect();
            (!words.is_empty()).then(|| {
                let (name, words) = (goal.name_for_people(), words.join("; "));
                format!("{name} is not as it was made, and is not written again ({words}): put it back in Azure, or replace it")
            })
        });
        changed.collect()
    }

    /// Drops the documents: the states can be reported without them.
    pub fn let_documents_go(&mut self) {
        for (goal, state) in &mut self.items {
            goal.document = Value::Null;
            if let State::Now(step) = state {
                step.document = Value::Null;
            }
        }
    }

    /// The state of the goal for this resource.
    pub fn state_of(&self, id: &ResourceId) -> Option<&State> {
        self.items.iter().find(|(goal, _)| goal.id == *id).map(|(_, state)| state)
    }
}

/// Plans goals.
pub fn plan(goals: Vec<Goal>, facts: Facts<'_>) -> Plan {
    let states = Order::new(&goals, facts).states();
    Plan { items: goals.into_iter().zip(states).collect() }
}

/// The first of these goals whose resource exists and belongs to a cluster of another name, and that cluster.
pub(crate) fn owned_beside<'g>(
    claimant: Claimant<'_>,
    goals: &'g [Goal],
    observed: &ObservedResources,
) -> Option<(&'g Goal, Rival)> {
    let nothing = (BTreeMap::new(), BTreeMap::new());
    let facts = Facts { claimant, observed, running: &nothing.0, refused: &nothing.1 };
    let judge = Judge { goals, facts };
    goals.iter().find_map(|goal| match observed.get(&goal.id) {
        Observation::Present(held) if matches!(judge.ownership(goal, held), Ownership::Unproven(_)) => {
            Some((goal, judge.owner_beside(goal, held)?))
        }
        _ => None,
    })
}
