//! `Microsoft.Resources`: subscriptions, resource groups, providers' records, regions, tags.

mod filter;
mod generic;
pub(crate) mod group;
mod location;
mod registration;
mod subscription;
mod tag;

use self::group::API_VERSIONS;
pub use self::location::{region_display_name, region_names};
use crate::engine::resource_type::{Concurrency, Protocol, Provider, WireDialect};

/// What most of the provider's types have in common.
const fn protocol(resource_type: &'static str, noun: &'static str) -> Protocol {
    Protocol::new(resource_type, noun, &API_VERSIONS, WireDialect::Manager, Concurrency::Conflict)
}

pub(crate) fn provider() -> Provider {
    Provider {
        namespace: "Microsoft.Resources",
        resource_types: vec![&group::ResourceGroups, &subscription::Subscriptions],
        calls: Vec::new(),
        extensions: vec![tag::answer],
        policies: &[],
        limits: &[],
        unlimited: &[],
        names: &[],
        members: &[],
        since: &[],
    }
}
