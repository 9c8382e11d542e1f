//! Rules of roles with the users that bindings give them ("Using RBAC Authorization", Kubernetes).

use std::collections::BTreeSet;

use serde_json::Value;

use super::event::Event;

/// A rule, and the users that it binds.
#[derive(Debug, Clone)]
pub(super) struct BoundRule {
    /// The name of the role.
    pub(super) role: String,
    pub(super) users: BTreeSet<String>,
    /// The namespace; `None` in the whole cluster.
    namespace: Option<String>,
    groups: Vec<String>,
    resources: Vec<String>,
    names: Vec<String>,
    verbs: Vec<String>,
}

/// The API server's name of a user that may be given as `namespace/name`.
pub(super) fn user_name(user: &str) -> String {
    match user.split_once('/') {
        Some((namespace, name)) if !user.contains(':') => format!("system:serviceaccount:{namespace}:{name}"),
        _ => user.to_owned(),
    }
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The rules for resources of all roles that a binding gives to a user, aggregated ones included.
pub(super) fn bound_rules(objects: &[Value]) -> Vec<BoundRule> {
    let is_binding =
        |object: &&Value| object["kind"].as_str().is_some_and(|kind| kind.ends_with("RoleBinding"));
    let mut found = Vec::new();
    for binding in objects.iter().filter(is_binding) {
        let users = users_of(binding);
        let namespace = (binding["kind"] == "RoleBinding").then(|| {
            binding.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or("default").to_owned()
        });
        for role in objects.iter().filter(|object| is_meant(object, binding)) {
            let aggregated = objects.iter().filter(|other| is_aggregated(role, other));
            for role in std::iter::once(role).chain(aggregated) {
                let name = role.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                for rule in role["rules"].as_array().into_iter().flatten() {
                    found.push(BoundRule {
                        role: name.to_owned(),
                        users: users.clone(),
                        namespace: namespace.clone(),
                        groups: texts(&rule["apiGroups"]),
                        resources: texts(&rule["resources"]),
                        names: texts(&rule["resourceNames"]),
                        verbs: texts(&rule["verbs"]),
                    });
                }
            }
        }
    }
    found
}

fn users_of(binding: &Value) -> BTreeSet<String> {
    let subjects = binding["subjects"].as_array().into_iter().flatten();
    let user = |subject: &Value| {
        let name = subject["name"].as_str()?;
        match (subject["kind"].as_str()?, subject["namespace"].as_str()) {
            ("ServiceAccount", Some(namespace)) => Some(user_name(&format!("{namespace}/{name}"))),
            ("User", _) => Some(name.to_owned()),
            _ => None,
        }
    };
    subjects.filter_map(user).collect()
}

fn is_meant(role: &Value, binding: &Value) -> bool {
    let same_place =
        role["kind"] == "ClusterRole" || role["metadata"]["namespace"] == binding["metadata"]["namespace"];
    role["kind"] == binding["roleRef"]["kind"]
        && role["metadata"]["name"] == binding["roleRef"]["name"]
        && same_place
}

fn is_aggregated(role: &Value, other: &Value) -> bool {
    let selectors = role.pointer("/aggregationRule/clusterRoleSelectors").and_then(Value::as_array);
    other["kind"] == "ClusterRole"
        && selectors.into_iter().flatten().any(|selector| {
            selector["matchLabels"].as_object().is_some_and(|wanted| {
                !wanted.is_empty()
                    && wanted.iter().all(|(key, value)| other["metadata"]["labels"].get(key) == Some(value))
            })
        })
}

impl BoundRule {
    /// Each resource and verb that the rule allows.
    pub(super) fn all(&self) -> impl Iterator<Item = String> {
        let each = |verb: &String| self.resources.iter().map(|it| self.words(verb, it)).collect::<Vec<_>>();
        self.verbs.iter().flat_map(each).collect::<Vec<_>>().into_iter()
    }

    /// What of the rule a request uses.
    pub(super) fn uses(&self, event: &Event) -> impl Iterator<Item = String> {
        let fits = |allowed: &[String], wanted: &str| allowed.iter().any(|it| it == wanted || it == "*");
        let applies = !event.is_denied
            && !event.resource.is_empty()
            && fits(&self.groups, &event.group)
            && (self.names.is_empty() || self.names.contains(&event.name))
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == event.namespace);
        let verbs = self.verbs.iter().filter(|verb| **verb == event.verb || *verb == "*");
        let resources = || self.resources.iter().filter(|it| **it == event.resource || *it == "*");
        let used = verbs.flat_map(|verb| resources().map(|it| self.words(verb, it)).collect::<Vec<_>>());
        let used: Vec<String> = if applies { used.collect() } else { Vec::new() };
        used.into_iter()
    }

    fn words(&self, verb: &str, resource: &str) -> String {
        let names = if self.names.is_empty() { String::new() } else { format!(" {}", self.names.join(", ")) };
        let group = self.groups.join(",");
        let dot = if group.is_empty() { "" } else { "." };
        format!("{verb} {resource}{dot}{group}{names}")
    }
}
