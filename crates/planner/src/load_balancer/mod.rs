//! One load balancer for many Services: frontends, rules, probes, pools, in one write.
//!
//! All Services of a batch are planned against one document. Where one of them cannot be served, it is
//! left exactly as it is and the rest is planned again without it.

mod conflict;
mod index;
mod leftover;
mod limits;
mod local_pools;
mod members;
mod occupancy;
mod placing;
mod retirement;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use azure_types::{
    BackendAddressPool, FrontendIpConfiguration, LoadBalancer, LoadBalancerProperties, LoadBalancingRule,
    NetworkInterface, PrivateLinkService, Probe, ResourceId, Subnet,
};
use k8s::{Node, ObjectKey, Service};

use crate::admin_state::EntryKey;
use crate::backend_pool::{self, PoolMembership};
use crate::change::{Change, Unfinished};
use crate::cluster::{Balancer, Cluster, Family};
use crate::frontend;
pub use crate::frontend::{OwnedFrontend, frontends_of};
use crate::intent::{ServiceIntent, ServiceRemoval};
use crate::listed::ListedLoadBalancer;
pub(crate) use crate::load_balancer::index::base_of;
use crate::load_balancer::index::{FrontendIndex, RuleIndex};
pub use crate::load_balancer::members::pool_in;
pub use crate::load_balancer::occupancy::{Occupancy, Places};
pub use crate::load_balancer::retirement::{deletion_obstacle, is_due as has_to_be_retired};
use crate::local_pool::LocalService;
use crate::placement::NodeShare;
use crate::plan::{Action, Document, Notice, Purpose, Step};
use crate::private_link;
use crate::probe;
use crate::refusal::Refusal;
use crate::rule::{Desired, Joined};
use crate::{tags, zone};

/// What one Service wants of a load balancer.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "nearly all intents of a batch are of the larger kind")]
pub enum LoadBalancerIntent {
    /// The Service has its place there.
    Present {
        /// The Service.
        service: Arc<ServiceIntent>,
        /// The public IP that each family's frontend uses; a family without one gets no frontend. Empty for
        /// internal Services.
        public_ips: BTreeMap<Family, ResourceId>,
        /// The observed subnet of an internal Service's frontends; `None` where there is no such subnet.
        subnet: Option<Arc<Subnet>>,
    },
    /// Nothing of the Service may stay.
    Absent {
        /// The Service.
        service: Arc<ServiceRemoval>,
        /// The public IPs that it names or asks for by address ([`crate::public_ip::claimed`]): by them the
        /// frontends are found that it shares.
        public_ips: BTreeMap<Family, ResourceId>,
    },
    /// If the load balancer is of a SKU that is not configured, nothing of it may stay (LB-205).
    Retired {
        /// The Service.
        service: Arc<ServiceRemoval>,
    },
}

/// The Services of the cluster, by [`ServiceRemoval::base_name`].
pub type KnownServices = BTreeSet<String>;

/// The Services that may have parts of load balancers named after them.
pub fn known_services(services: &[Arc<Service>]) -> KnownServices {
    services.iter().filter_map(|service| crate::names::base_name(service.uid())).collect()
}

/// Those of these Services that live on a load balancer: parts of it are named after them.
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

/// What is known of the cluster. What is absent is not known, and nothing is concluded from it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Known<'a> {
    /// All Services: only with them a frontend counts as left behind by a Service that is gone.
    pub services: Option<&'a KnownServices>,
    /// All nodes: only with them the members of pools are written.
    pub nodes: Option<&'a [Arc<Node>]>,
    /// The network interfaces of virtual machines, as far as they are known: they tell which node an entry of a pool
    /// stands for.
    pub interfaces: &'a [Arc<NetworkInterface>],
    /// The nodes that it may have, where several share them. Without it the members of its pools stay as they are.
    pub share: Option<&'a NodeShare>,
    /// The entries of pools that were `Up` before their nodes drained.
    pub was_up: Option<&'a BTreeSet<EntryKey>>,
    /// The Services that have pools of their own, with the nodes that belong in those: without them the pools stay as
    /// they are.
    pub local_services: Option<&'a [LocalService]>,
    /// Private link services that may offer frontends: a frontend that somebody else's offers stays.
    pub private_links: &'a [PrivateLinkService],
}

