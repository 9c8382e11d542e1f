//! One load balancer for many Services: frontends, rules, probes, pools, in one write.
//!
//! All Services of a batch are planned against one document. If one of them cannot be served, its parts stay exactly as
//! they are, and the rest is planned again without it.

mod conflict;
mod draft;
mod index;
mod leftover;
mod limits;
mod local_pools;
mod members;
mod occupancy;
mod placing;
mod retirement;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use azure_types::{LoadBalancer, NetworkInterface, PrivateLinkService, ResourceId, Subnet};
use k8s::{Node, ObjectKey, Service};

use crate::admin_state::EntryKey;
use crate::backend_pool::PoolMembership;
use crate::change::Change;
use crate::cluster::{Balancer, Cluster, Family, Flavor};
use crate::frontend;
pub use crate::frontend::{OwnedFrontend, frontends_of};
use crate::intent::{ServiceIntent, ServiceRemoval};
use crate::listed::ListedLoadBalancer;
use crate::load_balancer::draft::{Draft, Placed};
pub(crate) use crate::load_balancer::index::{FrontendIndex, base_of};
pub use crate::load_balancer::members::pool_in;
pub use crate::load_balancer::occupancy::{Occupancy, Places};
pub use crate::load_balancer::retirement::{deletion_obstacle, is_due as has_to_be_retired};
use crate::local_pool::LocalService;
use crate::placement::NodeShare;
use crate::plan::{Action, Document, Notice, Purpose, Step};
use crate::proof;
use crate::refusal::Refusal;
use crate::rewrite;

/// What one Service wants of a load balancer.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "nearly all intents of a batch are of the larger kind")]
pub enum LoadBalancerIntent {
    /// The Service is placed on this load balancer.
    Present {
        /// The Service.
        service: Arc<ServiceIntent>,
        /// The public IP of each family's frontend; a family without one gets no frontend. Empty for internal Services.
        public_ips: BTreeMap<Family, ResourceId>,
        /// The observed subnet of an internal Service's frontends; `None` if it does not exist.
        subnet: Option<Arc<Subnet>>,
    },
    /// All parts of the Service are removed.
    Absent {
        /// The Service.
        service: Arc<ServiceRemoval>,
        /// The public IPs that it names or asks for by address ([`crate::public_ip::claimed`]). They identify the
        /// frontends that it shares.
        public_ips: BTreeMap<Family, ResourceId>,
    },
    /// If the load balancer has another SKU than the configured one, all parts of the Service are removed (LB-205).
    Retired {
        /// The Service.
        service: Arc<ServiceRemoval>,
    },
}

/// The Services of the cluster, by [`ServiceRemoval::base_name`], each with the flavor of the load balancer that should
/// serve it; `None` if no load balancer should.
pub type KnownServices = BTreeMap<String, Option<Flavor>>;

/// The Services that parts of load balancers may be named after.
pub fn known_services(services: &[Arc<Service>]) -> KnownServices {
    let known = services.iter().filter_map(|service| {
        let flavor = service.is_to_be_served().then(|| crate::intent::flavor(service));
        Some((crate::names::base_name(service.uid())?, flavor))
    });
    known.collect()
}

/// The Services among these that are on a load balancer: parts of it are named after them.
pub fn services_on(load_balancer: &LoadBalancer, services: &[Arc<Service>]) -> Vec<ObjectKey> {
    let Some(properties) = &load_balancer.properties else { return Vec::new() };
    let frontends = properties.frontend_ip_configurations.iter().flatten().map(|part| &part.name);
    let rules = properties.load_balancing_rules.iter().flatten().map(|part| &part.name);
    let bases: BTreeSet<String> = frontends.chain(rules).map(|name| base_of(text(name))).collect();
    let lives_here = |service: &&Arc<Service>| {
        let base = crate::names::base_name(service.uid());
        base.is_some_and(|base| bases.contains(&base.to_ascii_lowercase()))
    };
    services.iter().filter(lives_here).map(|service| service.key()).collect()
}

/// The known state of the cluster. Absent means unknown, and nothing is concluded from it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// All Services. Without them no frontend counts as left over from a deleted Service.
    pub services: Option<&'a KnownServices>,
    /// All nodes. Without them the members of pools are not written.
    pub nodes: Option<&'a [Arc<Node>]>,
    /// The known network interfaces of virtual machines. They map an entry of a pool to its node.
    pub interfaces: &'a [Arc<NetworkInterface>],
    /// The nodes that it may have, where several load balancers share them. Without it the members of its pools stay as
    /// they are.
    pub share: Option<&'a NodeShare>,
    /// The entries of pools that were `Up` before their nodes drained.
    pub was_up: Option<&'a BTreeSet<EntryKey>>,
    /// The Services that have pools of their own, with the nodes that belong in those. Without them the pools stay as
    /// they are.
    pub local_services: Option<&'a [LocalService]>,
    /// Private link services that may offer frontends: a frontend that is offered by an unmanaged one stays.
    pub private_links: &'a [Arc<PrivateLinkService>],
}

