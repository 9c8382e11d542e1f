//! Frontends: which belong to a Service, and their documents.

use std::collections::BTreeMap;
use std::net::IpAddr;

use azure_types::{
    FrontendIpConfiguration, FrontendIpConfigurationProperties, LoadBalancerProperties, ResourceId,
    SubResource, Subnet, SubnetProperties, Word,
};
use ipnet::IpNet;

use super::listed::ListedLoadBalancer;
use crate::model::{Balancer, Cluster, Family, Flavor, names};
use crate::service::ServiceRemoval;

/// A frontend that a Service uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedFrontend {
    /// The frontend's name.
    pub name: String,
    /// The frontend's id.
    pub id: ResourceId,
    /// The family of its address.
    pub family: Family,
    /// The address of an internal frontend, once Azure has chosen one.
    pub private_address: Option<IpAddr>,
    /// The public IP of an external frontend.
    pub public_ip: Option<ResourceId>,
    /// Whether it is named after the Service. Otherwise it is another Service's, joined by address or by the name of
    /// the public IP.
    pub primary: bool,
}

pub(crate) fn name_of(frontend: &FrontendIpConfiguration) -> &str {
    frontend.name.as_deref().unwrap_or_default()
}

pub(crate) fn public_ip_of(frontend: &FrontendIpConfiguration) -> Option<&ResourceId> {
    frontend.properties.as_ref()?.public_ip_address.as_ref()?.id.as_ref()
}

pub(crate) fn private_address_of(frontend: &FrontendIpConfiguration) -> Option<IpAddr> {
    frontend.properties.as_ref()?.private_ip_address.as_deref()?.parse().ok()
}

/// The family of a frontend as far as its document says; `public_ips` are the public IPs whose families are known. The
/// name is no proof: the families of a Service change, and its frontends keep their names.
pub(crate) fn known_family(
    frontend: &FrontendIpConfiguration,
    public_ips: &BTreeMap<Family, ResourceId>,
) -> Option<Family> {
    if let Some(id) = public_ip_of(frontend) {
        return public_ips.iter().find(|(_, known)| *known == id).map(|(family, _)| *family);
    }
    let properties = frontend.properties.as_ref()?;
    let version = properties.private_ip_address_version.as_ref();
    let by_version =
        Family::BOTH.into_iter().find(|family| version.is_some_and(|word| word.is(family.as_str())));
    private_address_of(frontend).map(Family::of).or(by_version)
}

/// The family of a frontend, from its document or else from its name.
pub(crate) fn family_of(frontend: &FrontendIpConfiguration) -> Family {
    known_family(frontend, &BTreeMap::new()).unwrap_or_else(|| names::family_of_name(name_of(frontend)))
}

/// Whether the Service joined a frontend that is named after another: by address or public IP.
pub(crate) fn is_joined(
    owner: &ServiceRemoval,
    frontend: &FrontendIpConfiguration,
    public_ips: &BTreeMap<Family, ResourceId>,
) -> Option<Family> {
    // Most Services ask for no certain address.
    if !owner.is_pinned() {
        return None;
    }
    if let Some(private) = private_address_of(frontend) {
        let family = Family::of(private);
        let asked =
            owner.flavor == Flavor::Internal && owner.requested_addresses.get(&family) == Some(&private);
        return asked.then_some(family);
    }
    let shares = owner.flavor == Flavor::External;
    let public_ip = public_ip_of(frontend).filter(|_| shares)?;
    public_ips.iter().find(|(_, id)| *id == public_ip).map(|(family, _)| *family)
}

/// The frontends of a load balancer that a Service uses, in the load balancer's order. `public_ips` are the ones that
/// the Service claims ([`crate::resources::public_ip::claimed`]).
pub fn frontends_of(
    cluster: &Cluster,
    balancer: &Balancer,
    load_balancer: &ListedLoadBalancer,
    owner: &ServiceRemoval,
    public_ips: &BTreeMap<Family, ResourceId>,
) -> Vec<OwnedFrontend> {
    owned_among(load_balancer.frontends_for(owner), cluster, balancer, owner, public_ips)
}

/// The frontends among these that a Service uses, in their order.
pub(crate) fn owned_among<'a>(
    frontends: impl IntoIterator<Item = &'a FrontendIpConfiguration>,
    cluster: &Cluster,
    balancer: &Balancer,
    owner: &ServiceRemoval,
    public_ips: &BTreeMap<Family, ResourceId>,
) -> Vec<OwnedFrontend> {
    let mut owned = Vec::new();
    for frontend in frontends {
        let name = name_of(frontend);
        let primary = owner.base_name.as_deref().is_some_and(|base| names::is_frontend_of(name, base));
        let family = if primary {
            let by_name = || match owner.families.as_slice() {
                [single] => *single,
                _ => names::family_of_name(name),
            };
            Some(known_family(frontend, public_ips).unwrap_or_else(by_name))
        } else {
            is_joined(owner, frontend, public_ips)
        };
        if let Some(family) = family {
            let id = frontend.id.clone().unwrap_or_else(|| cluster.frontend_id(balancer, name));
            owned.push(OwnedFrontend {
                name: name.to_owned(),
                id,
                family,
                private_address: private_address_of(frontend),
                public_ip: public_ip_of(frontend).cloned(),
                primary,
            });
        }
    }
    owned
}

