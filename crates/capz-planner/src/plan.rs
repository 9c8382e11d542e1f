//! The steps that can be taken now, and what the other goals wait for.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use azure_types::ResourceId;
use ownership::{Evidence, Ownership, Proof, Rival};
use serde_json::{Map, Value};

use crate::claimant::Claimant;
use crate::cluster;
use crate::compare::{self, Change};
use crate::goal::{Goal, OwnershipRule, Upkeep};
use crate::instance_view::cause;
use crate::kind::{Kind, ReadBy};
use crate::observed::{Observed, Seen};
use crate::owner_tags::Borne;
use crate::references::{ids_in, ids_in_whole, own_ids_in};
use crate::{peering, service, tags, untagged};

/// Azure's message, in lower case, for a resource that is not deleted because of resources in it.
const NESTED: &str = "nested resources exist";

/// The effect of a step on its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// The target does not exist and is created.
    Create,
    /// The target exists and is written.
    Update,
    /// The target is deleted.
    Delete,
}

/// One call to Azure.
#[derive(Clone, PartialEq)]
pub struct Step {
    /// The action.
    pub action: Action,
    /// The target.
    pub target: ResourceId,
    /// The version on which the step is based, for `If-Match`.
    pub if_match: Option<String>,
    /// The document to write; null for deletions.
    pub document: Value,
    /// Whether the document holds only the members that change: Azure merges it (PATCH) and keeps the others.
    pub partial: bool,
    /// The changes, with their reasons.
    pub changes: Vec<Change>,
    /// The proof that the target is the cluster's. `None` for a target that this very step creates, under a condition
    /// that Azure checks.
    pub proof: Option<Proof>,
    /// Whether a deletion does not wait for the target's workload.
    pub forced: bool,
}

/// Documents hold bootstrap data: a step in a log shows its action, and not its document.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step")
            .field("action", &self.action)
            .field("target", &self.target)
            .field("changes", &self.changes)
            .field("proof", &self.proof)
            .finish_non_exhaustive()
    }
}

/// The state of a goal.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// It is as desired.
    Reached,
    /// It is not proven to be the cluster's, and is used as it is, or left alone.
    Foreign,
    /// Another cluster owns it: it is neither used nor touched, and the object is refused.
    Disputed(Rival),
    /// It is the cluster's and should be deleted, but this foreign resource uses it, so Azure refuses that: it stays,
    /// too.
    InUse(ResourceId),
    /// It is foreign, and does not exist.
    Missing,
    /// This step can be taken now.
    Now(Step),
    /// It waits for these.
    Waits(Vec<ResourceId>),
    /// An operation runs on it in Azure.
    Running(Action),
    /// Azure refused the last step, with this message.
    Refused(Action, String),
    /// The observed state is unknown.
    Unknown,
}

impl State {
    /// Whether other goals can depend on it.
    pub fn is_there(&self) -> bool {
        matches!(self, Self::Reached | Self::Foreign | Self::InUse(_))
    }
}

/// The facts by which goals are judged.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// On whose behalf.
    pub claimant: Claimant<'a>,
    /// The observed state.
    pub observed: &'a Observed,
    /// Our operations that run in Azure.
    pub running: &'a BTreeMap<ResourceId, Action>,
    /// Steps that Azure refused since the goals last changed, with its messages.
    pub refused: &'a BTreeMap<ResourceId, String>,
}

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
    pub fn changed_by_others(&self, observed: &Observed) -> Vec<String> {
        let reporting = self.items.iter().filter(|(goal, _)| !goal.reported.is_null());
        let changed = reporting.filter_map(|(goal, _)| {
            let Seen::Present(held) = observed.see(&goal.id) else { return None };
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
    let judge = Judge::new(&goals, facts);
    let states = judge.all();
    Plan { items: goals.into_iter().zip(states).collect() }
}

/// The first of these goals whose resource exists and belongs to a cluster of another name, and that cluster.
pub(crate) fn owned_beside<'g>(
    claimant: Claimant<'_>,
    goals: &'g [Goal],
    observed: &Observed,
) -> Option<(&'g Goal, Rival)> {
    let nothing = (BTreeMap::new(), BTreeMap::new());
    let facts = Facts { claimant, observed, running: &nothing.0, refused: &nothing.1 };
    let judge = Judge { goals, facts, needs: Vec::new() };
    goals.iter().find_map(|goal| match observed.see(&goal.id) {
        Seen::Present(held) if matches!(judge.ownership(goal, held), Ownership::Unproven(_)) => {
            Some((goal, judge.owner_beside(goal, held)?))
        }
        _ => None,
    })
}

struct Judge<'a> {
    goals: &'a [Goal],
    facts: Facts<'a>,
    /// For each goal, the goals whose resources its document refers to, or in which it lies.
    needs: Vec<Vec<usize>>,
}

