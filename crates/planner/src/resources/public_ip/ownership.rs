//! The owner of a public IP, by its tags and name, and what a Service may do with it.

use std::collections::{BTreeSet, HashSet};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{PublicIpAddress, ResourceId, Tags};
use k8s::{Notice, ObjectKey};
use ownership::{Evidence, Proof};

use super::document::{address_of, name_of, version_of};
use crate::model::annotation_keys::{self as keys, full_key};
use crate::model::{Balancer, Cluster, Family, names};
use crate::outcome::proof;
use crate::resources::load_balancer::ListedLoadBalancer;
use crate::service::ServiceRemoval;

/// The proof that a public IP may be written unchanged, or made to keep its address: a frontend of this load balancer
/// of the cluster refers to it.
pub fn used_by(cluster: &Cluster, load_balancer: &ResourceId) -> Proof {
    Proof::new(proof::cluster(cluster), Evidence::Refers { resource: load_balancer.to_string() })
}

/// The tag that lists the Services which use the address, separated by commas.
pub const SERVICE_TAG: &str = "k8s-azure-service";

/// The tags with the Services that use the address; the first one is written.
pub(super) const SERVICE_TAGS: [&str; 2] = [SERVICE_TAG, "service"];

/// The tags with the cluster that uses the address; the first one is written.
pub(super) const CLUSTER_TAGS: [&str; 2] = ["k8s-azure-cluster-name", "kubernetes-cluster-name"];

/// The tags with the Service that chose the DNS label; the first one is written.
pub(super) const DNS_TAGS: [&str; 2] = ["k8s-azure-dns-label-service", "kubernetes-dns-label-service"];

/// A public IP's relation to a Service and to the cluster.
///
/// A tag alone proves nothing: users set it, and older releases set it on addresses of users. The cluster's own public
/// IPs have both a name that the cluster assigns and its tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ownership {
    /// Whether the cluster's programs maintain its tags. Otherwise it is a user's: it is used, and neither tagged nor
    /// deleted.
    pub(super) managed: bool,
    /// Whether the Service is listed on it, and uses it or did.
    pub(super) used: bool,
    /// Whether it was created for a Service of the cluster: it is deleted with the last Service that uses it.
    pub(super) made: bool,
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
    let is_key = |(namespace, name): (&str, &str)| {
        namespace.eq_ignore_ascii_case(&key.namespace) && name.eq_ignore_ascii_case(&key.name)
    };
    services(value).any(|listed| listed.split_once('/').is_some_and(is_key))
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

/// The base name of a Service in the name that a cluster assigns to its public IP, in lower case.
pub(crate) fn base_in_name(cluster: &Cluster, public_ip: &PublicIpAddress) -> Option<String> {
    let name = name_of(public_ip).to_ascii_lowercase();
    let rest = name.strip_prefix(&cluster.name.to_ascii_lowercase())?.strip_prefix('-')?;
    rest.split('-').next().map(str::to_owned)
}

/// The resource that refers to a public IP, as Azure reports it: a frontend, a network interface, a gateway.
fn user_of(public_ip: &PublicIpAddress) -> Option<ResourceId> {
    let properties = public_ip.properties.as_ref()?;
    let by_configuration = properties.ip_configuration.as_ref().and_then(|reference| reference.id.clone());
    let gateway = || properties.rest.get("natGateway")?.get("id")?.as_str()?.parse().ok();
    by_configuration.or_else(gateway)
}

