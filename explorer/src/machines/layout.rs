//! The machines of every life.

use testkit::StandaloneMachine;

/// The uniform scale sets: the names of the second one's machines begin like the first one's.
pub(super) const UNIFORM: [(&str, &str); 2] = [("first", "node"), ("second", "nodex")];

/// The scale set whose machines are virtual machines.
pub(super) const FLEXIBLE: (&str, &str) = ("third", "nodef");

/// A resource group in addition to the cluster's.
pub(super) const OTHER_GROUP: &str = "other";

/// The machines outside of scale sets.
pub(super) fn standalone() -> [StandaloneMachine; 3] {
    [
        StandaloneMachine::new("node-a"),
        StandaloneMachine::new("node-b").in_availability_set("together"),
        StandaloneMachine::new("node-c").in_group(OTHER_GROUP),
    ]
}
