//! Checks in Azure at start: the resource groups, and the zones of the region.

use anyhow::bail;
use arm::{ApiVersion, Class, Client, Listing};
use azure_types::{LoadBalancer, ProviderResourceType, ResourceId, ResourceProvider};
use cloud_config::CloudConfig;
use cloud_config::keys::nearest;
use serde::de::DeserializeOwned;

pub use program::azure::connect;

/// Checks that the configured resource groups exist. Lists in a missing group look like empty ones to the planner.
///
/// # Errors
/// Azure reports that a group, or its subscription, does not exist. Other failures are left to the readers of the
/// group's resources.
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
    let mut checked: Vec<ResourceId> = Vec::new();
    for (key, group, subscription) in groups {
        let group = ResourceId::group(subscription, group);
        if checked.contains(&group) {
            continue;
        }
        check_group::<LoadBalancer>(client, key, &group, "loadBalancers").await?;
        checked.push(group);
    }
    Ok(())
}

/// Fails if a resource group that `key` names does not exist, as a list of its resources of `kind` shows.
pub(crate) async fn check_group<T: DeserializeOwned>(
    client: &Client,
    key: &str,
    id: &ResourceId,
    kind: &str,
) -> anyhow::Result<()> {
    let listing = Listing::of(id, "Microsoft.Network", kind);
    match client.list::<T>(&listing, ApiVersion::NETWORK, &[], Class::Refresh).await {
        Err(error) if error.is_not_found() => bail!(
            "{key}={}: Azure has no such resource group (correct it in the cloud configuration): {error}",
            id.group_name().unwrap_or_default()
        ),
        _ => Ok(()),
    }
}

/// The availability zones of the configured region, sorted; empty if the region has none.
///
/// # Errors
/// The zones cannot be read. The program ends then.
pub async fn region_zones(client: &Client, config: &CloudConfig) -> anyhow::Result<Vec<String>> {
    let provider: ResourceProvider = client
        .resource_provider(config.network_subscription_id(), "Microsoft.Compute", Class::Refresh)
        .await
        .map_err(|error| without_zones(config, error))?;
    let region = normalised(&config.location);
    let is_machines = |kind: &&ProviderResourceType| {
        kind.resource_type.as_deref().is_some_and(|name| name.eq_ignore_ascii_case("virtualMachines"))
    };
    let machines = provider.resource_types.iter().flatten().filter(is_machines);
    let regions: Vec<&str> =
        machines.clone().flat_map(|kind| kind.locations.iter().flatten()).map(String::as_str).collect();
    if let Some(warning) = unknown_region(&config.location, &regions) {
        tracing::warn!("{warning}");
    }
    let mut zones: Vec<String> = machines
        .flat_map(|kind| kind.zone_mappings.iter().flatten())
        .filter(|mapping| mapping.location.as_deref().is_some_and(|location| normalised(location) == region))
        .flat_map(|mapping| mapping.zones.iter().flatten().cloned())
        .collect();
    zones.sort();
    zones.dedup();
    Ok(zones)
}

/// Why the zones of the region are unknown: names the wrong key if Azure's answer shows it.
fn without_zones(config: &CloudConfig, error: arm::Error) -> anyhow::Error {
    if !error.has_code("SubscriptionNotFound") {
        return anyhow::Error::from(error).context("cannot read the availability zones of the region");
    }
    let (key, subscription) = match config.network_resource_subscription_id.as_str() {
        "" => ("subscriptionId", config.subscription_id.as_str()),
        network => ("networkResourceSubscriptionID", network),
    };
    anyhow::Error::from(error).context(format!(
        "{key}={subscription}: Azure has no such subscription for this credential (correct it in the cloud configuration)"
    ))
}

/// The message that the configured region has no machines, with the most similar name. `None` if Azure names no
/// regions.
fn unknown_region(location: &str, regions: &[&str]) -> Option<String> {
    let names: Vec<String> = regions.iter().map(|region| normalised(region)).collect();
    let region = normalised(location);
    if names.is_empty() || names.contains(&region) {
        return None;
    }
    let meant = nearest(&region, names.iter().map(String::as_str));
    let meant = meant.map_or_else(String::new, |meant| format!("; did you mean {meant}?"));
    Some(format!("location={location}: Azure has no virtual machines in a region of this name{meant}"))
}

/// `East US` as `eastus`.
fn normalised(location: &str) -> String {
    location.chars().filter(|c| !c.is_whitespace()).collect::<String>().to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// NODE-279.
    #[test]
    fn node_279_a_region_that_azure_does_not_name_is_told() {
        let regions = ["West Europe", "East US"];
        let told = unknown_region("westeurop", &regions).unwrap();
        assert!(
            told.starts_with("location=westeurop: ") && told.ends_with("did you mean westeurope?"),
            "{told}"
        );
        assert_eq!((unknown_region("westeurope", &regions), unknown_region("westeurop", &[])), (None, None));
    }
}
