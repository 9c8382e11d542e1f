//! Whose a public IP is: what its tags say, and what a Service may do with it.

use std::net::IpAddr;

use azure_types::{PublicIpAddress, Tags};
use k8s::ObjectKey;

use super::{address_of, name_of, version_of};
use crate::cluster::{Cluster, Family};
use crate::intent::ServiceRemoval;

/// Which Services use the address, separated by commas; first the key that is written.
pub(super) const SERVICE_TAGS: [&str; 2] = ["k8s-azure-service", "service"];
/// Which cluster uses the address; first the key that is written.
pub(super) const CLUSTER_TAGS: [&str; 2] = ["k8s-azure-cluster-name", "kubernetes-cluster-name"];
/// Which Service chose the DNS label; first the key that is written.
pub(super) const DNS_TAGS: [&str; 2] = ["k8s-azure-dns-label-service", "kubernetes-dns-label-service"];

/// A public IP's relation to a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ownership {
    /// The Service may use and release it.
    pub(super) owned: bool,
    /// A cluster put its tags on it; otherwise somebody brought it along, and it is never tagged or deleted.
    pub(super) managed: bool,
}

pub(super) fn tag<'a>(tags: Option<&'a Tags>, names: [&str; 2]) -> &'a str {
    let find = |name: &str| {
        let mut entries = tags.into_iter().flatten();
        entries.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    };
    names.iter().find_map(|name| find(name)).unwrap_or_default()
}

pub(super) fn services(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').map(str::trim).filter(|key| !key.is_empty())
}

pub(super) fn lists(value: &str, key: &ObjectKey) -> bool {
    let key = key.to_string();
    services(value).any(|listed| listed.eq_ignore_ascii_case(&key))
}

pub(super) fn set_tag(tags: &mut Tags, key: &str, value: String) {
    match tags.iter_mut().find(|(name, _)| name.eq_ignore_ascii_case(key)) {
        Some((_, old)) => *old = value,
        None => {
            tags.insert(key.to_owned(), value);
        }
    }
}

pub(super) fn is_pinned(owner: &ServiceRemoval, public_ip: &PublicIpAddress) -> bool {
    let family = version_of(public_ip).unwrap_or(Family::V4);
    let address = address_of(public_ip);
    let by_address = address.is_some() && owner.requested_addresses.get(&family).copied() == address;
    let by_name =
        owner.public_ip_names.get(&family).is_some_and(|name| name_of(public_ip).eq_ignore_ascii_case(name));
    by_address || by_name
}

/// The addresses of the cluster's public IPs, each with a Service that its tag names.
pub fn tagged_addresses<'a>(
    cluster: &Cluster,
    public_ips: impl IntoIterator<Item = &'a PublicIpAddress>,
) -> Vec<(ObjectKey, IpAddr)> {
    let mut found = Vec::new();
    for public_ip in public_ips {
        let of_cluster = tag(public_ip.tags.as_ref(), CLUSTER_TAGS);
        let Some(address) = address_of(public_ip) else { continue };
        if !of_cluster.is_empty() && !of_cluster.eq_ignore_ascii_case(&cluster.name) {
            continue;
        }
        for key in services(tag(public_ip.tags.as_ref(), SERVICE_TAGS)) {
            if let Some((namespace, name)) = key.split_once('/') {
                let key = ObjectKey::new(namespace, name);
                found.push((key, address));
            }
        }
    }
    found
}

/// Whether a public IP is tagged as another cluster's.
pub(crate) fn is_of_other_cluster(cluster: &Cluster, public_ip: &PublicIpAddress) -> bool {
    let of_cluster = tag(public_ip.tags.as_ref(), CLUSTER_TAGS);
    !of_cluster.is_empty() && !of_cluster.eq_ignore_ascii_case(&cluster.name)
}

/// Whether a public IP is tagged as one that the Service of this cluster uses.
pub(crate) fn is_used_by(cluster: &Cluster, owner: &ServiceRemoval, public_ip: &PublicIpAddress) -> bool {
    let ours = ownership(cluster, owner, public_ip);
    ours.owned && ours.managed && lists(tag(public_ip.tags.as_ref(), SERVICE_TAGS), &owner.key)
}

pub(super) fn ownership(cluster: &Cluster, owner: &ServiceRemoval, public_ip: &PublicIpAddress) -> Ownership {
    let service_tag = tag(public_ip.tags.as_ref(), SERVICE_TAGS);
    let has_address = address_of(public_ip).is_some();
    if services(service_tag).next().is_none() {
        return Ownership { owned: has_address && is_pinned(owner, public_ip), managed: false };
    }
    if lists(service_tag, &owner.key) {
        let of_cluster = tag(public_ip.tags.as_ref(), CLUSTER_TAGS);
        let ours = of_cluster.is_empty() || of_cluster.eq_ignore_ascii_case(&cluster.name);
        return Ownership { owned: ours, managed: true };
    }
    Ownership { owned: has_address && is_pinned(owner, public_ip), managed: true }
}
