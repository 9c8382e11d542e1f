//! The documents of the cloud configuration, from a file and a Secret to a valid value, or their problems.

use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use arm::FileStamp;
use cloud_config::{CloudConfig, ConfigError, ConfigType, Document};
use k8s::api::api::core::v1::Secret;
use kube::{Api, Client};

use crate::environment::ProcessEnvironment;
use crate::flags::Flags;
use command_line::StartRefusal;

/// How long the API server may take to answer with the Secret.
const SECRET_TIMEOUT: Duration = Duration::from_secs(10);

/// The Secret that the replaced program reads where `--cloud-config` names no file and no other Secret is named.
const USUAL_SECRET: &str = "azure-cloud-provider";

/// The place of the document in a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretKey {
    /// `--cloud-config-secret-namespace`.
    pub namespace: String,
    /// `--cloud-config-secret-name`.
    pub name: String,
    /// `--cloud-config-key`: the key in the Secret's data.
    pub key: String,
}

impl SecretKey {
    /// The Secret in messages.
    fn shown(&self) -> String {
        format!("Secret {}/{}", self.namespace, self.name)
    }

    /// Reads the document.
    ///
    /// # Errors
    /// The API refuses, does not answer, or the Secret or its key does not exist.
    async fn read(&self, client: &Client) -> anyhow::Result<Document> {
        let shown = self.shown();
        let api: Api<Secret> = Api::namespaced(client.clone(), &self.namespace);
        let secret = tokio::time::timeout(SECRET_TIMEOUT, api.get(&self.name))
            .await
            .with_context(|| format!("{shown}: no answer within {} s", SECRET_TIMEOUT.as_secs()))?
            .with_context(|| format!("{shown}: cannot be read (--cloud-config-secret-name names it)"))?;
        let data = secret.data.unwrap_or_default();
        let Some(document) = data.get(&self.key) else {
            let keys: Vec<&str> = data.keys().map(String::as_str).collect();
            bail!(
                "{shown} has no key {} (its keys: {}; name one with --cloud-config-key)",
                self.key,
                if keys.is_empty() { "none".to_owned() } else { keys.join(", ") }
            );
        };
        Document::parse(&document.0).with_context(|| format!("{shown}, key {}", self.key))
    }
}

/// The places of the configuration's documents. At least one is set once the command line is valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// `--cloud-config`; empty for none.
    pub file: String,
    /// The Secret, if one is named.
    pub secret: Option<SecretKey>,
}

/// A valid configuration with the document that it was read from, and the state of the client certificate's file.
#[derive(Debug, Clone)]
pub(crate) struct Reading {
    pub document: Document,
    pub config: CloudConfig,
    /// Certificate authorities and the token of a workload identity need no such stamp: they are read where they are used.
    pub certificate: FileStamp,
}

/// The state of the client certificate's file; that of an unreadable one without `aadClientCertPath`.
pub(super) fn certificate_of(config: &CloudConfig) -> FileStamp {
    FileStamp::of(Path::new(&config.aad_client_cert_path))
}

impl Reading {
    /// Whether both lead to the same client and the same plans.
    pub(super) fn has_effect_of(&self, other: &Self) -> bool {
        self.certificate == other.certificate && self.config.has_effect_of(&other.config)
    }
}

impl Sources {
    /// The sources that the flags name.
    pub fn of(flags: &Flags) -> Self {
        let name = match flags.cloud_config_secret_name.as_str() {
            "" if flags.cloud_config.is_empty() && flags.enable_dynamic_reloading => USUAL_SECRET,
            name => name,
        };
        let secret = (!name.is_empty()).then(|| SecretKey {
            namespace: flags.cloud_config_secret_namespace.clone(),
            name: name.to_owned(),
            key: flags.cloud_config_key.clone(),
        });
        Self { file: flags.cloud_config.clone(), secret }
    }

    /// Reads and checks the configuration. Reads the Secret only if the file does not exclude it.
    ///
    /// # Errors
    /// A document cannot be read or parsed, or both together are not a configuration that this release supports. All
    /// problems of keys are named at once ([`StartRefusal`]), each with key, value and remedy.
    pub(crate) async fn read(
        &self,
        client: &Client,
        environment: &ProcessEnvironment,
    ) -> anyhow::Result<Reading> {
        let file = if self.file.is_empty() { None } else { Some(read_file(&self.file)?) };
        let document = match (file, &self.secret) {
            (Some(file), None) => file,
            (Some(file), Some(_)) if file.config_type() == ConfigType::File => file,
            (Some(file), Some(secret)) => file.with_secret(secret.read(client).await?),
            (None, Some(secret)) => secret.read(client).await?,
            (None, None) => bail!("--cloud-config: no file is named, and no Secret"),
        };
        let config = judge(&self.shown(), document.clone(), environment)?;
        let certificate = certificate_of(&config);
        Ok(Reading { document, config, certificate })
    }

    /// Logs what a configuration from these sources probably does not intend.
    pub(crate) fn warn(&self, config: &CloudConfig) {
        warn(&self.shown(), config);
    }

    /// The sources in messages.
    pub(super) fn shown(&self) -> String {
        let file = Some(self.file.clone()).filter(|file| !file.is_empty());
        file.into_iter().chain(self.secret.as_ref().map(SecretKey::shown)).collect::<Vec<_>>().join(" and ")
    }
}

fn read_file(path: &str) -> anyhow::Result<Document> {
    let bytes = std::fs::read(path).map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::PermissionDenied => {
                " (the image runs as user 65532: give the file the mode 0644, or run the program as root with runAsUser: 0)"
            }
            _ => "",
        };
        anyhow::Error::new(error).context(format!("--cloud-config: cannot read {path}{remedy}"))
    })?;
    Document::parse(&bytes).with_context(|| path.to_owned())
}

/// Reads and checks a file alone, and logs its warnings.
///
/// # Errors
/// The file is unreadable or does not contain a configuration that this release supports. All problems are named at
/// once ([`StartRefusal`]), each with key, value and remedy.
pub fn read(path: &str, environment: &ProcessEnvironment) -> anyhow::Result<CloudConfig> {
    let config = judge(path, read_file(path)?, environment)?;
    warn(path, &config);
    if config.cloud_config_type == ConfigType::Secret {
        tracing::warn!(
            path,
            "cloudConfigType=secret: no Secret is named, so that the file counts (name one with \
             --cloud-config-secret-name)"
        );
    }
    Ok(config)
}

fn judge(shown: &str, document: Document, environment: &ProcessEnvironment) -> anyhow::Result<CloudConfig> {
    match CloudConfig::runnable_document(document, &|name| environment.variable(name)) {
        Ok(config) => Ok(config),
        Err(ConfigError::Invalid(problems)) => {
            Err(StartRefusal::one(shown, problems.iter().map(ToString::to_string).collect()).into())
        }
        Err(error) => Err(error).with_context(|| shown.to_owned()),
    }
}

/// Logs what a configuration probably does not intend.
fn warn(source: &str, config: &CloudConfig) {
    for warning in config.warnings() {
        tracing::warn!(path = source, "{warning}");
    }
}
