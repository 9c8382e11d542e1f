//! The document of a private link service, as a Service asks for it, member by member. Members set by others stay.

use std::sync::Arc;

use azure_types::{
    PrivateLinkService, PrivateLinkServiceIpConfiguration, ResourceId, SubResource, Subnet, SubscriptionList,
    Word,
};
use k8s::ObjectKey;

use super::ownership::{CLUSTER_TAG, OWNER_TAG, tag};
use crate::model::{Cluster, names};
use crate::outcome::Change;
use crate::resources::tags;
use crate::service::PrivateLinkIntent;

/// The desired private link service, and its Service.
pub(super) struct Wanted<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) service: &'a ObjectKey,
    pub(super) intent: &'a PrivateLinkIntent,
    /// The subnet of its addresses.
    pub(super) subnet: &'a ResourceId,
}

/// Makes a private link service offer a frontend.
pub(super) fn offer(link: &mut PrivateLinkService, frontend: &ResourceId) {
    let properties = link.properties.get_or_insert_default();
    properties.load_balancer_frontend_ip_configurations = Some(vec![SubResource::to(frontend.clone())]);
}

/// Whether two lists contain the same items, in any order.
fn is_same(one: &[String], other: &[String]) -> bool {
    let sorted = |list: &[String]| {
        let mut list = list.to_vec();
        list.sort_unstable();
        list
    };
    sorted(one) == sorted(other)
}

/// Sets a list to the desired items; an absent list counts as empty.
fn set_list(list: &'static str, current: &mut Option<Vec<String>>, wanted: &[String]) -> Option<Change> {
    let old = current.as_deref().unwrap_or_default();
    if is_same(old, wanted) {
        return None;
    }
    let change = Change::PrivateLinkList { list, from: old.to_vec(), to: wanted.to_vec() };
    *current = Some(wanted.to_vec());
    Some(change)
}

fn set_subscriptions(
    what: &'static str,
    current: &mut Option<SubscriptionList>,
    wanted: &[String],
) -> Option<Change> {
    let mut list = current.clone().unwrap_or_default();
    let change = set_list(what, &mut list.subscriptions, wanted)?;
    *current = Some(list);
    Some(change)
}

/// Whether an address is static; otherwise Azure chooses it.
fn is_static(configuration: &PrivateLinkServiceIpConfiguration) -> bool {
    let method = configuration.properties.as_ref().and_then(|p| p.private_ip_allocation_method.as_ref());
    method.is_some_and(|method| method.is("Static"))
}

fn address_of(configuration: &PrivateLinkServiceIpConfiguration) -> &str {
    configuration.properties.as_ref().and_then(|p| p.private_ip_address.as_deref()).unwrap_or_default()
}

