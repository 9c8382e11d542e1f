//! What will be done, and in which order, if Azure does what it is asked to: a plan is made, its steps are taken for done, and
//! the next one is made. Controllers do the same, with what Azure answers in the place of what is wanted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::claimant::Claimant;
use crate::goal::Goal;
use crate::kind::{Kind, ReadBy};
use crate::observed::{Observed, Reading, Seen};
use crate::plan::{Action, Facts, Plan, State, Step, plan};
use crate::plan_text::{describe, facts, sign};

/// A step that will be taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Foreseen {
    /// The step.
    pub step: Step,
    /// What has to be done before, of what this object wants.
    pub after: BTreeSet<ResourceId>,
}

/// What has to happen before a preview goes on.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// These have to be read, of which each tells of some resources ([`Preview::observed`] takes what they answer), and goals to
    /// be made of it.
    Read(BTreeMap<Reading, BTreeSet<ResourceId>>),
    /// Goals are to be made again, of what is known now.
    Again,
    /// Nothing more can be done. What is not as wanted now stays so.
    Rest(Plan),
}

/// What will be done for one object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outlook {
    /// Steps in their order; those of one round are taken side by side.
    pub rounds: Vec<Vec<Foreseen>>,
    /// Where goals stand afterwards.
    pub rest: Plan,
}

/// A preview under way. One serves all objects of a cluster, one after the other.
#[derive(Debug, Default)]
pub struct Preview {
    /// What Azure will hold.
    pub observed: Observed,
    rounds: Vec<Vec<Foreseen>>,
    waited: BTreeMap<ResourceId, BTreeSet<ResourceId>>,
}

impl Preview {
    /// Takes the steps that are possible, on behalf of this cluster. `goals` are what its object wants, made of what
    /// [`Self::observed`] holds now.
    pub fn next(&mut self, claimant: Claimant<'_>, goals: Vec<Goal>) -> Next {
        let unread = self.observed.missing(&goals);
        if !unread.is_empty() {
            return Next::Read(unread);
        }
        let (running, refused) = (BTreeMap::new(), BTreeMap::new());
        let facts = Facts { claimant, observed: &self.observed, running: &running, refused: &refused };
        let plan = plan(goals, facts);
        for (goal, state) in &plan.items {
            if let State::Waits(first) = state {
                self.waited.entry(goal.id.clone()).or_default().extend(first.iter().cloned());
            }
        }
        // What is to be written a second time does not come to rest by being written: the controllers say so then, too.
        let before: BTreeSet<(Action, &ResourceId)> =
            self.rounds.iter().flatten().map(|it| (it.step.action, &it.step.target)).collect();
        let steps: Vec<Step> =
            plan.steps().filter(|step| !before.contains(&(step.action, &step.target))).cloned().collect();
        if steps.is_empty() {
            return Next::Rest(plan);
        }
        let round = steps.into_iter().map(|step| {
            self.take(&step);
            let after = self.waited.remove(&step.target).unwrap_or_default();
            Foreseen { step, after }
        });
        let round = round.collect();
        self.rounds.push(round);
        Next::Again
    }

    /// Ends an object's part with where its goals stand.
    pub fn end(&mut self, rest: Plan) -> Outlook {
        self.waited.clear();
        Outlook { rounds: std::mem::take(&mut self.rounds), rest }
    }

    /// Takes a step for done.
    fn take(&mut self, step: &Step) {
        let id = &step.target;
        let document = (step.action != Action::Delete).then(|| {
            let mut document = match (step.partial, self.observed.see(id)) {
                (true, Seen::Present(held)) => merged(held.clone(), &step.document),
                _ => step.document.clone(),
            };
            document["id"] = json!(id.as_str());
            document["name"] = json!(id.name());
            document["properties"]["provisioningState"] = json!("Succeeded");
            document
        });
        self.show_in_parent(id, document.as_ref());
        self.observed.take(id, document);
    }

