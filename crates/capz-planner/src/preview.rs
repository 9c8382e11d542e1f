//! The steps that will be taken, and their order, if every step succeeds: a plan is made, its steps are applied to the
//! observed state, and the next plan is made. Controllers do the same with Azure's answers in place of the desired
//! documents.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::claimant::Claimant;
use crate::goal::Goal;
use crate::kind::describe;
use crate::kind::{Kind, ReadBy};
use crate::observed::{Observation, ObservedResources, Reading};
use crate::plan::{Action, Facts, Plan, State, Step, plan};
use crate::plan_text::{facts, sign};

/// A step of a preview.
#[derive(Debug, Clone, PartialEq)]
pub struct Foreseen {
    /// The step.
    pub step: Step,
    /// The resources of this object that come before.
    pub after: BTreeSet<ResourceId>,
}

/// What a preview needs next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// These reads, each with the resources that it shows ([`Preview::observed`] takes the answers), and new goals
    /// after them.
    Read(BTreeMap<Reading, BTreeSet<ResourceId>>),
    /// New goals from the current state.
    Again,
    /// No step is left. Goals that are not reached now stay so.
    Rest(Plan),
}

/// The preview of one object.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Outlook {
    /// Steps in their order; those of one round are taken in parallel.
    pub rounds: Vec<Vec<Foreseen>>,
    /// The states of the goals afterwards.
    pub rest: Plan,
}

/// A running preview. One serves all objects of a cluster, one after the other.
#[derive(Debug, Default)]
pub struct Preview {
    /// The predicted state of Azure.
    pub observed: ObservedResources,
    rounds: Vec<Vec<Foreseen>>,
    waited: BTreeMap<ResourceId, BTreeSet<ResourceId>>,
}

impl Preview {
    /// Applies the steps that are possible, on behalf of this cluster. `goals` are the goals of its object, derived
    /// from the current [`Self::observed`].
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
        // A second write of the same resource does not converge: the controllers report that, too.
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

    /// Ends the preview of an object with the states of its goals.
    pub fn end(&mut self, rest: Plan) -> Outlook {
        self.waited.clear();
        Outlook { rounds: std::mem::take(&mut self.rounds), rest }
    }

    /// Applies a step.
    fn take(&mut self, step: &Step) {
        let id = &step.target;
        let document = (step.action != Action::Delete).then(|| {
            let mut document = match (step.partial, self.observed.get(id)) {
                (true, Observation::Present(held)) => merged(held.clone(), &step.document),
                _ => step.document.clone(),
            };
            document["id"] = json!(id.as_str());
            document["name"] = json!(id.name());
            document["properties"]["provisioningState"] = json!("Succeeded");
            document
        });
        self.show_in_parent(id, document.as_ref());
        let created = (step.action == Action::Create).then(|| created_along(id, &step.document));
        self.observed.take(id, document);
        for (child, document) in created.into_iter().flatten() {
            self.observed.take(&child, Some(document));
        }
    }

