//! clusterctl: the inventory that it needs in a management cluster, and its commands.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use kube::Client;
use serde_json::{Value, json};

use super::objects::{create, define, read};
use crate::program::Program;

/// The label of all objects that clusterctl installs. It moves the kinds whose definitions have this label.
pub const LABEL: &str = "clusterctl.cluster.x-k8s.io";
/// The version of clusterctl's own kinds.
pub const INVENTORY_VERSION: &str = "clusterctl.cluster.x-k8s.io/v1alpha3";
/// The definition of the inventory, in clusterctl's sources.
const INVENTORY: &str = "cmd/clusterctl/config/crd/bases/clusterctl.cluster.x-k8s.io_providers.yaml";
/// The time limit of a command.
const PATIENCE: Duration = Duration::from_secs(300);

/// A provider in the inventory.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The value of the provider label on all objects of the provider.
    pub label: &'static str,
    /// The name that users pass.
    pub name: &'static str,
    /// The provider's kind.
    pub kind: &'static str,
    /// The flag of `clusterctl init` for the provider.
    pub flag: &'static str,
    /// The namespace of the provider's pods.
    pub namespace: &'static str,
    /// The version.
    pub version: String,
    /// The folder of the manifests in Cluster API's sources; ours are in this repository.
    pub manifests: Option<&'static str>,
}

impl Entry {
    /// Our provider. clusterctl requires only that the version is valid, and not lower than the installed one.
    pub fn ours() -> Self {
        Self {
            label: "infrastructure-azure",
            name: "azure",
            kind: "InfrastructureProvider",
            flag: "infrastructure",
            namespace: "capz-system",
            version: "v1.27.0".to_owned(),
            manifests: None,
        }
    }

    fn object(&self) -> Value {
        json!({ "apiVersion": INVENTORY_VERSION, "kind": "Provider",
            "metadata": { "name": self.label, "namespace": self.namespace, "labels": { LABEL: "",
                "cluster.x-k8s.io/provider": self.label, "clusterctl.cluster.x-k8s.io/core": "inventory" } },
            "providerName": self.name, "type": self.kind, "version": self.version })
    }
}

/// Creates the inventory, as `clusterctl init` does.
///
/// # Errors
/// The API server refuses it, or the sources lack the definition.
pub async fn install_inventory(sources: &Path, client: &Client, entries: &[Entry]) -> anyhow::Result<()> {
    for mut definition in read(&sources.join(INVENTORY))? {
        definition["metadata"]["labels"] =
            json!({ LABEL: "", "clusterctl.cluster.x-k8s.io/core": "inventory" });
        define(client, &definition).await?;
    }
    for entry in entries {
        create(client, &entry.object()).await?;
    }
    Ok(())
}

/// Runs a command and waits for its end.
///
/// # Errors
/// The command fails, with its output, or takes too long.
pub async fn run(
    clusterctl: &Path,
    directory: &Path,
    arguments: &[String],
    environment: &[(&str, &str)],
) -> anyhow::Result<()> {
    let title = format!("clusterctl {}", arguments.first().map_or("", String::as_str));
    let mut command = bare(clusterctl, directory);
    command.args(arguments).arg("-v=5").envs(environment.iter().copied());
    let mut running = Program::start("clusterctl", directory, &mut command)?;
    let Some(status) = running.ends_within(PATIENCE).await? else {
        bail!("{title} did not end within {} s:\n{}", PATIENCE.as_secs(), running.last_words());
    };
    ensure!(status.success(), "{title} failed:\n{}", running.last_words());
    Ok(())
}

/// clusterctl without the environment of this machine: it reads no files of the user, and does not check for newer
/// versions.
fn bare(clusterctl: &Path, directory: &Path) -> Command {
    let mut command = Command::new(clusterctl);
    command
        .env_clear()
        .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
        .env("HOME", directory)
        .env("XDG_CONFIG_HOME", directory);
    command
}

/// Runs `clusterctl move` for all clusters in the namespace `default`, between two management clusters with these
/// kubeconfigs.
///
/// # Errors
/// As [`run`].
pub async fn move_all(clusterctl: &Path, directory: &Path, from: &Path, to: &Path) -> anyhow::Result<()> {
    let arguments = [
        "move".to_owned(),
        "--namespace=default".to_owned(),
        format!("--kubeconfig={}", from.display()),
        format!("--to-kubeconfig={}", to.display()),
    ];
    run(clusterctl, directory, &arguments, &[]).await
}

/// The output of `clusterctl generate yaml` for a template with these variables.
///
/// # Errors
/// The command fails, with its output.
pub fn generated(
    clusterctl: &Path,
    directory: &Path,
    template: &Path,
    variables: &BTreeMap<&str, &str>,
) -> anyhow::Result<Vec<Value>> {
    let made = bare(clusterctl, directory)
        .args(["generate", "yaml", "--from"])
        .arg(template)
        .envs(variables)
        .output()
        .with_context(|| format!("cannot start {}", clusterctl.display()))?;
    ensure!(made.status.success(), "clusterctl generate: {}", String::from_utf8_lossy(&made.stderr));
    Ok(serde_saphyr::from_multiple(&String::from_utf8(made.stdout)?)?)
}
