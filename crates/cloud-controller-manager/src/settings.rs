//! The cloud configuration, from its file to a valid value, or its problems.

use anyhow::Context as _;
use cloud_config::{CloudConfig, ConfigError};

use crate::environment::ProcessEnvironment;
use command_line::StartRefusal;

/// Reads and checks azure.json.
///
/// # Errors
/// The file is unreadable or does not contain a configuration that this release supports. All problems are named at
/// once ([`StartRefusal`]), each with key, value and remedy.
pub fn read(path: &str, environment: &ProcessEnvironment) -> anyhow::Result<CloudConfig> {
    let bytes = std::fs::read(path).with_context(|| format!("--cloud-config: cannot read {path}"))?;
    let config = match CloudConfig::runnable(&bytes, &|name| environment.variable(name)) {
        Ok(config) => config,
        Err(ConfigError::Invalid(problems)) => {
            return Err(StartRefusal::one(path, problems.iter().map(ToString::to_string).collect()).into());
        }
        Err(error) => return Err(error).with_context(|| path.to_owned()),
    };
    for warning in config.warnings() {
        tracing::warn!(path, "{warning}");
    }
    Ok(config)
}
