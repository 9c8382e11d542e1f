//! One load balancer for many Services: frontends, rules, probes, pools, in one write (sections 3 to 6).
//!
//! All Services of a batch are planned against one document. Where one of them cannot be served, it is
//! left exactly as it is and the rest is planned again without it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{
    BackendAddressPool, FrontendIpConfiguration, LoadBalancer, LoadBalancerProperties, LoadBalancingRule,
    Probe, PublicIpAddress, ResourceId, Sku, Subnet,
};
use k8s::ObjectKey;

use crate::cluster::{Cluster, Family, Flavor};
use crate::frontend::{self, Source};
pub use crate::frontend::{OwnedFrontend, frontends_of};
use crate::intent::{ServiceIntent, ServiceRemoval};
use crate::plan::{Action, Document, Notice, Refusal, Step};
use crate::probe;
use crate::rule::{self, Desired, Joined};
use crate::{names, tags, zone};

/// What one Service wants of a load balancer.
#[derive(Debug, Clone)]
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
            self.remove_rules(intent.owner(), &BTreeSet::new());
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
            let families = &service.families;
            let rules =
                families.iter().flat_map(|(_, desired, _)| desired.rules.iter().map(|rule| &rule.name));
            let probes =
                families.iter().flat_map(|(_, desired, _)| desired.probes.iter().map(|(name, _)| name));
            let kept = rules.chain(probes).map(|name| name.to_lowercase()).collect();
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

    /// Removes the Service's rules and probes, except those whose lower-case names are kept.
    fn remove_rules(&mut self, owner: &ServiceRemoval, kept: &BTreeSet<String>) {
        let stays = |name: &str| !owner.owns_rule(name) || kept.contains(&name.to_lowercase());
        let mut changes = Vec::new();
        self.rules().retain(|rule| {
            let name = text(&rule.name);
            let stays = stays(name);
            if !stays {
                changes.push(format!("rule {name} removed"));
            }
            stays
        });
        self.probes().retain(|probe| {
            let name = text(&probe.name);
            let stays = stays(name);
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

    /// Gives each family of a Service its frontend.
    fn place(
        &mut self,
        service: &'a ServiceIntent,
        public_ips: &BTreeMap<Family, ResourceId>,
        subnet: Option<&Subnet>,
        former: &[IpAddr],
    ) -> Result<Placed<'a>, Refusal> {
        let owner = service.removal();
        let internal = self.flavor.is_internal();
        if internal && subnet.is_none() {
            return Err(Refusal::for_now(format!(
                "subnet {}/{} of {} does not exist: create it or name another by annotation {}",
                self.cluster.config.vnet_name,
                service.subnet_name(self.cluster),
                service.key,
                crate::annotations::full_key(crate::annotations::INTERNAL_SUBNET)
            )));
        }
        let mut own: Vec<(String, Family, Option<Vec<String>>)> = Vec::new();
        for frontend in self.frontends().iter() {
            let name = frontend::name_of(frontend);
            if names::is_frontend_of(name, &service.base_name) {
                own.push((name.to_owned(), frontend::family_of(frontend), frontend.zones.clone()));
            }
        }
        let mut families = Vec::new();
        let mut used = BTreeSet::new();
        for family in ordered(&service.families) {
            let source = match subnet {
                Some(subnet) if internal => {
                    Source::Subnet(subnet, owner.requested_addresses.get(&family).copied())
                }
                _ => match public_ips.get(&family) {
                    Some(id) => Source::PublicIp(id),
                    None => continue,
                },
            };
            let expected = service.naming().frontend(family);
            let name = if self.serves(&expected, &source) {
                expected
            } else if let Some(joined) = self.joined(service, &source) {
                joined
            } else if own.iter().any(|(name, ..)| name.eq_ignore_ascii_case(&expected)) {
                self.redirect(service, family, &expected, source, former);
                expected
            } else {
                let replaced = own.iter().find(|(name, of, _)| *of == family && !used.contains(name));
                let zones = match (internal, replaced) {
                    (false, _) => None,
                    (true, Some((_, _, zones))) => zones.clone(),
                    (true, None) => zone::of_new_address(self.cluster),
                };
                self.create(service, family, &expected, source, former, zones);
                expected
            };
            families.push((family, rule::desired(self.cluster, service, family), name.clone()));
            used.insert(name);
        }
        let abandoned = own
            .into_iter()
            .map(|(name, ..)| name)
            .filter(|name| !used.iter().any(|used| used.eq_ignore_ascii_case(name)))
            .collect();
        Ok(Placed { service, families, abandoned })
    }

    /// Whether a frontend is there and already has the address that is wanted.
    fn serves(&mut self, name: &str, source: &Source<'_>) -> bool {
        let found = self.frontends().iter().find(|frontend| is_named(&frontend.name, name));
        found.is_some_and(|frontend| match source {
            Source::PublicIp(id) => frontend::public_ip_of(frontend) == Some(*id),
            Source::Subnet(_, Some(address)) => frontend::private_address_of(frontend) == Some(*address),
            Source::Subnet(_, None) => false,
        })
    }

    /// The frontend of another Service that has the address asked for.
    fn joined(&mut self, service: &ServiceIntent, source: &Source<'_>) -> Option<String> {
        if !service.removal().is_pinned() {
            return None;
        }
        let found = self.frontends().iter().find(|frontend| {
            !names::is_frontend_of(frontend::name_of(frontend), &service.base_name)
                && match source {
                    Source::PublicIp(id) => frontend::public_ip_of(frontend) == Some(*id),
                    Source::Subnet(_, Some(address)) => {
                        frontend::private_address_of(frontend) == Some(*address)
                    }
                    Source::Subnet(_, None) => false,
                }
        });
        found.map(|frontend| frontend::name_of(frontend).to_owned())
    }

    /// The address of a new internal frontend: the one asked for, else the first former one that lies in
    /// the subnet and that no other frontend holds.
    fn choose_address(
        &mut self,
        service: &ServiceIntent,
        family: Family,
        subnet: &Subnet,
        requested: Option<IpAddr>,
        former: &[IpAddr],
    ) -> Option<IpAddr> {
        if requested.is_some() {
            return requested;
        }
        let taken: BTreeSet<IpAddr> = self
            .frontends()
            .iter()
            .filter(|frontend| !names::is_frontend_of(frontend::name_of(frontend), &service.base_name))
            .filter_map(frontend::private_address_of)
            .collect();
        former
            .iter()
            .chain(&service.removal().published_addresses)
            .find(|address| {
                Family::of(**address) == family
                    && frontend::contains(subnet, **address)
                    && !taken.contains(*address)
            })
            .copied()
    }

    fn create(
        &mut self,
        service: &ServiceIntent,
        family: Family,
        name: &str,
        source: Source<'_>,
        former: &[IpAddr],
        zones: Option<Vec<String>>,
    ) {
        let source = match source {
            Source::Subnet(subnet, requested) => {
                Source::Subnet(subnet, self.choose_address(service, family, subnet, requested, former))
            }
            public => public,
        };
        let frontend = frontend::document(self.frontend_id(name), family, &source, zones);
        self.frontends().push(frontend);
        self.note(&service.key, [format!("frontend {name} added for {} ({})", service.key, told(&source))]);
    }

    /// Points the Service's own frontend at what is wanted now, where that is something else (4.4).
    fn redirect(
        &mut self,
        service: &ServiceIntent,
        family: Family,
        name: &str,
        source: Source<'_>,
        former: &[IpAddr],
    ) {
        let subnet_named = service.subnet.is_some();
        let chosen = match &source {
            Source::Subnet(subnet, requested) => {
                self.choose_address(service, family, subnet, *requested, former)
            }
            Source::PublicIp(_) => None,
        };
        let Some(frontend) = self.frontends().iter_mut().find(|frontend| is_named(&frontend.name, name))
        else {
            return;
        };
        let properties = frontend.properties.get_or_insert_default();
        let change = match &source {
            Source::PublicIp(id) => {
                let current = properties.public_ip_address.as_mut().filter(|current| current.id.is_some());
                // A frontend that never had a public IP is not ours to convert.
                let Some(current) = current else { return };
                let old = current.id.replace((*id).clone());
                let old = old.as_ref().map(ResourceId::name).unwrap_or_default();
                format!("frontend {name}: public IP {old} → {}", id.name())
            }
            Source::Subnet(subnet, requested) => {
                let current = properties.subnet.as_ref().and_then(|subnet| subnet.id.as_ref());
                let moves = subnet_named && current.is_some() && current != subnet.id.as_ref();
                if moves {
                    frontend::set_private(properties, subnet, chosen);
                    format!("frontend {name}: moved to {}", told(&Source::Subnet(subnet, chosen)))
                } else if let Some(requested) = requested {
                    let old = properties.private_ip_address.clone().unwrap_or_else(|| "none".to_owned());
                    let subnet = properties.subnet.clone().unwrap_or_else(|| (*subnet).clone());
                    frontend::set_private(properties, &subnet, Some(*requested));
                    format!("frontend {name}: address {old} → {requested}")
                } else {
                    return;
                }
            }
        };
        self.note(&service.key, [change]);
    }

    /// Removes the frontends that a Service no longer uses.
    fn abandon(&mut self, placed: &Placed<'_>) -> Result<(), Refusal> {
        for name in &placed.abandoned {
            let frontends = self.frontends();
            let public_ip = frontends
                .iter()
                .find(|frontend| is_named(&frontend.name, name))
                .and_then(|frontend| frontend::public_ip_of(frontend).cloned());
            let needed_elsewhere = public_ip.is_some_and(|id| {
                let holders = frontends.iter().filter(|f| frontend::public_ip_of(f) == Some(&id));
                holders.count() > 1
            });
            let reference = self.remove_frontend(placed.service.removal(), name);
            if let Some(reference) = reference
                && needed_elsewhere
            {
                return Err(Refusal::for_now(format!(
                    "frontend {name} cannot give up its public IP, because {reference} refers to it: remove that \
                     reference or name another public IP"
                )));
            }
        }
        Ok(())
    }

    /// Brings the Service's rules, probes and pools to what it wants, in place.
    fn write_rules(&mut self, placed: &Placed<'_>) -> Result<(), Refusal> {
        let service = placed.service;
        for (family, desired, frontend_name) in &placed.families {
            let frontend = self.frontend_id(frontend_name);
            self.check_conflicts(service, desired, &frontend)?;
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

    /// Refuses ports that another rule of the same frontend already takes (5.7).
    fn check_conflicts(
        &mut self,
        service: &ServiceIntent,
        desired: &Desired,
        frontend: &ResourceId,
    ) -> Result<(), Refusal> {
        let conflict = |rule: &str, port: i32, kind: &str, name: &Option<String>| {
            let port = if port == 0 { "all ports".to_owned() } else { format!("port {port}") };
            Err(Refusal::for_now(format!(
                "rule {rule} of {} needs {port} of frontend {}, which {kind} {} already takes: use another port or \
                 another address",
                service.key,
                frontend.name(),
                text(name)
            )))
        };
        let properties = self.properties();
        for wanted in &desired.rules {
            let meets = |protocol: Option<&str>| {
                let all = |word: &str| word.eq_ignore_ascii_case("All");
                let other = protocol.unwrap_or_default();
                all(other) || all(wanted.protocol) || other.eq_ignore_ascii_case(wanted.protocol)
            };
            let port = wanted.frontend_port;
            for rule in properties.load_balancing_rules.iter().flatten() {
                let Some(p) = &rule.properties else { continue };
                let here = p.frontend_ip_configuration.as_ref().and_then(|f| f.id.as_ref()) == Some(frontend);
                if !here || service.removal().owns_rule(text(&rule.name)) {
                    continue;
                }
                let taken = p.frontend_port.unwrap_or_default();
                let same_port = taken == port || taken == 0 || port == 0;
                if same_port && meets(p.protocol.as_ref().map(|word| word.as_str())) {
                    return conflict(&wanted.name, port, "load-balancing rule", &rule.name);
                }
            }
            for rule in properties.inbound_nat_rules.iter().flatten() {
                let Some(p) = &rule.properties else { continue };
                let here = p.frontend_ip_configuration.as_ref().and_then(|f| f.id.as_ref()) == Some(frontend);
                let same_port = p.frontend_port == Some(port) || port == 0;
                if here && same_port && meets(p.protocol.as_ref().map(|word| word.as_str())) {
                    return conflict(&wanted.name, port, "inbound NAT rule", &rule.name);
                }
            }
            for pool in properties.inbound_nat_pools.iter().flatten() {
                let Some(p) = &pool.properties else { continue };
                let here = p.frontend_ip_configuration.as_ref().and_then(|f| f.id.as_ref()) == Some(frontend);
                let first = p.frontend_port_range_start.unwrap_or_default();
                let last = p.frontend_port_range_end.unwrap_or_default();
                let same_port = (first..=last).contains(&port) || port == 0;
                if here && same_port && meets(p.protocol.as_ref().map(|word| word.as_str())) {
                    return conflict(&wanted.name, port, "inbound NAT pool", &pool.name);
                }
            }
        }
        Ok(())
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

fn told(source: &Source<'_>) -> String {
    match source {
        Source::PublicIp(id) => format!("public IP {}", id.name()),
        Source::Subnet(subnet, address) => {
            let name = subnet.name.as_deref().or_else(|| subnet.id.as_ref().map(ResourceId::name));
            let address =
                address.map_or_else(|| "address chosen by Azure".to_owned(), |a| format!("address {a}"));
            format!("subnet {}, {address}", name.unwrap_or_default())
        }
    }
}

/// Families once each, IPv4 first.
fn ordered(families: &[Family]) -> BTreeSet<Family> {
    families.iter().copied().collect()
}
