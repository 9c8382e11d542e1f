//! Destinations of unknown origin in rules that the cluster uses.

use std::net::IpAddr;

use azure_types::SecurityGroup;

use super::rule;
use super::usage::ClusterUsage;

/// A rule with addresses of the cluster and other addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StrangeRule {
    /// The rule's name.
    pub name: String,
    /// The addresses that Services or nodes of the cluster have.
    pub own: Vec<IpAddr>,
    /// The destinations that are not, and are not proven to have been, the cluster's.
    pub strangers: Vec<String>,
}

/// The rules of a security group that have such destinations. Empty while Services and nodes are not all known.
pub fn strange_rules(group: &SecurityGroup, usage: &ClusterUsage) -> Vec<StrangeRule> {
    if !usage.is_complete {
        return Vec::new();
    }
    let rules = group.properties.iter().flat_map(|properties| properties.security_rules.iter().flatten());
    let found = rules.filter(|rule| rule::is_managed(rule)).filter_map(|rule| {
        let p = rule.properties.as_ref()?;
        let all = rule::spread(rule::items(&p.destination_address_prefix, &p.destination_address_prefixes));
        let (mut own, mut strangers) = (Vec::new(), Vec::new());
        for destination in all {
            match destination.parse().ok().filter(|address| usage.has(address)) {
                Some(address) => own.push(address),
                None if usage.proven.contains_key(&destination) => {}
                None => strangers.push(destination),
            }
        }
        let name = rule.name.clone().unwrap_or_default();
        let is_found = !own.is_empty() && !strangers.is_empty();
        is_found.then_some(StrangeRule { name, own, strangers })
    });
    found.collect()
}
