//! The state of a goal without regard to its dependencies, and the step that it needs.

use std::borrow::Cow;

use azure_types::ResourceId;
use ownership::{Ownership, Proof, Rival};
use serde_json::{Map, Value};

use super::owner::Judge;
use super::step::{Action, State, Step};
use crate::compare::{self, Change};
use crate::goal::{Goal, OwnershipRule, Upkeep};
use crate::instance_view::cause;
use crate::kind::Kind;
use crate::observed::Observation;
use crate::owner_tags::Borne;
use crate::{service, tags};

impl Judge<'_> {
    /// The state of a goal without regard to its dependencies.
    pub(super) fn alone(&self, index: usize) -> State {
        let goal = &self.goals[index];
        if let Some(action) = self.facts.running.get(&goal.id) {
            return State::Running(*action);
        }
        if let Some(words) = self.facts.refused.get(&goal.id) {
            let action = match (goal.wanted, self.facts.observed.get(&goal.id)) {
                (false, _) => Action::Delete,
                (true, Observation::Present(_)) => Action::Update,
                (true, _) => Action::Create,
            };
            return State::Refused(action, words.clone());
        }
        match (self.facts.observed.get(&goal.id), goal.wanted) {
            (Observation::Unknown, _) => State::Unknown,
            (Observation::Absent, false) => State::Reached,
            (Observation::Absent, true) => self.absent(goal),
            (Observation::Present(held), wanted) => match self.ownership(goal, held) {
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
    pub(super) fn owner_beside(&self, goal: &Goal, held: &Value) -> Option<Rival> {
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
        self.facts.claimant.rival_beside(held)
    }

    /// The state of a goal whose resource is desired and does not exist.
    pub(super) fn absent(&self, goal: &Goal) -> State {
        match &goal.ownership {
            OwnershipRule::Foreign => State::Missing,
            OwnershipRule::TaggedFor(users) => self.absent_for(goal, users),
            OwnershipRule::TaggedWith(other) | OwnershipRule::Inside(other) => match self.whose_is(other) {
                Ownership::Unproven(_) if matches!(goal.ownership, OwnershipRule::TaggedWith(_)) => {
                    State::Foreign
                }
                Ownership::Proven(_) | Ownership::Unproven(_) => self.create(goal),
                Ownership::Disputed(rival) => State::Disputed(rival),
                Ownership::Unknown => State::Unknown,
            },
            OwnershipRule::Tagged
            | OwnershipRule::ByName(_)
            | OwnershipRule::Recorded
            | OwnershipRule::Joins(_)
            | OwnershipRule::Marked
            | OwnershipRule::Declared(_)
            | OwnershipRule::Shown(_) => self.create(goal),
        }
    }

    /// The state of a goal whose resource is created for the first of these subnets that is the cluster's, or not
    /// created yet.
    pub(super) fn absent_for(&self, goal: &Goal, users: &[ResourceId]) -> State {
        let (mut is_unknown, mut disputed) = (false, None);
        for user in users {
            match (self.facts.observed.get(user), user.parent()) {
                (Observation::Absent, _) => return self.create(goal),
                (Observation::Unknown, _) | (_, None) => is_unknown = true,
                (Observation::Present(_), Some(network)) => match self.whose_is(&network) {
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

    pub(super) fn create(&self, goal: &Goal) -> State {
        State::Now(Step { document: goal.document.clone(), ..Step::new(Action::Create, &goal.id) })
    }

    pub(super) fn update(&self, goal: &Goal, held: &Value, proof: Proof) -> State {
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
        if goal.has_new_secrets {
            changes.push(Change { at: "secrets".into(), from: None, to: None, secret: true });
        }
        if changes.is_empty() && failed.is_none() {
            return State::Reached;
        }
        for pointer in &goal.secrets {
            if let Some(secret) = goal.document.pointer(pointer) {
                put_at(&mut document, pointer, secret.clone());
            }
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
        let (if_match, proof) = (if_match(kind, held), Some(proof));
        State::Now(Step { if_match, document, changes, proof, ..Step::new(Action::Update, &goal.id) })
    }

    /// Whether the enforced members are as desired, whatever else is going on.
    pub(super) fn has_members(&self, goal: &Goal, held: &Value, proof: &Proof) -> bool {
        matches!(goal.upkeep, Upkeep::Members(members)
            if self.update_members(goal, members, held, proof.clone()) == State::Reached)
    }

    /// Writes some members, and sends no others.
    pub(super) fn update_members(&self, goal: &Goal, members: &[&str], held: &Value, proof: Proof) -> State {
        let kind = Kind::of(&goal.id);
        let (document, changes) =
            compare::merge(kind, &only(members, &compared(goal)), &only(members, held), &goal.withdrawn);
        if changes.is_empty() {
            return State::Reached;
        }
        let (if_match, proof) = (if_match(kind, held), Some(proof));
        let step = Step { if_match, document, changes, proof, ..Step::new(Action::Update, &goal.id) };
        State::Now(Step { partial: true, ..step })
    }

    pub(super) fn delete(&self, goal: &Goal, held: &Value, proof: Proof) -> State {
        let used = goal.kept_while_used.and_then(|list| held.pointer(list)).and_then(Value::as_array);
        // A document that was read before the deletion of its last user still refers to it.
        let is_there = |user: &Value| {
            let id = user["id"].as_str().and_then(|id| ResourceId::parse(id).ok());
            id.is_none_or(|id| self.facts.observed.get(&id) != Observation::Absent)
        };
        if used.is_some_and(|users| users.iter().any(is_there)) {
            return State::Foreign;
        }
        let (proof, forced) = (Some(proof), goal.forced);
        State::Now(Step { proof, forced, ..Step::new(Action::Delete, &goal.id) })
    }
}

/// The observed version, if a write can be conditional on it.
fn if_match(kind: &Kind, held: &Value) -> Option<String> {
    let found =
        ["/etag", "/eTag", "/properties/eTag"].into_iter().find_map(|path| held.pointer(path)?.as_str());
    found.filter(|_| kind.conditional).map(str::to_owned)
}

/// The part of a document that is compared: without secrets. A resource that was created without the cluster's ID is not
/// written for it: only the resource group gets it later, and resources that had it before.
pub(crate) fn compared(goal: &Goal) -> Cow<'_, Value> {
    let bears_id =
        goal.kind().is_group() || goal.borne == Borne::Id || goal.document["tags"].get(tags::ID).is_none();
    if bears_id && goal.secrets.is_empty() {
        return Cow::Borrowed(&goal.document);
    }
    let mut document = goal.document.clone();
    if !bears_id && let Some(all) = document["tags"].as_object_mut() {
        all.remove(tags::ID);
    }
    for pointer in &goal.secrets {
        take_at(&mut document, pointer);
    }
    Cow::Owned(document)
}

/// Removes the value at a JSON pointer.
fn take_at(document: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else { return };
    if let Some(members) = document.pointer_mut(parent).and_then(Value::as_object_mut) {
        members.remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}

/// Sets the value at a JSON pointer. Objects on the way to it are made.
fn put_at(document: &mut Value, pointer: &str, value: Value) {
    let mut place = document;
    for name in pointer.split('/').skip(1) {
        if !place.is_object() && !place.is_null() {
            return;
        }
        place = &mut place[name.replace("~1", "/").replace("~0", "~")];
    }
    *place = value;
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

/// Provisioning states of a resource that Azure is working on. Those after the first three are AKS's.
const STATES_AT_WORK: [(&str, Action); 17] = [
    ("Creating", Action::Create),
    ("Updating", Action::Update),
    ("Deleting", Action::Delete),
    ("Aborting", Action::Update),
    ("Canceling", Action::Update),
    ("Joining", Action::Create),
    ("Leaving", Action::Delete),
    ("Migrating", Action::Update),
    ("ReconcilingAddons", Action::Update),
    ("ReconcilingClusterETCDCertificates", Action::Update),
    ("RotatingClusterCertificates", Action::Update),
    ("RotatingServiceAccountSigningKeys", Action::Update),
    ("Scaling", Action::Update),
    ("Starting", Action::Update),
    ("Stopping", Action::Update),
    ("Upgrading", Action::Update),
    ("UpgradingNodeImageVersion", Action::Update),
];

/// The operation that runs on a resource, according to its document.
fn working_on(document: &Value) -> Option<Action> {
    let state = provisioning_state(document)?;
    STATES_AT_WORK.into_iter().find(|(word, _)| word.eq_ignore_ascii_case(state)).map(|(_, action)| action)
}
