//! Places on load balancers: which Services have one, and which were promised one. Checked before an address is bought.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use azure_types::LoadBalancer;
use k8s::ObjectKey;

use super::limits::{MAX_FRONTENDS, MAX_RULES, full};
use super::parts::names;
use crate::model::Balancer;
use crate::outcome::Refusal;
use crate::service::ServiceIntent;

/// The places of all load balancers.
#[derive(Debug, Default, Clone)]
pub struct Places(HashMap<Balancer, Occupancy>);

impl Places {
    /// The places of one load balancer.
    pub fn of(&mut self, balancer: &Balancer) -> &mut Occupancy {
        self.0.entry(balancer.clone()).or_default()
    }

    /// A Service wants something else than it was promised places for. The promises are adapted to its new intent;
    /// promises on load balancers other than `destination`, if that is known, are released.
    pub fn revise(&mut self, intent: &ServiceIntent, destination: Option<&Balancer>) {
        for (balancer, occupancy) in &mut self.0 {
            if balancer.flavor != intent.flavor || destination.is_some_and(|one| one != balancer) {
                occupancy.release(&intent.key);
            } else {
                occupancy.revise(intent);
            }
        }
    }

    /// Releases all places that were promised to a Service.
    pub fn release(&mut self, key: &ObjectKey) {
        self.0.values_mut().for_each(|occupancy| occupancy.release(key));
    }

    /// The Services whose promised place no load balancer shows yet.
    pub fn promised(&self) -> impl Iterator<Item = ObjectKey> + '_ {
        self.0.values().flat_map(|occupancy| occupancy.promised.keys().cloned())
    }

    /// Releases a Service's places except on this load balancer.
    pub(crate) fn release_elsewhere(&mut self, key: &ObjectKey, balancer: &Balancer) {
        let others = self.0.iter_mut().filter(|(one, _)| *one != balancer);
        others.for_each(|(_, occupancy)| occupancy.release(key));
    }

    /// Whether a Service was promised a place on a load balancer that does not show it yet.
    pub(crate) fn has_promised(&self, balancer: &Balancer, key: &ObjectKey) -> bool {
        self.0.get(balancer).is_some_and(|occupancy| occupancy.promised.contains_key(key))
    }
}

/// The places of one load balancer. Hundreds of Services may be on their way to it at once. Each reserves a place here
/// before its public IP is written, so that no address is bought that no frontend can use.
#[derive(Debug, Default, Clone)]
pub struct Occupancy {
    /// The version of the document that was counted.
    version: Option<String>,
    frontends: usize,
    rules: usize,
    /// The base names of Services that have a frontend in it.
    holders: BTreeSet<String>,
    /// The Services that were promised a place and are not in the document yet.
    promised: BTreeMap<ObjectKey, ReservedPlaces>,
}

#[derive(Debug, Clone)]
struct ReservedPlaces {
    base_name: String,
    frontends: usize,
    rules: usize,
}

impl ReservedPlaces {
    fn of(intent: &ServiceIntent) -> Self {
        let families = intent.families.len();
        let rules =
            if intent.ha_ports { 1 } else { intent.ports.iter().filter(|port| port.has_rule).count() };
        // A Service that names an address may join an existing frontend.
        let frontends = if intent.removal().is_pinned() { 0 } else { families };
        Self { base_name: intent.base_name.clone(), frontends, rules: rules * families }
    }
}

impl Occupancy {
    /// Promises a place to a Service, unless it has one.
    ///
    /// # Errors
    ///
    /// If Azure's limit would be exceeded, counting the places promised before.
    pub fn reserve(
        &mut self,
        balancer: &Balancer,
        observed: Option<&LoadBalancer>,
        intent: &ServiceIntent,
    ) -> Result<(), Refusal> {
        self.count(observed);
        if self.holders.contains(&intent.base_name) || self.promised.contains_key(&intent.key) {
            return Ok(());
        }
        let need = ReservedPlaces::of(intent);
        let promised = self.promised.values();
        let (frontends, rules) = promised.fold((self.frontends, self.rules), |(frontends, rules), need| {
            (frontends + need.frontends, rules + need.rules)
        });
        if frontends + need.frontends > MAX_FRONTENDS {
            return Err(full(&balancer.name, "frontends", MAX_FRONTENDS));
        }
        if rules + need.rules > MAX_RULES {
            return Err(full(&balancer.name, "rules", MAX_RULES));
        }
        self.promised.insert(intent.key.clone(), need);
        Ok(())
    }

    /// The rules of Services other than `key` that were promised a place and are not in the document yet.
    pub(crate) fn promised_rules(&mut self, observed: Option<&LoadBalancer>, key: &ObjectKey) -> usize {
        self.count(observed);
        let others = self.promised.iter().filter(|(promised, _)| *promised != key);
        others.map(|(_, need)| need.rules).sum()
    }

