//! The way to Azure, whether its resource groups are there, and the zones of the region.

use anyhow::{Context as _, bail};
use arm::{ApiVersion, Class, Client, Listing};
use azure_types::{LoadBalancer, ResourceId, ResourceProvider};
use cloud_config::CloudConfig;

pub use program::azure::connect;

/// Finds out whether the resource groups exist that the configuration names. Lists in a group that is not
/// there look like empty ones to whoever plans.
///
/// # Errors
/// Azure says that a group, or its subscription, does not exist. What Azure does not say is left to those who
/// read the group's resources.
pub async fn check_resource_groups(client: &Client, config: &CloudConfig) -> anyhow::Result<()> {
    let groups = [
        ("resourceGroup", config.resource_group.as_str(), config.subscription_id.as_str()),
        (
            "loadBalancerResourceGroup",
            config.load_balancer_resource_group(),
            config.network_subscription_id(),
        ),
        (
            "securityGroupResourceGroup",
            config.security_group_resource_group(),
            config.network_subscription_id(),
        ),
        ("vnetResourceGroup", config.vnet_resource_group(), config.network_subscription_id()),
    ];
    let mut asked: Vec<ResourceId> = Vec::new();
    for (key, group, subscription) in groups {
        let group = ResourceId::group(subscription, group);
        if asked.contains(&group) {
            continue;
        }
        let listing = Listing::of(&group, "Microsoft.Network", "loadBalancers");
        asked.push(group);
        let listed = client.list::<LoadBalancer>(&listing, ApiVersion::NETWORK, &[], Class::Refresh).await;
        if let Err(error) = listed
            && error.is_not_found()
        {
            bail!("{key} in the cloud configuration: {error}");
        }
    }
    Ok(())
}

/// The availability zones of the configured region, sorted; none where the region has none.
///
/// # Errors
/// Azure did not say. The program ends then.
pub async fn region_zones(client: &Client, config: &CloudConfig) -> anyhow::Result<Vec<String>> {
    let provider: ResourceProvider = client
        .resource_provider(config.network_subscription_id(), "Microsoft.Compute", Class::Refresh)
        .await
        .context("cannot learn the availability zones of the region")?;
    let region = normalised(&config.location);
    let mut zones: Vec<String> = provider
        .resource_types
        .iter()
        .flatten()
        .filter(|kind| {
            kind.resource_type.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("virtualMachines"))
        })
        .flat_map(|kind| kind.zone_mappings.iter().flatten())
        .filter(|mapping| mapping.location.as_deref().is_some_and(|location| normalised(location) == region))
        .flat_map(|mapping| mapping.zones.iter().flatten().cloned())
        .collect();
    zones.sort();
    zones.dedup();
    Ok(zones)
}

/// `East US` as `eastus`.
fn normalised(location: &str) -> String {
    location.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase()
}
