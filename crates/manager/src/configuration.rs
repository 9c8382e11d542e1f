//! Documents of the cloud configuration, from a file or a Secret to a valid value, or their problems.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use arm::FileStamp;
use cloud_config::{CloudConfig, ConfigError, Document};
use command_line::StartRefusal;
use k8s::api::api::core::v1::Secret;
use kube::{Api, Client};
use program::environment::ProcessEnvironment;

/// How long the API server may take to answer with the Secret.
const SECRET_TIMEOUT: Duration = Duration::from_secs(10);

/// The place of a document in a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretKey {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
    /// The key in the Secret's data.
    pub key: String,
}

impl SecretKey {
    /// The Secret in messages.
    pub fn shown(&self) -> String {
        format!("Secret {}/{}", self.namespace, self.name)
    }

    /// Reads the document.
    ///
    /// # Errors
    /// The API refuses, does not answer, or the Secret or its key does not exist.
    pub async fn read(&self, client: &Client) -> anyhow::Result<Document> {
        let found = self.read_if_there(client).await?;
        let shown = self.shown();
        found.with_context(|| format!("{shown} does not exist (--cloud-config-secret-name names it)"))
    }

    /// Reads the document; `None` if there is no such Secret.
    ///
    /// # Errors
    /// The API refuses or does not answer, or the Secret has no such key.
    pub async fn read_if_there(&self, client: &Client) -> anyhow::Result<Option<Document>> {
        let shown = self.shown();
        let api: Api<Secret> = Api::namespaced(client.clone(), &self.namespace);
        let secret = tokio::time::timeout(SECRET_TIMEOUT, api.get_opt(&self.name))
            .await
            .with_context(|| format!("{shown}: no answer within {} s", SECRET_TIMEOUT.as_secs()))?
            .with_context(|| format!("{shown}: cannot be read (--cloud-config-secret-name names it)"))?;
        let Some(secret) = secret else { return Ok(None) };
        let data = secret.data.unwrap_or_default();
        let Some(document) = data.get(&self.key) else {
            let keys: Vec<&str> = data.keys().map(String::as_str).collect();
            bail!(
                "{shown} has no key {} (its keys: {}; name one with --cloud-config-key)",
                self.key,
                if keys.is_empty() { "none".to_owned() } else { keys.join(", ") }
            );
        };
        Document::parse(&document.0).map(Some).with_context(|| format!("{shown}, key {}", self.key))
    }
}

/// A valid configuration with the document that it was read from, and the state of the client certificate's file.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The document.
    pub document: Document,
    /// The configuration.
    pub config: CloudConfig,
    /// Certificate authorities and the token of a workload identity need no such stamp: they are read where they are used.
    pub certificate: FileStamp,
}

impl Reading {
    /// Checks a document, whose source is `shown` in messages.
    ///
    /// # Errors
    /// It is no configuration that this release supports. All problems of keys are named at once ([`StartRefusal`]), each with key,
    /// value and remedy.
    pub fn of(shown: &str, document: Document, environment: &ProcessEnvironment) -> anyhow::Result<Self> {
        let config =
            match CloudConfig::runnable_document(document.clone(), &|name| environment.variable(name)) {
                Ok(config) => config,
                Err(ConfigError::Invalid(problems)) => {
                    let problems = problems.iter().map(ToString::to_string).collect();
                    return Err(StartRefusal::one(shown, problems).into());
                }
                Err(error) => return Err(anyhow::Error::new(error).context(shown.to_owned())),
            };
        let certificate = certificate_of(&config);
        Ok(Self { document, config, certificate })
    }

    /// Whether both lead to the same client and the same plans.
    pub fn has_effect_of(&self, other: &Self) -> bool {
        self.certificate == other.certificate && self.config.has_effect_of(&other.config)
    }

    /// Logs what the configuration probably does not intend.
    pub fn warn(&self, source: &str) {
        for warning in self.config.warnings() {
            tracing::warn!(path = source, "{warning}");
        }
    }
}

/// The state of the client certificate's file; that of an unreadable one without `aadClientCertPath`.
pub fn certificate_of(config: &CloudConfig) -> FileStamp {
    FileStamp::of(Path::new(&config.aad_client_cert_path))
}

/// Reads the document in a file, which `named_by` names: a flag or a variable.
///
/// # Errors
/// The file is unreadable, or contains no document.
pub fn read_file(path: &str, named_by: &str) -> anyhow::Result<Document> {
    let bytes = std::fs::read(path).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => {
                " (the image runs as user 65532: give the file the mode 0644, or run the program as root with runAsUser: 0)"
            }
            _ => "",
        };
        anyhow::Error::new(error).context(format!("{named_by}: cannot read {path}{remedy}"))
    })?;
    Document::parse(&bytes).with_context(|| path.to_owned())
}