/// The load-balancing rules that refer to a frontend, by name.
pub(crate) fn rules_at<'a>(
    properties: &'a LoadBalancerProperties,
    frontend: &'a ResourceId,
) -> impl Iterator<Item = &'a str> {
    let rules = properties.load_balancing_rules.iter().flatten();
    let here = rules.filter(move |rule| {
        let reference = rule.properties.as_ref().and_then(|p| p.frontend_ip_configuration.as_ref());
        reference.and_then(|reference| reference.id.as_ref()) == Some(frontend)
    });
    here.map(|rule| rule.name.as_deref().unwrap_or_default())
}

/// Describes a reference to the frontend other than from the Service's own rules; `None` without one.
pub(crate) fn foreign_reference(
    properties: &LoadBalancerProperties,
    frontend: &ResourceId,
    is_own_rule: impl Fn(&str) -> bool,
) -> Option<String> {
    let refers = |reference: &Option<SubResource>| {
        reference.as_ref().and_then(|reference| reference.id.as_ref()) == Some(frontend)
    };
    let named = |kind: &str, name: &Option<String>| format!("{kind} {}", name.as_deref().unwrap_or_default());
    if let Some(rule) = rules_at(properties, frontend).find(|rule| !is_own_rule(rule)) {
        return Some(format!("load-balancing rule {rule}"));
    }
    for rule in properties.outbound_rules.iter().flatten() {
        let frontends = rule.properties.iter().flat_map(|p| p.frontend_ip_configurations.iter().flatten());
        if frontends.into_iter().any(|reference| reference.id.as_ref() == Some(frontend)) {
            return Some(named("outbound rule", &rule.name));
        }
    }
    for rule in properties.inbound_nat_rules.iter().flatten() {
        if rule.properties.as_ref().is_some_and(|p| refers(&p.frontend_ip_configuration)) {
            return Some(named("inbound NAT rule", &rule.name));
        }
    }
    for pool in properties.inbound_nat_pools.iter().flatten() {
        if pool.properties.as_ref().is_some_and(|p| refers(&p.frontend_ip_configuration)) {
            return Some(named("inbound NAT pool", &pool.name));
        }
    }
    None
}

/// A subnet in the form that load balancers send.
pub(crate) fn reduced(subnet: &Subnet) -> Subnet {
    Subnet { id: subnet.id.clone(), name: subnet.name.clone(), ..Default::default() }
}

/// The ranges of a subnet.
fn ranges(subnet: &Subnet) -> impl Iterator<Item = IpNet> {
    let listed = |p: &SubnetProperties| {
        let ranges = p.address_prefixes.iter().flatten().chain(&p.address_prefix);
        ranges.filter_map(|range| range.parse().ok()).collect::<Vec<_>>()
    };
    subnet.properties.as_ref().map(listed).unwrap_or_default().into_iter()
}

/// Whether an address lies in a subnet, in any of its ranges.
pub(crate) fn contains(subnet: &Subnet, address: IpAddr) -> bool {
    ranges(subnet).any(|range| range.contains(&address))
}

/// Whether a subnet has ranges, but none of a family.
pub(crate) fn lacks(subnet: &Subnet, family: Family) -> bool {
    let mut ranges = ranges(subnet).peekable();
    ranges.peek().is_some() && !ranges.any(|range| Family::of(range.addr()) == family)
}

/// Whether Azure chose a frontend's private address and may choose another.
pub(crate) fn is_dynamic(frontend: &FrontendIpConfiguration) -> bool {
    let method = frontend.properties.as_ref().and_then(|p| p.private_ip_allocation_method.as_ref());
    method.is_some_and(|method| method.is("Dynamic"))
}

/// Where a new frontend's address comes from.
pub(crate) enum Source<'a> {
    /// A public IP.
    PublicIp(&'a ResourceId),
    /// A subnet, with the desired address in it, if any.
    Subnet(&'a Subnet, Option<IpAddr>),
}

/// The document of a new frontend.
pub(crate) fn document(
    id: ResourceId,
    family: Family,
    source: &Source<'_>,
    zones: Option<Vec<String>>,
) -> FrontendIpConfiguration {
    let mut properties = FrontendIpConfigurationProperties::default();
    match source {
        Source::PublicIp(public_ip) => {
            properties.public_ip_address = Some(SubResource::to((*public_ip).clone()));
        }
        Source::Subnet(subnet, address) => {
            properties.private_ip_address_version = (family == Family::V6).then(|| Word::from("IPv6"));
            set_private(&mut properties, subnet, *address);
        }
    }
    FrontendIpConfiguration {
        name: Some(id.name().to_owned()),
        id: Some(id),
        zones,
        properties: Some(properties),
        ..Default::default()
    }
}

/// Points a frontend at a subnet, at a given address or at any free one.
pub(crate) fn set_private(
    properties: &mut FrontendIpConfigurationProperties,
    subnet: &Subnet,
    address: Option<IpAddr>,
) {
    properties.subnet = Some(reduced(subnet));
    properties.private_ip_address = address.map(|address| address.to_string());
    let method = if address.is_some() { "Static" } else { "Dynamic" };
    properties.private_ip_allocation_method = Some(Word::from(method));
}
