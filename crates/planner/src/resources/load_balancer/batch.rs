//! Applies the Services of a batch to a load balancer's document, in an order that leaves each its place.

use std::collections::{BTreeMap, BTreeSet};

use azure_types::{BackendAddressPool, ResourceId};
use k8s::ObjectKey;
use ownership::Proof;

use super::edit::{Draft, KeptNames, LoadBalancerPlan, Placed};
use super::index::{FrontendIndex, RuleIndex};
use super::intent::{KnownServices, LoadBalancerIntent};
use super::parts::{is_failed, is_named, text};
use super::rule::Joined;
use super::{conflict, frontend, leftover, limits, members, probe};
use crate::machines::backend_pool;
use crate::model::Family;
use crate::outcome::{Action, Change, Document, Purpose, Refusal, Step, Unfinished, proof};
use crate::resources::tags;

impl<'a> Draft<'a> {
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