/// The plan of one load balancer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadBalancerPlan {
    /// The one write, if anything differs.
    pub step: Option<Step>,
    /// The pools that machines have to leave before the step: it deletes the load balancer, or it makes addresses
    /// the members.
    pub empty_first: Vec<PoolMembership>,
    /// The public IPs that get an address for good before the step, because Azure would take it with the frontend
    /// ([`crate::public_ip::keep_address`]).
    pub addresses_to_keep: Vec<ResourceId>,
    /// The frontends that the step takes away: the private link services that offer them go before
    /// ([`crate::private_link::plan_removal`]).
    pub frontends_gone: Vec<ResourceId>,
    /// The Services that cannot be served, in order of their keys; they are left as they are.
    pub refused: Vec<(ObjectKey, Refusal)>,
    /// What to tell Services' owners.
    pub notices: Vec<Notice>,
}

impl LoadBalancerIntent {
    /// The Service that it is about.
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

/// The Services whose parts Azure's error text names: by base name, address or public IP. Empty where it
/// names none of the batch.
pub fn services_named_in(error_text: &str, batch: &[LoadBalancerIntent]) -> Vec<ObjectKey> {
    let text = error_text.to_lowercase();
    let named = |intent: &&LoadBalancerIntent| {
        let by_id = intent.public_ips().values().any(|id| {
            crate::intent::names_word(&text, &format!("publicipaddresses/{}", id.name().to_lowercase()))
        });
        by_id || intent.owner().is_named_in(&text)
    };
    crate::plan::ordered(batch.iter().filter(named).map(|intent| intent.key().clone()))
}

/// Plans one load balancer for a batch of Services. The order of the batch does not matter; of several
/// intents of one Service the first counts. Pools that hold addresses follow the nodes with every write, and without
/// any Service in the batch, too.
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

/// Whether a load balancer holds anything of a Service's.
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

/// The write that takes a refused change back: `before` is the load balancer as it was planned against, `now`
/// as Azure left it. Azure accepts some changes and refuses them later, with the document half changed.
/// Absent where nothing was changed.
pub fn restore(
    cluster: &Cluster,
    balancer: &Balancer,
    before: Option<&LoadBalancer>,
    now: &LoadBalancer,
) -> Option<Step> {
    if !is_failed(now) || before.is_some_and(|before| before.etag == now.etag) {
        return None;
    }
    let action = if before.is_some() { Action::Update } else { Action::Delete };
    Some(Step {
        action,
        target: cluster.load_balancer_id(balancer),
        if_match: now.etag.clone(),
        document: before.map(|before| Document::LoadBalancer(Box::new(before.clone()))),
        changes: vec![Change::Restored],
        purpose: Purpose::Restore,
        on_behalf_of: Vec::new(),
    })
}

/// Whether the latest operation on it failed: writing it again repairs it.
fn is_failed(load_balancer: &LoadBalancer) -> bool {
    let state = load_balancer.properties.as_ref().and_then(|p| p.provisioning_state.as_ref());
    state.is_some_and(|state| state.is("Failed") || state.is("Canceled"))
}

/// A Service that has its place here, and what it has been given so far.
struct Placed<'a> {
    service: &'a ServiceIntent,
    /// What each family needs, with the name of its frontend.
    families: Vec<(Family, Desired, String)>,
    /// Frontends of its own that it no longer uses.
    abandoned: Vec<String>,
}

/// What a Service keeps, in lower case. Rules and their probes bear the same names, but a rule that stays
/// may have another probe than before.
#[derive(Default)]
struct KeptNames {
    rules: BTreeSet<String>,
    probes: BTreeSet<String>,
}

struct Draft<'a> {
    cluster: &'a Cluster,
    balancer: &'a Balancer,
    /// The load balancer's id as it is in the references to its parts.
    id: ResourceId,
    /// `None` where there is none yet.
    observed: Option<&'a LoadBalancer>,
    known: Known<'a>,
    document: LoadBalancer,
    changes: Vec<Change>,
    for_keys: BTreeSet<ObjectKey>,
    refused: BTreeMap<ObjectKey, Refusal>,
    notices: Vec<Notice>,
    has_present: bool,
}

