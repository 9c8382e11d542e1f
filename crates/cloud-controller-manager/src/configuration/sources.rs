//! The documents of the cloud configuration: a file and a Secret, as the flags name them.

use anyhow::bail;
use cloud_config::{CloudConfig, ConfigType};
use kube::Client;
pub(crate) use manager::configuration::Reading;
pub use manager::configuration::SecretKey;
pub(super) use manager::configuration::certificate_of;
use manager::configuration::read_file;

use crate::flags::Flags;
use program::environment::ProcessEnvironment;

const FLAG: &str = "--cloud-config";

/// The Secret that the replaced program reads where `--cloud-config` names no file and no other Secret is named.
const USUAL_SECRET: &str = "azure-cloud-provider";

/// The places of the configuration's documents. At least one is set once the command line is valid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// `--cloud-config`; empty for none.
    pub file: String,
    /// The Secret, if one is named.
    pub secret: Option<SecretKey>,
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
    /// problems of keys are named at once ([`command_line::StartRefusal`]), each with key, value and remedy.
    pub(crate) async fn read(
        &self,
        client: &Client,
        environment: &ProcessEnvironment,
    ) -> anyhow::Result<Reading> {
        let file = if self.file.is_empty() { None } else { Some(read_file(&self.file, FLAG)?) };
        let document = match (file, &self.secret) {
            (Some(file), None) => file,
            (Some(file), Some(_)) if file.config_type() == ConfigType::File => file,
            (Some(file), Some(secret)) => file.with_secret(secret.read(client).await?),
            (None, Some(secret)) => secret.read(client).await?,
            (None, None) => bail!("--cloud-config: no file is named, and no Secret"),
        };
        Reading::of(&self.shown(), document, environment)
    }

    /// Logs what a configuration from these sources probably does not intend.
    pub(crate) fn warn(&self, reading: &Reading) {
        reading.warn(&self.shown());
    }

    /// The sources in messages.
    pub(super) fn shown(&self) -> String {
        let file = Some(self.file.clone()).filter(|file| !file.is_empty());
        file.into_iter().chain(self.secret.as_ref().map(SecretKey::shown)).collect::<Vec<_>>().join(" and ")
    }
}

/// Reads and checks a file alone, and logs its warnings.
///
/// # Errors
/// The file is unreadable or does not contain a configuration that this release supports. All problems are named at
/// once ([`command_line::StartRefusal`]), each with key, value and remedy.
pub fn read(path: &str, environment: &ProcessEnvironment) -> anyhow::Result<CloudConfig> {
    let reading = Reading::of(path, read_file(path, FLAG)?, environment)?;
    reading.warn(path);
    let config = reading.config;
    if config.cloud_config_type == ConfigType::Secret {
        tracing::warn!(
            path,
            "cloudConfigType=secret: no Secret is named, so that the file counts (name one with \
             --cloud-config-secret-name)"
        );
    }
    Ok(config)
}
