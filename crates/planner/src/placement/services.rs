//! The placement of a Service on one of several load balancers (`multipleStandardLoadBalancerConfigurations`; 7.4).
//!
//! Placement keeps no state: the Services of a load balancer are read from its document every time, and from the places
//! that were [promised](Places) to Services on their way. So a Service stays where it is as long as that is allowed,
//! whichever process decides. It moves when its annotation, its labels or those of its namespace no longer allow its
//! load balancer, or when it asks for an address on another.

use azure_types::LoadBalancer;
use cloud_config::MultipleStandardLoadBalancerConfiguration as Entry;

use super::basic;
use super::candidates::{check_move, document_of, is_entry_of, is_load_balancer, rules_in};
use super::observed::Seen;
use crate::model::{Balancer, Cluster, Flavor, Labels};
use crate::outcome::{Refusal, Stop, Unfit, Wait};
use crate::resources::load_balancer::{self, ListedLoadBalancer, Occupancy, Places, frontend};
use crate::resources::public_ip;
use crate::service::ServiceIntent;

/// Checks that one of several load balancers has the cluster's name (LB-221).
///
/// # Errors
///
/// If none has: no Service is served then.
pub fn check(cluster: &Cluster) -> Result<(), Refusal> {
    let mut entries = cluster.config.multiple_standard_load_balancer_configurations.iter();
    if !cluster.has_several_load_balancers()
        || entries.any(|one| one.name.eq_ignore_ascii_case(&cluster.name))
    {
        return Ok(());
    }
    Err(Refusal::NoConfigurationOfCluster { cluster: cluster.name.clone() })
}

/// The load balancer that a Service is placed on. Where there are several, the place is also promised.
///
/// # Errors
///
/// If no load balancer is allowed, if the one that has the requested address is not allowed, or if the Service's
/// namespace is not known.
pub(crate) fn place(
    cluster: &Cluster,
    intent: &ServiceIntent,
    seen: &Seen<'_>,
    places: &mut Places,
) -> Result<Balancer, Stop> {
    if cluster.config.uses_basic_load_balancer() {
        return basic::place(cluster, intent, seen);
    }
    if !cluster.has_several_load_balancers() {
        return Ok(cluster.placement(intent.flavor));
    }
    let placing = Placing { cluster, intent, seen };
    check(cluster)?;
    let eligible = placing.eligible(places)?;
    let current = placing.current(&eligible, places)?;
    let balancer = match current {
        Some(current) => current,
        None => placing.choose(&eligible, places)?,
    };
    if let Err(refusal) = check_move(cluster, intent, seen, &balancer) {
        places.release(&intent.key);
        return Err(refusal);
    }
    places.settle(&balancer, placing.document(&balancer).map(|document| &**document), intent)?;
    Ok(balancer)
}

/// A Service to be placed.
struct Placing<'a> {
    cluster: &'a Cluster,
    intent: &'a ServiceIntent,
    seen: &'a Seen<'a>,
}

