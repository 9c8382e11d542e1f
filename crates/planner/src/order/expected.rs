//! Azure as a preview expects it: the observed state with the steps so far applied.
//!
//! Placeholders from ranges that are never assigned (0.0.0.0/8 and 100::/64) stand for addresses that Azure has yet to
//! choose, so that everything that follows is planned as it will be. Texts for people name no placeholder.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use azure_types::{LoadBalancer, PrivateLinkService, PublicIpAddress, ResourceId, SecurityGroup, Subnet};
use k8s::{ObjectKey, Service};

use super::observed::Observed;
use super::sequence::Sequence;
use crate::machines::inventory::Machines;
use crate::model::{Balancer, Cluster, Family};
use crate::outcome::{Action, Document, Step};
use crate::resources::load_balancer::{ListedLoadBalancer, LoadBalancersByName, frontend};
use crate::resources::public_ip;

/// The text for values that Azure has yet to choose.
const KNOWN_AFTER_APPLY: &str = "(known after apply)";

/// The expected state of Azure.
pub(crate) struct Expected {
    balancers: BTreeMap<ResourceId, Balancer>,
    load_balancers: Vec<(Balancer, ListedLoadBalancer)>,
    public_ips: BTreeMap<ResourceId, Arc<PublicIpAddress>>,
    /// The public IPs that concern each Service.
    concerned: BTreeMap<ObjectKey, BTreeSet<ResourceId>>,
    owners: public_ip::Owners,
    security_group: Option<SecurityGroup>,
    machines: Machines,
    private_links: Vec<Arc<PrivateLinkService>>,
    subnets: Vec<Arc<Subnet>>,
    stand_ins: HashSet<String>,
}

impl Expected {
    pub(crate) fn new(
        cluster: &Cluster,
        services: &[Arc<Service>],
        observed: &Observed,
        sequences: &mut [Sequence],
    ) -> Self {
        let all = observed.load_balancers.iter().cloned();
        let load_balancers = cluster.own_load_balancers(all, services).into_iter();
        let load_balancers: Vec<_> =
            load_balancers.map(|(one, document)| (one, document.indexed())).collect();
        let former = load_balancers.iter().map(|(balancer, _)| balancer.clone());
        let all = cluster.balancers().into_iter().chain(former);
        let balancers: BTreeMap<ResourceId, Balancer> =
            all.map(|one| (cluster.load_balancer_id(&one), one)).collect();
        let by_name =
            LoadBalancersByName::new(cluster, observed.load_balancers.iter().map(Arc::as_ref), services);
        for sequence in sequences.iter_mut() {
            sequence.see_load_balancers(&by_name, || services.to_vec());
            sequence.see_frontends(cluster, &load_balancers);
        }
        let mut machines = observed.machines.clone();
        machines.scale_sets.sort_by(|(a, _), (b, _)| a.id.cmp(&b.id));
        let mut expected = Self {
            load_balancers,
            balancers,
            public_ips: BTreeMap::new(),
            concerned: BTreeMap::new(),
            owners: public_ip::Owners::new(sequences.iter().map(|sequence| &**sequence.owner())),
            security_group: observed.security_group.clone(),
            machines,
            private_links: observed.private_links.clone(),
            subnets: observed.subnets.clone(),
            stand_ins: HashSet::new(),
        };
        for public_ip in &observed.public_ips {
            if let Some(id) = public_ip.id.clone() {
                expected.put_public_ip(id, Arc::clone(public_ip));
            }
        }
        expected
    }

    pub(crate) fn load_balancers(&self) -> &[(Balancer, ListedLoadBalancer)] {
        &self.load_balancers
    }

    pub(crate) fn load_balancer(&self, balancer: &Balancer) -> Option<ListedLoadBalancer> {
        let found = self.load_balancers.iter().find(|(one, _)| one == balancer);
        found.map(|(_, document)| document.clone())
    }

    pub(crate) fn public_ips_of(&self, key: &ObjectKey) -> Vec<Arc<PublicIpAddress>> {
        let ids = self.concerned.get(key).into_iter().flatten();
        ids.filter_map(|id| self.public_ips.get(id)).cloned().collect()
    }

