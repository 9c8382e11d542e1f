//! The members of a backend pool.

use azure_types::ResourceId;
use serde_json::Value;

use azure_engine::document::{items, name, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::store::reference::{Role, is_of};

/// The IP configurations that reference a pool.
pub(crate) fn members<'a>(azure: &'a AzureState, pool: &ResourceId) -> impl Iterator<Item = &'a ResourceId> {
    azure
        .store
        .referrers(pool)
        .filter(|referrer| referrer.role == Role::Uses && is_of(&referrer.from, "/ipconfigurations/"))
        .map(|referrer| &referrer.from)
}

/// The keys of a pool's members: the id of an IP configuration in lower case, or the address that the pool holds.
pub(crate) fn member_keys(azure: &AzureState, balancer: &Record, pool: &ResourceId) -> Vec<String> {
    let addresses = entries(balancer, pool).filter_map(|entry| text(entry, "properties/ipAddress"));
    addresses.map(str::to_owned).chain(members(azure, pool).map(ResourceId::to_lower)).collect()
}

pub(crate) fn entries<'a>(balancer: &'a Record, pool: &ResourceId) -> impl Iterator<Item = &'a Value> {
    let name_of = pool.name().to_owned();
    items(&balancer.body, "properties/backendAddressPools")
        .iter()
        .filter(move |item| name(item).eq_ignore_ascii_case(&name_of))
        .flat_map(|item| items(item, "properties/loadBalancerBackendAddresses"))
}