/// The plan of one load balancer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadBalancerPlan {
    /// The write, if anything differs.
    pub step: Option<Step>,
    /// The pools that machines have to leave before the step: it deletes the load balancer, or makes addresses the
    /// members.
    pub empty_first: Vec<PoolMembership>,
    /// The public IPs that get a static address before the step, because Azure would take a dynamic one away with the
    /// frontend ([`crate::public_ip::keep_address`]).
    pub addresses_to_keep: Vec<ResourceId>,
    /// The frontends that the step removes: private link services that offer them are removed before
    /// ([`crate::private_link::plan_removal`]).
    pub frontends_gone: Vec<ResourceId>,
    /// The refused Services, in order of their keys; their parts stay as they are.
    pub refused: Vec<(ObjectKey, Refusal)>,
    /// The notices for the owners of Services.
    pub notices: Vec<Notice>,
}

impl LoadBalancerIntent {
    /// The Service of this intent.
    pub fn key(&self) -> &ObjectKey {
        match self {
            Self::Present { service, .. } => &service.key,
            Self::Absent { service, .. } | Self::Retired { service } => &service.key,
        }
    }

    /// What the Service owns, and how that is found.
    pub fn owner(&self) -> &ServiceRemoval {
        match self {
            Self::Present { service, .. } => service.removal(),
            Self::Absent { service, .. } | Self::Retired { service } => service,
        }
    }

    fn public_ips(&self) -> &BTreeMap<Family, ResourceId> {
        static NONE: BTreeMap<Family, ResourceId> = BTreeMap::new();
        match self {
            Self::Present { public_ips, .. } | Self::Absent { public_ips, .. } => public_ips,
            Self::Retired { .. } => &NONE,
        }
    }
}

/// The Services whose parts Azure's error text names: by base name, address, public IP or a subnet of their own. Empty
/// if it names none of the batch.
pub fn services_named_in(error_text: &str, batch: &[LoadBalancerIntent]) -> Vec<ObjectKey> {
    let text = error_text.to_lowercase();
    let named = |intent: &&LoadBalancerIntent| {
        let by_id = intent.public_ips().values().any(|id| {
            crate::intent::names_word(&text, &format!("publicipaddresses/{}", id.name().to_lowercase()))
        });
        let subnet = match intent {
            LoadBalancerIntent::Present { service, subnet, .. } if service.subnet.is_some() => {
                subnet.as_ref()
            }
            _ => None,
        };
        // The default subnet identifies no single Service.
        let by_subnet = subnet.and_then(|subnet| subnet.id.as_ref()).is_some_and(|id| {
            crate::intent::names_word(&text, &format!("subnets/{}", id.name().to_lowercase()))
        });
        by_id || by_subnet || intent.owner().is_named_in(&text)
    };
    crate::plan::ordered(batch.iter().filter(named).map(|intent| intent.key().clone()))
}

/// Plans one load balancer for a batch of Services. The order of the batch does not matter; of several intents of one
/// Service the first counts. Pools that hold addresses are updated to the nodes with every write, also for an empty
/// batch.
pub fn plan(
    cluster: &Cluster,
    balancer: &Balancer,
    observed: Option<&LoadBalancer>,
    batch: &[LoadBalancerIntent],
    known: Known<'_>,
) -> LoadBalancerPlan {
    let mut members: BTreeMap<&ObjectKey, &LoadBalancerIntent> = BTreeMap::new();
    for intent in batch {
        members.entry(intent.key()).or_insert(intent);
    }
    let mut refused = BTreeMap::new();
    if let Some(basic) = observed.filter(|document| retirement::is_due(cluster, document)) {
        let asking = members.iter().filter(|(_, intent)| retirement::is_asked_for(intent));
        let asking: Vec<ObjectKey> = asking.map(|(key, _)| (*key).clone()).collect();
        match retirement::foreign_part(cluster, basic, known) {
            None if asking.is_empty() => {}
            None => return retirement::plan(cluster, balancer, basic, asking),
            Some(part) => {
                let load_balancer = balancer.name.clone();
                let refusal = Refusal::BasicLoadBalancerShared { load_balancer, part };
                members.retain(|_, intent| !retirement::is_asked_for(intent));
                refused.extend(asking.into_iter().map(|key| (key, refusal.clone())));
            }
        }
    }
    members.retain(|_, intent| !matches!(intent, LoadBalancerIntent::Retired { .. }));
    loop {
        let mut draft = Draft::new(cluster, balancer, observed, known);
        draft.apply_batch(&members, known.services);
        if draft.refused.is_empty() {
            return draft.finish(refused.into_iter().collect());
        }
        members.retain(|key, _| !draft.refused.contains_key(*key));
        refused.append(&mut draft.refused);
    }
}

