//! The cloud configuration, from its file to a value that can be worked with, or one line that says why not.

use anyhow::{Context as _, bail};
use cloud_config::CloudConfig;

use crate::surroundings::Surroundings;

/// Reads and checks azure.json.
///
/// # Errors
/// The file is unreadable; it holds no configuration; keys are invalid or missing; or it asks for what
/// this release does not do. All problems of a kind are named at once, each with key, value and remedy.
pub fn read(path: &str, surroundings: &Surroundings) -> anyhow::Result<CloudConfig> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("--cloud-config: cannot read {path}"))?;
    let config = CloudConfig::from_file(&text, &|name| surroundings.variable(name))
        .with_context(|| path.to_owned())?;
    let missing = config.missing();
    if !missing.is_empty() {
        bail!("{path}: {}", joined(&missing));
    }
    let unsupported = config.unsupported();
    if !unsupported.is_empty() {
        bail!("{path}: {}", joined(&unsupported));
    }
    for warning in config.warnings() {
        tracing::warn!(path, "{warning}");
    }
    Ok(config)
}

fn joined(problems: &[impl ToString]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
