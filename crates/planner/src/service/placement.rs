//! What a Service says about its placement.

use k8s::Service;

use super::annotations::Annotations;
use super::owner::ServiceRemoval;
use crate::model::{Cluster, Labels, annotation_keys as keys};
use crate::outcome::Refusal;

/// The Service's placement among several load balancers. If its address decides, it cannot name a load balancer.
pub(super) fn placement(
    cluster: &Cluster,
    service: &Service,
    removal: &ServiceRemoval,
) -> Result<PlacementIntent, Refusal> {
    if cluster.config.uses_basic_load_balancer() {
        let mode = Mode::parse(Annotations(service).get(keys::MODE));
        return Ok(PlacementIntent { mode, ..PlacementIntent::default() });
    }
    if !cluster.has_several_load_balancers() {
        return Ok(PlacementIntent::default());
    }
    let configurations = Annotations(service).items_in_any_case(keys::CONFIGURATIONS);
    if !configurations.is_empty() && removal.is_pinned() {
        return Err(Refusal::PlacedByAddress { service: removal.key.clone(), configurations });
    }
    let labels = service.metadata.labels.clone().unwrap_or_default();
    Ok(PlacementIntent { configurations, labels, ..PlacementIntent::default() })
}

/// The value of annotation `azure-load-balancer-mode` that selects the load balancer with the fewest rules.
const ANY_SET: &str = "__auto__";

/// The set of machines that should serve a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Mode {
    /// The primary set, unless the Service is on another.
    #[default]
    Primary,
    /// The set whose load balancer has the fewest rules, unless the Service is on one.
    Any,
    /// The set of this name.
    Set(String),
}

impl Mode {
    /// Parses the value of annotation `azure-load-balancer-mode`.
    pub(crate) fn parse(annotation: Option<&str>) -> Self {
        match annotation.map(str::trim).filter(|value| !value.is_empty()) {
            None => Self::Primary,
            Some(value) if value.eq_ignore_ascii_case(ANY_SET) => Self::Any,
            Some(value) => Self::Set(value.to_owned()),
        }
    }
}

/// What a Service says about its placement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct PlacementIntent {
    /// The load balancers that its annotation names; empty if any is allowed.
    pub configurations: Vec<String>,
    /// Its labels.
    pub labels: Labels,
    /// The set of machines that should serve it, where load balancers are of SKU Basic.
    pub mode: Mode,
}
