//! The node of an instance, according to the Machine that owns the instance's object.

use capz_api::Condition;

use crate::condition::{Severity, fails, holds};

const HEALTHY: &str = "NodeHealthy";

/// The state of a node, according to its Machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Node<'a> {
    /// Its name, once the Machine has found it.
    pub name: Option<&'a str>,
    /// Whether it is ready; `None` if that is unknown.
    pub ready: Option<bool>,
    /// Whether it existed and is gone.
    pub lost: bool,
}

impl Node<'_> {
    /// Whether the node exists and is ready.
    pub fn is_ready(&self) -> bool {
        self.name.is_some() && self.ready == Some(true)
    }

    /// `status.ready` of the object that represents the instance. A Machine looks for its node only after its
    /// infrastructure is ready: until then the state of the instance counts.
    pub fn object_is_ready(&self, state: &str) -> bool {
        if self.name.is_some() { self.is_ready() } else { state == "Succeeded" }
    }

    /// The condition for the node of an instance in this state.
    pub fn condition(&self, state: &str) -> Condition {
        match (self.name, self.ready) {
            (Some(_), _) if self.lost => fails(HEALTHY, "NodeNotFound", Severity::Error, ""),
            (Some(_), Some(true)) => holds(HEALTHY),
            (Some(_), _) => fails(HEALTHY, "NodeConditionsFailed", Severity::Warning, ""),
            (None, _) if state == "Succeeded" => fails(HEALTHY, "WaitingForNodeRef", Severity::Info, ""),
            (None, _) => fails(HEALTHY, "NodeProvisioning", Severity::Info, ""),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_counts_once_its_machine_has_found_it() {
        let node = |name, ready, lost| Node { name, ready, lost };
        for (node, state, told, object, ready) in [
            (Node::default(), "Creating", Some("NodeProvisioning"), false, false),
            (Node::default(), "Succeeded", Some("WaitingForNodeRef"), true, false),
            (node(Some("n"), None, false), "Succeeded", Some("NodeConditionsFailed"), false, false),
            (node(Some("n"), Some(false), false), "Succeeded", Some("NodeConditionsFailed"), false, false),
            (node(Some("n"), Some(false), true), "Succeeded", Some("NodeNotFound"), false, false),
            (node(Some("n"), Some(true), false), "Succeeded", None, true, true),
            (node(Some("n"), Some(true), false), "Updating", None, true, true),
        ] {
            let condition = node.condition(state);
            assert_eq!(condition.reason.as_deref(), told, "{node:?} {state}");
            assert_eq!((node.object_is_ready(state), node.is_ready()), (object, ready), "{node:?} {state}");
        }
    }
}