impl<'a> Judge<'a> {
    fn new(goals: &'a [Goal], facts: Facts<'a>) -> Self {
        let needs = goals
            .iter()
            .enumerate()
            .map(|(index, goal)| {
                let mut ids = ids_in(&goal.document);
                ids.extend(goal.after.iter().cloned());
                // The observed document refers to others, too: these are not deleted while it does.
                if let Seen::Present(held) = facts.observed.see(&goal.id)
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
        Self { goals, facts, needs }
    }

    fn all(&self) -> Vec<State> {
        let mut states: Vec<State> = (0..self.goals.len()).map(|index| self.alone(index)).collect();
        self.let_stay(&mut states);
        self.give_names_back(&mut states);
        // The dependencies of a goal come first, or the dependents of one that is to be deleted.
        let there: Vec<bool> = states.iter().map(State::is_there).collect();
        let renewed = self.renewed(&states);
        let mut busy: Vec<ResourceId> = self.facts.running.keys().filter_map(shared_document).collect();
        for (index, state) in states.iter_mut().enumerate() {
            let State::Now(step) = &*state else { continue };
            let goal = &self.goals[index];
            let mut first: Vec<ResourceId> = if goal.wanted {
                self.needs[index]
                    .iter()
                    // A deletion is not waited for here: it happens once nothing refers to the resource.
                    .filter(|need| self.goals[**need].wanted && !there[**need])
                    .map(|need| self.goals[*need].id.clone())
                    .collect()
            } else {
                self.users(index)
                    .filter(|user| !there[*user])
                    .map(|user| self.goals[user].id.clone())
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
            let (user, used) = (&self.goals[user], &self.goals[index].id);
            let Seen::Present(held) = self.facts.observed.see(&user.id) else { return false };
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
                    State::Foreign => !self.goals[*user].wanted,
                    State::InUse(_) => true,
                    _ => false,
                };
                let is_named = |user: &usize| words.contains(&self.goals[*user].id.to_lower());
                // The messages also name the resources that theirs lies in, such as its group.
                let is_around = |user: &usize| self.goals[index].id.is_within(&self.goals[*user].id);
                let mut others = (0..states.len()).filter(|user| is_left(user) && !is_around(user));
                let user = others.find(|user| is_named(user) || says_in_use && speaks_of(*user, index));
                let user = user.map(|user| self.goals[user].id.clone());
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
        let around = &self.goals[index].id;
        let named = words.split(['\'', '"', ' ', ',']).filter(|word| word.starts_with("/subscriptions/"));
        let mut named = named.filter_map(|word| ResourceId::parse(word.trim_end_matches(['.', ';'])).ok());
        named.find(|id| id != around && id.is_within(around) && !self.goals.iter().any(|goal| goal.id == *id))
    }

    /// A cluster that meets a resource of another cluster gives up its name in a zone as long as nothing of its own
    /// answers behind it: another cluster may need the name.
    fn give_names_back(&self, states: &mut [State]) {
        let is_name = |goal: &Goal| goal.wanted && *goal.service == service::DNS_RECORD;
        let refused = self
            .goals
            .iter()
            .zip(&*states)
            .filter(|(goal, state)| goal.wanted && !is_name(goal) && matches!(state, State::Disputed(_)));
        let refused: Vec<ResourceId> = refused.map(|(goal, _)| goal.id.clone()).collect();
        let answers = |goal: &Goal| {
            let is_made = match self.facts.observed.see(&goal.id) {
                Seen::Present(held) => self.ownership(goal, held).is_proven(),
                Seen::Absent => self.facts.running.contains_key(&goal.id),
                Seen::Unknown => true,
            };
            *goal.service == service::LOAD_BALANCERS && is_made
        };
        if refused.is_empty() || self.goals.iter().any(answers) {
            return;
        }
        for (goal, state) in self.goals.iter().zip(states).filter(|(goal, _)| is_name(goal)) {
            match (&*state, self.facts.observed.see(&goal.id)) {
                (State::Now(_), Seen::Absent) => *state = State::Waits(refused.clone()),
                (State::Now(_) | State::Reached, Seen::Present(held)) => {
                    if let Some(Ownership::Proven(proof)) = untagged::by_metadata(self.facts.claimant, held) {
                        *state = self.delete(goal, held, proof);
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
        let going = self.goals.iter().zip(states).filter(|(goal, state)| goal.wanted && goes(state));
        going.map(|(goal, _)| (goal.id.clone(), ids_in(&goal.document).into_iter().collect())).collect()
    }

    /// Goals whose resources still refer to this one, or lie in it.
    fn users(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        (0..self.goals.len()).filter(move |user| {
            *user != index && (self.needs[*user].contains(&index) || self.holds_reference(*user, index))
        })
    }

    /// Whether the observed document of `user` still refers to `index`, although its desired document does not.
    fn holds_reference(&self, user: usize, index: usize) -> bool {
        let Seen::Present(held) = self.facts.observed.see(&self.goals[user].id) else { return false };
        let kind = self.goals[user].kind();
        self.goals[user].wanted && own_ids_in(kind, held).iter().any(|id| id.is_within(&self.goals[index].id))
    }

    /// The state of a goal without regard to its dependencies.
    fn alone(&self, index: usize) -> State {
        let goal = &self.goals[index];
        if let Some(action) = self.facts.running.get(&goal.id) {
            return State::Running(*action);
        }
        if let Some(words) = self.facts.refused.get(&goal.id) {
            let action = match (goal.wanted, self.facts.observed.see(&goal.id)) {
                (false, _) => Action::Delete,
                (true, Seen::Present(_)) => Action::Update,
                (true, _) => Action::Create,
            };
            return State::Refused(action, words.clone());
        }
        match (self.facts.observed.see(&goal.id), goal.wanted) {
            (Seen::Unknown, _) => State::Unknown,
            (Seen::Absent, false) => State::Reached,
            (Seen::Absent, true) => self.absent(goal),
            (Seen::Present(held), wanted) => match self.ownership(goal, held) {
                Ownership::Proven(proof) => match (working_on(held), wanted) {
                    (Some(Action::Update), true) if self.has_members(goal, held, &proof) => State::Reached,
                    (Some(action), _) => State::Running(action),
                    (None, true) => self.update(goal, held, proof),
                    (None, false) => self.delete(goal, held, proof),
                },
                Ownership::Disputed(rival) if wanted => State::Disputed(rival),
                Ownership::Disputed(_) => State::Foreign,
                Ownership::Unproven(_) => {
                    self.owner_beside(goal, held).map_or(State::Foreign, State::Disputed)
                }
                Ownership::Unknown => State::Unknown,
            },
        }
    }

    /// The other cluster that owns a resource which this one would create for itself: one of another name, or one whose
    /// ID it bears. A group, a zone, and a network in another group may be used by several clusters, and with a network
    /// everything attached to its subnets. All other resources serve one cluster.
    fn owner_beside(&self, goal: &Goal, held: &Value) -> Option<Rival> {
        let is_elsewhere = || {
            let group = self.goals.iter().find(|goal| *goal.service == service::GROUP);
            group.is_none_or(|group| !goal.id.is_within(&group.id))
        };
        let is_for_all = [&service::GROUP, &service::DNS_ZONE].contains(&goal.service)
            || (*goal.service == service::VIRTUAL_NETWORK && is_elsewhere());
        if !goal.wanted || is_for_all {
            return None;
        }
        let would_be_made = match &goal.ownership {
            OwnershipRule::Tagged => true,
            OwnershipRule::TaggedWith(_) | OwnershipRule::TaggedFor(_) => {
                matches!(self.absent(goal), State::Now(_))
            }
            _ => false,
        };
        if !would_be_made {
            return None;
        }
        let claimant = self.facts.claimant;
        let named = tags::owner_in(held, claimant.cluster);
        let named = named.map(|(cluster, evidence)| Rival { owner: format!("cluster {cluster}"), evidence });
        named.or_else(|| claimant.rival_by_id(held))
    }

    /// The state of a goal whose resource is desired and does not exist.
    fn absent(&self, goal: &Goal) -> State {
        match &goal.ownership {
            OwnershipRule::Foreign => State::Missing,
            OwnershipRule::TaggedWith(other) => match self.whose_is(other) {
                Ownership::Proven(_) => self.create(goal),
                Ownership::Disputed(rival) => State::Disputed(rival),
                Ownership::Unproven(_) => State::Foreign,
                Ownership::Unknown => State::Unknown,
            },
            OwnershipRule::TaggedFor(users) => self.absent_for(goal, users),
            OwnershipRule::Inside(other) => match self.whose_is(other) {
                Ownership::Proven(_) | Ownership::Unproven(_) => self.create(goal),
                Ownership::Disputed(rival) => State::Disputed(rival),
                Ownership::Unknown => State::Unknown,
            },
            OwnershipRule::Tagged
            | OwnershipRule::ByName(_)
            | OwnershipRule::Recorded
            | OwnershipRule::Joins(_)
            | OwnershipRule::Marked
            | OwnershipRule::Shown(_) => self.create(goal),
        }
    }

    /// The state of a goal whose resource is created for the first of these subnets that is the cluster's, or not
    /// created yet.
    fn absent_for(&self, goal: &Goal, users: &[ResourceId]) -> State {
        let (mut is_unknown, mut disputed) = (false, None);
        for user in users {
            match (self.facts.observed.see(user), user.parent()) {
                (Seen::Absent, _) => return self.create(goal),
                (Seen::Unknown, _) | (_, None) => is_unknown = true,
                (Seen::Present(_), Some(network)) => match self.whose_is(&network) {
                    Ownership::Proven(_) => return self.create(goal),
                    Ownership::Disputed(rival) => disputed = Some(rival),
                    Ownership::Unknown => is_unknown = true,
                    Ownership::Unproven(_) => {}
                },
            }
        }
        match disputed {
            _ if is_unknown => State::Unknown,
            Some(rival) => State::Disputed(rival),
            None => State::Foreign,
        }
    }

    /// The ownership of an existing resource.
    fn ownership(&self, goal: &Goal, held: &Value) -> Ownership {
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
    fn rival_around(&self, goal: &Goal, held: &Value) -> Option<Rival> {
        let around = goal.id.parent().into_iter().chain(ids_in(held)).filter(|id| !id.is_within(&goal.id));
        around.map(|id| self.whose_is(&id)).find_map(|owner| match owner {
            Ownership::Disputed(rival) => Some(rival),
            _ => None,
        })
    }

    /// The cluster of another name that owns a group by its tags.
    fn group_of_another(&self, goal: &Goal, held: &Value) -> Option<String> {
        tags::owner_in(held, self.facts.claimant.cluster)
            .filter(|_| goal.kind().is_group())
            .map(|(name, _)| name)
    }

    /// The ownership of a resource without tags.
    fn untagged(&self, goal: &Goal, held: &Value) -> Ownership {
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
    fn by_first(&self, goal: &Goal) -> Option<Proof> {
        let first = cluster::first::of(&goal.id, self.goals).filter(|_| goal.kind().is_group())?;
        let Seen::Present(held) = self.facts.observed.see(&first) else { return None };
        let claimant = self.facts.claimant;
        (Borne::of(claimant, held) == Borne::Id)
            .then(|| claimant.proof(Evidence::Refers { resource: first.to_string() }))
    }

    /// The ownership of a resource with tags that decides about others. A missing one is the cluster's if one of the
    /// goals creates it.
    fn whose_is(&self, id: &ResourceId) -> Ownership {
        match self.facts.observed.see(id) {
            Seen::Present(held) => {
                let goal = self.goals.iter().find(|goal| goal.id == *id);
                goal.map_or(Borne::Nothing, |goal| goal.borne).ownership(self.facts.claimant, held)
            }
            Seen::Unknown => Ownership::Unknown,
            Seen::Absent if self.goals.iter().any(|goal| goal.id == *id && goal.wanted) => {
                Ownership::Proven(self.facts.claimant.proof(Claimant::recorded()))
            }
            Seen::Absent => Ownership::Unproven("it does not exist".to_owned()),
        }
    }

    fn create(&self, goal: &Goal) -> State {
        State::Now(Step {
            action: Action::Create,
            target: goal.id.clone(),
            if_match: None,
            document: goal.document.clone(),
            partial: false,
            changes: Vec::new(),
            proof: None,
            forced: false,
        })
    }

    fn update(&self, goal: &Goal, held: &Value, proof: Proof) -> State {
        let kind = Kind::of(&goal.id);
        let failed = failure(held);
        if let Some((member, value)) = kind.shows_no_use(held) {
            let State::Now(step) = self.delete(goal, held, proof) else { return State::Reached };
            let change = Change { at: member.into(), from: Some(value.clone()), to: None, secret: false };
            return State::Now(Step { changes: vec![change], ..step });
        }
        match (goal.upkeep, failed) {
            (Upkeep::SingleTry, None) => return State::Reached,
            (Upkeep::Once, None) => return self.update_members(goal, &["tags"], held, proof),
            (Upkeep::SingleTry, Some(state)) => {
                return State::Refused(Action::Create, cause(held, state));
            }
            (Upkeep::Members(members), _) => return self.update_members(goal, members, held, proof),
            (Upkeep::Once | Upkeep::Always, _) => {}
        }
        let (mut document, mut changes) = compare::merge(kind, &compared(goal), held, &goal.withdrawn);
        if changes.is_empty() && failed.is_none() {
            return State::Reached;
        }
        if let Some(state) = failed {
            changes.push(Change {
                at: "provisioningState".into(),
                from: Some(Value::from(state)),
                to: Some(Value::from("Succeeded")),
                secret: false,
            });
        }
        if goal.upkeep == Upkeep::Once {
            document = goal.document.clone();
        }
        State::Now(Step {
            action: Action::Update,
            target: goal.id.clone(),
            if_match: if_match(kind, held),
            document,
            partial: false,
            changes,
            proof: Some(proof),
            forced: false,
        })
    }

    /// Whether the enforced members are as desired, whatever else is going on.
    fn has_members(&self, goal: &Goal, held: &Value, proof: &Proof) -> bool {
        matches!(goal.upkeep, Upkeep::Members(members)
            if self.update_members(goal, members, held, proof.clone()) == State::Reached)
    }

    /// Writes some members, and sends no others.
    fn update_members(&self, goal: &Goal, members: &[&str], held: &Value, proof: Proof) -> State {
        let kind = Kind::of(&goal.id);
        let (document, changes) =
            compare::merge(kind, &only(members, &compared(goal)), &only(members, held), &goal.withdrawn);
        if changes.is_empty() {
            return State::Reached;
        }
        State::Now(Step {
            action: Action::Update,
            target: goal.id.clone(),
            if_match: if_match(kind, held),
            document,
            partial: true,
            changes,
            proof: Some(proof),
            forced: false,
        })
    }

    fn delete(&self, goal: &Goal, held: &Value, proof: Proof) -> State {
        let used = goal.kept_while_used.and_then(|list| held.pointer(list)).and_then(Value::as_array);
        // A document that was read before the deletion of its last user still refers to it.
        let is_there = |user: &Value| {
            let id = user["id"].as_str().and_then(|id| ResourceId::parse(id).ok());
            id.is_none_or(|id| self.facts.observed.see(&id) != Seen::Absent)
        };
        if used.is_some_and(|users| users.iter().any(is_there)) {
            return State::Foreign;
        }
        State::Now(Step {
            action: Action::Delete,
            target: goal.id.clone(),
            if_match: None,
            document: Value::Null,
            partial: false,
            changes: Vec::new(),
            proof: Some(proof),
            forced: goal.forced,
        })
    }
}

/// The goal for the resource with this ID, or for the nearest one that it lies in.
fn nearest(goals: &[Goal], id: &ResourceId, index: usize) -> Option<usize> {
    let found = (0..goals.len())
        .filter(|other| id.is_within(&goals[*other].id))
        .max_by_key(|other| goals[*other].id.as_str().len())?;
    // A resource that lies in another one is no reference.
    let (one, other) = (&goals[index].id, &goals[found].id);
    (found != index && !one.is_within(other) && !other.is_within(one)).then_some(found)
}

/// The resource in whose document this one is embedded: Azure executes one write to it at a time.
fn shared_document(id: &ResourceId) -> Option<ResourceId> {
    match (Kind::of(id).read_by, id.parent()) {
        (ReadBy::Parent(_), Some(parent)) => Some(parent),
        _ => Kind::of(id).children().next().map(|_| id.clone()),
    }
}

/// The observed version, if a write can be conditional on it.
fn if_match(kind: &Kind, held: &Value) -> Option<String> {
    held["etag"].as_str().filter(|_| kind.conditional).map(str::to_owned)
}

/// The part of a document that is compared. A resource that was created without the cluster's ID is not written for it:
/// only the resource group gets it later, and resources that had it before.
fn compared(goal: &Goal) -> Cow<'_, Value> {
    if goal.kind().is_group() || goal.borne == Borne::Id || goal.document["tags"].get(tags::ID).is_none() {
        return Cow::Borrowed(&goal.document);
    }
    let mut document = goal.document.clone();
    if let Some(all) = document["tags"].as_object_mut() {
        all.remove(tags::ID);
    }
    Cow::Owned(document)
}

/// A document reduced to some of its members.
fn only(members: &[&str], document: &Value) -> Value {
    members
        .iter()
        .filter_map(|name| Some(((*name).to_owned(), document.get(name)?.clone())))
        .collect::<Map<_, _>>()
        .into()
}

fn provisioning_state(document: &Value) -> Option<&str> {
    document["properties"]["provisioningState"].as_str()
}

/// The provisioning state of a failed resource, in Azure's word.
fn failure(document: &Value) -> Option<&str> {
    let is_one = |state: &&str| ["Failed", "Canceled"].iter().any(|word| word.eq_ignore_ascii_case(state));
    provisioning_state(document).filter(is_one)
}

/// Why an operation on a resource failed; `None` if it succeeded, or still runs.
pub(crate) fn failure_cause(document: &Value) -> Option<String> {
    failure(document).map(|state| cause(document, state))
}

/// The operation that runs on a resource, according to its document.
fn working_on(document: &Value) -> Option<Action> {
    let state = provisioning_state(document)?;
    [("Creating", Action::Create), ("Updating", Action::Update), ("Deleting", Action::Delete)]
        .into_iter()
        .find(|(word, _)| word.eq_ignore_ascii_case(state))
        .map(|(_, action)| action)
}
