//! `Microsoft.Resources`: subscriptions, resource groups, providers' records, regions, tags.

mod filter;
mod generic;
mod group;
mod latencies;
mod location;
mod manager;
mod protocol;
mod registration;
mod subscription;
mod subscription_record;
mod tag;

pub use self::group::{delete_group, put_group};
pub(crate) use self::location::{list_locations, paired_region};
pub use self::location::{region_display_name, region_names};
pub use self::manager::ResourceManager;
pub(crate) use self::registration::begin_registration;
pub(crate) use self::subscription_record::recorded_registration;
use azure_engine::provider::Provider;

pub(crate) fn provider() -> Provider {
    Provider {
        extensions: vec![tag::answer],
        latencies: latencies::LATENCIES,
        ..Provider::new(
            "Microsoft.Resources",
            vec![&group::ResourceGroups, &subscription_record::Subscriptions],
        )
    }
}