    /// What stands in another's document is shown there.
    fn show_in_parent(&mut self, id: &ResourceId, document: Option<&Value>) {
        let (ReadBy::Parent(member), Some(parent)) = (Kind::of(id).read_by, id.parent()) else { return };
        let Seen::Present(held) = self.observed.see(&parent) else { return };
        let mut held = held.clone();
        let list = &mut held["properties"][member];
        let mut children = list.as_array().cloned().unwrap_or_default();
        children
            .retain(|child| child["name"].as_str().is_none_or(|name| !name.eq_ignore_ascii_case(id.name())));
        children.extend(document.cloned());
        *list = children.into();
        self.observed.put(&parent, held);
    }
}

/// A document with members of another one, as Azure merges them (PATCH).
fn merged(mut held: Value, patch: &Value) -> Value {
    match (&mut held, patch) {
        (Value::Object(members), Value::Object(changes)) => {
            for (name, change) in changes {
                let member = members.entry(name).or_insert(Value::Null);
                *member = merged(member.take(), change);
            }
            held
        }
        _ => patch.clone(),
    }
}

impl Outlook {
    /// All steps in their order.
    pub fn steps(&self) -> impl Iterator<Item = &Foreseen> {
        self.rounds.iter().flatten()
    }

    /// Goals that will not be reached, and where they stand.
    pub fn unreached(&self) -> impl Iterator<Item = &(Goal, State)> {
        self.rest.items.iter().filter(|(_, state)| !state.is_there())
    }
}

impl fmt::Display for Outlook {
    /// A line for each step with the number of its round, what it makes or changes, and what comes before.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, round) in self.rounds.iter().enumerate() {
            for Foreseen { step, after } in round {
                let words = match step.action {
                    Action::Create => facts(&step.document),
                    Action::Update | Action::Delete => String::new(),
                };
                let colon = if words.is_empty() { "" } else { ": " };
                let name = describe(&step.target);
                writeln!(f, "  {:>2}. {} {name}{colon}{words}", index + 1, sign(step.action))?;
                for change in &step.changes {
                    writeln!(f, "        {change}")?;
                }
                if step.action == Action::Delete {
                    writeln!(f, "        it is wanted no longer")?;
                    if let Some(proof) = &step.proof {
                        writeln!(f, "        it belongs to {proof}")?;
                    }
                }
                if !after.is_empty() {
                    // What something lies in is there before it.
                    let is_implied =
                        |id: &&ResourceId| after.iter().any(|other| other != *id && other.is_within(id));
                    let names: Vec<String> =
                        after.iter().filter(|id| !is_implied(id)).map(describe).collect();
                    writeln!(f, "        after {}", names.join(", "))?;
                }
            }
        }
        for (goal, state) in self.unreached() {
            let name = describe(&goal.id);
            match state {
                State::Missing => writeln!(
                    f,
                    "    ! {name} does not exist, and is not for us to make: create it, or name another"
                )?,
                State::Refused(_, words) => writeln!(f, "    ! {name}: {words}")?,
                State::Running(_) => writeln!(f, "    … {name}: Azure is at work on it")?,
                State::Waits(first) => {
                    let names: Vec<String> = first.iter().map(describe).collect();
                    writeln!(f, "    ! {name} waits for {}", names.join(", "))?;
                }
                State::Now(step) => {
                    writeln!(f, "    ! {name} would be written again and again:")?;
                    for change in &step.changes {
                        writeln!(f, "        {change}")?;
                    }
                }
                State::Unknown => writeln!(f, "    ? {name}: it is not known what Azure holds")?,
                State::Disputed(rival) => {
                    writeln!(
                        f,
                        "    ! {name} belongs to {rival}: it is left alone, and the object is refused"
                    )?;
                }
                State::Reached | State::Foreign => {}
                State::InUse(user) => writeln!(f, "    ! {name} stays: {} uses it", user.name())?,
            }
        }
        Ok(())
    }
}
