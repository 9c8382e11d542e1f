//! One load balancer for many Services: frontends, rules, probes, pools, in one write (sections 3 to 6).
//!
//! All Services of a batch are planned against one document. Where one of them cannot be served, it is
//! left exactly as it is and the rest is planned again without it.

mod conflict;
mod placing;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{
    BackendAddressPool, FrontendIpConfiguration, LoadBalancer, LoadBalancerProperties, LoadBalancingRule,
    Probe, PublicIpAddress, ResourceId, Sku, Subnet,
};
use k8s::ObjectKey;

use crate::cluster::{Cluster, Family, Flavor};
use crate::frontend;
pub use crate::frontend::{OwnedFrontend, frontends_of};
use crate::intent::{ServiceIntent, ServiceRemoval};
use crate::plan::{Action, Document, Notice, Refusal, Step};
use crate::probe;
use crate::rule::{Desired, Joined};
use crate::{tags, zone};

/// What one Service wants of a load balancer.
#[derive(Debug, Clone)]
#[allow(clippy::large_enum_variant, reason = "nearly all intents of a batch are of the larger kind")]
pub enum LoadBalancerIntent {
    /// The Service has its place there. On the load balancer of the other flavour this means that
    /// whatever it left behind there goes.
    Present {
        /// The Service.
        service: Arc<ServiceIntent>,
        /// The public IP of each family's frontend; a family without one gets no frontend. Empty for
        /// internal Services.
        public_ips: BTreeMap<Family, ResourceId>,
        /// The observed subnet of an internal Service's frontends; `None` where there is no such subnet.
        subnet: Option<Subnet>,
        /// Addresses that the Service had before, best first: a new internal frontend takes the first that
        /// fits.
        former_addresses: Vec<IpAddr>,
    },
    /// Nothing of the Service may stay.
    Absent {
        /// The Service.
        service: Arc<ServiceRemoval>,
    },
}

/// The plan of one load balancer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LoadBalancerPlan {
    /// The one write, if anything differs. Where it deletes, scale sets must leave the pools first (see
    /// [`crate::backend_pool::pools_to_empty`]).
    pub step: Option<Step>,
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
            Self::Absent { service } => &service.key,
        }
    }

    fn owner(&self) -> &ServiceRemoval {
        match self {
            Self::Present { service, .. } => service.removal(),
            Self::Absent { service } => service,
        }
    }
}

/// The Services whose parts Azure's error text names: by base name, address or public IP. Empty where it
/// names none of the batch.
pub fn blame(error_text: &str, batch: &[LoadBalancerIntent]) -> Vec<ObjectKey> {
    let text = error_text.to_lowercase();
    let named = |intent: &&LoadBalancerIntent| {
        let by_id = match intent {
            LoadBalancerIntent::Present { public_ips, .. } => public_ips.values().any(|id| {
                crate::intent::names_word(&text, &format!("publicipaddresses/{}", id.name().to_lowercase()))
            }),
            LoadBalancerIntent::Absent { .. } => false,
        };
        by_id || intent.owner().is_named_in(&text)
    };
    crate::plan::ordered(batch.iter().filter(named).map(|intent| intent.key().clone()))
}

