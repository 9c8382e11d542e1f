//! The connection to Azure: transport, cloud, credential.

use std::sync::Arc;

use arm::{Client, Clock, Cloud, Credential};
use cloud_config::CloudConfig;

use crate::environment::ProcessEnvironment;

/// A client configured by azure.json, whose credential has been accepted.
///
/// # Errors
/// No certificate authorities, unknown cloud endpoints, wrong credentials: one line each.
pub async fn connect(
    config: &CloudConfig,
    environment: &ProcessEnvironment,
    observer: Arc<dyn arm::CallObserver>,
) -> anyhow::Result<Client> {
    let transport = environment.azure_transport()?;
    let (cloud, warnings) = Cloud::resolve(config, &transport).await?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let credential = Credential::from_config(config, &cloud, &transport, Clock::system())?;
    let client = Client::builder(cloud, transport, credential).configure(config).observer(observer).build();
    client.check_credential().await?;
    Ok(client)
}
