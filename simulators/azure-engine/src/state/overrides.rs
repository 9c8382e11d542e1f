//! Checks that configured figures name existing limits and policies.

use std::collections::BTreeMap;

use crate::provider::Provider;
use crate::settings::budget::Budgets;
use crate::settings::limits::Limits;

/// Checks that every override names a limit.
///
/// # Errors
/// The name that no limit has.
pub fn check_limits(providers: &[Provider], overrides: &BTreeMap<String, u64>) -> Result<(), String> {
    let declared = providers.iter().flat_map(|provider| provider.limits);
    Limits::new(declared, BTreeMap::new()).set(overrides.clone())
}

/// Checks that every other figure is of a policy.
///
/// # Errors
/// The name that no policy has.
pub fn check_budgets(providers: &[Provider], budgets: &Budgets) -> Result<(), String> {
    let known = |name: &String| {
        providers.iter().any(|provider| {
            provider.policies.iter().any(|policy| policy.full_name(provider.namespace) == *name)
        })
    };
    budgets.policies.keys().find(|name| !known(name)).map_or(Ok(()), |name| Err(name.clone()))
}
