//! One occurrence of an event, before it is merged with others, and the object that it is about.

use k8s::{Node, ObjectMeta, Service};

/// Whether an event requires action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventType {
    /// For information.
    Normal,
    /// Action is required.
    Warning,
}

impl EventType {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Normal => "Normal",
            Self::Warning => "Warning",
        }
    }
}

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Reference {
    /// For example `v1`.
    pub api_version: &'static str,
    /// For example `Service`.
    pub kind: &'static str,
    /// Empty for cluster-scoped objects.
    pub namespace: String,
    /// The object's name.
    pub name: String,
    /// The object's UID.
    pub uid: String,
}

impl Reference {
    /// A reference to an object of this kind.
    pub fn of(api_version: &'static str, kind: &'static str, metadata: &ObjectMeta) -> Self {
        Self {
            api_version,
            kind,
            namespace: metadata.namespace.clone().unwrap_or_default(),
            name: metadata.name.clone().unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
        }
    }

    /// A reference to a Lease.
    pub fn lease(metadata: &ObjectMeta) -> Self {
        Self::of("coordination.k8s.io/v1", "Lease", metadata)
    }
}

impl From<&Service> for Reference {
    fn from(service: &Service) -> Self {
        Self::of("v1", "Service", &service.metadata)
    }
}

impl From<&Node> for Reference {
    fn from(node: &Node) -> Self {
        Self::of("v1", "Node", &node.metadata)
    }
}

/// An event before it is merged with others.
#[derive(Debug, Clone)]
pub(super) struct Occurrence {
    pub(super) component: &'static str,
    pub(super) about: Reference,
    pub(super) event_type: EventType,
    pub(super) reason: &'static str,
    pub(super) message: String,
}
