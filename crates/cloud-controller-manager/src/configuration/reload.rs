//! Prepares a generation for each change of the configuration.

use std::sync::Arc;

use async_trait::async_trait;
use kube::Client;
use manager::reload::Reloading;
use telemetry::metrics::azure::Reload;
use tokio::sync::watch;

use super::generation::Generation;
use super::sources::{Reading, Sources, certificate_of};
use crate::environment::ProcessEnvironment;
use crate::flags::CommandLine;
use crate::observe::Meter;

/// Everything that a new generation is made of, and where it goes.
pub(crate) struct Reloader {
    pub line: CommandLine,
    pub sources: Sources,
    pub client: Client,
    pub environment: ProcessEnvironment,
    pub meter: Arc<Meter>,
    pub generations: watch::Sender<Arc<Generation>>,
}

#[async_trait]
impl Reloading for Reloader {
    fn sources(&self) -> String {
        self.sources.shown()
    }

    /// Without `--enable-dynamic-reloading`, reads the state of the client certificate alone: it expires whether or not the
    /// configuration may change.
    async fn read(&self, running: Option<&Reading>) -> anyhow::Result<Option<Reading>> {
        match running {
            Some(running) if !self.line.flags.enable_dynamic_reloading => {
                let certificate = certificate_of(&running.config);
                Ok(Some(Reading { certificate, ..running.clone() }))
            }
            _ => self.sources.read(&self.client, &self.environment).await.map(Some),
        }
    }

    async fn apply(&mut self, reading: &Reading) -> anyhow::Result<()> {
        let number = self.generations.borrow().number + 1;
        let cluster = self.line.cluster(reading.config.clone());
        let (line, environment) = (&self.line, &self.environment);
        let generation = Generation::prepare(number, line, cluster, environment, &self.meter).await?;
        let generation = generation.with_zones().await?;
        self.sources.warn(reading);
        for warning in &generation.warnings {
            tracing::warn!("{warning}");
        }
        let sources = self.sources.shown();
        tracing::info!(sources, generation = number, "The changed cloud configuration takes effect");
        generation.show(&self.meter);
        self.generations.send_replace(Arc::new(generation));
        Ok(())
    }

    fn reloaded(&self, result: Reload) {
        self.meter.configuration.reloaded(result);
    }
}
