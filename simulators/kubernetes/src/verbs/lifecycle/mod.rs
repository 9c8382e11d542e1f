//! What happens to objects after a write: kube-controller-manager's garbage collector and namespace controller, and the
//! API server's controllers for definitions.

pub(crate) mod chores;
pub(crate) mod definition;
pub(crate) mod finalizer;
mod garbage;
mod housekeeping;
pub(crate) mod namespace;
