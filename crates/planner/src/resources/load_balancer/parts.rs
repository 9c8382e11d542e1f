//! Names and pools of a load balancer's document.

use azure_types::{BackendAddressPool, LoadBalancer};

/// The base name of a part in lower case, common to all parts of one Service.
pub(crate) fn base_of(name: &str) -> String {
    name.split('-').next().unwrap_or_default().to_ascii_lowercase()
}

/// A pool of a load balancer, by its name in any case.
pub fn pool_in<'a>(load_balancer: &'a LoadBalancer, name: &str) -> Option<&'a BackendAddressPool> {
    let mut pools = load_balancer.properties.iter().flat_map(|p| p.backend_address_pools.iter().flatten());
    pools.find(|pool| is_named(&pool.name, name))
}

/// The names of frontends and rules.
pub(super) fn names(load_balancer: &LoadBalancer) -> impl Iterator<Item = &str> {
    load_balancer.properties.iter().flat_map(|properties| {
        let frontends = properties.frontend_ip_configurations.iter().flatten().map(|one| &one.name);
        let rules = properties.load_balancing_rules.iter().flatten().map(|one| &one.name);
        frontends.chain(rules).filter_map(|name| name.as_deref())
    })
}

pub(super) fn is_named(name: &Option<String>, wanted: &str) -> bool {
    name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
}

pub(super) fn text(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or_default()
}
