//! Names and pools of a load balancer's document.

use azure_types::{BackendAddressPool, LoadBalancer};

use crate::outcome::rewrite;

/// The base name of a part in lower case, common to all parts of one Service.
pub(crate) fn base_of(name: &str) -> String {
    name.split('-').next().unwrap_or_default().to_ascii_lowercase()
}

/// A pool of a load balancer, by its name in any case.
pub fn pool_in<'a>(load_balancer: &'a LoadBalancer, name: &str) -> Option<&'a BackendAddressPool> {
    let mut pools = load_balancer.properties.iter().flat_map(|p| p.backend_address_pools.iter().flatten());
    pools.find(|pool| is_named(&pool.name, name))
}

/// Whether the latest operation on it failed: writing it again repairs it.
pub(super) fn is_failed(load_balancer: &LoadBalancer) -> bool {
    rewrite::is_failed(load_balancer.properties.as_ref().and_then(|p| p.provisioning_state.as_ref()))
}

pub(super) fn is_named(name: &Option<String>, wanted: &str) -> bool {
    name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(wanted))
}

pub(super) fn text(name: &Option<String>) -> &str {
    name.as_deref().unwrap_or_default()
}
