//! The cloud configuration of drivers for volumes: where it is read.
//!
//! The first of these that is there counts (section 2.2 of the specification of the drivers): the Secret that the flags name, the file that
//! `AZURE_CREDENTIAL_FILE` names, `/etc/kubernetes/azure.json`.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use arm::{CallObserver, Client as AzureClient, Clock, Cloud, Credential};
use cloud_config::Document;
use kube::Client;
use program::environment::ProcessEnvironment;

use crate::configuration::{Reading, SecretKey, read_file};

const VARIABLE: &str = "AZURE_CREDENTIAL_FILE";
const USUAL_FILE: &str = "/etc/kubernetes/azure.json";
const KEY: &str = "cloud-config";

/// Where the configuration is read, and what a client of Azure needs besides.
#[derive(Clone)]
pub struct Sources {
    /// The Secret; none if a flag for it is empty.
    pub secret: Option<SecretKey>,
    /// Without it, no Secret is read.
    pub client: Option<Client>,
    /// Variables of the process.
    pub environment: ProcessEnvironment,
    /// The user agent of calls to Azure.
    pub user_agent: String,
    /// What observes calls to Azure.
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
    pub async fn connect(&self, reading: &Reading) -> anyhow::Result<AzureClient> {
        let config = &reading.config;
        let transport = self.environment.azure_transport()?;
        let (cloud, warnings) = Cloud::resolve(config, &transport).await?;
        for warning in warnings {
            tracing::warn!("{warning}");
        }
        let credential = Credential::from_config(config, &cloud, &transport, Clock::system())?;
        let builder = AzureClient::builder(cloud, transport, credential).configure(config);
        let client = builder.user_agent(&self.user_agent).observer(Arc::clone(&self.observer)).build();
        client.check_credential().await?;
        Ok(client)
    }

    /// Reads the configuration and connects; `None` if no source exists.
    ///
    /// # Errors
    /// As [`Self::read`] and [`Self::connect`].
    pub async fn open(&self) -> anyhow::Result<Option<(Reading, AzureClient)>> {
        let Some((shown, reading)) = self.read().await? else { return Ok(None) };
        reading.warn(&shown);
        let client = self.connect(&reading).await.context(shown)?;
        Ok(Some((reading, client)))
    }

    /// The places where the configuration may be, for logs.
    pub fn shown(&self) -> String {
        let secret = self.secret.as_ref().map(SecretKey::shown);
        let file = self.environment.variable(VARIABLE).unwrap_or_else(|| USUAL_FILE.to_owned());
        secret.into_iter().chain([file]).collect::<Vec<_>>().join(" or ")
    }
}
