//! The connection to Azure: transport, cloud, credential.

use std::sync::Arc;

use arm::{Client, Clock, Cloud, Credential, Transport, TransportOptions};
use cloud_config::CloudConfig;

use crate::surroundings::Surroundings;

/// A client configured by azure.json, whose credential has been accepted.
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
        proxy: surroundings.proxy()?,
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
