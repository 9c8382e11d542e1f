//! The draft of a load balancer: its document while the Services of a batch are applied.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use azure_types::{
    BackendAddressPool, FrontendIpConfiguration, LoadBalancer, LoadBalancerProperties, LoadBalancingRule,
    Probe, ResourceId,
};
use k8s::ObjectKey;
use ownership::{Evidence, Proof};

use super::index::{FrontendIndex, RuleIndex, base_of};
use super::{
    Known, KnownServices, LoadBalancerIntent, LoadBalancerPlan, conflict, is_failed, is_named, leftover,
    limits, members, text,
};
use crate::backend_pool;
use crate::change::{Change, Unfinished};
use crate::cluster::{Balancer, Cluster, Family};
use crate::frontend;
use crate::intent::{ServiceIntent, ServiceRemoval};
use crate::plan::{Action, Document, Notice, Purpose, Step};
use crate::private_link;
use crate::probe;
use crate::refusal::Refusal;
use crate::rule::{Desired, Joined};
use crate::{names, proof, tags, zone};

/// A Service that is placed here, and what it has got so far.
pub(super) struct Placed<'a> {
    pub(super) service: &'a ServiceIntent,
    /// What each family needs, with the name of its frontend.
    pub(super) families: Vec<(Family, Desired, String)>,
    /// Frontends of its own that it does not use any more.
    pub(super) abandoned: Vec<String>,
}

/// The names that a Service keeps, in lower case. Rules and their probes have the same names, but a rule that stays may
/// get another probe.
#[derive(Default)]
pub(super) struct KeptNames {
    pub(super) rules: BTreeSet<String>,
    pub(super) probes: BTreeSet<String>,
}

