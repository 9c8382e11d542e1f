//! The edit of a load balancer: its document while the Services of a batch are applied.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use azure_types::{
    FrontendIpConfiguration, LoadBalancer, LoadBalancerProperties, LoadBalancingRule, Probe, ResourceId,
};
use k8s::{Notice, ObjectKey};
use ownership::{Evidence, Proof};

use super::frontend;
use super::index::FrontendIndex;
use super::intent::{Known, LoadBalancerIntent};
use super::parts::{base_of, is_named, text};
use super::rule::Desired;
use crate::machines::backend_pool::PoolMembership;
use crate::model::{Balancer, Cluster, Family, names, zone};
use crate::outcome::{Change, Refusal, Step, proof};
use crate::resources::private_link;
use crate::service::{ServiceIntent, ServiceRemoval};

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
        like.any(|frontend| crate::model::names::is_frontend_of(frontend::name_of(frontend), base))
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
                .any(|rule| !owner.owns_rule(rule) && crate::model::names::base_of(rule).is_some());
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
    /// frontend ([`crate::resources::public_ip::keep_address`]).
    pub addresses_to_keep: Vec<ResourceId>,
    /// The frontends that the step removes: private link services that offer them are removed before
    /// ([`crate::resources::private_link::plan_removal`]).
    pub frontends_gone: Vec<ResourceId>,
    /// The refused Services, in order of their keys; their parts stay as they are.
    pub refused: Vec<(ObjectKey, Refusal)>,
    /// The notices for the owners of Services.
    pub notices: Vec<Notice>,
}
