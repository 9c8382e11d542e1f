//! The way to Azure: transport, cloud, credential, and the zones of the region.

use std::sync::Arc;

use anyhow::Context as _;
use arm::{Class, Client, Clock, Cloud, Credential, ProxySettings, Transport, TransportOptions};
use azure_types::ResourceProvider;
use cloud_config::CloudConfig;

use crate::surroundings::Surroundings;

/// A client as azure.json says, whose credential has been accepted.
///
/// # Errors
/// No certificate authorities, unknown cloud endpoints, wrong credentials: one line each.
pub async fn connect(
    config: &CloudConfig,
    surroundings: &Surroundings,
    observer: Arc<dyn arm::CallObserver>,
) -> anyhow::Result<Client> {
    let transport = Transport::connect(TransportOptions {
        extra_roots: surroundings.extra_roots.clone(),
        redirects: surroundings.redirects.clone(),
        proxy: ProxySettings::from_environment(|name: &str| surroundings.variable(name)),
        ..TransportOptions::default()
    })?;
    let (cloud, warnings) = Cloud::resolve(config, &transport).await?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let credential = Credential::from_config(config, &cloud, &transport, Clock::system())?;
    let client = Client::builder(cloud, transport, credential).configure(config).observer(observer).build();
    client.check_credential().await?;
    Ok(client)
}

/// The availability zones of the configured region, sorted; none where the region has none.
///
/// # Errors
/// Azure did not say (`spec/config-and-cli.md` 1.5, step 11: the program ends then).
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
