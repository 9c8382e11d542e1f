//! Checks that several types share.

use azure_types::ResourceId;

use azure_engine::document::{Object, integer};
use azure_engine::error::{Code, Refusal};
use azure_engine::provider::{AzureState, Proposal};

const INVALID_PROPERTY_VALUE: Code = Code::ours(400, "InvalidPropertyValue");

/// A whole number between bounds, with a default.
pub(crate) fn bounded(
    properties: &mut Object,
    member: &str,
    range: std::ops::RangeInclusive<i64>,
    default: Option<i64>,
    subject: &ResourceId,
) -> Result<(), Refusal> {
    let value = integer(properties, member)?.or(default);
    let Some(value) = value else { return Ok(()) };
    INVALID_PROPERTY_VALUE.details_when(
        !range.contains(&value),
        format_args!(
            "Value {value} of '{member}' of {subject} is outside the range {} to {}.",
            range.start(),
            range.end()
        ),
    )?;
    properties.insert(member.into(), value.into());
    Ok(())
}

/// How many resources of a type a subscription has in the region of a proposal.
pub(crate) fn count_in_region(azure: &AzureState, resource_type: &str, proposal: &Proposal<'_>) -> u64 {
    let subscription = ResourceId::subscription(proposal.id.subscription_id());
    let location = proposal.body.get("location");
    let all = azure.store.of_type_below(resource_type, &subscription);
    all.into_iter().filter(|record| record.body.get("location") == location).count() as u64
}
