//! What the replica does that leads: it runs the controllers.

use std::sync::Arc;

use arm::{Transport, TransportOptions};
use capz::{Azure, Settings};
use controllers::Clock;
use kube::Client;
use manager::Calls;
use program::surroundings::Surroundings;
use telemetry::metrics::Metrics;
use tokio_util::sync::CancellationToken;

/// Who counts what the controllers do.
#[derive(Clone)]
pub(crate) struct Meter(pub(crate) Metrics);

impl controllers::Observer for Meter {
    fn leading(&self, lease: &str, leads: bool) {
        self.0.leading(lease, leads);
    }
}

/// The way to Azure, without any identity yet: each cluster names its own.
///
/// # Errors
/// No certificate authorities, or a proxy that cannot be used.
pub(crate) fn azure(
    settings: &Settings,
    surroundings: &Surroundings,
    metrics: &Metrics,
) -> anyhow::Result<Azure> {
    let transport = Transport::connect(TransportOptions {
        extra_roots: surroundings.extra_roots.clone(),
        redirects: surroundings.redirects.clone(),
        proxy: surroundings.proxy()?,
        ..TransportOptions::default()
    })?;
    let azure = Azure::new(transport, Clock::system(), settings.clone());
    Ok(azure.with_observer(Arc::new(Calls(metrics.clone()))))
}

/// Runs the controllers until `stop`.
///
/// # Errors
/// Cluster API's core is not installed, or nobody can be asked.
pub(crate) async fn lead(
    client: Client,
    azure: Azure,
    settings: Settings,
    meter: Meter,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    tracing::debug!(?settings, "Leading");
    capz::run(client, azure, settings, Clock::system(), Some(Arc::new(meter)), stop).await?;
    Ok(())
}
