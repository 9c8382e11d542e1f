//! Which steps can be taken now, and what the others wait for.

use azure_types::ResourceId;
use ownership::Ownership;

use super::owner::{Facts, Judge};
use super::step::{Action, State};
use crate::goal::Goal;
use crate::kind::{Kind, ReadBy};
use crate::observed::Observation;
use crate::references::{ids_in, ids_in_whole, own_ids_in};
use crate::{service, untagged};

/// Azure's message, in lower case, for a resource that is not deleted because of resources in it.
const NESTED: &str = "nested resources exist";

/// Goals with their dependencies.
pub(super) struct Order<'a> {
    judge: Judge<'a>,
    /// For each goal, the goals whose resources its document refers to, or in which it lies.
    needs: Vec<Vec<usize>>,
}

impl<'a> Order<'a> {
    pub(super) fn new(goals: &'a [Goal], facts: Facts<'a>) -> Self {
        let needs = goals
            .iter()
            .enumerate()
            .map(|(index, goal)| {
                let mut ids = ids_in(&goal.document);
                ids.extend(goal.after.iter().cloned());
                // The observed document refers to others, too: these are not deleted while it does.
                if let Observation::Present(held) = facts.observed.get(&goal.id)
                    && !goal.wanted
                {
                    ids.extend(own_ids_in(goal.kind(), held));
                }
                let mut needs: Vec<usize> = ids.iter().filter_map(|id| nearest(goals, id, index)).collect();
                needs.extend(
                    (0..goals.len()).filter(|other| *other != index && goal.id.is_within(&goals[*other].id)),
                );
                needs.sort_unstable();
                needs.dedup();
                needs
            })
            .collect();
        Self { judge: Judge { goals, facts }, needs }
    }

    pub(super) fn states(&self) -> Vec<State> {
        let mut states: Vec<State> =
            (0..self.judge.goals.len()).map(|index| self.judge.alone(index)).collect();
        self.let_stay(&mut states);
        self.give_names_back(&mut states);
        // The dependencies of a goal come first, or the dependents of one that is to be deleted.
        let there: Vec<bool> = states.iter().map(State::is_there).collect();
        let renewed = self.renewed(&states);
        let mut busy: Vec<ResourceId> = self.judge.facts.running.keys().filter_map(shared_document).collect();
        for (index, state) in states.iter_mut().enumerate() {
            let State::Now(step) = &*state else { continue };
            let goal = &self.judge.goals[index];
            let mut first: Vec<ResourceId> = if goal.wanted {
                self.needs[index]
                    .iter()
                    // A deletion is not waited for here: it happens once nothing refers to the resource.
                    .filter(|need| self.judge.goals[**need].wanted && !there[**need])
                    .map(|need| self.judge.goals[*need].id.clone())
                    .collect()
            } else {
                self.users(index)
                    .filter(|user| !there[*user])
                    .map(|user| self.judge.goals[user].id.clone())
                    .collect()
            };
            // A peering that is beyond repair is deleted before the other one is created.
            if step.action == Action::Create
                && let Some(parent) = step.target.parent()
            {
                let others =
                    renewed.iter().filter(|(id, refers_to)| *id != goal.id && refers_to.contains(&parent));
                first.extend(others.map(|(id, _)| id.clone()));
            }
            // Resources that share a document are written one after the other.
            if first.is_empty()
                && let Some(document) = shared_document(&step.target)
            {
                if busy.contains(&document) {
                    first.push(document);
                } else {
                    busy.push(document);
                }
            }
            if !first.is_empty() {
                *state = State::Waits(first);
            }
        }
        states
    }

    /// Keeps resources that Azure does not delete because a foreign resource uses them, or one that stays for the same
    /// reason: its message says so, or the document of that resource.
    fn let_stay(&self, states: &mut [State]) {
        let speaks_of = |user: usize, index: usize| {
            let (user, used) = (&self.judge.goals[user], &self.judge.goals[index].id);
            let Observation::Present(held) = self.judge.facts.observed.get(&user.id) else { return false };
            ids_in_whole(user.kind(), held).contains(used)
        };
        let mut is_changed = true;
        while std::mem::take(&mut is_changed) {
            for index in 0..states.len() {
                let State::Refused(Action::Delete, words) = &states[index] else { continue };
                let words = words.to_lowercase();
                // Not all such messages name the resource in the way.
                let says_in_use = words.contains("in use");
                let is_left = |user: &usize| match &states[*user] {
                    State::Foreign => !self.judge.goals[*user].wanted,
                    State::InUse(_) => true,
                    _ => false,
                };
                let is_named = |user: &usize| words.contains(&self.judge.goals[*user].id.to_lower());
                // The messages also name the resources that theirs lies in, such as its group.
                let is_around =
                    |user: &usize| self.judge.goals[index].id.is_within(&self.judge.goals[*user].id);
                let mut others = (0..states.len()).filter(|user| is_left(user) && !is_around(user));
                let user = others.find(|user| is_named(user) || says_in_use && speaks_of(*user, index));
                let user = user.map(|user| self.judge.goals[user].id.clone());
                if let Some(user) = user.or_else(|| self.inside_of_others(index, &words)) {
                    states[index] = State::InUse(user);
                    is_changed = true;
                }
            }
        }
    }

