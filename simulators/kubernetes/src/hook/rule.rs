//! Rules: the requests that a hook matches.

use serde_json::Value;

use crate::object::{list_at, string_at};
use crate::registry::Kind;
use crate::verbs::shelves::NAMESPACES;

/// The operation of a request, as registrations name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Create,
    Update,
    Delete,
}

impl Operation {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Create => "CREATE",
            Self::Update => "UPDATE",
            Self::Delete => "DELETE",
        }
    }

    /// The kind of this operation's options.
    pub(super) fn options_kind(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Delete => "DeleteOptions",
        }
    }
}

/// One rule of a registration. Lists may contain `*`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) operations: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) versions: Vec<String>,
    /// With a slash before a subresource: `pods`, `pods/status`, `*/scale`.
    pub(super) resources: Vec<String>,
    pub(super) scope: Scope,
}

/// Whether a rule matches objects in namespaces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Scope {
    #[default]
    Any,
    Cluster,
    Namespaced,
}

impl Rule {
    pub(super) fn parse(rule: &Value) -> Self {
        let texts = |member: &str| -> Vec<String> {
            list_at(rule, &[member]).iter().filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources"),
            scope: match string_at(rule, &["scope"]) {
                Some("Cluster") => Scope::Cluster,
                Some("Namespaced") => Scope::Namespaced,
                _ => Scope::Any,
            },
        }
    }

    pub(super) fn fits(&self, kind: &Kind, subresource: &str, namespace: &str, operation: Operation) -> bool {
        // Namespaces themselves are cluster-scoped, although requests for them name one.
        let namespaced = *kind.shelf != *NAMESPACES && !namespace.is_empty();
        let scope = match self.scope {
            Scope::Any => true,
            Scope::Cluster => !namespaced,
            Scope::Namespaced => namespaced,
        };
        let resource = |text: &String| {
            let (resource, sub) = text.split_once('/').unwrap_or((text, ""));
            (resource == "*" || resource == kind.plural) && (sub == "*" || sub == subresource)
        };
        scope
            && holds(&self.operations, operation.as_str())
            && holds(&self.groups, &kind.group)
            && holds(&self.versions, &kind.version)
            && self.resources.iter().any(resource)
    }
}

fn holds(list: &[String], text: &str) -> bool {
    list.iter().any(|item| item == "*" || item == text)
}
