//! The cloud configuration: where it is read, and how a change takes effect without a restart.
//!
//! The first of these that is there counts (section 2.2 of the specification of the drivers): the Secret that the flags name, the file that
//! `AZURE_CREDENTIAL_FILE` names, `/etc/kubernetes/azure.json`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use arm::{CallObserver, Clock, Cloud, Credential};
use cloud_config::Document;
use kube::Client;
use manager::configuration::{Reading, SecretKey, read_file};
use program::environment::ProcessEnvironment;
use program::in_one_line;
use telemetry::metrics::azure::{ConfigMetrics, Reload};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use volume_planner::ClusterPlace;
use volume_planner::topology::normalize_region;

use crate::controller::{Azure, Connection};

const VARIABLE: &str = "AZURE_CREDENTIAL_FILE";
const USUAL_FILE: &str = "/etc/kubernetes/azure.json";
const KEY: &str = "cloud-config";

/// Interval between readings: file and Secret are small, and a revoked credential is replaced soon.
const READ_INTERVAL: Duration = Duration::from_secs(5);

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

    /// Reads the configuration; `None` if there is none.
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

    /// Reads the configuration and connects; `None` if there is none.
    ///
    /// # Errors
    /// As [`Self::read`] and [`Self::connect`].
    pub async fn open(&self) -> anyhow::Result<Option<(Reading, Connection)>> {
        let Some((shown, reading)) = self.read().await? else { return Ok(None) };
        reading.warn(&shown);
        let connection = self.connect(&reading).await.context(shown)?;
        Ok(Some((reading, connection)))
    }

    /// Puts each change of the configuration into force, until `stop`. One that cannot be used leaves the former one in force.
    pub async fn follow(
        self,
        mut running: Option<Reading>,
        azure: Azure,
        metrics: ConfigMetrics,
        stop: CancellationToken,
    ) {
        let mut reported = String::new();
        while stop.run_until_cancelled(sleep(READ_INTERVAL)).await.is_some() {
            let changed = match self.read().await {
                Ok(Some((shown, reading))) => {
                    let is_same = running.as_ref().is_some_and(|running| running.has_effect_of(&reading));
                    (!is_same).then_some((shown, reading))
                }
                Ok(None) => None,
                Err(error) => {
                    self.refuse(&in_one_line(&error), Reload::Unreadable, &mut reported, &metrics);
                    continue;
                }
            };
            let Some((shown, reading)) = changed else {
                reported.clear();
                continue;
            };
            let moved = running.as_ref().map(|running| running.config.changed_identity(&reading.config));
            if let Some(moved) = moved.filter(|moved| !moved.is_empty()) {
                let problem = moved.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
                self.refuse(&problem, Reload::NeedsRestart, &mut reported, &metrics);
                continue;
            }
            match self.connect(&reading).await {
                Ok(connection) => {
                    tracing::info!(sources = shown, "The changed cloud configuration takes effect");
                    azure.replace(connection);
                    metrics.reloaded(Reload::Applied);
                    reported.clear();
                    running = Some(reading);
                }
                Err(error) => self.refuse(&in_one_line(&error), Reload::Refused, &mut reported, &metrics),
            }
        }
    }

    /// Says once that a configuration cannot be used.
    fn refuse(&self, problem: &str, result: Reload, reported: &mut String, metrics: &ConfigMetrics) {
        metrics.reloaded(result);
        if *reported == problem {
            return;
        }
        tracing::warn!(
            "The cloud configuration cannot be used as it is now; the previous one stays in force: {problem}"
        );
        problem.clone_into(reported);
    }
}