    /// The foreign resource inside another one that Azure names as the reason for not deleting that: the link of
    /// another cluster's network to a zone. The cluster's own resources in it have goals of their own, and are deleted
    /// before.
    fn inside_of_others(&self, index: usize, words: &str) -> Option<ResourceId> {
        if !words.contains(NESTED) {
            return None;
        }
        let around = &self.judge.goals[index].id;
        let named = words.split(['\'', '"', ' ', ',']).filter(|word| word.starts_with("/subscriptions/"));
        let mut named = named.filter_map(|word| ResourceId::parse(word.trim_end_matches(['.', ';'])).ok());
        named.find(|id| {
            id != around && id.is_within(around) && !self.judge.goals.iter().any(|goal| goal.id == *id)
        })
    }

    /// A cluster that meets a resource of another cluster gives up its name in a zone as long as nothing of its own
    /// answers behind it: another cluster may need the name.
    fn give_names_back(&self, states: &mut [State]) {
        let is_name = |goal: &Goal| goal.wanted && *goal.service == service::DNS_RECORD;
        let refused = self
            .judge
            .goals
            .iter()
            .zip(&*states)
            .filter(|(goal, state)| goal.wanted && !is_name(goal) && matches!(state, State::Disputed(_)));
        let refused: Vec<ResourceId> = refused.map(|(goal, _)| goal.id.clone()).collect();
        let answers = |goal: &Goal| {
            let is_made = match self.judge.facts.observed.get(&goal.id) {
                Observation::Present(held) => self.judge.ownership(goal, held).is_proven(),
                Observation::Absent => self.judge.facts.running.contains_key(&goal.id),
                Observation::Unknown => true,
            };
            *goal.service == service::LOAD_BALANCERS && is_made
        };
        if refused.is_empty() || self.judge.goals.iter().any(answers) {
            return;
        }
        for (goal, state) in self.judge.goals.iter().zip(states).filter(|(goal, _)| is_name(goal)) {
            match (&*state, self.judge.facts.observed.get(&goal.id)) {
                (State::Now(_), Observation::Absent) => *state = State::Waits(refused.clone()),
                (State::Now(_) | State::Reached, Observation::Present(held)) => {
                    if let Some(Ownership::Proven(proof)) =
                        untagged::by_metadata(self.judge.facts.claimant, held)
                    {
                        *state = self.judge.delete(goal, held, proof);
                    }
                }
                _ => {}
            }
        }
    }

    /// Desired resources that are deleted all the same to be created again, with their references.
    fn renewed(&self, states: &[State]) -> Vec<(ResourceId, Vec<ResourceId>)> {
        let goes = |state: &State| match state {
            State::Now(step) => step.action == Action::Delete,
            State::Running(action) => *action == Action::Delete,
            _ => false,
        };
        let going = self.judge.goals.iter().zip(states).filter(|(goal, state)| goal.wanted && goes(state));
        going.map(|(goal, _)| (goal.id.clone(), ids_in(&goal.document).into_iter().collect())).collect()
    }

    /// Goals whose resources still refer to this one, or lie in it.
    fn users(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.judge.goals.len()).filter(move |user| {
            *user != index && (self.needs[*user].contains(&index) || self.holds_reference(*user, index))
        })
    }

    /// Whether the observed document of `user` still refers to `index`, although its desired document does not.
    fn holds_reference(&self, user: usize, index: usize) -> bool {
        let Observation::Present(held) = self.judge.facts.observed.get(&self.judge.goals[user].id) else {
            return false;
        };
        let kind = self.judge.goals[user].kind();
        self.judge.goals[user].wanted
            && own_ids_in(kind, held).iter().any(|id| id.is_within(&self.judge.goals[index].id))
    }
}

/// The goal for the resource with this ID, or for the nearest one that it lies in.
fn nearest(goals: &[Goal], id: &ResourceId, index: usize) -> Option<usize> {
    let nearest = (0..goals.len())
        .filter(|other| id.is_within(&goals[*other].id))
        .max_by_key(|other| goals[*other].id.as_str().len())?;
    // A resource that lies in another one is no reference.
    let (one, other) = (&goals[index].id, &goals[nearest].id);
    (nearest != index && !one.is_within(other) && !other.is_within(one)).then_some(nearest)
}

/// The resource in whose document this one is embedded: Azure executes one write to it at a time.
fn shared_document(id: &ResourceId) -> Option<ResourceId> {
    match (Kind::of(id).read_by, id.parent()) {
        (ReadBy::Parent(_), Some(parent)) => Some(parent),
        _ => Kind::of(id).children().next().map(|_| id.clone()),
    }
}