fn is_named(name: &Option<String>, wanted: &str) -> bool {
    name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
}

fn text(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or_default()
}

impl<'a> Draft<'a> {
    fn new(
        cluster: &'a Cluster,
        balancer: &'a Balancer,
        observed: Option<&'a LoadBalancer>,
        known: Known<'a>,
    ) -> Self {
        let document = observed.cloned().unwrap_or_else(|| LoadBalancer {
            name: Some(balancer.name.clone()),
            location: Some(cluster.config.location.clone()),
            extended_location: zone::edge(cluster),
            sku: Some(cluster.sku()),
            properties: Some(LoadBalancerProperties::default()),
            ..Default::default()
        });
        Self {
            cluster,
            balancer,
            id: cluster.load_balancer_id(balancer),
            observed,
            known,
            document,
            changes: Vec::new(),
            for_keys: BTreeSet::new(),
            refused: BTreeMap::new(),
            notices: Vec::new(),
            has_present: false,
        }
    }

    fn properties(&mut self) -> &mut LoadBalancerProperties {
        self.document.properties.get_or_insert_default()
    }

    fn frontends(&mut self) -> &mut Vec<FrontendIpConfiguration> {
        self.properties().frontend_ip_configurations.get_or_insert_default()
    }

    fn rules(&mut self) -> &mut Vec<LoadBalancingRule> {
        self.properties().load_balancing_rules.get_or_insert_default()
    }

    fn probes(&mut self) -> &mut Vec<Probe> {
        self.properties().probes.get_or_insert_default()
    }

    fn pool_id(&self, name: &str) -> ResourceId {
        self.id.child("backendAddressPools", name)
    }

    fn frontend_id(&self, name: &str) -> ResourceId {
        self.id.child("frontendIPConfigurations", name)
    }

    fn note(&mut self, key: &ObjectKey, changes: impl IntoIterator<Item = Change>) {
        let before = self.changes.len();
        self.changes.extend(changes);
        if self.changes.len() > before {
            self.for_keys.insert(key.clone());
        }
    }

    fn refuse(&mut self, key: &ObjectKey, refusal: Refusal) {
        self.refused.entry(key.clone()).or_insert(refusal);
    }

    /// Works through all Services; stops where some are refused, because their share has to be undone.
    fn apply_batch(
        &mut self,
        members: &BTreeMap<&'a ObjectKey, &'a LoadBalancerIntent>,
        services: Option<&KnownServices>,
    ) {
        let (present, absent): (Vec<&LoadBalancerIntent>, Vec<&LoadBalancerIntent>) = members
            .values()
            .copied()
            .partition(|intent| matches!(intent, LoadBalancerIntent::Present { .. }));
        let used = leftover::frontends_in_use(self.document.properties.as_ref(), members.values().copied());
        self.has_present = !present.is_empty();
        // All rules go before any frontend is looked at: what two leaving Services share can then go too.
        self.remove_rules(absent.iter().map(|intent| (intent.owner(), KeptNames::default())));
        for intent in &absent {
            self.remove_frontends(intent);
        }

        // Whoever is here already keeps its place when places run out. Those who ask for certain addresses
        // come last, so that they find the frontends of the others.
        let mut index = FrontendIndex::new(self.frontends());
        let mut present: Vec<(bool, bool, &LoadBalancerIntent)> = present
            .into_iter()
            .map(|intent| (intent.owner().is_pinned(), !self.has_frontend(&index, intent.owner()), intent))
            .collect();
        present.sort_by_key(|(pinned, newcomer, _)| (*pinned, *newcomer));
        let mut placed = Vec::new();
        for (_, newcomer, intent) in present {
            if let LoadBalancerIntent::Present { service, public_ips, subnet } = intent {
                self.notices.extend(service.notices.iter().cloned());
                let before = self.frontends().len();
                let place = self.place(service, public_ips, subnet.as_deref(), &mut index);
                match place.and_then(|place| limits::check_frontends(self, before).map(|()| place)) {
                    Ok(place) => placed.push((newcomer, place)),
                    Err(refusal) => {
                        self.frontends().truncate(before);
                        self.refuse(&service.key, refusal);
                    }
                }
            }
        }
        placed.sort_by(|(a_new, a), (b_new, b)| (a_new, &a.service.key).cmp(&(b_new, &b.service.key)));
        let placed: Vec<Placed<'_>> = placed.into_iter().map(|(_, place)| place).collect();
        self.remove_rules(placed.iter().map(|service| {
            let mut kept = KeptNames::default();
            for (_, desired, _) in &service.families {
                kept.rules.extend(desired.rules.iter().map(|rule| rule.name.to_lowercase()));
                kept.probes.extend(desired.probes.iter().map(|(name, _)| name.to_lowercase()));
            }
            (&**service.service.removal(), kept)
        }));
        let mut index = RuleIndex::new(self.properties());
        for service in &placed {
            let before = self.rules().len();
            let written = self.write_rules(service, &mut index);
            if let Err(refusal) = written.and_then(|()| limits::check_rules(self, before)) {
                self.rules().truncate(before);
                self.refuse(&service.service.key, refusal);
            }
        }
        for service in &placed {
            if let Err(refusal) = self.abandon(service) {
                self.refuse(&service.service.key, refusal);
            }
        }
        if !members.is_empty() {
            self.drop_unused_shared_probe();
            self.remove_unused_local_pools(members);
        }
        if let Some(services) = services {
            self.remove_leftovers(&used, services);
        }
        if self.has_present {
            let config = &self.cluster.config;
            if !config.tags.is_empty() {
                let changes = tags::reconcile(&mut self.document.tags, &config.tags, &config.system_tags);
                self.changes.extend(changes);
            }
        }
    }

