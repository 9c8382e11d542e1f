//! Roles of Azure, from the table.

use std::collections::BTreeSet;

use serde::Serialize;

use super::grant::Grant;
use super::grants::GRANTS;
use crate::{Feature, Program};

/// A role that is shipped as a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// The program.
    pub program: Program,
    /// What the role is for: the name of a feature, `subscription`, or `all`.
    pub part: &'static str,
    /// Its actions, sorted.
    pub actions: BTreeSet<&'static str>,
}

/// Features whose actions are in one role, because nearly every cluster has them.
const TOGETHER: [Feature; 4] = [Feature::Base, Feature::Services, Feature::Nodes, Feature::NodeLifecycle];
/// The role with the actions on a subscription.
const SUBSCRIPTION: &str = "subscription";
/// The role with all actions of a program.
const ALL: &str = "all";

/// The roles that have the actions of a grant.
fn parts(grant: &Grant) -> BTreeSet<&'static str> {
    if grant.place.is_subscription() {
        return [SUBSCRIPTION].into();
    }
    let of = |all: &&[Feature]| match all.last() {
        Some(feature) if !TOGETHER.contains(feature) => feature.name(),
        _ => Feature::Base.name(),
    };
    grant.features.iter().map(of).collect()
}

impl Role {
    /// All roles, in the order of the table: one a feature, and one with all actions where a program has several.
    pub fn all() -> Vec<Self> {
        let mut roles: Vec<Self> = Vec::new();
        let mut add = |program: Program, part: &'static str, grant: &Grant| {
            let index = roles.iter().position(|role| (role.program, role.part) == (program, part));
            let index = index.unwrap_or_else(|| {
                roles.push(Self { program, part, actions: BTreeSet::new() });
                roles.len() - 1
            });
            if let Some(role) = roles.get_mut(index) {
                role.actions.extend(grant.actions);
            }
        };
        for grant in GRANTS {
            for part in parts(grant) {
                add(grant.program, part, grant);
            }
        }
        for program in Program::ALL {
            let mut of_program = GRANTS.iter().filter(|grant| grant.program == program).peekable();
            let first = of_program.peek().map(|grant| parts(grant));
            if of_program.clone().any(|grant| Some(parts(grant)) != first) {
                of_program.for_each(|grant| add(program, ALL, grant));
            }
        }
        for role in &mut roles {
            role.complete();
        }
        roles
    }

    /// An action in two roles of a program would hide that one of them lacks it. What a feature always has from the
    /// role of the base is left out of its own.
    fn complete(&mut self) {
        if [ALL, SUBSCRIPTION, Feature::Base.name()].contains(&self.part) {
            return;
        }
        let of_base = GRANTS
            .iter()
            .filter(|grant| grant.program == self.program && parts(grant).contains(Feature::Base.name()));
        for action in of_base.flat_map(|grant| grant.actions) {
            self.actions.remove(action);
        }
    }

    /// The path of its file below `deploy/rights`.
    pub fn path(&self) -> String {
        format!("azure/{}/{}.json", self.program.name(), self.part)
    }

    /// Its definition, for `az role definition create`.
    pub fn definition(&self) -> Definition {
        let name = format!("{} {}", self.program.name(), self.part);
        let when = Feature::ALL.iter().find(|feature| feature.name() == self.part).map(|it| it.condition());
        let what = match self.part {
            ALL => "all that the program may need".to_owned(),
            SUBSCRIPTION => "what it reads in the subscription, always".to_owned(),
            part if part == Feature::Base.name() => {
                "Services with public and internal addresses, nodes in scale sets, always".to_owned()
            }
            part => format!("{part}: {}", when.unwrap_or_default()),
        };
        let description = format!("{}, {what}", self.program.name());
        definition(&name, &description, &self.actions, &["/subscriptions/SUBSCRIPTION".to_owned()])
    }
}

/// The definition of a role, as `az role definition create` reads it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Definition {
    name: String,
    is_custom: bool,
    description: String,
    actions: BTreeSet<&'static str>,
    not_actions: [&'static str; 0],
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    data_actions: BTreeSet<&'static str>,
    assignable_scopes: Vec<String>,
}

/// Whether an action is one on the data of a resource, which is another list of a role.
fn is_of_data(action: &str) -> bool {
    action.contains("/fileServices/fileshares/") || action.ends_with("BackupSemantics/action")
}

/// A definition of a role.
pub fn definition(
    name: &str,
    description: &str,
    actions: &BTreeSet<&'static str>,
    scopes: &[String],
) -> Definition {
    let (data_actions, actions) = actions.iter().partition(|action| is_of_data(action));
    Definition {
        name: name.to_owned(),
        is_custom: true,
        description: description.to_owned(),
        actions,
        not_actions: [],
        data_actions,
        assignable_scopes: scopes.to_vec(),
    }
}
