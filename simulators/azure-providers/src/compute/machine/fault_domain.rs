//! Which racks machines stand in: the fault and update domains of availability sets and scale sets
//! (nodes without a zone take the number as theirs).

use azure_types::ResourceId;
use serde_json::Value;

use crate::compute::scale_set::flexible;
use azure_engine::document::{number, stored_reference};
use azure_engine::provider::{AzureState, Record};

/// What the instance view calls each domain, and the member of the set that says how many there are.
const DOMAINS: [(&str, &str); 2] = [
    ("platformFaultDomain", "platformFaultDomainCount"),
    ("platformUpdateDomain", "platformUpdateDomainCount"),
];

/// Gives a new machine that is in a set the domains with the fewest others; a machine of its own has none.
pub(crate) fn assign(azure: &mut AzureState, id: &ResourceId) {
    let Some(record) = azure.store.get(id) else { return };
    let set = ["availabilitySet", "virtualMachineScaleSet"]
        .into_iter()
        .find_map(|member| stored_reference(&record.body, &format!("properties/{member}/id")));
    let Some(set) = set.and_then(|set| azure.store.get(&set)) else { return };
    let fewest = |(domain, member): (&'static str, &str)| {
        let count = number(&set.body, &format!("properties/{member}"))?;
        let others =
            || flexible::all_members(azure, &set.id).filter_map(|other| other.hidden.get(domain)?.as_u64());
        let chosen = (0..count.max(1)).min_by_key(|at| others().filter(|other| other == at).count())?;
        Some((domain, chosen))
    };
    let chosen: Vec<(&str, u64)> = DOMAINS.into_iter().filter_map(fewest).collect();
    if let Some(record) = azure.store.get_mut(id) {
        record.hidden.extend(chosen.into_iter().map(|(domain, number)| (domain.to_owned(), number.into())));
    }
}

/// Adds a machine's domains to its instance view.
pub(crate) fn show(record: &Record, view: &mut Value) {
    for (domain, _) in DOMAINS {
        if let Some(number) = record.hidden.get(domain) {
            view[domain] = number.clone();
        }
    }
}

/// The domain of the instance with that number in a uniform set.
pub(crate) fn of_number(set: Option<&Record>, instance: u64) -> u64 {
    let count = set.and_then(|set| number(&set.body, "properties/platformFaultDomainCount"));
    instance % count.unwrap_or(1).max(1)
}
