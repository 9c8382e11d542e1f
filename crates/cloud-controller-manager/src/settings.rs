//! The cloud configuration, from its file to a value that can be worked with, or one line that says why not.

use anyhow::Context as _;
use cloud_config::CloudConfig;

use crate::surroundings::Surroundings;

/// Reads and checks azure.json.
///
/// # Errors
/// The file is unreadable or holds no configuration that this release can run on. All problems are named
/// at once, each with key, value and remedy.
pub fn read(path: &str, surroundings: &Surroundings) -> anyhow::Result<CloudConfig> {
    let bytes = std::fs::read(path).with_context(|| format!("--cloud-config: cannot read {path}"))?;
    let config = CloudConfig::runnable(&bytes, &|name| surroundings.variable(name))
        .with_context(|| path.to_owned())?;
    for warning in config.warnings() {
        tracing::warn!(path, "{warning}");
    }
    Ok(config)
}
