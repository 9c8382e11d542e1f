//! The connection of a driver's controller to Azure, which follows the cloud configuration without a restart.

use std::sync::Arc;

use anyhow::bail;
use arm::{Budgets, Client as AzureClient};
use async_trait::async_trait;
use parking_lot::Mutex;
use telemetry::metrics::Metrics;
use telemetry::metrics::azure::{ConfigMetrics, Reload};
use tokio_util::sync::CancellationToken;

use crate::calls::show_budgets;
use crate::configuration::{Reading, SecretKey};
use crate::driver::Sources;
use crate::reload::{Reloading, follow};

/// Connects to Azure, and again whenever the configuration changes, until `stop`. `connected` gets each connection that Azure has
/// accepted, the first one before this returns. Metrics show the budgets of the one in force.
///
/// # Errors
/// There is no configuration, and `may_be_absent` is false; or it cannot be used.
pub async fn connect(
    sources: Sources,
    may_be_absent: bool,
    metrics: &Metrics,
    connected: impl Fn(&Reading, AzureClient) + Send + Sync + 'static,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let budgets = Arc::<Mutex<Option<Budgets>>>::default();
    let shown = Arc::clone(&budgets);
    show_budgets(metrics, move || shown.lock().clone());
    let opened = sources.open().await?;
    if opened.is_none() && !may_be_absent {
        let secret = sources.secret.as_ref().map(SecretKey::shown).unwrap_or_else(|| "a Secret".to_owned());
        bail!(
            "there is no cloud configuration: neither {secret}, nor a file that AZURE_CREDENTIAL_FILE names, nor \
             /etc/kubernetes/azure.json exists (write one of them, or start with --allow-empty-cloud-config=true)"
        );
    }
    let following = Following { sources, connected, metrics: ConfigMetrics::of(metrics), budgets };
    let reading = opened.map(|(reading, client)| {
        following.took_over(&reading, client);
        reading
    });
    let stop = stop.clone();
    tokio::spawn(async move { stop.run_until_cancelled(follow(following, reading)).await });
    Ok(())
}

/// A controller whose connection follows the configuration.
struct Following<F> {
    sources: Sources,
    connected: F,
    metrics: ConfigMetrics,
    /// The budgets of the connection in force.
    budgets: Arc<Mutex<Option<Budgets>>>,
}

impl<F: Fn(&Reading, AzureClient)> Following<F> {
    fn took_over(&self, reading: &Reading, client: AzureClient) {
        *self.budgets.lock() = Some(client.budgets().clone());
        (self.connected)(reading, client);
    }
}

#[async_trait]
impl<F: Fn(&Reading, AzureClient) + Send + Sync> Reloading for Following<F> {
    fn sources(&self) -> String {
        self.sources.shown()
    }

    async fn read(&self, _: Option<&Reading>) -> anyhow::Result<Option<Reading>> {
        Ok(self.sources.read().await?.map(|(_, reading)| reading))
    }

    async fn apply(&mut self, reading: &Reading) -> anyhow::Result<()> {
        let client = self.sources.connect(reading).await?;
        tracing::info!("The changed cloud configuration takes effect");
        self.took_over(reading, client);
        Ok(())
    }

    fn reloaded(&self, result: Reload) {
        self.metrics.reloaded(result);
    }
}
