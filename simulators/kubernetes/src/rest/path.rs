//! Parses the paths of requests.

use std::sync::Arc;

use crate::registry::Kind;
use crate::server::handle::Kubernetes;

/// A path below `/api/v1` or `/apis/group/version`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResourcePath {
    pub(super) group: String,
    pub(super) version: String,
    pub(super) plural: String,
    /// Empty for all namespaces, or for a cluster-scoped kind.
    pub(super) namespace: String,
    /// Empty for the collection.
    pub(super) name: String,
    /// Empty for the object itself.
    pub(super) subresource: String,
}

impl ResourcePath {
    /// The kind that is served at this path.
    pub(super) fn kind(&self, kubernetes: &Kubernetes) -> Option<Arc<Kind>> {
        kubernetes.shared.state.lock().registry.by_path(&self.group, &self.version, &self.plural)
    }

    /// `services` or `services/status`.
    pub(super) fn resource(&self) -> String {
        self.with_subresource(self.plural.clone())
    }

    /// `deployments.apps` or `deployments.apps/status`.
    pub(super) fn qualified_resource(&self) -> String {
        let group = if self.group.is_empty() { String::new() } else { format!(".{}", self.group) };
        self.with_subresource(format!("{}{group}", self.plural))
    }

    fn with_subresource(&self, resource: String) -> String {
        if self.subresource.is_empty() { resource } else { format!("{resource}/{}", self.subresource) }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    Resource(ResourcePath),
    /// Discovery, health and the like, or an unknown path.
    Other,
}

pub(super) fn target(path: &str) -> Target {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        _ => return Target::Other,
    };
    let (namespace, rest) = match rest {
        // The paths of a namespace and its subresources look like those of a resource in a namespace.
        ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => ("", rest),
        ["namespaces", namespace, rest @ ..] => (*namespace, rest),
        rest => ("", rest),
    };
    let [plural, rest @ ..] = rest else { return Target::Other };
    let (name, subresource) = match rest {
        [] => ("", String::new()),
        [name, subresource @ ..] => (*name, subresource.join("/")),
    };
    Target::Resource(ResourcePath {
        group: group.to_owned(),
        version: version.to_owned(),
        plural: (*plural).to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(path: &str) -> [String; 6] {
        let Target::Resource(found) = target(path) else { panic!("{path} is no resource") };
        [found.group, found.version, found.namespace, found.plural, found.name, found.subresource]
    }

    #[test]
    fn paths_name_their_parts() {
        assert_eq!(resource("/api/v1/nodes"), ["", "v1", "", "nodes", "", ""]);
        assert_eq!(resource("/api/v1/nodes/a/status"), ["", "v1", "", "nodes", "a", "status"]);
        assert_eq!(resource("/api/v1/namespaces"), ["", "v1", "", "namespaces", "", ""]);
        assert_eq!(resource("/api/v1/namespaces/x"), ["", "v1", "", "namespaces", "x", ""]);
        assert_eq!(resource("/api/v1/namespaces/x/status"), ["", "v1", "", "namespaces", "x", "status"]);
        assert_eq!(resource("/api/v1/namespaces/x/pods"), ["", "v1", "x", "pods", "", ""]);
        assert_eq!(
            resource("/apis/apps/v1/namespaces/x/deployments/d/scale"),
            ["apps", "v1", "x", "deployments", "d", "scale"]
        );
        for other in ["/", "/api", "/apis", "/api/v1", "/apis/apps/v1", "/healthz", "/openapi/v2"] {
            assert_eq!(target(other), Target::Other, "{other}");
        }
    }
}
