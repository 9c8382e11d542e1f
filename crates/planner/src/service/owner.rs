//! What a Service owns, and how that is found, whatever the state of the Service.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use azure_types::ResourceId;
use k8s::{ObjectKey, Service};

use super::annotations::Annotations;
use super::arrival::Arrival;
use crate::model::annotation_keys::{self as keys, full_key};
use crate::model::words::names_word;
use crate::model::{Cluster, Family, Flavor, names};
use crate::outcome::Refusal;

/// What is needed to find and remove everything that a Service has, whatever its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceRemoval {
    /// Namespace and name.
    pub key: ObjectKey,
    /// The prefix of the names of everything that it owns; `None` for an object without a UID, which owns nothing by
    /// name.
    pub base_name: Option<String>,
    /// The flavor of load balancer that it asks for.
    pub flavor: Flavor,
    /// The address families, first the primary one.
    pub families: Vec<Family>,
    /// The resource group of its public IPs.
    pub public_ip_group: String,
    /// All resource groups that may hold its public IPs: that one, the cluster's, and the ones that its frontends were
    /// seen to refer to ([`crate::order::sequence::Sequence::see_frontends`]).
    pub public_ip_groups: BTreeSet<ResourceId>,
    /// The resource groups that its private link service may be in.
    pub private_link_groups: BTreeSet<ResourceId>,
    /// The public IPs that it names.
    pub public_ip_names: BTreeMap<Family, String>,
    /// The addresses that it asks for, if they can be parsed.
    pub requested_addresses: BTreeMap<Family, IpAddr>,
    /// Addresses that it has by other means, if they can be parsed.
    pub additional_addresses: Vec<IpAddr>,
    /// The addresses in its status.
    pub published_addresses: Vec<IpAddr>,
    /// Where the packets of each family arrive.
    pub(crate) arrivals: BTreeMap<Family, Arrival>,
}

/// The families of a Service; IPv4 if it names none.
fn families(service: &Service) -> Vec<Family> {
    let named: Vec<Family> = service
        .spec
        .ip_families
        .iter()
        .filter_map(|family| match family.as_str() {
            "IPv4" => Some(Family::V4),
            "IPv6" => Some(Family::V6),
            _ => None,
        })
        .collect();
    if named.is_empty() { vec![Family::V4] } else { named }
}

/// Whether a Service is internal: the annotation is `true`, in any case. The only test for it.
pub(crate) fn flavor(service: &Service) -> Flavor {
    if Annotations(service).flag(keys::INTERNAL) { Flavor::Internal } else { Flavor::External }
}

/// A value with one key for each family. A Service of IPv6 alone may use the IPv4 key as well.
pub(crate) fn by_family<'a>(service: &'a Service, v4: &str, v6: &str) -> BTreeMap<Family, (String, &'a str)> {
    let annotations = Annotations(service);
    let families = families(service);
    let mut values = BTreeMap::new();
    for family in &families {
        let own = match family {
            Family::V4 => v4,
            Family::V6 => v6,
        };
        let found = annotations.non_empty(own).map(|value| (own.to_owned(), value)).or_else(|| {
            let alone = families.len() == 1;
            alone.then(|| annotations.non_empty(v4).map(|value| (v4.to_owned(), value))).flatten()
        });
        if let Some(found) = found {
            values.insert(*family, found);
        }
    }
    values
}

/// An address that a Service asks for.
pub(crate) struct Requested {
    /// The annotation or field with the address.
    pub(super) origin: String,
    pub(super) address: IpAddr,
}

/// The requested addresses by family: the family's annotation, else `spec.loadBalancerIP` if it is of that family. Text
/// that is not an address is refused with its origin.
pub(crate) fn requested(service: &Service) -> (BTreeMap<Family, Requested>, Vec<Refusal>) {
    let annotations = Annotations(service);
    let (mut addresses, mut problems) = (BTreeMap::new(), Vec::new());
    let families = families(service);
    let unmapped = |text: &str| text.parse::<IpAddr>().map(|address| address.to_canonical());
    let mut annotated = false;
    for (family, key) in [(Family::V4, keys::LOAD_BALANCER_IPV4), (Family::V6, keys::LOAD_BALANCER_IPV6)] {
        let Some(value) = annotations.non_empty(key) else { continue };
        annotated = true;
        let origin = format!("annotation {}", full_key(key));
        match unmapped(value) {
            Ok(address) if Family::of(address) == family => {
                if families.contains(&family) {
                    addresses.insert(family, Requested { origin, address });
                }
            }
            _ => problems.push(Refusal::InvalidAddress {
                origin,
                value: value.to_owned(),
                family: Some(family),
            }),
        }
    }
    let value = service.spec.load_balancer_ip.as_str();
    let origin = "spec.loadBalancerIP".to_owned();
    match unmapped(value) {
        Ok(address) => {
            let family = Family::of(address);
            if families.contains(&family) {
                addresses.entry(family).or_insert(Requested { origin, address });
            }
        }
        Err(_) if value.is_empty() || annotated => {}
        Err(_) => {
            problems.push(Refusal::InvalidAddress { origin, value: value.to_owned(), family: None });
        }
    }
    (addresses, problems)
}

