//! A plan for clusters, for people and for programs.

use std::fmt;

use capz_planner::{Action, Outlook};
use serde_json::{Value, json};

use crate::plan::values::title;

/// The plan for one object.
#[derive(Debug, Default)]
pub struct Section {
    /// The object: `AzureMachine default/web-1`.
    pub object: String,
    /// Its turn, and its owner; empty if that is obvious.
    pub when: String,
    /// The plan.
    pub outlook: Outlook,
    /// What parts of it wait for: objects that are not in the manifests.
    pub waits: Vec<String>,
    /// Whether it is created with another object.
    pub created_along: bool,
}

impl Section {
    /// Whether a goal is not reached in the end.
    fn is_unreached(&self) -> bool {
        self.outlook.unreached().next().is_some() || !self.waits.is_empty()
    }
}

/// The plan for clusters.
#[derive(Debug, Default)]
pub struct ClustersPlan {
    /// Object by object, in order of their turns.
    pub sections: Vec<Section>,
    /// Objects that are refused, and why.
    pub refused: Vec<(String, String)>,
    /// Notes for the plan's readers.
    pub notes: Vec<String>,
    /// Whether something of which a cluster is made is not in the manifests.
    pub is_incomplete: bool,
}

impl ClustersPlan {
    /// Records that an object is refused.
    pub fn refuse(&mut self, object: &Value, why: impl Into<String>) {
        self.refused.push((title(object), why.into()));
    }

    /// The subscription of an object: its own, or the default. Without any it is refused.
    pub fn subscription(
        &mut self,
        object: &Value,
        own: Option<&str>,
        default: Option<&str>,
    ) -> Option<String> {
        let own = own.map(str::trim).filter(|id| !id.is_empty());
        let found = own.or(default).map(str::to_owned);
        if found.is_none() {
            self.refuse(
                object,
                "no subscription is known: set spec.subscriptionID, or AZURE_SUBSCRIPTION_ID",
            );
        }
        found
    }

    /// The numbers of steps that create, update and delete.
    fn counts(&self) -> [usize; 3] {
        let mut counts = [0; 3];
        for step in self.sections.iter().flat_map(|section| section.outlook.steps()) {
            let index = match step.step.action {
                Action::Create => 0,
                Action::Update => 1,
                Action::Delete => 2,
            };
            if let Some(count) = counts.get_mut(index) {
                *count += 1;
            }
        }
        counts
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.counts() == [0; 3]
    }

    /// Whether a declared object is refused.
    pub fn fails(&self) -> bool {
        self.is_incomplete || !self.refused.is_empty() || self.sections.iter().any(Section::is_unreached)
    }

    /// The plan for programs; docs/plan.md describes the format.
    pub fn to_json(&self) -> Value {
        let [create, update, delete] = self.counts();
        let mut steps = Vec::new();
        for section in &self.sections {
            for (index, round) in section.outlook.rounds.iter().enumerate() {
                for foreseen in round {
                    let step = &foreseen.step;
                    let mut entry = json!({
                        "action": match step.action {
                            Action::Create => "create",
                            Action::Update => "update",
                            Action::Delete => "delete",
                        },
                        "resourceType": step.target.resource_type(),
                        "resourceId": step.target.as_str(),
                        "changes": step.changes.iter().map(ToString::to_string).collect::<Vec<_>>(),
                        "onBehalfOf": [section.object],
                        "round": index + 1,
                        "after": foreseen.after.iter().map(|id| id.as_str()).collect::<Vec<_>>(),
                    });
                    if !step.document.is_null() {
                        entry["document"] = step.document.clone();
                    }
                    if let Some(proof) = &step.proof {
                        entry["proof"] = json!(proof);
                    }
                    if let Some(version) = &step.if_match {
                        entry["ifMatch"] = json!(version);
                    }
                    steps.push(entry);
                }
            }
        }
        let refused: Vec<Value> = self
            .refused
            .iter()
            .map(|(object, message)| json!({ "object": object, "message": message }))
            .collect();
        json!({
            "formatVersion": 1,
            "summary": { "create": create, "update": update, "delete": delete, "refused": refused.len() },
            "steps": steps,
            "refused": refused,
        })
    }
}

impl fmt::Display for ClustersPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for section in &self.sections {
            let when = match section.when.as_str() {
                "" => String::new(),
                when => format!(" ({when})"),
            };
            if section.outlook.rounds.is_empty() && !section.is_unreached() {
                let words = if section.created_along { "created with its cluster" } else { "no changes" };
                writeln!(f, "{}: {words}", section.object)?;
                continue;
            }
            write!(f, "{}{when}\n{}", section.object, section.outlook)?;
            for what in &section.waits {
                writeln!(f, "    ! {what}")?;
            }
            writeln!(f)?;
        }
        for (object, why) in &self.refused {
            writeln!(f, "  ! {object} is refused: {why}")?;
        }
        let [create, update, delete] = self.counts();
        write!(f, "Plan: {create} to create, {update} to change, {delete} to delete")?;
        match self.refused.len() {
            0 => writeln!(f, "."),
            1 => writeln!(f, "; 1 object refused."),
            many => writeln!(f, "; {many} objects refused."),
        }
    }
}