pub(super) struct Draft<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) balancer: &'a Balancer,
    /// The load balancer's ID as it appears in the references to its parts.
    pub(super) id: ResourceId,
    /// `None` if it does not exist yet.
    pub(super) observed: Option<&'a LoadBalancer>,
    pub(super) known: Known<'a>,
    pub(super) document: LoadBalancer,
    pub(super) changes: Vec<Change>,
    /// The proofs for the parts that are removed.
    pub(super) ownership: Vec<Proof>,
    pub(super) for_keys: BTreeSet<ObjectKey>,
    pub(super) refused: BTreeMap<ObjectKey, Refusal>,
    pub(super) notices: Vec<Notice>,
    pub(super) has_present: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn new(
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
            ownership: Vec::new(),
            for_keys: BTreeSet::new(),
            refused: BTreeMap::new(),
            notices: Vec::new(),
            has_present: false,
        }
    }

    pub(super) fn properties(&mut self) -> &mut LoadBalancerProperties {
        self.document.properties.get_or_insert_default()
    }

    pub(super) fn frontends(&mut self) -> &mut Vec<FrontendIpConfiguration> {
        self.properties().frontend_ip_configurations.get_or_insert_default()
    }

    pub(super) fn rules(&mut self) -> &mut Vec<LoadBalancingRule> {
        self.properties().load_balancing_rules.get_or_insert_default()
    }

    pub(super) fn probes(&mut self) -> &mut Vec<Probe> {
        self.properties().probes.get_or_insert_default()
    }

    pub(super) fn pool_id(&self, name: &str) -> ResourceId {
        self.id.child("backendAddressPools", name)
    }

    pub(super) fn frontend_id(&self, name: &str) -> ResourceId {
        self.id.child("frontendIPConfigurations", name)
    }

    pub(super) fn note(&mut self, key: &ObjectKey, changes: impl IntoIterator<Item = Change>) {
        let before = self.changes.len();
        self.changes.extend(changes);
        if self.changes.len() > before {
            self.for_keys.insert(key.clone());
        }
    }

    /// Records that a part of a Service has been removed: the part, and the evidence that it was the Service's.
    pub(super) fn note_removal(&mut self, key: &ObjectKey, part: String, evidence: Evidence, change: Change) {
        self.ownership.push(Proof::new(proof::service(self.cluster, key), evidence).of_part(part));
        self.note(key, [change]);
    }

    pub(super) fn refuse(&mut self, key: &ObjectKey, refusal: Refusal) {
        self.refused.entry(key.clone()).or_insert(refusal);
    }

    /// Applies all Services; stops if some are refused, because their changes have to be undone.
    pub(super) fn apply_batch(
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
        // All rules are removed before any frontend is checked, so that a frontend shared by two leaving Services is
        // removed as well.
        self.remove_rules(absent.iter().map(|intent| (intent.owner(), KeptNames::default())));
        for intent in &absent {
            self.remove_frontends(intent);
        }

        // Services that are here already keep their place when places run out. Services that ask for certain addresses
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
    pub(super) fn remove_rules<'o>(&mut self, owners: impl Iterator<Item = (&'o ServiceRemoval, KeptNames)>) {
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
            for change in changes {
                let (part, name) = match &change {
                    Change::ProbeRemoved { probe } => (format!("probe {probe}"), probe),
                    Change::RuleRemoved { rule } => (format!("rule {rule}"), rule),
                    _ => continue,
                };
                let evidence = proof::named(name);
                self.note_removal(key, part, evidence, change);
            }
        }
    }

    /// Whether a Service has a frontend of its own here.
    pub(super) fn has_frontend(&mut self, index: &FrontendIndex, owner: &ServiceRemoval) -> bool {
        let Some(base) = owner.base_name.as_deref() else { return false };
        let mut like = index.like(self.frontends(), base);
        like.any(|frontend| crate::names::is_frontend_of(frontend::name_of(frontend), base))
    }

    /// Removes the frontends that only this leaving Service uses.
    pub(super) fn remove_frontends(&mut self, intent: &LoadBalancerIntent) {
        let owner = intent.owner();
        let frontends = self.document.properties.iter();
        let frontends = frontends.flat_map(|p| p.frontend_ip_configurations.iter().flatten());
        let owned = frontend::owned_among(frontends, self.cluster, self.balancer, owner, intent.public_ips());
        for owned in owned {
            self.remove_frontend(owner, &owned.name);
        }
    }

    /// Removes a frontend. If others refer to it, it stays, and the owner gets a notice that names them.
    pub(super) fn remove_frontend(&mut self, owner: &ServiceRemoval, name: &str) -> Option<String> {
        let id = self.frontend_id(name);
        let reference = self.foreign_reference(&id, |rule| owner.owns_rule(rule));
        if let Some(reference) = &reference {
            let load_balancer = &self.balancer.name;
            // A frontend that Services share stays for the remaining ones: nothing is wrong, and nothing has to be
            // done.
            let is_shared = frontend::rules_at(self.properties(), &id)
                .any(|rule| !owner.owns_rule(rule) && crate::names::base_of(rule).is_some());
            let by = if is_shared { "another Service uses it" } else { "it is in use" };
            self.notices.push(Notice {
                service: owner.key.clone(),
                warning: !is_shared,
                reason: "DeletingFrontendIPConfiguration",
                message: format!(
                    "frontend {name} of load balancer {load_balancer} stays, because {by}: {reference} refers to it"
                ),
            });
        } else {
            self.frontends().retain(|frontend| !is_named(&frontend.name, name));
            let (frontend, service) = (name.to_owned(), owner.key.clone());
            let is_own = owner.base_name.as_deref().is_some_and(|base| names::is_frontend_of(name, base));
            // Another Service's frontend that this one shared is removed when the last of them leaves.
            let evidence = match is_own {
                true => proof::named(name),
                false => Evidence::Refers { resource: id.to_string() },
            };
            let change = Change::FrontendRemoved { frontend, service };
            self.note_removal(&owner.key, format!("frontend {name}"), evidence, change);
        }
        reference
    }

    /// Describes a reference to the frontend other than from the Service's own rules; `None` without one.
    pub(super) fn foreign_reference(
        &mut self,
        id: &ResourceId,
        is_own_rule: impl Fn(&str) -> bool,
    ) -> Option<String> {
        let link = private_link::at(self.known.private_links, id);
        let link = link.filter(|link| private_link::is_unmanaged(self.cluster, link));
        let by_link = link.map(|link| format!("private link service {}", private_link::name_of(link)));
        frontend::foreign_reference(self.properties(), id, is_own_rule).or(by_link)
    }

    /// The observed frontends that are no longer in the document.
    pub(super) fn frontends_gone(&mut self) -> Vec<ResourceId> {
        let kept: BTreeSet<String> =
            self.frontends().iter().map(|frontend| frontend::name_of(frontend).to_lowercase()).collect();
        let observed = self.observed.and_then(|document| document.properties.as_ref());
        let observed = observed.into_iter().flat_map(|p| p.frontend_ip_configurations.iter().flatten());
        let gone = observed.map(frontend::name_of).filter(|name| !kept.contains(&name.to_lowercase()));
        gone.map(|name| self.frontend_id(name)).collect()
    }

    /// Updates the Service's rules, probes and pools in place.
    pub(super) fn write_rules(&mut self, placed: &Placed<'_>, index: &mut RuleIndex) -> Result<(), Refusal> {
        let service = placed.service;
        for (family, desired, frontend_name) in &placed.families {
            let frontend = self.frontend_id(frontend_name);
            let pool_name = self.pool_for(service, *family, index)?;
            let pool = self.pool_id(&pool_name);
            conflict::check(service, desired, &frontend, &pool, self.properties(), index)?;
            // A Service's own pool is only needed for its rules.
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

    pub(super) fn ensure_pool(&mut self, key: &ObjectKey, name: String) {
        let pools = self.properties().backend_address_pools.get_or_insert_default();
        if !pools.iter().any(|pool| is_named(&pool.name, &name)) {
            pools.push(BackendAddressPool { name: Some(name.clone()), ..Default::default() });
            self.note(key, [Change::PoolAdded { pool: name }]);
        }
    }

    /// Removes the shared probe if no rule uses it any more.
    pub(super) fn drop_unused_shared_probe(&mut self) {
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
        for change in removed {
            if let Change::SharedProbeRemoved { probe } = &change {
                self.ownership.push(proof::within(self.cluster, &self.id, format!("probe {probe}")));
            }
            self.changes.push(change);
        }
    }

    /// Whether the load balancer holds anything that the cluster may not remove.
    pub(super) fn is_needed(&mut self) -> bool {
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

    /// The proofs that the load balancer may be written and that each part may be removed; empty if it is created.
    fn proofs(&mut self) -> Vec<Proof> {
        if self.observed.is_none() {
            return Vec::new();
        }
        let (cluster, id) = (self.cluster, &self.id);
        let gone = self.changes.iter().filter_map(|change| match change {
            Change::PoolMembers { pool, gone, .. } => Some((pool, gone)),
            _ => None,
        });
        let member = |pool: &String, address: &String| {
            let resource = id.child("backendAddressPools", pool);
            proof::within(cluster, &resource, format!("member {address} of backend pool {pool}"))
        };
        let members = gone.flat_map(|(pool, gone)| gone.iter().map(move |address| (pool, address)));
        let members = members.map(|(pool, address)| member(pool, address));
        let whole = proof::load_balancer(cluster, self.balancer);
        std::iter::once(whole).chain(std::mem::take(&mut self.ownership)).chain(members).collect()
    }

    pub(super) fn finish(mut self, refused: Vec<(ObjectKey, Refusal)>) -> LoadBalancerPlan {
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
        let ownership = self.proofs();
        let mut step = Step {
            action: if self.observed.is_some() { Action::Update } else { Action::Create },
            target: id,
            if_match: self.document.etag.clone(),
            document: None,
            changes: self.changes,
            purpose: if repairs { Purpose::Repair } else { Purpose::Change },
            on_behalf_of: self.for_keys.into_iter().collect(),
            ownership,
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