impl ServiceRemoval {
    /// Reads what a Service owns. Never fails: deletion is always possible.
    pub fn of(cluster: &Cluster, service: &Service) -> Self {
        let annotations = Annotations(service);
        let parsed = |text: &str| text.trim().parse::<IpAddr>().ok();
        let (flavor, families) = (flavor(service), families(service));
        let arrival = |family| (family, Arrival::of(cluster, service, flavor, family));
        let of_cluster = &cluster.config.resource_group;
        let public_ip_group = annotations.trimmed(keys::PUBLIC_IP_GROUP).unwrap_or(of_cluster);
        Self {
            key: service.key(),
            base_name: names::base_name(service.uid()),
            flavor,
            arrivals: families.iter().copied().map(arrival).collect(),
            families,
            public_ip_group: public_ip_group.to_owned(),
            public_ip_groups: [public_ip_group, of_cluster].map(|group| cluster.network_group(group)).into(),
            private_link_groups: groups(cluster, service),
            public_ip_names: by_family(service, keys::PIP_NAME, keys::PIP_NAME_IPV6)
                .into_iter()
                .map(|(family, (_, name))| (family, name.to_owned()))
                .collect(),
            requested_addresses: requested(service)
                .0
                .into_iter()
                .map(|(family, requested)| (family, requested.address))
                .collect(),
            additional_addresses: annotations.items(keys::ADDITIONAL_PUBLIC_IPS).filter_map(parsed).collect(),
            published_addresses: service
                .status
                .load_balancer
                .ingress
                .iter()
                .filter_map(|ingress| parsed(&ingress.ip))
                .collect(),
        }
    }

    /// Whether a rule or probe belongs to the Service. The shared probe belongs to no single Service.
    pub(crate) fn owns_rule(&self, name: &str) -> bool {
        self.base_name.as_deref().is_some_and(|base| names::is_rule_of(name, base))
    }

    /// Where the packets of a family arrive; for a family that the Service does not have, the first family's value.
    pub(crate) fn arrival(&self, family: Family) -> Arrival {
        let arrival = self.arrivals.get(&family).or_else(|| self.arrivals.values().next());
        arrival.copied().unwrap_or(Arrival::Frontend)
    }

    /// Whether the Service asks for certain addresses or public IPs.
    pub(crate) fn is_pinned(&self) -> bool {
        !self.requested_addresses.is_empty() || !self.public_ip_names.is_empty()
    }

    /// Whether a text contains the Service's base name, its addresses or its public IPs, in any case.
    pub(crate) fn is_named_in(&self, lower_case_text: &str) -> bool {
        let names =
            self.public_ip_names.values().map(|name| format!("publicipaddresses/{}", name.to_lowercase()));
        self.base_name.iter().any(|base| lower_case_text.contains(&base.to_lowercase()))
            || names.into_iter().any(|name| names_word(lower_case_text, &name))
            || self
                .requested_addresses
                .values()
                .any(|address| names_word(lower_case_text, &address.to_string().to_lowercase()))
    }
}

/// The resource group of the Service's private link service.
pub(crate) fn group<'a>(cluster: &'a Cluster, service: &'a Service) -> &'a str {
    let configured = || cluster.config.private_link_service_resource_group();
    Annotations(service).trimmed(keys::PLS_GROUP).unwrap_or_else(configured)
}

/// The resource groups that the Service's private link service may be in.
pub(crate) fn groups(cluster: &Cluster, service: &Service) -> BTreeSet<ResourceId> {
    let configured = cluster.config.private_link_service_resource_group();
    [configured, group(cluster, service)].map(|group| cluster.network_group(group)).into()
}
