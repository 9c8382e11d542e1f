//! Roles of Kubernetes, from the table, as objects and as files.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::naming::{ACCOUNT_KEYS, Naming, SYSTEM, USUAL};
use super::rule::{Reach, Rule};
use super::rules::RULES;
use crate::{Feature, Program};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The rights of one feature of one program, in the cluster or in one namespace, with their binding to the program's
/// service account in kube-system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role<'a> {
    /// The program.
    pub program: Program,
    /// The feature.
    pub feature: Feature,
    /// The namespace; `None` in the whole cluster.
    pub namespace: Option<&'a str>,
    naming: Naming<'a>,
    rules: Vec<&'static Rule>,
}

impl<'a> Role<'a> {
    /// The roles of a feature.
    pub fn of(program: Program, feature: Feature, naming: Naming<'a>) -> Vec<Self> {
        Reach::ALL
            .into_iter()
            .filter_map(|reach| {
                let is_of = |rule: &&Rule| {
                    rule.programs.contains(&program) && (rule.feature, rule.reach) == (feature, reach)
                };
                let rules: Vec<&Rule> = RULES.iter().filter(is_of).collect();
                let namespace = match reach {
                    Reach::Cluster => None,
                    Reach::ElectionNamespace => Some(naming.lease.namespace),
                    Reach::SecretNamespace => Some(naming.secret.namespace),
                    Reach::KubeSystem => Some(SYSTEM),
                    Reach::AccountKeyNamespaces => Some(ACCOUNT_KEYS),
                };
                (!rules.is_empty()).then_some(Self { program, feature, namespace, naming, rules })
            })
            .collect()
    }

    /// Its name.
    pub fn name(&self) -> String {
        format!("{}-{}", self.program.name(), self.feature.name())
    }

    fn kind(&self) -> &'static str {
        if self.namespace.is_some() { "Role" } else { "ClusterRole" }
    }

    fn names(&self, rule: &Rule) -> Vec<&str> {
        let chosen = |name: &&'static str| match *name {
            name if name == USUAL.lease.name => self.naming.lease.name,
            name if name == USUAL.secret.name => self.naming.secret.name,
            name => name,
        };
        rule.names.iter().map(chosen).collect()
    }

    /// Resources, verbs and purpose of each rule, for people.
    pub fn lines(&self) -> Vec<(String, String, &'static str)> {
        let line = |rule: &&'static Rule| {
            let names = self.names(rule).join(", ");
            let names = if names.is_empty() { names } else { format!(" {names}") };
            (format!("{}{names}", rule.resources.join(", ")), rule.verbs.join(", "), rule.purpose)
        };
        self.rules.iter().map(line).collect()
    }

    /// The role and its binding.
    pub fn objects(&self) -> [Value; 2] {
        let mut metadata = json!({ "name": self.name() });
        if let Some(namespace) = self.namespace {
            metadata["namespace"] = json!(namespace);
        }
        let rule = |rule: &&Rule| {
            let mut object = json!({ "apiGroups": [rule.group], "resources": rule.resources });
            if !rule.names.is_empty() {
                object["resourceNames"] = json!(self.names(rule));
            }
            object["verbs"] = json!(rule.verbs);
            object
        };
        let kind = self.kind();
        [
            json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": kind, "metadata": metadata,
                "rules": self.rules.iter().map(rule).collect::<Vec<_>>(),
            }),
            json!({
                "apiVersion": format!("{RBAC}/v1"), "kind": format!("{kind}Binding"), "metadata": metadata,
                "roleRef": { "apiGroup": RBAC, "kind": kind, "name": self.name() },
                "subjects": [{ "kind": "ServiceAccount", "name": self.program.account(), "namespace": SYSTEM }],
            }),
        ]
    }

    /// The same as text, with the purpose of each rule.
    fn write(&self, text: &mut String) -> std::fmt::Result {
        let (kind, name) = (self.kind(), self.name());
        let place = self.namespace.map_or_else(String::new, |it| format!("  namespace: {it}\n"));
        writeln!(text, "---\napiVersion: {RBAC}/v1\nkind: {kind}\nmetadata:\n  name: {name}\n{place}rules:")?;
        for rule in &self.rules {
            let group = if rule.group.is_empty() { "\"\"" } else { rule.group };
            writeln!(text, "  # {}", sentence(rule.purpose))?;
            writeln!(text, "  - apiGroups: [{group}]\n    resources: [{}]", rule.resources.join(", "))?;
            if !rule.names.is_empty() {
                writeln!(text, "    resourceNames: [{}]", self.names(rule).join(", "))?;
            }
            writeln!(text, "    verbs: [{}]", rule.verbs.join(", "))?;
        }
        writeln!(text, "---\napiVersion: {RBAC}/v1\nkind: {kind}Binding\nmetadata:\n  name: {name}")?;
        write!(text, "{place}roleRef:\n  apiGroup: {RBAC}\n  kind: {kind}\n  name: {name}\nsubjects:\n")?;
        let account = self.program.account();
        writeln!(text, "  - kind: ServiceAccount\n    name: {account}\n    namespace: {SYSTEM}")
    }
}

/// A purpose as a sentence.
fn sentence(purpose: &str) -> String {
    let mut letters = purpose.chars();
    letters.next().map(|first| format!("{}{}.", first.to_uppercase(), letters.as_str())).unwrap_or_default()
}

/// Roles as a text with several documents.
pub fn yaml(roles: &[Role<'_>]) -> String {
    let mut text = String::new();
    for role in roles {
        // Writing to a String cannot fail.
        let _infallible = role.write(&mut text);
    }
    text.strip_prefix("---\n").map(str::to_owned).unwrap_or(text)
}
