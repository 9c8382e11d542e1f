//! `Microsoft.Resources`: subscriptions, resource groups, provider records (`spec/arm-wire.md`, 11 and 12).

pub(crate) mod group;
pub(crate) mod subscription;

use crate::engine::kind::Provider;

pub(crate) fn provider() -> Provider {
    Provider {
        namespace: "Microsoft.Resources",
        kinds: vec![&group::ResourceGroups],
        calls: Vec::new(),
        policies: &[],
        limits: &[],
        unlimited: &[],
        names: &[],
        since: &[],
    }
}