/// Plans one load balancer for a batch of Services. The order of the batch does not matter; of several
/// intents of one Service the first counts. `observed_public_ips` are those of all groups in use.
pub fn plan(
    cluster: &Cluster,
    flavor: Flavor,
    observed: Option<&LoadBalancer>,
    batch: &[LoadBalancerIntent],
    observed_public_ips: &[PublicIpAddress],
) -> LoadBalancerPlan {
    let mut members: BTreeMap<&ObjectKey, &LoadBalancerIntent> = BTreeMap::new();
    for intent in batch {
        members.entry(intent.key()).or_insert(intent);
    }
    let mut refused = BTreeMap::new();
    loop {
        let mut draft = Draft::new(cluster, flavor, observed, observed_public_ips);
        draft.take(&members);
        if draft.refused.is_empty() {
            let (step, notices) = draft.finish();
            return LoadBalancerPlan { step, refused: refused.into_iter().collect(), notices };
        }
        members.retain(|key, _| !draft.refused.contains_key(*key));
        refused.append(&mut draft.refused);
    }
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
    flavor: Flavor,
    exists: bool,
    document: LoadBalancer,
    public_ips: &'a [PublicIpAddress],
    changes: Vec<String>,
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
        flavor: Flavor,
        observed: Option<&LoadBalancer>,
        public_ips: &'a [PublicIpAddress],
    ) -> Self {
        let document = observed.cloned().unwrap_or_else(|| LoadBalancer {
            name: Some(cluster.load_balancer_name(flavor)),
            location: Some(cluster.config.location.clone()),
            extended_location: zone::edge(cluster),
            sku: Some(Sku { name: Some("Standard".to_owned()), ..Default::default() }),
            properties: Some(LoadBalancerProperties::default()),
            ..Default::default()
        });
        Self {
            cluster,
            flavor,
            exists: observed.is_some(),
            document,
            public_ips,
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

    fn frontend_id(&self, name: &str) -> ResourceId {
        self.cluster.frontend_id(self.flavor, name)
    }

    fn note(&mut self, key: &ObjectKey, changes: impl IntoIterator<Item = String>) {
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
    fn take(&mut self, members: &BTreeMap<&'a ObjectKey, &'a LoadBalancerIntent>) {
        let flavor = self.flavor;
        let (present, absent): (Vec<&LoadBalancerIntent>, Vec<&LoadBalancerIntent>) =
            members.values().copied().partition(|intent| {
                matches!(intent, LoadBalancerIntent::Present { service, .. } if service.flavor == flavor)
            });
        self.has_present = !present.is_empty();
        // All rules go before any frontend is looked at: what two leaving Services share can then go too.
        for intent in &absent {
            self.remove_rules(intent.owner(), &KeptNames::default());
        }
        for intent in &absent {
            self.remove_frontends(intent.owner());
        }

        // Those who ask for certain addresses come last, so that they find the frontends of the others.
        let (pinned, free): (Vec<&LoadBalancerIntent>, Vec<&LoadBalancerIntent>) =
            present.into_iter().partition(|intent| intent.owner().is_pinned());
        let mut placed = Vec::new();
        for intent in free.into_iter().chain(pinned) {
            if let LoadBalancerIntent::Present { service, public_ips, subnet, former_addresses } = intent {
                match self.place(service, public_ips, subnet.as_ref(), former_addresses) {
                    Ok(service) => placed.push(service),
                    Err(refusal) => self.refuse(&service.key, refusal),
                }
            }
        }
        placed.sort_by(|a, b| a.service.key.cmp(&b.service.key));
        for service in &placed {
            let mut kept = KeptNames::default();
            for (_, desired, _) in &service.families {
                kept.rules.extend(desired.rules.iter().map(|rule| rule.name.to_lowercase()));
                kept.probes.extend(desired.probes.iter().map(|(name, _)| name.to_lowercase()));
            }
            self.remove_rules(service.service.removal(), &kept);
        }
        for service in &placed {
            if let Err(refusal) = self.write_rules(service) {
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
        }
        if self.has_present {
            let config = &self.cluster.config;
            if !config.tags.is_empty() {
                let changes = tags::reconcile(&mut self.document.tags, &config.tags, &config.system_tags);
                self.changes.extend(changes);
            }
        }
    }

    /// Removes the Service's rules and probes, except those that it keeps.
    fn remove_rules(&mut self, owner: &ServiceRemoval, kept: &KeptNames) {
        let stays = |name: &str, kept: &BTreeSet<String>| {
            !owner.owns_rule(name) || kept.contains(&name.to_lowercase())
        };
        let mut changes = Vec::new();
        self.rules().retain(|rule| {
            let name = text(&rule.name);
            let stays = stays(name, &kept.rules);
            if !stays {
                changes.push(format!("rule {name} removed"));
            }
            stays
        });
        self.probes().retain(|probe| {
            let name = text(&probe.name);
            let stays = stays(name, &kept.probes);
            if !stays {
                changes.push(format!("probe {name} removed"));
            }
            stays
        });
        self.note(&owner.key, changes);
    }

    /// Removes the frontends that a leaving Service uses and nobody else does.
    fn remove_frontends(&mut self, owner: &ServiceRemoval) {
        for owned in frontends_of(self.cluster, &self.document, owner, self.public_ips) {
            self.remove_frontend(owner, &owned.name);
        }
    }

    /// Removes a frontend; where others refer to it, it stays and the owner is told by whom.
    fn remove_frontend(&mut self, owner: &ServiceRemoval, name: &str) -> Option<String> {
        let id = self.frontend_id(name);
        let reference = frontend::foreign_reference(self.properties(), &id, |rule| owner.owns_rule(rule));
        if let Some(reference) = &reference {
            let load_balancer = self.cluster.load_balancer_name(self.flavor);
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
            self.note(&owner.key, [format!("frontend {name} of {} removed", owner.key)]);
        }
        reference
    }

    /// Brings the Service's rules, probes and pools to what it wants, in place.
    fn write_rules(&mut self, placed: &Placed<'_>) -> Result<(), Refusal> {
        let service = placed.service;
        for (family, desired, frontend_name) in &placed.families {
            let frontend = self.frontend_id(frontend_name);
            conflict::check(service, desired, &frontend, self.properties())?;
            self.ensure_pool(&service.key, *family);
            let pool = self.cluster.pool_id(self.flavor, *family);
            for (name, spec) in &desired.probes {
                let probes = self.probes();
                let changes = match probes.iter_mut().find(|probe| is_named(&probe.name, name)) {
                    Some(probe) => spec.apply(probe),
                    None => {
                        probes.push(spec.document(name));
                        let path = spec.path.as_deref().unwrap_or_default();
                        let seconds = spec.interval;
                        vec![format!(
                            "probe {name} added: {} {}{path} every {seconds} s",
                            spec.protocol, spec.port
                        )]
                    }
                };
                self.note(&service.key, changes);
            }
            for spec in &desired.rules {
                let probe = spec.probe.as_deref().map(|name| self.cluster.probe_id(self.flavor, name));
                let joined = Joined { frontend: &frontend, pool: &pool, probe: probe.as_ref() };
                let rules = self.rules();
                let changes = match rules.iter_mut().find(|rule| is_named(&rule.name, &spec.name)) {
                    Some(rule) => spec.apply(rule, &joined),
                    None => {
                        rules.push(spec.document(&joined));
                        vec![format!(
                            "rule {} added: {} port {} → backend port {}",
                            spec.name, spec.protocol, spec.frontend_port, spec.backend_port
                        )]
                    }
                };
                self.note(&service.key, changes);
            }
        }
        Ok(())
    }

    fn ensure_pool(&mut self, key: &ObjectKey, family: Family) {
        let name = self.cluster.pool_name(family);
        let pools = self.properties().backend_address_pools.get_or_insert_default();
        if !pools.iter().any(|pool| is_named(&pool.name, &name)) {
            pools.push(BackendAddressPool { name: Some(name.clone()), ..Default::default() });
            self.note(key, [format!("backend pool {name} added")]);
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
                removed.push(format!("probe {} removed: no rule uses it", text(&probe.name)));
            }
            !shared
        });
        self.changes.extend(removed);
    }

    /// Whether the load balancer holds anything that is not the cluster's to remove.
    fn is_needed(&mut self) -> bool {
        let names: BTreeSet<String> =
            Family::BOTH.iter().map(|family| self.cluster.pool_name(*family).to_lowercase()).collect();
        let preconfigured = self.cluster.has_preconfigured_pools(self.flavor);
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

    fn finish(mut self) -> (Option<Step>, Vec<Notice>) {
        if self.changes.is_empty() {
            return (None, self.notices);
        }
        let needed = self.is_needed();
        let id = self.document.id.clone().unwrap_or_else(|| self.cluster.load_balancer_id(self.flavor));
        for frontend in self.frontends() {
            if let Some(subnet) = frontend.properties.as_mut().and_then(|p| p.subnet.as_mut()) {
                *subnet = frontend::reduced(subnet);
            }
        }
        let mut step = Step {
            action: if self.exists { Action::Update } else { Action::Create },
            target: id,
            if_match: self.document.etag.clone(),
            document: None,
            changes: self.changes,
            on_behalf_of: self.for_keys.into_iter().collect(),
        };
        if self.exists && !needed {
            step.action = Action::Delete;
            step.if_match = None;
            step.changes.push("the last frontend is gone".to_owned());
        } else {
            step.document = Some(Document::LoadBalancer(Box::new(self.document)));
        }
        (Some(step), self.notices)
    }
}