impl Wanted<'_> {
    /// Applies the desired members to a document; returns the changes.
    pub(super) fn apply(&self, link: &mut PrivateLinkService) -> Vec<Change> {
        let mut changes = Vec::new();
        changes.extend(self.set_addresses(link));
        let wanted = self.intent;
        let properties = link.properties.get_or_insert_default();
        if properties.enable_proxy_protocol.unwrap_or_default() != wanted.proxy_protocol {
            properties.enable_proxy_protocol = Some(wanted.proxy_protocol);
            changes.push(Change::ProxyProtocol { on: wanted.proxy_protocol });
        }
        changes.extend(set_list("FQDNs", &mut properties.fqdns, &wanted.fqdns));
        changes.extend(set_subscriptions("visibility", &mut properties.visibility, &wanted.visibility));
        changes.extend(set_subscriptions(
            "auto-approval",
            &mut properties.auto_approval,
            &wanted.auto_approval,
        ));
        changes.extend(self.set_tags(link));
        changes
    }

    /// The tags with the creator are written once; tags of the configuration are updated.
    fn set_tags(&self, link: &mut PrivateLinkService) -> Vec<Change> {
        let config = &self.cluster.config;
        let mut wanted = config.tags.clone();
        for (key, value) in [(CLUSTER_TAG, self.cluster.name.clone()), (OWNER_TAG, self.service.to_string())]
        {
            let current = tag(link, key);
            let value = if current.is_empty() { value } else { current.to_owned() };
            wanted.retain(|other, _| !other.eq_ignore_ascii_case(key));
            wanted.insert(key.to_owned(), value);
        }
        tags::reconcile(&mut link.tags, &wanted, &config.system_tags)
    }

    fn set_addresses(&self, link: &mut PrivateLinkService) -> Option<Change> {
        let name = name_of(link).to_owned();
        let properties = link.properties.get_or_insert_default();
        let current = properties.ip_configurations.take().unwrap_or_default();
        if self.has_addresses(&current) {
            properties.ip_configurations = Some(current);
            return None;
        }
        let chosen: Vec<String> = self.intent.addresses.iter().map(ToString::to_string).collect();
        let dynamic = self.intent.count.saturating_sub(chosen.len());
        let suffixes = chosen.iter().map(|address| (Some(address), format!("-static-{address}")));
        let suffixes = suffixes.chain((0..dynamic).map(|number| (None, format!("-dynamic-{number}"))));
        let of_subnet = format!("{}-{name}", self.subnet.name());
        let wanted = suffixes.enumerate().map(|(number, (address, suffix))| {
            let name = names::with_suffix(&of_subnet, &suffix);
            let is_same = |old: &&PrivateLinkServiceIpConfiguration| old.name.as_ref() == Some(&name);
            let mut configuration = current.iter().find(is_same).cloned().unwrap_or_default();
            configuration.name = Some(name);
            let properties = configuration.properties.get_or_insert_default();
            properties.primary = Some(number == 0);
            properties.private_ip_address = address.cloned();
            properties.private_ip_address_version = Some(Word::from("IPv4"));
            let method = if address.is_some() { "Static" } else { "Dynamic" };
            properties.private_ip_allocation_method = Some(Word::from(method));
            properties.subnet = Some(Subnet { id: Some(self.subnet.clone()), ..Subnet::default() });
            configuration
        });
        properties.ip_configurations = Some(wanted.collect());
        let (count, subnet) = (self.intent.count, self.subnet.name().to_owned());
        Some(Change::PrivateLinkAddresses { count, subnet, chosen })
    }

    fn has_addresses(&self, current: &[PrivateLinkServiceIpConfiguration]) -> bool {
        let wanted = &self.intent.addresses;
        let is_wanted = |address: &str| wanted.iter().any(|one| one.to_string() == address);
        let in_subnet = |configuration: &PrivateLinkServiceIpConfiguration| {
            let subnet = configuration.properties.as_ref().and_then(|p| p.subnet.as_ref());
            subnet.and_then(|subnet| subnet.id.as_ref()) == Some(self.subnet)
        };
        let is_primary = |configuration: &&PrivateLinkServiceIpConfiguration| {
            configuration.properties.as_ref().and_then(|p| p.primary) == Some(true)
        };
        // Azure refuses a private link service without exactly one primary address. If one has to be chosen, it is the
        // first.
        let primary: Vec<_> = current.iter().filter(is_primary).collect();
        let is_right_primary = match (&*primary, wanted.first()) {
            ([one], Some(first)) => is_static(one) && address_of(one) == first.to_string(),
            ([one], None) => !is_static(one),
            _ => false,
        };
        let chosen: Vec<&PrivateLinkServiceIpConfiguration> =
            current.iter().filter(|configuration| is_static(configuration)).collect();
        current.len() == self.intent.count
            && chosen.len() == wanted.len()
            && chosen.iter().all(|configuration| is_wanted(address_of(configuration)))
            && current.iter().all(in_subnet)
            && is_right_primary
    }
}

/// The frontends that a private link service offers.
pub(super) fn offered(link: &PrivateLinkService) -> impl Iterator<Item = &ResourceId> {
    let frontends = link.properties.iter().flat_map(|p| &p.load_balancer_frontend_ip_configurations);
    frontends.flatten().filter_map(|frontend| frontend.id.as_ref())
}

/// The private link service that offers a frontend.
pub(crate) fn at<'a>(
    observed: &'a [Arc<PrivateLinkService>],
    frontend: &ResourceId,
) -> Option<&'a PrivateLinkService> {
    observed.iter().map(|link| &**link).find(|link| offered(link).any(|one| one == frontend))
}

/// The name of a private link service.
pub(crate) fn name_of(link: &PrivateLinkService) -> &str {
    link.name.as_deref().or_else(|| link.id.as_ref().map(ResourceId::name)).unwrap_or_default()
}
