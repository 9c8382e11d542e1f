//! Counts of resources.

use azure_types::ResourceId;

use azure_engine::provider::{AzureState, Proposal};

/// How many resources of a type a subscription has in the region of a proposal.
pub(crate) fn count_in_region(azure: &AzureState, resource_type: &str, proposal: &Proposal<'_>) -> u64 {
    let subscription = ResourceId::subscription(proposal.id.subscription_id());
    let location = proposal.body.get("location");
    let all = azure.store.of_type_below(resource_type, &subscription);
    all.into_iter().filter(|record| record.body.get("location") == location).count() as u64
}
