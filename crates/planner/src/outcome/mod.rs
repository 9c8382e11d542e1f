//! What planning results in: plans, changes, refusals, and their texts.

pub mod change;
pub(crate) mod cluster_plan;
pub(crate) mod other_name;
pub(crate) mod plan;
pub(crate) mod plan_json;
pub(crate) mod plan_text;
pub(crate) mod private_link_refusal;
pub(crate) mod proof;
pub(crate) mod refusal;
pub(crate) mod rewrite;
pub(crate) mod stop;
pub(crate) mod wait;

pub use change::{Change, Difference, FrontendSource, Member, Replacement, TrafficClass, Unfinished};
pub use cluster_plan::ClusterPlan;
pub use other_name::OtherName;
pub use plan::{Action, Document, Plan, Purpose, Step};
pub use private_link_refusal::PrivateLinkRefusal;
pub use refusal::{PortHolder, Refusal, Unfit};
pub use stop::Stop;
pub use wait::Wait;
