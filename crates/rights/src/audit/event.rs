//! Events of audit.k8s.io/v1 ("Auditing", Kubernetes).

use std::fmt;

use serde_json::Value;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) user: String,
    pub(super) verb: String,
    pub(super) group: String,
    /// With its subresource; empty for requests that are not for resources.
    pub(super) resource: String,
    pub(super) namespace: String,
    pub(super) name: String,
    /// The path, without a query.
    pub(super) path: String,
    pub(super) is_denied: bool,
}

impl Event {
    /// An event in a line of a log; `None` if it is not one.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let event: Value = serde_json::from_str(line).ok()?;
        let text =
            |pointer: &str| event.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        if text("/kind") != "Event" || !text("/apiVersion").starts_with("audit.k8s.io/") {
            return None;
        }
        let decision = event.pointer("/annotations").and_then(|all| all.get("authorization.k8s.io/decision"));
        let status = event.pointer("/responseStatus/code").and_then(Value::as_u64);
        let subresource = text("/objectRef/subresource");
        let resource = text("/objectRef/resource");
        Some(Self {
            id: text("/auditID"),
            user: text("/user/username"),
            verb: text("/verb"),
            group: text("/objectRef/apiGroup"),
            resource: if subresource.is_empty() { resource } else { format!("{resource}/{subresource}") },
            namespace: text("/objectRef/namespace"),
            name: text("/objectRef/name"),
            path: text("/requestURI").split('?').next().unwrap_or_default().to_owned(),
            is_denied: decision.is_some_and(|decision| decision == "forbid") || status == Some(403),
        })
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { verb, group, resource, namespace, path, .. } = self;
        if resource.is_empty() {
            return write!(f, "{verb} {path}");
        }
        write!(f, "{verb} {resource}")?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        if namespace.is_empty() { Ok(()) } else { write!(f, " in {namespace}") }
    }
}