    /// A Service wants something else than it was promised a place for: the promise is adapted to its new intent. If
    /// that needs more, it has to reserve again.
    fn revise(&mut self, intent: &ServiceIntent) {
        let Some(promised) = self.promised.get_mut(&intent.key) else { return };
        let need = ReservedPlaces::of(intent);
        if need.frontends > promised.frontends || need.rules > promised.rules {
            self.promised.remove(&intent.key);
        } else {
            *promised = need;
        }
    }

    /// Releases a promise.
    pub(crate) fn release(&mut self, key: &ObjectKey) {
        self.promised.remove(key);
    }

    fn count(&mut self, observed: Option<&LoadBalancer>) {
        let version = observed.and_then(|document| document.etag.clone());
        if version.is_some() && version == self.version {
            return;
        }
        let properties = observed.and_then(|document| document.properties.as_ref());
        let frontends = properties.and_then(|p| p.frontend_ip_configurations.as_ref()).map_or(0, Vec::len);
        let rules = properties.and_then(|p| p.load_balancing_rules.as_ref()).map_or(0, Vec::len);
        let nat_rules = properties.and_then(|p| p.inbound_nat_rules.as_ref()).map_or(0, Vec::len);
        self.version = version;
        self.frontends = frontends;
        self.rules = rules + nat_rules;
        // A Service that shares another's frontend has only rules.
        let bases = observed.into_iter().flat_map(names).filter_map(|name| name.split('-').next());
        self.holders = bases.map(str::to_owned).collect();
        let holders = &self.holders;
        self.promised.retain(|_, need| !holders.contains(&need.base_name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Flavor;
    use crate::order::tests::{Svc, cluster, svc};

    fn balancer(name: &str, flavor: Flavor) -> Balancer {
        Balancer { name: name.to_owned(), flavor }
    }

    /// A promise is adapted to what its Service wants by now, as far as it suffices, and released elsewhere.
    #[test]
    fn a_promise_follows_its_service() {
        let (here, other) = (balancer("here", Flavor::External), balancer("other", Flavor::External));
        let web = || svc("web").tcp(80).tcp(81);
        let key = web().arc().key();
        for (service, destination, expected) in [
            (web(), None, Some((1, 2))),
            (svc("web").tcp(80), None, Some((1, 1))),
            (svc("web").tcp(80), Some(&here), Some((1, 1))),
            (web().tcp(82), None, None),
            (web().dual(), None, None),
            // A frontend more, and no rule more.
            (svc("web").tcp(80).dual(), None, None),
            (web().annotate("azure-load-balancer-ipv4", "20.0.0.1"), None, Some((0, 2))),
            // A rule more, and a frontend less.
            (web().tcp(82).annotate("azure-load-balancer-ipv4", "20.0.0.1"), None, None),
            (web(), Some(&other), None),
            (web().internal(), None, None),
            (svc("another").tcp(80).tcp(81).tcp(82), None, Some((1, 2))),
        ] {
            let mut places = Places::default();
            places.of(&here).reserve(&here, None, &web().intent(&cluster())).unwrap();
            places.revise(&service.intent(&cluster()), destination);
            let promised = places.of(&here).promised.get(&key).map(|need| (need.frontends, need.rules));
            assert_eq!(promised, expected, "{service:?} {destination:?}");
            assert_eq!(places.promised().collect::<Vec<_>>(), Vec::from_iter(expected.map(|_| key.clone())));
            assert_eq!(places.has_promised(&here, &key), expected.is_some());
        }
    }

    /// `count` Services with this many ports each are promised places, and then one more.
    fn reserve(count: usize, ports: i32, last: Svc) -> Result<(), Refusal> {
        let here = balancer("here", Flavor::External);
        let mut places = Occupancy::default();
        for number in 0..count {
            let service =
                (0..ports).fold(svc(&format!("svc{number}")), |service, port| service.tcp(port + 1));
            places.reserve(&here, None, &service.intent(&cluster()))?;
        }
        places.reserve(&here, None, &last.intent(&cluster()))
    }

    #[test]
    fn places_are_promised_up_to_azures_limits() {
        assert_eq!(reserve(MAX_FRONTENDS - 1, 1, svc("last").tcp(80)), Ok(()));
        assert_eq!(
            reserve(MAX_FRONTENDS, 1, svc("last").tcp(80)),
            Err(full("here", "frontends", MAX_FRONTENDS))
        );
        assert_eq!(reserve(MAX_FRONTENDS, 1, svc("svc0").tcp(80)), Ok(()), "it has one");
        let last = |ports| (0..ports).fold(svc("last"), |service, port| service.tcp(port + 1));
        assert_eq!(reserve(MAX_RULES / 100 - 1, 100, last(100)), Ok(()));
        assert_eq!(reserve(MAX_RULES / 100 - 1, 100, last(101)), Err(full("here", "rules", MAX_RULES)));
    }
}
