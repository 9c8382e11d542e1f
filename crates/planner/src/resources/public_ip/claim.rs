//! Which public IPs a Service names, requests by address, or may be concerned by at all.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use azure_types::{PublicIpAddress, ResourceId};
use k8s::ObjectKey;

use super::document::{address_of, is_in_group, name_of};
use super::ownership::{SERVICE_TAGS, services, tag};
use crate::model::{Cluster, Family, Flavor};
use crate::service::ServiceRemoval;

/// How a Service claims the public IP of a family of its frontends.
pub(super) enum Claim<'a> {
    /// By name.
    Named(&'a str),
    /// By the address that it has.
    Address(IpAddr),
    /// No claim: it gets one of its own.
    Generated,
}

pub(super) fn claim(owner: &ServiceRemoval, family: Family) -> Claim<'_> {
    match (owner.public_ip_names.get(&family), owner.requested_addresses.get(&family)) {
        (Some(name), _) => Claim::Named(name),
        (None, Some(address)) => Claim::Address(*address),
        (None, None) => Claim::Generated,
    }
}

/// The public IPs that a Service names or requests by address, out of all in its group. They identify the frontends
/// that it shares with others.
pub fn claimed(
    cluster: &Cluster,
    owner: &ServiceRemoval,
    observed: &[Arc<PublicIpAddress>],
) -> BTreeMap<Family, ResourceId> {
    let resolve = |family: Family| match claim(owner, family) {
        Claim::Named(name) => Some(cluster.public_ip_id(&owner.public_ip_group, name)),
        Claim::Address(address) => find_by_address(owner, address, observed)?.id.clone(),
        Claim::Generated => None,
    };
    if owner.flavor == Flavor::Internal {
        return BTreeMap::new();
    }
    Family::BOTH.into_iter().filter_map(|family| Some((family, resolve(family)?))).collect()
}

pub(super) fn find_by_address<'a>(
    owner: &ServiceRemoval,
    address: IpAddr,
    observed: &'a [Arc<PublicIpAddress>],
) -> Option<&'a PublicIpAddress> {
    let in_group = |public_ip: &&PublicIpAddress| is_in_group(public_ip, &owner.public_ip_group);
    observed
        .iter()
        .map(|one| &**one)
        .filter(in_group)
        .find(|public_ip| address_of(public_ip) == Some(address))
}

/// An index from public IPs to the Services that they may concern. Built once for all Services, so that hundreds of
/// them do not scan each other's addresses.
#[derive(Debug, Default)]
pub struct Owners {
    /// Each Service with the resource groups that its public IPs may be in.
    owners: Vec<(ObjectKey, BTreeSet<ResourceId>)>,
    by_key: HashMap<String, usize>,
    by_base_name: HashMap<String, usize>,
    by_public_ip_name: HashMap<String, Vec<usize>>,
    by_address: HashMap<IpAddr, Vec<usize>>,
}

impl Owners {
    /// Indexes these Services.
    pub fn new<'a>(services: impl Iterator<Item = &'a ServiceRemoval>) -> Self {
        let mut found = Self::default();
        for (number, owner) in services.enumerate() {
            found.owners.push((owner.key.clone(), owner.public_ip_groups.clone()));
            found.by_key.insert(owner.key.to_string().to_ascii_lowercase(), number);
            if let Some(base) = &owner.base_name {
                found.by_base_name.insert(base.to_ascii_lowercase(), number);
            }
            for name in owner.public_ip_names.values() {
                found.by_public_ip_name.entry(name.to_ascii_lowercase()).or_default().push(number);
            }
            for address in owner.requested_addresses.values() {
                found.by_address.entry(*address).or_default().push(number);
            }
        }
        found
    }

    /// The Services that a public IP may concern: by tag, by name or by address.
    pub fn concerned(&self, public_ip: &PublicIpAddress) -> BTreeSet<ObjectKey> {
        let name = name_of(public_ip).to_ascii_lowercase();
        let users = services(tag(public_ip.tags.as_ref(), SERVICE_TAGS));
        let tagged = users.filter_map(|user| self.by_key.get(&user.to_ascii_lowercase()));
        let named_after = name.split('-').filter_map(|part| self.by_base_name.get(part));
        let named = self.by_public_ip_name.get(&name).into_iter().flatten();
        let asked_for = address_of(public_ip).and_then(|address| self.by_address.get(&address));
        let all = tagged.chain(named_after).chain(named).chain(asked_for.into_iter().flatten());
        let mut candidates = all.filter_map(|number| self.owners.get(*number)).peekable();
        if candidates.peek().is_none() {
            return BTreeSet::new();
        }
        let group = public_ip.id.as_ref().and_then(ResourceId::parent);
        candidates
            .filter(|(_, groups)| group.as_ref().is_some_and(|group| groups.contains(group)))
            .map(|(key, _)| key.clone())
            .collect()
    }
}