/// Whether a load balancer holds any part of a Service.
pub fn holds(
    cluster: &Cluster,
    balancer: &Balancer,
    observed: &ListedLoadBalancer,
    owner: &Arc<ServiceRemoval>,
    public_ips: &BTreeMap<Family, ResourceId>,
) -> bool {
    let is_worth_a_look =
        is_named_after(observed, owner) || owner.is_pinned() || local_pools::has_pool_of(observed, owner);
    if !is_worth_a_look {
        return false;
    }
    let absent = [LoadBalancerIntent::Absent { service: Arc::clone(owner), public_ips: public_ips.clone() }];
    let step = plan(cluster, balancer, Some(observed), &absent, Known::default()).step;
    step.is_some_and(|step| step.on_behalf_of.contains(&owner.key))
}

/// Whether any part of the load balancer is named after the Service: a quick test before planning.
pub(crate) fn is_named_after(load_balancer: &ListedLoadBalancer, owner: &ServiceRemoval) -> bool {
    if let Some(indexed) = load_balancer.may_name(owner) {
        return indexed;
    }
    let (Some(properties), Some(base)) = (&load_balancer.properties, owner.base_name.as_deref()) else {
        return false;
    };
    let frontends = properties.frontend_ip_configurations.iter().flatten().map(|part| &part.name);
    let rules = properties.load_balancing_rules.iter().flatten().map(|part| &part.name);
    let probes = properties.probes.iter().flatten().map(|part| &part.name);
    let mut names = frontends.chain(rules).chain(probes).flatten();
    names.any(|name| name.get(..base.len()).is_some_and(|start| start.eq_ignore_ascii_case(base)))
}

/// Whether a Service has a frontend of its own on the load balancer.
pub(crate) fn has_frontend_of(load_balancer: &ListedLoadBalancer, owner: &ServiceRemoval) -> bool {
    let Some(base) = owner.base_name.as_deref() else { return false };
    let mut frontends = load_balancer.frontends_for(owner);
    frontends.any(|frontend| crate::names::is_frontend_of(frontend::name_of(frontend), base))
}

/// The load balancer without a change that Azure accepted and later refused, under its current version: `before` is the
/// load balancer that the change was planned against, `now` is its state in Azure. Absent if nothing was changed.
pub fn undone(before: &LoadBalancer, now: &LoadBalancer) -> Option<LoadBalancer> {
    let is_changed = is_failed(now) && before.etag != now.etag;
    is_changed.then(|| LoadBalancer { etag: now.etag.clone(), ..before.clone() })
}

/// The write that reverts a refused change: `before` is the load balancer that the change was planned against, `now` is
/// its state in Azure. Azure accepts some changes and refuses them later, with the document half changed. Absent if
/// nothing was changed.
pub fn restore(
    cluster: &Cluster,
    balancer: &Balancer,
    before: Option<&LoadBalancer>,
    now: &LoadBalancer,
) -> Option<Step> {
    if !is_failed(now) || before.is_some_and(|before| before.etag == now.etag) {
        return None;
    }
    let (target, version) = (cluster.load_balancer_id(balancer), now.etag.clone());
    let proof = proof::load_balancer(cluster, balancer);
    Some(match before {
        Some(before) => {
            rewrite::restore(target, Document::LoadBalancer(Box::new(before.clone())), version, proof)
        }
        None => Step {
            action: Action::Delete,
            target,
            if_match: version,
            document: None,
            changes: vec![Change::Restored],
            purpose: Purpose::Restore,
            on_behalf_of: Vec::new(),
            ownership: vec![proof],
        },
    })
}

/// Whether the latest operation on it failed: writing it again repairs it.
fn is_failed(load_balancer: &LoadBalancer) -> bool {
    rewrite::is_failed(load_balancer.properties.as_ref().and_then(|p| p.provisioning_state.as_ref()))
}

fn is_named(name: &Option<String>, wanted: &str) -> bool {
    name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
}

fn text(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or_default()
}
