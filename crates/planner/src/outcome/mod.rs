//! What planning results in: plans, changes, refusals, and their texts.

pub mod change;
pub(crate) mod cluster_plan;
pub(crate) mod differences;
pub(crate) mod notice;
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

pub use change::{Change, FrontendSource, Member, Replacement, TrafficClass, Unfinished};
pub use cluster_plan::ClusterPlan;
pub(crate) use differences::Differences;
pub(crate) use notice::{information, warning};
pub use other_name::OtherClusterName;
pub use plan::{Action, Document, Plan, Purpose, Step};
pub use private_link_refusal::PrivateLinkRefusal;
pub use refusal::{PortHolder, Refusal, UnfitLoadBalancers};
pub(crate) use rewrite::WholeDocument;
pub use stop::Stop;
pub use wait::Wait;