    /// Removes the rules and probes of these Services, except those that each keeps.
    fn remove_rules<'o>(&mut self, owners: impl Iterator<Item = (&'o ServiceRemoval, KeptNames)>) {
        let mut of: HashMap<String, (KeptNames, Vec<Change>)> = HashMap::new();
        let mut order = Vec::new();
        for (owner, kept) in owners {
            if let Some(base) = &owner.base_name {
                of.insert(base.to_ascii_lowercase(), (kept, Vec::new()));
                order.push((&owner.key, base.to_ascii_lowercase()));
            }
        }
        self.rules().retain(|rule| {
            let name = text(&rule.name);
            let Some((kept, changes)) = of.get_mut(&base_of(name)) else { return true };
            let stays = kept.rules.contains(&name.to_lowercase());
            if !stays {
                changes.push(Change::RuleRemoved { rule: name.to_owned() });
            }
            stays
        });
        self.probes().retain(|probe| {
            let name = text(&probe.name);
            let Some((kept, changes)) = of.get_mut(&base_of(name)) else { return true };
            let stays = kept.probes.contains(&name.to_lowercase());
            if !stays {
                changes.push(Change::ProbeRemoved { probe: name.to_owned() });
            }
            stays
        });
        for (key, base) in order {
            let changes = of.remove(&base).map(|(_, changes)| changes).unwrap_or_default();
            self.note(key, changes);
        }
    }

    /// Whether a Service has a frontend of its own here.
    fn has_frontend(&mut self, index: &FrontendIndex, owner: &ServiceRemoval) -> bool {
        let Some(base) = owner.base_name.as_deref() else { return false };
        let mut like = index.like(self.frontends(), base);
        like.any(|frontend| crate::names::is_frontend_of(frontend::name_of(frontend), base))
    }

    /// Removes the frontends that a leaving Service uses and nobody else does.
    fn remove_frontends(&mut self, intent: &LoadBalancerIntent) {
        let owner = intent.owner();
        let frontends = self.document.properties.iter();
        let frontends = frontends.flat_map(|p| p.frontend_ip_configurations.iter().flatten());
        let owned = frontend::owned_among(frontends, self.cluster, self.balancer, owner, intent.public_ips());
        for owned in owned {
            self.remove_frontend(owner, &owned.name);
        }
    }

    /// Removes a frontend; where others refer to it, it stays and the owner is told by whom.
    fn remove_frontend(&mut self, owner: &ServiceRemoval, name: &str) -> Option<String> {
        let id = self.frontend_id(name);
        let reference = self.foreign_reference(&id, |rule| owner.owns_rule(rule));
        if let Some(reference) = &reference {
            let load_balancer = &self.balancer.name;
            self.notices.push(Notice {
                service: owner.key.clone(),
                warning: true,
                reason: "DeletingFrontendIPConfiguration",
                message: format!(
                    "frontend {name} of load balancer {load_balancer} stays, because {reference} refers to it"
                ),
            });
        } else {
            self.frontends().retain(|frontend| !is_named(&frontend.name, name));
            let (frontend, service) = (name.to_owned(), owner.key.clone());
            self.note(&owner.key, [Change::FrontendRemoved { frontend, service }]);
        }
        reference
    }

    /// What else than the Service's own rules needs a frontend, in words; `None` where nothing does.
    fn foreign_reference(&mut self, id: &ResourceId, is_own_rule: impl Fn(&str) -> bool) -> Option<String> {
        let link = private_link::at(self.known.private_links, id);
        let link = link.filter(|link| private_link::is_unmanaged(self.cluster, link));
        let by_link = link.map(|link| format!("private link service {}", private_link::name_of(link)));
        frontend::foreign_reference(self.properties(), id, is_own_rule).or(by_link)
    }

    /// The observed frontends that the document does not hold any more.
    fn frontends_gone(&mut self) -> Vec<ResourceId> {
        let kept: BTreeSet<String> =
            self.frontends().iter().map(|frontend| frontend::name_of(frontend).to_lowercase()).collect();
        let observed = self.observed.and_then(|document| document.properties.as_ref());
        let observed = observed.into_iter().flat_map(|p| p.frontend_ip_configurations.iter().flatten());
        let gone = observed.map(frontend::name_of).filter(|name| !kept.contains(&name.to_lowercase()));
        gone.map(|name| self.frontend_id(name)).collect()
    }

    /// Brings the Service's rules, probes and pools to what it wants, in place.
    fn write_rules(&mut self, placed: &Placed<'_>, index: &mut RuleIndex) -> Result<(), Refusal> {
        let service = placed.service;
        for (family, desired, frontend_name) in &placed.families {
            let frontend = self.frontend_id(frontend_name);
            let pool_name = self.pool_for(service, *family, index)?;
            let pool = self.pool_id(&pool_name);
            conflict::check(service, desired, &frontend, &pool, self.properties(), index)?;
            // A pool of its own is for its rules alone.
            if !desired.rules.is_empty() || self.cluster.is_pool_of_nodes(&pool_name) {
                self.ensure_pool(&service.key, pool_name);
            }
            for (name, spec) in &desired.probes {
                let probes = self.probes();
                let found = index.probe(name).and_then(|at| probes.get_mut(at));
                let changes = match found.filter(|probe| is_named(&probe.name, name)) {
                    Some(probe) => spec.apply(probe),
                    None => {
                        index.add_probe(probes.len(), name);
                        probes.push(spec.document(name));
                        vec![Change::ProbeAdded {
                            probe: name.clone(),
                            protocol: spec.protocol.to_owned(),
                            port: spec.port,
                            path: spec.path.clone().unwrap_or_default(),
                            interval: spec.interval,
                        }]
                    }
                };
                self.note(&service.key, changes);
            }
            for spec in &desired.rules {
                let probe = spec.probe.as_deref().map(|name| self.id.child("probes", name));
                let joined = Joined { frontend: &frontend, pool: &pool, probe: probe.as_ref() };
                let rules = self.rules();
                let found = index.rule(&spec.name).and_then(|at| Some((at, rules.get_mut(at)?)));
                let changes = match found.filter(|(_, rule)| is_named(&rule.name, &spec.name)) {
                    Some((at, rule)) => {
                        let changes = spec.apply(rule, &joined);
                        if !changes.is_empty() {
                            index.add(at, rule);
                        }
                        changes
                    }
                    None => {
                        let rule = spec.document(&joined);
                        index.add(rules.len(), &rule);
                        rules.push(rule);
                        vec![Change::RuleAdded {
                            rule: spec.name.clone(),
                            protocol: spec.protocol.to_owned(),
                            port: spec.frontend_port,
                            backend_port: spec.backend_port,
                        }]
                    }
                };
                self.note(&service.key, changes);
            }
        }
        Ok(())
    }

    fn ensure_pool(&mut self, key: &ObjectKey, name: String) {
        let pools = self.properties().backend_address_pools.get_or_insert_default();
        if !pools.iter().any(|pool| is_named(&pool.name, &name)) {
            pools.push(BackendAddressPool { name: Some(name.clone()), ..Default::default() });
            self.note(key, [Change::PoolAdded { pool: name }]);
        }
    }

    /// The shared probe goes when no rule is left that uses it.
    fn drop_unused_shared_probe(&mut self) {
        let used = self.rules().iter().any(|rule| {
            let probe = rule.properties.as_ref().and_then(|p| p.probe.as_ref());
            probe.and_then(|probe| probe.id.as_ref()).is_some_and(|id| probe::is_shared(id.name()))
        });
        if used {
            return;
        }
        let mut removed = Vec::new();
        self.probes().retain(|probe| {
            let shared = probe::is_shared(text(&probe.name));
            if shared {
                removed.push(Change::SharedProbeRemoved { probe: text(&probe.name).to_owned() });
            }
            !shared
        });
        self.changes.extend(removed);
    }

    /// Whether the load balancer holds anything that is not the cluster's to remove.
    fn is_needed(&mut self) -> bool {
        let names: BTreeSet<String> =
            Family::BOTH.iter().map(|family| self.cluster.pool_name(*family).to_lowercase()).collect();
        let preconfigured = self.cluster.has_preconfigured_pools(self.balancer);
        let has_present = self.has_present;
        let properties = self.properties();
        let foreign_pool = properties
            .backend_address_pools
            .iter()
            .flatten()
            .any(|pool| !names.contains(&text(&pool.name).to_lowercase()));
        has_present
            || preconfigured
            || foreign_pool
            || properties.frontend_ip_configurations.as_ref().is_some_and(|list| !list.is_empty())
            || properties.probes.as_ref().is_some_and(|list| !list.is_empty())
    }

    fn finish(mut self, refused: Vec<(ObjectKey, Refusal)>) -> LoadBalancerPlan {
        let is_needed = self.is_needed();
        let mut empty_first = Vec::new();
        if is_needed {
            empty_first = self.fill_pools();
            self.fill_local_pools();
            self.mark_draining();
        }
        let repairs = self.changes.is_empty() && self.observed.is_some_and(is_failed);
        if self.changes.is_empty() && !repairs {
            return LoadBalancerPlan { refused, notices: self.notices, ..LoadBalancerPlan::default() };
        }
        if repairs {
            self.changes.push(Change::Repaired(Unfinished::Operation));
        }
        let id = self.document.id.clone().unwrap_or_else(|| self.id.clone());
        for frontend in self.frontends() {
            if let Some(subnet) = frontend.properties.as_mut().and_then(|p| p.subnet.as_mut()) {
                *subnet = frontend::reduced(subnet);
            }
        }
        let frontends_gone = self.frontends_gone();
        let mut step = Step {
            action: if self.observed.is_some() { Action::Update } else { Action::Create },
            target: id,
            if_match: self.document.etag.clone(),
            document: None,
            changes: self.changes,
            purpose: if repairs { Purpose::Repair } else { Purpose::Change },
            on_behalf_of: self.for_keys.into_iter().collect(),
        };
        match self.observed.filter(|_| !is_needed) {
            Some(observed) => {
                step.action = Action::Delete;
                step.if_match = None;
                step.changes.push(Change::LastFrontendGone);
                empty_first = backend_pool::pools_to_empty(self.cluster, self.balancer, observed);
                if self.cluster.has_pools_of_addresses() {
                    empty_first.retain(|membership| members::has_interfaces_in(observed, &membership.pool));
                }
            }
            None => step.document = Some(Document::LoadBalancer(Box::new(self.document))),
        }
        LoadBalancerPlan {
            step: Some(step),
            empty_first,
            frontends_gone,
            refused,
            notices: self.notices,
            ..LoadBalancerPlan::default()
        }
    }
}
