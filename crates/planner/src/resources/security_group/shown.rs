//! The cluster's addresses, as Azure shows them: without this proof no rule is closed.
//!
//! Two clusters may share one security group, and if they ask for the same traffic, they share rules, too. Neither the
//! name of a rule nor the absence of an address in this cluster proves to which cluster the address belongs.

use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{PublicIpAddress, ResourceId, SecurityGroup};
use k8s::{ObjectKey, Service};
use ownership::{Evidence, Proof};

use super::rule;
use crate::model::{Balancer, Cluster, names};
use crate::outcome::{Change, Step, proof};
use crate::resources::load_balancer::{ListedLoadBalancer, base_of, frontend};
use crate::resources::public_ip;

/// An address that belongs to a Service, as Azure shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownAddress {
    /// The Service.
    pub service: ObjectKey,
    /// The address.
    pub address: IpAddr,
    /// The evidence.
    pub proof: Proof,
}

/// The addresses of the Services' own public IPs, and of the frontends that are named after them or that their rules
/// refer to. `load_balancers` are the cluster's.
pub fn shown_addresses(
    cluster: &Cluster,
    services: &[Arc<Service>],
    load_balancers: &[(Balancer, ListedLoadBalancer)],
    public_ips: &[Arc<PublicIpAddress>],
) -> Vec<ShownAddress> {
    let keys: HashMap<String, ObjectKey> = services
        .iter()
        .filter_map(|service| Some((names::base_name(service.uid())?.to_ascii_lowercase(), service.key())))
        .collect();
    let mut shown = Vec::new();
    let mut show = |service: &ObjectKey, address: IpAddr, evidence: Evidence| {
        let proof = Proof::new(proof::service(cluster, service), evidence);
        shown.push(ShownAddress { service: service.clone(), address, proof });
    };
    let mut addresses: HashMap<&ResourceId, IpAddr> = HashMap::new();
    for one in public_ips {
        let Some(address) = public_ip::address_of(one) else { continue };
        addresses.extend(one.id.as_ref().map(|id| (id, address)));
        let owner = public_ip::base_in_name(cluster, one).and_then(|base| keys.get(&base));
        if let Some(service) = owner
            && !public_ip::is_of_other_cluster(cluster, one)
        {
            show(service, address, proof::named(public_ip::name_of(one)));
        }
    }
    for (balancer, document) in load_balancers {
        let Some(properties) = &document.properties else { continue };
        let mut at: HashMap<ResourceId, IpAddr> = HashMap::new();
        for one in properties.frontend_ip_configurations.iter().flatten() {
            let public = || addresses.get(frontend::public_ip_of(one)?).copied();
            let Some(address) = frontend::private_address_of(one).or_else(public) else { continue };
            let name = frontend::name_of(one);
            if let Some(service) = keys.get(&base_of(name)) {
                show(service, address, proof::named(name));
            }
            at.insert(one.id.clone().unwrap_or_else(|| cluster.frontend_id(balancer, name)), address);
        }
        for rule in properties.load_balancing_rules.iter().flatten() {
            let name = rule.name.as_deref().unwrap_or_default();
            let id = rule.properties.as_ref().and_then(|p| p.frontend_ip_configuration.as_ref()?.id.as_ref());
            if let (Some(service), Some(id)) = (keys.get(&base_of(name)), id)
                && let Some(address) = at.get(id)
            {
                show(service, *address, Evidence::Refers { resource: id.as_str().to_owned() });
            }
        }
    }
    shown
}

/// The proof that this process recorded an address as the cluster's while the security group was open there.
pub fn recorded(cluster: &Cluster) -> Proof {
    Proof::new(proof::cluster(cluster), Evidence::Recorded { place: "the memory of this process".to_owned() })
}

/// The addresses that a step removes from rules.
pub fn closed_addresses(step: &Step) -> BTreeSet<IpAddr> {
    let gone = step.changes.iter().flat_map(|change| match change {
        Change::SecurityRuleDestinations { gone, .. } => gone.as_slice(),
        Change::SecurityRuleRemoved { destinations, .. } => destinations.as_slice(),
        _ => &[],
    });
    gone.filter_map(|destination| destination.parse().ok()).collect()
}

/// The addresses in the managed rules of a group.
pub fn open_addresses(group: &SecurityGroup) -> BTreeSet<IpAddr> {
    let rules = group.properties.iter().flat_map(|p| p.security_rules.iter().flatten());
    let properties = rules.filter(|rule| rule::is_managed(rule)).filter_map(|rule| rule.properties.as_ref());
    let destinations = properties.flat_map(|p| {
        rule::spread(rule::items(&p.destination_address_prefix, &p.destination_address_prefixes))
    });
    destinations.filter_map(|destination| destination.parse().ok()).collect()
}
