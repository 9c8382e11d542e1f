//! `Microsoft.Resources`: subscriptions, resource groups, providers' records, regions, tags
//! (`spec/arm-wire.md`, 11 and 12).

mod filter;
mod generic;
pub(crate) mod group;
mod location;
mod registration;
mod subscription;
mod tag;

use crate::engine::kind::Provider;

pub(crate) fn provider() -> Provider {
    Provider {
        namespace: "Microsoft.Resources",
        kinds: vec![&group::ResourceGroups, &subscription::Subscriptions],
        calls: Vec::new(),
        extensions: vec![tag::answer],
        policies: &[],
        limits: &[],
        unlimited: &[],
        names: &[],
        since: &[],
    }
}