    pub(crate) fn public_ip(&self, id: &ResourceId) -> Option<&PublicIpAddress> {
        self.public_ips.get(id).map(|public_ip| &**public_ip)
    }

    pub(crate) fn security_group(&self) -> Option<&SecurityGroup> {
        self.security_group.as_ref()
    }

    /// The machines; the scale sets among them in order of their ids.
    pub(crate) fn machines(&self) -> &Machines {
        &self.machines
    }

    pub(crate) fn private_links(&self) -> &[Arc<PrivateLinkService>] {
        &self.private_links
    }

    pub(crate) fn subnet(&self, id: &ResourceId) -> Option<&Arc<Subnet>> {
        self.subnets.iter().find(|subnet| subnet.id.as_ref() == Some(id))
    }

    /// The operations that run on these public IPs have ended: each has an address.
    pub(crate) fn settle(&mut self, ids: &[ResourceId]) {
        for id in ids {
            let Some(mut document) = self.public_ips.remove(id) else { continue };
            Arc::make_mut(&mut document).properties.get_or_insert_default().provisioning_state = None;
            self.put_public_ip_in_use(id.clone(), document);
        }
    }

    /// An address in texts for people: one that Azure has yet to choose is shown as such.
    pub(crate) fn describe_unknown(&self, address: &str) -> String {
        if self.stand_ins.contains(address) { KNOWN_AFTER_APPLY } else { address }.to_owned()
    }

    /// Whether a step writes a value that Azure has yet to choose.
    pub(crate) fn has_unknown(&self, step: &Step) -> bool {
        let is_unknown = |address: &str| self.stand_ins.contains(address);
        match &step.document {
            _ if self.stand_ins.is_empty() => false,
            Some(Document::LoadBalancer(document)) => {
                let properties = document.properties.iter();
                let frontends = properties.flat_map(|p| p.frontend_ip_configurations.iter().flatten());
                let mut addresses =
                    frontends.filter_map(|one| one.properties.as_ref()?.private_ip_address.as_deref());
                addresses.any(is_unknown)
            }
            Some(Document::PublicIp(document)) => {
                let address = document.properties.as_ref().and_then(|p| p.ip_address.as_deref());
                address.is_some_and(is_unknown)
            }
            Some(Document::SecurityGroup(document)) => {
                let rules = document.properties.iter().flat_map(|p| p.security_rules.iter().flatten());
                let mut properties = rules.filter_map(|rule| rule.properties.as_ref());
                properties.any(|p| {
                    let list = p.destination_address_prefixes.iter().flatten();
                    list.chain(&p.destination_address_prefix).any(|prefix| is_unknown(prefix))
                })
            }
            // The other documents are written for their references, never for an address that Azure chooses.
            _ => false,
        }
    }

    /// Applies steps that write only machines.
    pub(crate) fn apply_to_machines(&mut self, steps: &[Step]) {
        self.machines.apply(steps);
    }

    /// Applies a step.
    pub(crate) fn apply(&mut self, step: &Step) {
        let id = &step.target;
        match &step.document {
            None if step.action == Action::Delete => self.delete(id),
            None => {}
            Some(Document::PublicIp(document)) => {
                let mut document = PublicIpAddress::clone(document);
                document.id = Some(id.clone());
                document.etag = None;
                document.properties.get_or_insert_default().provisioning_state = None;
                self.put_public_ip_in_use(id.clone(), Arc::new(document));
            }
            Some(Document::LoadBalancer(document)) => {
                self.put_load_balancer(id, LoadBalancer::clone(document))
            }
            Some(Document::PrivateLink(document)) => {
                let mut document = PrivateLinkService::clone(document);
                document.id = Some(id.clone());
                document.etag = None;
                document.properties.get_or_insert_default().provisioning_state = None;
                self.private_links.retain(|link| link.id.as_ref() != Some(id));
                self.private_links.push(Arc::new(document));
            }
            Some(Document::Subnet(document)) => {
                let mut document = Subnet::clone(document);
                document.etag = None;
                self.subnets.retain(|subnet| subnet.id.as_ref() != Some(id));
                self.subnets.push(Arc::new(document));
            }
            Some(Document::SecurityGroup(document)) => {
                let mut document = SecurityGroup::clone(document);
                document.etag = None;
                if let Some(properties) = &mut document.properties {
                    properties.provisioning_state = None;
                }
                self.security_group = Some(document);
            }
            // No Service depends on it.
            Some(Document::RouteTable(_)) => {}
            Some(Document::ScaleSet(_) | Document::ScaleSetInstance(_) | Document::NetworkInterface(_)) => {
                self.machines.apply(std::slice::from_ref(step))
            }
        }
    }

