//! Everything that a cluster needs in Azure, in the order in which it is written: for previews (`cerulean plan`,
//! `--dry-run`) and for tests of the planner as a whole.

use std::collections::BTreeMap;
use std::sync::Arc;

use azure_types::{LoadBalancer, PrivateLinkService, PublicIpAddress, ResourceId, SecurityGroup, Subnet};
use k8s::{Node, ObjectKey, Service};

use crate::cluster::Cluster;
use crate::cluster_name::LoadBalancersByName;
use crate::local_pool::EndpointNodes;
use crate::machines::Machines;
use crate::placement::Labels;
use crate::plan::{Notice, Plan};
use crate::preview::Preview;
use crate::private_link;
use crate::refusal::Refusal;
use crate::route::RoutePlan;
use crate::wait::Wait;

/// The observed state of Azure that concerns the cluster.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The load balancers of their resource group.
    pub load_balancers: Vec<Arc<LoadBalancer>>,
    /// The public IPs of all groups in use.
    pub public_ips: Vec<Arc<PublicIpAddress>>,
    /// Groups in use that cannot be read, and why. Services that name one are refused; the cluster's own group is never
    /// among them.
    pub unreadable_groups: BTreeMap<ResourceId, String>,
    /// The configured security group.
    pub security_group: Option<SecurityGroup>,
    /// The machines of every kind.
    pub machines: Machines,
    /// The nodes with endpoints of each Service; absent if unknown.
    pub endpoints: Option<EndpointNodes>,
    /// The private link services of all groups in use.
    pub private_links: Vec<Arc<PrivateLinkService>>,
    /// Groups whose private link services cannot be read, and why. Services that ask for one there are refused.
    pub unreadable_private_links: BTreeMap<ResourceId, String>,
    /// The labels of namespaces by name, where they affect the placement of Services.
    pub namespaces: BTreeMap<String, Labels>,
    /// The subnets that Services name for frontends and private link services, and the configured one.
    pub subnets: Vec<Arc<Subnet>>,
}

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
