//! Cluster API's own tool: what it must find in a management cluster, and its commands.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use kube::Client;
use serde_json::{Value, json};

use super::objects::{create, define, read};
use crate::program::Program;

/// The label of all that clusterctl installs; it moves the kinds whose definitions bear it.
pub const LABEL: &str = "clusterctl.cluster.x-k8s.io";
/// The version of its own kinds.
pub const INVENTORY_VERSION: &str = "clusterctl.cluster.x-k8s.io/v1alpha3";
/// The definition of its inventory, in its sources.
const INVENTORY: &str = "cmd/clusterctl/config/crd/bases/clusterctl.cluster.x-k8s.io_providers.yaml";
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(200);

/// A provider, as its inventory has it.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What the label of a provider says on all that belongs to it.
    pub label: &'static str,
    /// What users call it.
    pub name: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// The flag of `clusterctl init` that names it.
    pub flag: &'static str,
    /// The namespace of what runs.
    pub namespace: &'static str,
    /// Its version.
    pub version: String,
    /// The folder of its manifests in Cluster API's sources; ours are in this repository.
    pub manifests: Option<&'static str>,
}

impl Entry {
    /// Ours. clusterctl asks of the version only that it is one, and not lower than what is there.
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

/// Writes down which providers there are, as `clusterctl init` does.
///
/// # Errors
/// The API server does not take that, or the sources lack the definition.
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

/// Runs it to its end.
///
/// # Errors
/// It fails, with its words, or takes too long.
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
    let status = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(status) = running.ended()? {
                return anyhow::Ok(status);
            }
            tokio::time::sleep(LOOK).await;
        }
    });
    let Ok(status) = status.await else {
        bail!("{title} did not end within {} s:\n{}", PATIENCE.as_secs(), running.last_words());
    };
    ensure!(status?.success(), "{title} failed:\n{}", running.last_words());
    Ok(())
}

/// It, without what this machine says of it: nothing is read of a user's, and no newer version looked for.
fn bare(clusterctl: &Path, directory: &Path) -> Command {
    let mut command = Command::new(clusterctl);
    command
        .env_clear()
        .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
        .env("HOME", directory)
        .env("XDG_CONFIG_HOME", directory);
    command
}

/// `clusterctl move` of all clusters in the namespace `default`, between two management clusters that are reached so.
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

/// What `clusterctl generate yaml` makes of a template with these variables.
///
/// # Errors
/// It fails, with its words.
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
