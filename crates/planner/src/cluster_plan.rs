//! Everything that a cluster needs of Azure, in the order in which it has to happen: for previews
//! (`cerulean plan`, `--dry-run`) and for proofs about the planner as a whole.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{
    LoadBalancer, PublicIpAddress, ResourceId, ScaleSet, ScaleSetInstance, SecurityGroup, Subnet,
};
use k8s::{Node, ObjectKey, Service, is_deleting, names};

use crate::backend_pool::{self, PoolMembership};
use crate::cluster::{Cluster, Family, Flavor};
use crate::cluster_name;
use crate::intent::{ServiceIntent, ServiceRemoval};
use crate::load_balancer::{self, LoadBalancerIntent, frontends_of};
use crate::plan::{Action, Document, Notice, Plan, Refusal, Step};
use crate::public_ip::{self, PublicIpPlan};
use crate::scale_set;
use crate::security_group::{self, AccessIntent, Everybody};

/// What stands for values that Azure has yet to choose.
const KNOWN_AFTER_APPLY: &str = "(known after apply)";

/// What Azure holds now, as far as the cluster is concerned.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The load balancers of their resource group.
    pub load_balancers: Vec<LoadBalancer>,
    /// The public IPs of all groups in use.
    pub public_ips: Vec<PublicIpAddress>,
    /// The configured security group.
    pub security_group: Option<SecurityGroup>,
    /// The scale sets and their instances.
    pub scale_sets: Vec<(ScaleSet, Vec<ScaleSetInstance>)>,
    /// The subnets that internal Services name, and the configured one.
    pub subnets: Vec<Subnet>,
}

/// A plan for the whole cluster.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClusterPlan {
    /// The steps. Where one depends on what Azure answers to an earlier one, planning again after it shows
    /// the rest.
    pub plan: Plan,
    /// The Services that cannot be served, in order of their keys.
    pub refused: Vec<(ObjectKey, Refusal)>,
    /// What to tell Services' owners.
    pub notices: Vec<Notice>,
    /// What whoever asked for the plan should look at before it is carried out.
    pub warnings: Vec<String>,
}

/// One Service on its way through the plan.
struct Item {
    removal: Arc<ServiceRemoval>,
    /// What it wants; absent where it leaves.
    intent: Option<Arc<ServiceIntent>>,
    public_ips: PublicIpPlan,
}

/// Whether a Service that wants no load balancer (any more) may still have one.
fn needs_cleanup(service: &Service) -> bool {
    let finalizers = service.metadata.finalizers.iter().flatten();
    let finalized = finalizers.into_iter().any(|finalizer| finalizer == names::LOAD_BALANCER_FINALIZER);
    finalized || (service.wants_load_balancer() && is_deleting(&service.metadata))
}

/// The public IPs that concern a Service: those of its group and of the cluster's.
fn scoped<'a>(
    cluster: &Cluster,
    owner: &ServiceRemoval,
    public_ips: &'a [PublicIpAddress],
) -> Cow<'a, [PublicIpAddress]> {
    let concerns = |public_ip: &PublicIpAddress| {
        let group = public_ip.id.as_ref().and_then(ResourceId::group_name).unwrap_or_default();
        group.eq_ignore_ascii_case(&owner.public_ip_group)
            || group.eq_ignore_ascii_case(&cluster.config.resource_group)
    };
    if public_ips.iter().all(concerns) {
        return Cow::Borrowed(public_ips);
    }
    Cow::Owned(public_ips.iter().filter(|public_ip| concerns(public_ip)).cloned().collect())
}

/// Plans everything for all Services and Nodes of a cluster.
pub fn plan_cluster(
    cluster: &Cluster,
    services: &[Arc<Service>],
    nodes: &[Arc<Node>],
    observed: &Observed,
) -> ClusterPlan {
    let mut planning = Planning::new(cluster, nodes, observed);
    planning.take_services(services);
    planning.plan_load_balancers();
    planning.plan_scale_sets();
    planning.plan_security_group(services);
    ClusterPlan {
        warnings: cluster_name::other_name(cluster, services, &observed.load_balancers)
            .map(|other| other.to_string())
            .into_iter()
            .collect(),
        ..planning.finish()
    }
}

struct Planning<'a> {
    cluster: &'a Cluster,
    nodes: &'a [Arc<Node>],
    observed: &'a Observed,
    items: BTreeMap<ObjectKey, Item>,
    refused: BTreeMap<ObjectKey, Refusal>,
    notices: Vec<Notice>,
    /// The load balancers as they will be.
    after: BTreeMap<Flavor, LoadBalancer>,
    memberships: Vec<PoolMembership>,
    /// Addresses before load balancers, load balancers before members, members before deletions.
    before: Vec<Step>,
    deletions: Vec<Step>,
    security_group: Option<Step>,
}

