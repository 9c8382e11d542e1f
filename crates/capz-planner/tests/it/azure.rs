//! A small Azure for pure tests: it completes documents like the real one, and refuses references to missing resources.
//! Worlds prove the whole behaviour, on the simulated Azure.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::ResourceId;
use capz_planner::kind::{Kind, ReadBy};
use capz_planner::plan::{Facts, plan};
use capz_planner::{Action, Claimant, Goal, ObservedResources, Plan, Step};
use serde_json::{Value, json};

#[derive(Default)]
pub struct Azure {
    pub documents: BTreeMap<ResourceId, Value>,
    /// The writes, in order: by round.
    pub rounds: Vec<Vec<String>>,
    versions: u32,
    /// The proof of each step on an existing target.
    pub proofs: Vec<(ResourceId, Option<String>)>,
}

impl Azure {
    /// The state that its lists show. Nothing is unknown.
    pub fn observed(&self, goals: &[Goal]) -> ObservedResources {
        let mut observed = ObservedResources::default();
        for (reading, asked) in observed.missing(goals) {
            match reading {
                capz_planner::Reading::List { group, resource_type, .. } => {
                    observed.take_list(&asked, &self.list(&group, resource_type));
                }
                capz_planner::Reading::Get { id, .. } => observed.take(&id, self.get(&id)),
            }
        }
        observed
    }

    /// Lists resources.
    pub fn list(&self, group: &ResourceId, resource_type: &str) -> Vec<Value> {
        let found = self
            .documents
            .keys()
            .filter(|id| id.is_within(group) && id.resource_type().eq_ignore_ascii_case(resource_type));
        found.map(|id| self.shown(id)).collect()
    }

    /// Reads one resource.
    pub fn get(&self, id: &ResourceId) -> Option<Value> {
        self.documents.contains_key(id).then(|| self.shown(id))
    }

    /// A document with its embedded children.
    fn shown(&self, id: &ResourceId) -> Value {
        let mut document = self.documents[id].clone();
        for (child, held) in &self.documents {
            if let (ReadBy::Parent(member), Some(parent)) = (Kind::of(child).read_by, child.parent())
                && parent == *id
            {
                let list = &mut document["properties"][member];
                if list.is_null() {
                    *list = json!([]);
                }
                list.as_array_mut().unwrap().push(held.clone());
            }
        }
        document
    }

    pub fn plan<'c>(&self, claimant: impl Into<Claimant<'c>>, goals: Vec<Goal>) -> Plan {
        let (observed, running, refused) = (self.observed(&goals), BTreeMap::new(), BTreeMap::new());
        plan(
            goals,
            Facts { claimant: claimant.into(), observed: &observed, running: &running, refused: &refused },
        )
    }

    /// Executes plans until there is nothing to do, and returns the last plan.
    pub fn settle<'c>(&mut self, claimant: impl Into<Claimant<'c>>, goals: &[Goal]) -> Plan {
        let claimant = claimant.into();
        for _ in 0..50 {
            if let Some(plan) = self.round(claimant, goals.to_vec()) {
                return plan;
            }
        }
        panic!("it does not end: {:?}", self.rounds.last());
    }

    /// Executes the steps that can be taken now; returns the plan if there are none.
    pub fn round<'c>(&mut self, claimant: impl Into<Claimant<'c>>, goals: Vec<Goal>) -> Option<Plan> {
        let plan = self.plan(claimant, goals);
        let steps: Vec<Step> = plan.steps().cloned().collect();
        if steps.is_empty() {
            return Some(plan);
        }
        self.rounds.push(steps.iter().map(|step| step.target.name().to_owned()).collect());
        for step in steps {
            self.carry_out(&step);
        }
        None
    }

    fn carry_out(&mut self, step: &Step) {
        let id = &step.target;
        if step.action != Action::Create {
            self.proofs.push((id.clone(), step.proof.as_ref().map(ToString::to_string)));
        }
        if step.action == Action::Delete {
            let users: Vec<_> = self
                .documents
                .iter()
                .filter(|(other, document)| {
                    !other.is_within(id)
                        && capz_planner::references::ids_in(document).iter().any(|it| it.is_within(id))
                })
                .map(|(other, _)| other.to_string())
                .collect();
            assert_eq!(users, Vec::<String>::new(), "{id} is in use");
            self.documents.retain(|other, _| !other.is_within(id));
            return;
        }
        assert_eq!(step.action == Action::Create, !self.documents.contains_key(id), "{step:?}");
        for reference in capz_planner::references::ids_in(&step.document) {
            let exists = |it: &ResourceId| self.documents.contains_key(it) || it.is_within(id);
            let inside = reference.parent().is_some_and(|parent| self.documents.contains_key(&parent));
            assert!(exists(&reference) || inside, "{id} refers to {reference}, which does not exist");
        }
        self.versions += 1;
        let mut document = step.document.clone();
        document["id"] = json!(id.as_str());
        document["name"] = json!(id.name());
        document["etag"] = json!(format!("W/\"{}\"", self.versions));
        document["properties"]["provisioningState"] = json!("Succeeded");
        // An embedded resource is a resource of its own.
        if let Some(properties) = document["properties"].as_object_mut() {
            properties.retain(|member, _| !matches!(member.as_str(), "subnets" | "virtualNetworkPeerings"));
        }
        if let Some(location) = document["location"].as_str() {
            document["location"] = json!(location.to_uppercase());
        }
        self.documents.insert(id.clone(), document);
    }

    /// Creates a foreign resource.
    pub fn put(&mut self, id: &ResourceId, mut document: Value) {
        document["id"] = json!(id.as_str());
        document["name"] = json!(id.name());
        self.documents.insert(id.clone(), document);
    }

    pub fn names(&self) -> BTreeSet<String> {
        self.documents.keys().map(|id| id.name().to_owned()).collect()
    }
}
