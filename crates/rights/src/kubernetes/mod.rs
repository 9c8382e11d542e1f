//! Rights in Kubernetes: rules of roles.

mod naming;
mod role;
mod rule;
mod rules;

pub use naming::{Named, Naming, USUAL};
pub use role::{Role, yaml};
pub use rule::{Reach, Rule};
pub use rules::RULES;