impl<'a> Planning<'a> {
    fn new(cluster: &'a Cluster, nodes: &'a [Arc<Node>], observed: &'a Observed) -> Self {
        Self {
            cluster,
            nodes,
            observed,
            items: BTreeMap::new(),
            refused: BTreeMap::new(),
            notices: Vec::new(),
            after: BTreeMap::new(),
            memberships: Vec::new(),
            before: Vec::new(),
            deletions: Vec::new(),
            security_group: None,
        }
    }

    fn observed_load_balancer(&self, flavor: Flavor) -> Option<&'a LoadBalancer> {
        let id = self.cluster.load_balancer_id(flavor);
        self.observed.load_balancers.iter().find(|load_balancer| load_balancer.id.as_ref() == Some(&id))
    }

    fn take_services(&mut self, services: &[Arc<Service>]) {
        for service in services {
            let wants = service.wants_load_balancer() && !is_deleting(&service.metadata);
            if !wants && !needs_cleanup(service) {
                continue;
            }
            let key = service.key();
            let removal = Arc::new(ServiceRemoval::of(self.cluster, service));
            let public_ips = scoped(self.cluster, &removal, &self.observed.public_ips);
            if !wants {
                let public_ips = public_ip::plan_removal(self.cluster, &removal, &public_ips);
                self.items.insert(key, Item { removal, intent: None, public_ips });
                continue;
            }
            let planned = ServiceIntent::from_service(self.cluster, service).and_then(|intent| {
                let public_ips = public_ip::plan(self.cluster, &intent, &public_ips)?;
                Ok((intent, public_ips))
            });
            match planned {
                Ok((intent, public_ips)) => {
                    let intent = Some(Arc::new(intent));
                    self.items.insert(key, Item { removal, intent, public_ips });
                }
                Err(refusal) => {
                    self.refused.insert(key, refusal);
                }
            }
        }
        for item in self.items.values() {
            self.before.extend(item.public_ips.ensure.iter().cloned());
            self.notices.extend(item.public_ips.notices.iter().cloned());
        }
    }

    fn load_balancer_intents(&self) -> Vec<LoadBalancerIntent> {
        let of = |item: &Item| match &item.intent {
            None => LoadBalancerIntent::Absent { service: item.removal.clone() },
            Some(intent) => {
                let subnet = self.cluster.subnet_id(intent.subnet_name(self.cluster));
                LoadBalancerIntent::Present {
                    service: intent.clone(),
                    public_ips: item.public_ips.use_ids.clone(),
                    subnet: self.observed.subnets.iter().find(|s| s.id.as_ref() == Some(&subnet)).cloned(),
                    former_addresses: Vec::new(),
                }
            }
        };
        self.items.values().map(of).collect()
    }

    fn plan_load_balancers(&mut self) {
        let intents = self.load_balancer_intents();
        for flavor in Flavor::BOTH {
            let observed = self.observed_load_balancer(flavor);
            let public_ips = &self.observed.public_ips;
            let planned = load_balancer::plan(self.cluster, flavor, observed, &intents, public_ips);
            for (key, refusal) in planned.refused {
                self.refused.entry(key).or_insert(refusal);
            }
            self.notices.extend(planned.notices);
            match planned.step {
                Some(step) if step.action == Action::Delete => {
                    let pools = observed.map(|lb| backend_pool::pools_to_empty(self.cluster, flavor, lb));
                    self.memberships.extend(pools.unwrap_or_default());
                    self.deletions.push(step);
                }
                step => {
                    let document = match step.as_ref().and_then(|step| step.document.as_ref()) {
                        Some(Document::LoadBalancer(document)) => Some((**document).clone()),
                        _ => observed.cloned(),
                    };
                    if let Some(document) = document {
                        let pools = backend_pool::pools_to_fill(self.cluster, flavor, observed, &document);
                        self.memberships.extend(pools);
                        self.after.insert(flavor, document);
                    }
                    self.before.extend(step);
                }
            }
        }
    }

    fn plan_scale_sets(&mut self) {
        let mut scale_sets: Vec<&(ScaleSet, Vec<ScaleSetInstance>)> =
            self.observed.scale_sets.iter().collect();
        scale_sets.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
        for (set, instances) in scale_sets {
            let memberships = &self.memberships;
            self.before.extend(scale_set::plan_model(self.cluster, set, memberships, self.nodes));
            self.before.extend(scale_set::plan_instances(
                self.cluster,
                set,
                instances,
                memberships,
                self.nodes,
            ));
        }
    }

    /// The addresses of a Service's frontends on one load balancer; `None` for one that is not known yet.
    fn addresses(&self, load_balancer: &LoadBalancer, owner: &ServiceRemoval) -> Vec<Option<IpAddr>> {
        let public_ips = &self.observed.public_ips;
        frontends_of(self.cluster, load_balancer, owner, public_ips)
            .into_iter()
            .map(|frontend| match &frontend.public_ip {
                Some(id) => public_ips
                    .iter()
                    .find(|public_ip| public_ip.id.as_ref() == Some(id))
                    .and_then(public_ip::address_of),
                None => frontend.private_address,
            })
            .collect()
    }

    fn plan_security_group(&mut self, services: &[Arc<Service>]) {
        let mut batch = Vec::new();
        let mut programmed = Vec::new();
        let mut awaited = Vec::new();
        for (key, item) in &self.items {
            if self.refused.contains_key(key) {
                continue;
            }
            let Some(intent) = &item.intent else {
                let load_balancers = Flavor::BOTH.into_iter().filter_map(|f| self.observed_load_balancer(f));
                let addresses =
                    load_balancers.flat_map(|lb| self.addresses(lb, &item.removal)).flatten().collect();
                batch.push(AccessIntent::Absent { service: item.removal.clone(), addresses });
                continue;
            };
            let after = self.after.get(&intent.flavor);
            let found = after.map(|lb| self.addresses(lb, &item.removal)).unwrap_or_default();
            let addresses: Vec<IpAddr> = found.iter().flatten().copied().collect();
            programmed.extend(addresses.iter().map(|address| (key.clone(), *address)));
            if found.is_empty() || addresses.len() < found.len() {
                awaited.push(intent.clone());
                continue;
            }
            let node_addresses = self.node_addresses(&intent.families);
            batch.push(AccessIntent::Present { service: intent.clone(), addresses, node_addresses });
        }
        let Some(observed) = &self.observed.security_group else {
            let name = self.cluster.config.security_group_name.clone();
            let refusal = if name.is_empty() {
                Refusal::SecurityGroupNotConfigured
            } else {
                Refusal::SecurityGroupNotFound { name }
            };
            for intent in &batch {
                if matches!(intent, AccessIntent::Present { .. }) {
                    self.refused.entry(intent.key().clone()).or_insert_with(|| refusal.clone());
                }
            }
            return;
        };
        let everybody = Everybody::new(self.cluster, services, self.nodes, &programmed, true);
        let planned = security_group::plan(self.cluster, observed, &batch, &everybody);
        for (key, refusal) in planned.refused {
            self.refused.entry(key).or_insert(refusal);
        }
        self.notices.extend(planned.notices);
        self.security_group = planned.step;
        self.preview(observed, &awaited);
    }

    /// Adds to the security group's step what will follow once addresses are known.
    fn preview(&mut self, observed: &SecurityGroup, awaited: &[Arc<ServiceIntent>]) {
        let mut lines = Vec::new();
        let mut keys = BTreeSet::new();
        for intent in awaited {
            for rule in security_group::told(intent) {
                lines.push(format!("allow {rule} to {KNOWN_AFTER_APPLY} for {}", intent.key));
                keys.insert(intent.key.clone());
            }
        }
        if lines.is_empty() {
            return;
        }
        let Some(target) = observed.id.clone().or_else(|| self.cluster.security_group_id()) else { return };
        let step = self.security_group.get_or_insert_with(|| Step {
            action: Action::Update,
            target,
            if_match: observed.etag.clone(),
            document: None,
            changes: Vec::new(),
            on_behalf_of: Vec::new(),
        });
        step.changes.append(&mut lines);
        keys.extend(step.on_behalf_of.drain(..));
        step.on_behalf_of = keys.into_iter().collect();
    }

    /// The addresses of the nodes in pools.
    fn node_addresses(&self, families: &[Family]) -> Vec<IpAddr> {
        let nodes = self.nodes.iter().filter(|node| backend_pool::is_eligible(self.cluster, node));
        let addresses: BTreeSet<IpAddr> = nodes
            .flat_map(|node| &node.status.addresses)
            .filter(|address| address.kind == "InternalIP")
            .filter_map(|address| address.address.parse().ok())
            .filter(|address| families.contains(&Family::of(*address)))
            .collect();
        addresses.into_iter().collect()
    }

    fn finish(self) -> ClusterPlan {
        let mut steps = self.before;
        steps.extend(self.deletions);
        steps.extend(self.security_group);
        let refused = &self.refused;
        let released = self.items.into_iter().filter(|(key, _)| !refused.contains_key(key));
        steps.extend(released.flat_map(|(_, item)| item.public_ips.release));
        ClusterPlan {
            plan: Plan { steps },
            refused: self.refused.into_iter().collect(),
            notices: self.notices,
            warnings: Vec::new(),
        }
    }
}
