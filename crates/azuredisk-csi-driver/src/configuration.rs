//! The cloud configuration: where it is read, and how a change takes effect without a restart.
//!
//! The first of these that is there counts (section 2.2 of the specification of the drivers): the Secret that the flags name, the file that
//! `AZURE_CREDENTIAL_FILE` names, `/etc/kubernetes/azure.json`.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use arm::{Budgets, CallObserver, Clock, Cloud, Credential};
use async_trait::async_trait;
use cloud_config::Document;
use kube::Client;
use manager::configuration::{Reading, SecretKey, read_file};
use manager::reload::Reloading;
use parking_lot::Mutex;
use program::environment::ProcessEnvironment;
use telemetry::metrics::azure::{ConfigMetrics, Reload};
use volume_planner::ClusterPlace;
use volume_planner::topology::normalize_region;

use crate::controller::{Azure, Connection};

const VARIABLE: &str = "AZURE_CREDENTIAL_FILE";
const USUAL_FILE: &str = "/etc/kubernetes/azure.json";
const KEY: &str = "cloud-config";

/// Where the configuration is read, and what a client of Azure needs besides.
#[derive(Clone)]
pub(crate) struct Sources {
    pub secret: Option<SecretKey>,
    /// Without it, no Secret is read.
    pub client: Option<Client>,
    pub environment: ProcessEnvironment,
    pub user_agent: String,
    pub observer: Arc<dyn CallObserver>,
}

impl Sources {
    /// The Secret that two flags name; none if one of them is empty.
    pub fn secret_of(namespace: &str, name: &str) -> Option<SecretKey> {
        let is_named = !namespace.is_empty() && !name.is_empty();
        is_named.then(|| SecretKey {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            key: KEY.to_owned(),
        })
    }

    /// Reads the configuration; `None` if no source exists.
    ///
    /// # Errors
    /// A document cannot be read, or is no configuration that this release supports.
    pub async fn read(&self) -> anyhow::Result<Option<(String, Reading)>> {
        let Some((shown, document)) = self.document().await? else { return Ok(None) };
        let reading = Reading::of(&shown, document, &self.environment)?;
        Ok(Some((shown, reading)))
    }

    async fn document(&self) -> anyhow::Result<Option<(String, Document)>> {
        if let (Some(secret), Some(client)) = (&self.secret, &self.client)
            && let Some(document) = secret.read_if_there(client).await?
        {
            return Ok(Some((secret.shown(), document)));
        }
        if let Some(path) = self.environment.variable(VARIABLE) {
            let document = read_file(&path, VARIABLE)?;
            return Ok(Some((path, document)));
        }
        if !Path::new(USUAL_FILE).exists() {
            return Ok(None);
        }
        Ok(Some((USUAL_FILE.to_owned(), read_file(USUAL_FILE, "the cloud configuration")?)))
    }

    /// A client of Azure for a configuration, whose credential has been accepted.
    ///
    /// # Errors
    /// No certificate authorities, unknown cloud endpoints, wrong credentials: one line each.
    pub async fn connect(&self, reading: &Reading) -> anyhow::Result<Connection> {
        let config = &reading.config;
        let transport = self.environment.azure_transport()?;
        let (cloud, warnings) = Cloud::resolve(config, &transport).await?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let credential = Credential::from_config(config, &cloud, &transport, Clock::system())?;
        let builder = arm::Client::builder(cloud, transport, credential).configure(config);
        let client = builder.user_agent(&self.user_agent).observer(Arc::clone(&self.observer)).build();
        client.check_credential().await?;
        let place = ClusterPlace {
            subscription: config.subscription_id.clone(),
            group: config.resource_group.clone(),
            location: normalize_region(&config.location),
            is_stack: config.is_azure_stack(),
        };
        Ok(Connection { client, place })
    }

    /// Reads the configuration and connects; `None` if no source exists.
    ///
    /// # Errors
    /// As [`Self::read`] and [`Self::connect`].
    pub async fn open(&self) -> anyhow::Result<Option<(Reading, Connection)>> {
        let Some((shown, reading)) = self.read().await? else { return Ok(None) };
        reading.warn(&shown);
        let connection = self.connect(&reading).await.context(shown)?;
        Ok(Some((reading, connection)))
    }
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
        let secret = self.sources.secret.as_ref().map(SecretKey::shown);
        let file = self.sources.environment.variable(VARIABLE).unwrap_or_else(|| USUAL_FILE.to_owned());
        secret.into_iter().chain([file]).collect::<Vec<_>>().join(" or ")
    }

    async fn read(&self, _: Option<&Reading>) -> anyhow::Result<Option<Reading>> {
        Ok(self.sources.read().await?.map(|(_, reading)| reading))
    }

    async fn apply(&mut self, reading: &Reading) -> anyhow::Result<()> {
        let connection = self.sources.connect(reading).await?;
        tracing::info!("The changed cloud configuration takes effect");
        *self.budgets.lock() = Some(connection.client.budgets().clone());
        self.azure.replace(connection);
        Ok(())
    }

    fn reloaded(&self, result: Reload) {
        self.metrics.reloaded(result);
    }
}