    fn delete(&mut self, id: &ResourceId) {
        let balancers = &self.balancers;
        self.load_balancers.retain(|(balancer, _)| balancers.get(id) != Some(balancer));
        self.public_ips.remove(id);
        self.private_links.retain(|link| link.id.as_ref() != Some(id));
        for link in &mut self.private_links {
            let connections = link.properties.as_ref().and_then(|p| p.private_endpoint_connections.as_ref());
            if !connections.is_some_and(|all| all.iter().any(|connection| connection.id.as_ref() == Some(id)))
            {
                continue;
            }
            let properties = Arc::make_mut(link).properties.as_mut();
            if let Some(connections) = properties.and_then(|p| p.private_endpoint_connections.as_mut()) {
                connections.retain(|connection| connection.id.as_ref() != Some(id));
            }
        }
    }

    /// Puts a public IP in use: it has an address, which Azure may have yet to choose.
    fn put_public_ip_in_use(&mut self, id: ResourceId, mut document: Arc<PublicIpAddress>) {
        let has_address = document.properties.as_ref().is_some_and(|p| p.ip_address.is_some());
        if !has_address {
            let properties = Arc::make_mut(&mut document).properties.get_or_insert_default();
            let word = properties.public_ip_address_version.as_ref();
            let family = if word.is_some_and(|word| word.is("IPv6")) { Family::V6 } else { Family::V4 };
            properties.ip_address = Some(self.stand_in(family).to_string());
        }
        self.put_public_ip(id, document);
    }

    fn put_public_ip(&mut self, id: ResourceId, document: Arc<PublicIpAddress>) {
        for key in self.owners.concerned(&document) {
            self.concerned.entry(key).or_default().insert(id.clone());
        }
        self.public_ips.insert(id, document);
    }

    fn put_load_balancer(&mut self, id: &ResourceId, mut document: LoadBalancer) {
        let Some(balancer) = self.balancers.get(id).cloned() else { return };
        document.id = Some(id.clone());
        document.etag = None;
        let properties = document.properties.get_or_insert_default();
        properties.provisioning_state = None;
        for frontend in properties.frontend_ip_configurations.iter_mut().flatten() {
            let family = frontend::family_of(frontend);
            let Some(properties) = frontend.properties.as_mut() else { continue };
            // A dynamic public IP gets its address with its first frontend.
            let public_ip = properties.public_ip_address.as_ref().and_then(|ip| ip.id.as_ref());
            if let Some((id, document)) = public_ip.and_then(|id| self.public_ips.remove_entry(id)) {
                self.put_public_ip_in_use(id, document);
            }
            if properties.subnet.is_some() && properties.private_ip_address.is_none() {
                properties.private_ip_address = Some(self.stand_in(family).to_string());
            }
        }
        self.load_balancers.retain(|(one, _)| *one != balancer);
        self.load_balancers.push((balancer, ListedLoadBalancer::from(Arc::new(document)).indexed()));
    }

    fn stand_in(&mut self, family: Family) -> IpAddr {
        let number = u32::try_from(self.stand_ins.len() + 1).unwrap_or(u32::MAX);
        let address = match family {
            Family::V4 => IpAddr::V4(Ipv4Addr::from_bits(number & 0x00ff_ffff)),
            Family::V6 => IpAddr::V6(Ipv6Addr::from_bits((0x0100 << 112) | u128::from(number))),
        };
        self.stand_ins.insert(address.to_string());
        address
    }
}
