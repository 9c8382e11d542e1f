//! A plan for a whole cluster, as data.

use k8s::{Notice, ObjectKey};

use super::plan::Plan;
use super::refusal::Refusal;
use super::wait::Wait;

/// A plan for the whole cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterPlan {
    /// The steps in their order; those for different Services and resources may run side by side. Values that Azure has
    /// yet to choose read "(known after apply)".
    pub plan: Plan,
    /// The refused Services, in order of their keys.
    pub refused: Vec<(ObjectKey, Refusal)>,
    /// The Services that wait for a running operation of Azure, in order of their keys. Nothing has to be changed: the
    /// plan holds the steps that follow, as far as they can be known.
    pub waiting: Vec<(ObjectKey, Wait)>,
    /// The notices for the owners of Services.
    pub notices: Vec<Notice>,
    /// Warnings to check before the plan is applied.
    pub warnings: Vec<String>,
    /// The number of pod ranges that get no route until the configuration or Azure changes; a warning gives the reason.
    pub unrouted: usize,
}
