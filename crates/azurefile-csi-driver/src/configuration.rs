//! How a change of the cloud configuration takes effect without a restart.

use std::sync::Arc;

use arm::{Budgets, Client};
use async_trait::async_trait;
use manager::configuration::Reading;
use manager::driver::Sources;
use manager::reload::Reloading;
use parking_lot::Mutex;
use telemetry::metrics::azure::{ConfigMetrics, Reload};
use volume_planner::ClusterPlace;
use volume_planner::topology::normalize_region;

use crate::controller::{Azure, Connection};

/// A connection by a configuration: the client, and where the cluster keeps its accounts.
pub(crate) fn connection(reading: &Reading, client: Client) -> Connection {
    let config = &reading.config;
    let place = ClusterPlace {
        subscription: config.subscription_id.clone(),
        group: config.resource_group.clone(),
        location: normalize_region(&config.location),
        is_stack: config.is_azure_stack(),
    };
    Connection { client, place }
}

/// A controller whose connection to Azure follows the configuration.
pub(crate) struct Reloader {
    pub sources: Sources,
    pub azure: Azure,
    pub metrics: ConfigMetrics,
    /// The budgets of the connection in force, which metrics show.
    pub budgets: Arc<Mutex<Option<Budgets>>>,
}

#[async_trait]
impl Reloading for Reloader {
    fn sources(&self) -> String {
        self.sources.shown()
    }

    async fn read(&self, _: Option<&Reading>) -> anyhow::Result<Option<Reading>> {
        Ok(self.sources.read().await?.map(|(_, reading)| reading))
    }

    async fn apply(&mut self, reading: &Reading) -> anyhow::Result<()> {
        let client = self.sources.connect(reading).await?;
        tracing::info!("The changed cloud configuration takes effect");
        *self.budgets.lock() = Some(client.budgets().clone());
        self.azure.replace(connection(reading, client));
        Ok(())
    }

    fn reloaded(&self, result: Reload) {
        self.metrics.reloaded(result);
    }
}