impl<'a> Placing<'a> {
    fn entries(&self) -> &'a [Entry] {
        &self.cluster.config.multiple_standard_load_balancer_configurations
    }

    fn balancer(&self, entry: &Entry) -> Balancer {
        self.cluster.balancer(&entry.name, self.intent.flavor)
    }

    fn document(&self, balancer: &Balancer) -> Option<&'a ListedLoadBalancer> {
        document_of(self.seen, balancer)
    }

    /// Whether the Service is on a load balancer of the entry, of either flavor, or was promised a place there.
    fn is_active(&self, entry: &Entry, places: &Places) -> bool {
        let owner = self.intent.removal();
        Flavor::BOTH.into_iter().any(|flavor| {
            let balancer = self.cluster.balancer(&entry.name, flavor);
            self.document(&balancer).is_some_and(|document| load_balancer::is_named_after(document, owner))
                || places.has_promised(&balancer, &self.intent.key)
        })
    }

    /// The entries that the Service may use, in their order (7.4.1).
    fn eligible(&self, places: &Places) -> Result<Vec<&'a Entry>, Stop> {
        let named = &self.intent.placement.configurations;
        let is_named = |entry: &&Entry| {
            named.is_empty() || named.iter().any(|name| name.eq_ignore_ascii_case(&entry.name))
        };
        let candidates: Vec<&Entry> = self.entries().iter().filter(is_named).collect();
        let mut unfit = Unfit::default();
        let mut eligible = Vec::new();
        for entry in &candidates {
            let labels = &self.intent.placement.labels;
            if !entry.allow_service_placement && !self.is_active(entry, places) {
                unfit.closed.push(entry.name.clone());
            } else if entry.service_label_selector.as_ref().is_some_and(|selector| !selector.matches(labels))
            {
                unfit.by_labels.push(entry.name.clone());
            } else if let Some(selector) = &entry.service_namespace_selector
                && !selector.matches(self.namespace()?)
            {
                unfit.by_namespace.push(entry.name.clone());
            } else {
                eligible.push(*entry);
            }
        }
        let names = |entries: &[&Entry]| entries.iter().map(|entry| entry.name.clone()).collect();
        if candidates.is_empty() {
            let configured = self.entries().iter().map(|entry| entry.name.clone()).collect();
            return Err(Refusal::UnknownConfigurations { named: named.clone(), configured }.into());
        }
        if eligible.is_empty() {
            let service = self.intent.key.clone();
            return Err(Refusal::NoEligibleLoadBalancer {
                service,
                selected: names(&candidates),
                unfit: Box::new(unfit),
            }
            .into());
        }
        // Load balancers without a selector are for Services that no selector selects.
        let has_selector = |entry: &&Entry| {
            entry.service_label_selector.is_some() || entry.service_namespace_selector.is_some()
        };
        if eligible.iter().any(has_selector) {
            eligible.retain(has_selector);
        }
        Ok(eligible)
    }

    fn namespace(&self) -> Result<&'a Labels, Stop> {
        self.seen.namespace.ok_or_else(|| {
            let namespace = &self.intent.key.namespace;
            Stop::NotYet(Wait::NamespaceUnknown {
                namespace: namespace.to_string(),
                service: self.intent.key.clone(),
            })
        })
    }

    /// The load balancer that the Service is on, if it may stay there.
    fn current(&self, eligible: &[&Entry], places: &Places) -> Result<Option<Balancer>, Stop> {
        if self.intent.removal().is_pinned()
            && let Some(found) = self.of_requested_address()
        {
            return match eligible.iter().find(|entry| is_entry_of(entry, &found)) {
                Some(entry) => Ok(Some(self.balancer(entry))),
                None => {
                    let eligible = eligible.iter().map(|entry| entry.name.clone()).collect();
                    let service = self.intent.key.clone();
                    Err(Refusal::AddressOnOtherLoadBalancer { service, load_balancer: found.name, eligible }
                        .into())
                }
            };
        }
        // A frontend of its own is better evidence than a promise, and a promise is better than rules, which may be
        // left on the load balancer that the Service leaves.
        let owner = self.intent.removal();
        let has_frontend = |entry: &&&Entry| {
            let document = self.document(&self.balancer(entry));
            document.is_some_and(|document| load_balancer::has_frontend_of(document, owner))
        };
        let is_promised = |entry: &&&Entry| places.has_promised(&self.balancer(entry), &self.intent.key);
        let at = eligible.iter().find(has_frontend);
        let at = at.or_else(|| eligible.iter().find(is_promised));
        let at = at.or_else(|| eligible.iter().find(|entry| self.is_active(entry, places)));
        Ok(at.map(|entry| self.balancer(entry)))
    }

    /// The load balancer that has the address that the Service asks for; `None` if no load balancer uses the address,
    /// or if the Service leaves that load balancer because no entry names it any more.
    fn of_requested_address(&self) -> Option<Balancer> {
        let owner = self.intent.removal();
        if self.intent.flavor.is_internal() {
            let has_it = |(balancer, document): &&(Balancer, ListedLoadBalancer)| {
                let properties = document.properties.iter();
                let frontends = properties.flat_map(|p| p.frontend_ip_configurations.iter().flatten());
                let mut addresses = frontends.filter_map(frontend::private_address_of);
                balancer.flavor.is_internal()
                    && self.cluster.is_configured(balancer)
                    && addresses.any(|address| owner.requested_addresses.values().any(|own| *own == address))
            };
            return self.seen.load_balancers.iter().find(has_it).map(|(balancer, _)| balancer.clone());
        }
        let claimed = public_ip::claimed(self.cluster, owner, self.seen.public_ips);
        claimed.values().find_map(|id| {
            let public_ip = self.seen.public_ips.iter().find(|one| one.id.as_ref() == Some(id))?;
            if public_ip::is_of_other_cluster(self.cluster, public_ip) {
                return None;
            }
            let user = public_ip.properties.as_ref()?.ip_configuration.as_ref()?.id.as_ref()?;
            let load_balancer = user.parent()?;
            if !is_load_balancer(&load_balancer) {
                return None;
            }
            let known =
                self.seen.load_balancers.iter().find(|(_, one)| one.id.as_ref() == Some(&load_balancer));
            match known {
                Some((balancer, _)) => self.cluster.is_configured(balancer).then(|| balancer.clone()),
                None => Some(Balancer { name: load_balancer.name().to_owned(), flavor: Flavor::External }),
            }
        })
    }

    /// The best load balancer (7.4.2): the first without rules, existing ones before others; else the one with the
    /// fewest rules. Places that were promised to others count. A full load balancer is chosen only if no other is
    /// allowed.
    fn choose(&self, eligible: &[&Entry], places: &mut Places) -> Result<Balancer, Stop> {
        let mut ranked: Vec<((u8, usize), Balancer)> = eligible
            .iter()
            .map(|entry| {
                let balancer = self.balancer(entry);
                let document = self.document(&balancer).map(|document| &**document);
                let rules =
                    rules_in(document) + places.of(&balancer).promised_rules(document, &self.intent.key);
                let rank = match (document, rules) {
                    (Some(_), 0) => (0, 0),
                    (None, 0) => (1, 0),
                    (_, rules) => (2, rules),
                };
                (rank, balancer)
            })
            .collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        let mut full = None;
        for (_, balancer) in ranked {
            let document = self.document(&balancer).map(|document| &**document);
            match places.of(&balancer).reserve(&balancer, document, self.intent) {
                Ok(()) => return Ok(balancer),
                Err(refusal) => drop(full.get_or_insert(refusal)),
            }
        }
        let refusal = full.unwrap_or_else(|| Refusal::NoEligibleLoadBalancer {
            service: self.intent.key.clone(),
            selected: Vec::new(),
            unfit: Box::default(),
        });
        Err(refusal.into())
    }
}

impl Places {
    /// Places the Service on this load balancer and releases its places on all others.
    fn settle(
        &mut self,
        balancer: &Balancer,
        observed: Option<&LoadBalancer>,
        intent: &ServiceIntent,
    ) -> Result<(), Refusal> {
        self.release_elsewhere(&intent.key, balancer);
        let occupancy: &mut Occupancy = self.of(balancer);
        occupancy.reserve(balancer, observed, intent)
    }
}