    /// Shows an embedded resource in its parent's document.
    fn show_in_parent(&mut self, id: &ResourceId, document: Option<&Value>) {
        let (ReadBy::Parent(member), Some(parent)) = (Kind::of(id).read_by, id.parent()) else { return };
        let Observation::Present(held) = self.observed.get(&parent) else { return };
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

/// The resources that Azure creates along with one, because its document lists them.
fn created_along(id: &ResourceId, document: &Value) -> Vec<(ResourceId, Value)> {
    const LISTED: [(&str, &str, &str); 1] =
        [("Microsoft.ContainerService/managedClusters", "agentPoolProfiles", "agentPools")];
    let listed = LISTED.iter().filter(|(parent, ..)| id.resource_type().eq_ignore_ascii_case(parent));
    let children = listed.flat_map(|(_, member, kind)| {
        let children = document["properties"][member].as_array().into_iter().flatten();
        children.filter_map(|child| {
            let mut properties = child.clone();
            let name = properties.as_object_mut()?.remove("name")?;
            let id = id.child(kind, name.as_str()?);
            properties["provisioningState"] = json!("Succeeded");
            let document = json!({ "id": id.as_str(), "name": name, "properties": properties });
            Some((id, document))
        })
    });
    children.collect()
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

    /// Goals that will not be reached, with their states.
    pub fn unreached(&self) -> impl Iterator<Item = &(Goal, State)> {
        self.rest.items.iter().filter(|(_, state)| !state.is_there())
    }
}

impl fmt::Display for Outlook {
    /// A line for each step with the number of its round, its changes, and what comes before.
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
                    writeln!(f, "        it is no longer declared")?;
                    if let Some(proof) = &step.proof {
                        writeln!(f, "        it belongs to {proof}")?;
                    }
                }
                if !after.is_empty() {
                    // A resource that contains this one exists before it.
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
                _ => {
                    let refused = matches!(state, State::Disputed(_));
                    let words = if refused { ", and the object is refused" } else { "" };
                    if let Some(remark) = state.remark(&name) {
                        writeln!(f, "    {remark}{words}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service;

    #[test]
    fn a_partial_document_is_merged_as_azure_does() {
        for (held, patch, expected) in [
            (json!({ "a": 1 }), json!({ "b": 2 }), json!({ "a": 1, "b": 2 })),
            (json!({ "a": { "b": 1 } }), json!({ "a": { "c": 2 } }), json!({ "a": { "b": 1, "c": 2 } })),
            (json!({ "a": [1, 2] }), json!({ "a": [3] }), json!({ "a": [3] })),
            (json!({ "a": 1 }), json!({ "a": { "b": 2 } }), json!({ "a": { "b": 2 } })),
            (json!(1), json!(2), json!(2)),
        ] {
            assert_eq!(merged(held.clone(), &patch), expected, "{held} {patch}");
        }
    }

    /// Azure creates the node pools of a managed cluster with it.
    #[test]
    fn what_a_created_document_lists_is_there_afterwards() {
        let cluster =
            ResourceId::group("s", "g").resource("Microsoft.ContainerService", "managedClusters", "c");
        let pool = |name: &str| cluster.child("agentPools", name);
        let document = json!({ "properties": { "agentPoolProfiles": [{ "name": "pool0", "count": 3 }] } });
        for (action, is_there) in [(Action::Create, true), (Action::Update, false)] {
            let mut preview = Preview::default();
            preview.take(&Step {
                action,
                target: cluster.clone(),
                if_match: None,
                document: document.clone(),
                partial: false,
                changes: Vec::new(),
                proof: None,
                forced: false,
            });
            let held = preview.observed.get(&pool("pool0"));
            assert_eq!(
                matches!(held, Observation::Present(held) if held["properties"]["count"] == 3 && held["name"] == "pool0"),
                is_there
            );
            assert_eq!(preview.observed.get(&pool("pool1")), Observation::Unknown);
        }
    }

    /// A subnet is shown in its network, whole or in part, until it is deleted.
    #[test]
    fn steps_show_in_the_observed_state() {
        let network = ResourceId::group("s", "g").resource("Microsoft.Network", "virtualNetworks", "n");
        let subnet = network.child("subnets", "one");
        let mut preview = Preview::default();
        preview.observed.take(
            &network,
            Some(json!({ "properties": { "subnets": [{ "name": "ONE" }, { "name": "two" }] } })),
        );
        let step = |action: Action, partial: bool, document: Value| Step {
            action,
            target: subnet.clone(),
            if_match: None,
            document,
            partial,
            changes: Vec::new(),
            proof: None,
            forced: false,
        };
        let shown = |preview: &Preview| {
            let Observation::Present(held) = preview.observed.get(&network) else { panic!("no network") };
            let names = held["properties"]["subnets"]
                .as_array()
                .unwrap()
                .iter()
                .map(|one| one["name"].as_str().unwrap());
            let names = names.collect::<Vec<_>>().join(" ");
            let own = match preview.observed.get(&subnet) {
                Observation::Present(held) => held["properties"].clone(),
                _ => Value::Null,
            };
            (names, own)
        };
        let state = json!("Succeeded");
        preview.take(&step(Action::Create, false, json!({ "properties": { "a": 1 } })));
        assert_eq!(shown(&preview), ("two one".into(), json!({ "a": 1, "provisioningState": state })));
        preview.take(&step(Action::Update, true, json!({ "properties": { "b": 2 } })));
        assert_eq!(
            shown(&preview),
            ("two one".into(), json!({ "a": 1, "b": 2, "provisioningState": state }))
        );
        preview.take(&step(Action::Update, false, json!({ "properties": { "b": 3 } })));
        assert_eq!(shown(&preview), ("two one".into(), json!({ "b": 3, "provisioningState": state })));
        preview.take(&step(Action::Delete, false, Value::Null));
        assert_eq!(shown(&preview), ("two".into(), Value::Null));
        let goal = Goal::new(subnet.clone(), &service::SUBNETS, Value::Null);
        let (rest, open) = (
            Plan { items: vec![(goal.clone(), State::Reached)] },
            Plan { items: vec![(goal, State::Unknown)] },
        );
        assert_eq!(preview.end(rest).unreached().count(), 0);
        assert_eq!(preview.end(open).unreached().count(), 1);
    }
}