/// The addresses of the cluster's public IPs, each with a Service that its tag names. A public IP that is used by
/// anything other than a load balancer of the cluster serves none of them.
pub fn tagged_addresses<'a>(
    cluster: &Cluster,
    public_ips: impl IntoIterator<Item = &'a PublicIpAddress>,
    is_own_load_balancer: impl Fn(&ResourceId) -> bool,
) -> Vec<(ObjectKey, IpAddr)> {
    let mut found = Vec::new();
    for public_ip in public_ips {
        let Some(address) = address_of(public_ip) else { continue };
        let user = user_of(public_ip);
        let is_used_elsewhere =
            user.is_some_and(|user| !user.parent().is_some_and(|one| is_own_load_balancer(&one)));
        if is_of_other_cluster(cluster, public_ip) || is_used_elsewhere {
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

/// The addresses of public IPs that are used by anything other than a load balancer of the cluster, as Azure reports
/// it. `load_balancers` are the cluster's.
pub fn addresses_of_others<'a>(
    cluster: &Cluster,
    public_ips: impl IntoIterator<Item = &'a PublicIpAddress>,
    load_balancers: &[(Balancer, ListedLoadBalancer)],
) -> BTreeSet<IpAddr> {
    let mut own: HashSet<ResourceId> =
        load_balancers.iter().filter_map(|(_, document)| document.id.clone()).collect();
    own.extend(cluster.balancers().iter().map(|balancer| cluster.load_balancer_id(balancer)));
    let is_of_others = |public_ip: &&PublicIpAddress| {
        user_of(public_ip).is_some_and(|user| !user.parent().is_some_and(|parent| own.contains(&parent)))
    };
    public_ips.into_iter().filter(is_of_others).filter_map(address_of).collect()
}

/// Whether a public IP may move from one load balancer to another: neither its name nor its tags say that the cluster
/// created it, so it is a user's.
pub fn may_pass_on(cluster: &Cluster, public_ip: &PublicIpAddress) -> bool {
    let of_cluster = tag(public_ip.tags.as_ref(), CLUSTER_TAGS);
    base_in_name(cluster, public_ip).is_none() || !of_cluster.eq_ignore_ascii_case(&cluster.name)
}

/// Whether a public IP is tagged as another cluster's.
pub(crate) fn is_of_other_cluster(cluster: &Cluster, public_ip: &PublicIpAddress) -> bool {
    let of_cluster = tag(public_ip.tags.as_ref(), CLUSTER_TAGS);
    !of_cluster.is_empty() && !of_cluster.eq_ignore_ascii_case(&cluster.name)
}

/// Whether the Service is listed on a public IP of the cluster that it uses or used.
pub(crate) fn is_used_by(cluster: &Cluster, owner: &ServiceRemoval, public_ip: &PublicIpAddress) -> bool {
    // Checked for every public IP and every Service: most are listed with others.
    lists(tag(public_ip.tags.as_ref(), SERVICE_TAGS), &owner.key) && ownership(cluster, owner, public_ip).used
}

/// Whether a public IP has the name that the cluster assigns to this Service's.
pub(super) fn is_named_after(cluster: &Cluster, owner: &ServiceRemoval, public_ip: &PublicIpAddress) -> bool {
    let Some(base) = &owner.base_name else { return false };
    let made = names::public_ip_prefix(&cluster.name, base);
    let name = name_of(public_ip);
    let start = name.get(..made.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(&made))
        && matches!(name.as_bytes().get(made.len()), None | Some(b'-'))
}

/// Whether a public IP has a name that the cluster assigns: from its own name and the UID of a Service, which may be
/// deleted.
fn is_named_by_cluster(cluster: &Cluster, public_ip: &PublicIpAddress) -> bool {
    base_in_name(cluster, public_ip).is_some_and(|base| names::is_base_name(&base))
}

pub(super) fn ownership(cluster: &Cluster, owner: &ServiceRemoval, public_ip: &PublicIpAddress) -> Ownership {
    let service_tag = tag(public_ip.tags.as_ref(), SERVICE_TAGS);
    let of_cluster = tag(public_ip.tags.as_ref(), CLUSTER_TAGS);
    if is_of_other_cluster(cluster, public_ip) {
        return Ownership { managed: false, used: false, made: false };
    }
    let is_own = is_named_after(cluster, owner, public_ip);
    let made = is_own || is_named_by_cluster(cluster, public_ip);
    let has_users = services(service_tag).next().is_some();
    let managed = is_own || has_users && (made || !of_cluster.is_empty());
    // A Service of another cluster may have the same namespace, name and cluster name, and its addresses the same tags.
    let is_known = || {
        let address = address_of(public_ip);
        let published = address.is_some_and(|address| owner.published_addresses.contains(&address));
        is_own || published || is_pinned(owner, public_ip)
    };
    Ownership { managed, used: managed && lists(service_tag, &owner.key) && is_known(), made }
}

/// The proof that a public IP may be written for a Service: the tags, and the name if the cluster created it. A user's
/// public IP is written if the Service names it, to the extent that its annotations ask for.
pub(super) fn proof(cluster: &Cluster, owner: &ServiceRemoval, public_ip: &PublicIpAddress) -> Proof {
    let ours = ownership(cluster, owner, public_ip);
    let service = proof::service(cluster, &owner.key);
    let tag_of = |names: [&str; 2]| {
        let tags = || public_ip.tags.iter().flatten();
        let find = |name: &str| tags().find(|(key, _)| key.eq_ignore_ascii_case(name));
        let found = names.iter().find_map(|name| find(name)).filter(|(_, value)| !value.is_empty());
        found.map(|(key, value)| Evidence::Tag { key: key.clone(), value: value.clone() })
    };
    let name = ours.made.then(|| Evidence::Name {
        name: name_of(public_ip).to_owned(),
        rule: "the cluster's name and the UID of a Service",
    });
    let tags = [SERVICE_TAGS, CLUSTER_TAGS].into_iter().filter_map(tag_of).filter(|_| ours.managed);
    let mut facts = tags.chain(name);
    let asked = || {
        let family = version_of(public_ip).unwrap_or(Family::V4);
        let is_named = owner.public_ip_names.contains_key(&family);
        let key = match (is_named, family) {
            (true, Family::V4) => keys::PIP_NAME,
            (true, Family::V6) => keys::PIP_NAME_IPV6,
            (false, Family::V4) => keys::LOAD_BALANCER_IPV4,
            (false, Family::V6) => keys::LOAD_BALANCER_IPV6,
        };
        Evidence::Declared { key: format!("annotation {}", full_key(key)) }
    };
    let first = facts.next().unwrap_or_else(asked);
    facts.fold(Proof::new(service, first), Proof::and)
}

/// The users in the tag of a public IP, used by or created for the Service, that are not Services of the cluster.
pub(crate) fn strange_users(
    cluster: &Cluster,
    owner: &ServiceRemoval,
    public_ip: &PublicIpAddress,
    exists: impl Fn(&ObjectKey) -> bool,
) -> Vec<String> {
    // Whether it lists the Service itself is a separate question: the whole tag may have been changed by others.
    let is_its = || {
        let published =
            address_of(public_ip).is_some_and(|address| owner.published_addresses.contains(&address));
        published || is_named_after(cluster, owner, public_ip)
    };
    if !ownership(cluster, owner, public_ip).managed || !is_its() {
        return Vec::new();
    }
    let is_known = |user: &&str| {
        let key = user.split_once('/').map(|(namespace, name)| ObjectKey::new(namespace, name));
        lists(user, &owner.key) || key.is_some_and(|key| exists(&key))
    };
    let users = services(tag(public_ip.tags.as_ref(), SERVICE_TAGS));
    users.filter(|user| !is_known(user)).map(str::to_owned).collect()
}

/// The notice for a Service that leaves and is listed on a public IP which the cluster did not create: the public IP
/// stays.
pub fn kept(cluster: &Cluster, owner: &ServiceRemoval, public_ips: &[Arc<PublicIpAddress>]) -> Vec<Notice> {
    let key = owner.key.to_string();
    let is_kept = |one: &&Arc<PublicIpAddress>| {
        let users = tag(one.tags.as_ref(), SERVICE_TAGS);
        services(users).next().is_some()
            && services(users).all(|user| user.eq_ignore_ascii_case(&key))
            && !is_of_other_cluster(cluster, one)
            && !ownership(cluster, owner, one).made
    };
    let notice = |one: &Arc<PublicIpAddress>| Notice {
        service: owner.key.clone(),
        warning: false,
        reason: "PublicIPKept",
        message: format!(
            "public IP {} stays: its tag names this Service, but its name is not one that cluster {} gives, so \
             it was not made for it; delete it yourself if you do not need it any more",
            name_of(one),
            cluster.name
        ),
    };
    public_ips.iter().filter(is_kept).map(notice).collect()
}
