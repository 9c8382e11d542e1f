//! The one security group for all Services, in one write.
//!
//! Rules are shared: Services with the same protocol, sources and ports only add their addresses. A batch first removes
//! everything that its Services had (except what others share), then adds what they want. A rule that is added again
//! keeps its priority, so that nothing changes if nothing differs.

mod addresses;
mod batch;
mod clean;
mod edit;
mod entry;
mod foreign;
pub mod in_force;
mod intent;
mod limits;
mod plan;
mod repair;
mod retain;
pub(crate) mod rule;
#[cfg(test)]
mod tests;
mod usage;

pub use addresses::{ShownAddress, closed_addresses, open_addresses, recorded, shown_addresses};
pub use foreign::{RuleWithForeign, rules_with_foreign};
pub use intent::AccessIntent;
pub use plan::{SecurityGroupPlan, plan, services_named_in};
pub use repair::{restore, undone};
pub use usage::{ClusterUsage, addresses_of_nodes};
