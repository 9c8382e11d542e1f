//! Everything that a cluster needs in Azure, in the order in which it is written: for previews (`cerulean plan`,
//! `--dry-run`) and for tests of the planner as a whole.

use std::sync::Arc;

use k8s::{Node, Service};

use super::observed::Observed;
use super::preview::Preview;
use crate::model::Cluster;
use crate::outcome::ClusterPlan;
use crate::resources::load_balancer::LoadBalancersByName;
use crate::resources::private_link;
use crate::resources::route::RoutePlan;

impl ClusterPlan {
    /// Adds the write of the route table, which depends on no other step. Ranges that get no route are named in the
    /// warnings: the ones that were `refused` before planning, and the ones that the plan refuses. `problems` say why
    /// nodes have no range yet.
    #[must_use]
    pub fn with_routes(mut self, routes: RoutePlan, refused: Vec<String>, problems: Vec<String>) -> Self {
        self.plan.steps.extend(routes.step);
        self.unrouted = refused.len() + routes.refused.len();
        let by_plan = routes.refused.iter().map(|(key, refusal)| format!("no route to {key}: {refusal}"));
        let before = refused.iter().map(|why| format!("no route: {why}"));
        self.warnings.extend(problems.into_iter().chain(before).chain(by_plan));
        self
    }
}

/// Plans everything for all Services and Nodes of a cluster.
pub fn plan_cluster(
    cluster: &Cluster,
    services: &[Arc<Service>],
    nodes: &[Arc<Node>],
    observed: &Observed,
) -> ClusterPlan {
    let other = LoadBalancersByName::new(cluster, observed.load_balancers.iter().map(Arc::as_ref), services)
        .serving(services);
    // Reading the cluster's own group requires no permission if no Service asks for a private link service.
    let own = cluster.network_group(cluster.config.private_link_service_resource_group());
    let unreadable = observed.unreadable_private_links.iter().filter(|(group, _)| **group != own);
    let unreadable = unreadable.map(|(group, problem)| private_link::unreadable(group, problem).to_string());
    let mut plan = Preview::new(cluster, services, nodes, observed).run();
    let of_plan = std::mem::take(&mut plan.warnings);
    plan.warnings =
        other.map(|other| other.to_string()).into_iter().chain(unreadable).chain(of_plan).collect();
    plan
}
