//! Cluster API's own tool: what it must find in a management cluster, and its commands.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use kube::Client;
use serde_json::{Value, json};

use super::objects::{create, read};
use super::provider::Provider;
use super::server::Server;
use crate::program::Program;

/// The label of all that clusterctl installs; it moves the kinds whose definitions bear it.
pub const LABEL: &str = "clusterctl.cluster.x-k8s.io";
/// The definition of its inventory, in its sources.
const INVENTORY: &str = "cmd/clusterctl/config/crd/bases/clusterctl.cluster.x-k8s.io_providers.yaml";
/// The version that ours goes by: no clusterctl asks for more than that it is one.
const OUR_VERSION: &str = "v1.27.0";
/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(200);

/// Writes down which providers there are, as `clusterctl init` does.
///
/// # Errors
/// The API server does not take that, or the sources lack the definition.
pub async fn install_inventory(
    sources: &Path,
    client: &Client,
    versions: &[(&Provider, String)],
) -> anyhow::Result<()> {
    for mut definition in read(&sources.join(INVENTORY))? {
        definition["metadata"]["labels"] =
            json!({ LABEL: "", "clusterctl.cluster.x-k8s.io/core": "inventory" });
        create(client, &definition).await?;
    }
    let ours = entry("infrastructure-azure", "azure", "InfrastructureProvider", "capz-system", OUR_VERSION);
    let theirs = versions.iter().map(|(provider, version)| {
        entry(provider.label, provider.name, provider.kind, "capi-system", version)
    });
    for provider in theirs.chain([ours]) {
        create(client, &provider).await?;
    }
    Ok(())
}

fn entry(label: &str, name: &str, kind: &str, namespace: &str, version: &str) -> Value {
    json!({ "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Provider",
        "metadata": { "name": label, "namespace": namespace, "labels": {
            LABEL: "", "cluster.x-k8s.io/provider": label, "clusterctl.cluster.x-k8s.io/core": "inventory" } },
        "providerName": name, "type": kind, "version": version })
}

/// `clusterctl move` of all clusters in the namespace `default`.
///
/// # Errors
/// It fails, with its words, or takes too long.
pub async fn move_all(clusterctl: &Path, directory: &Path, from: &Server, to: &Server) -> anyhow::Result<()> {
    let mut moving = Program::start(
        "clusterctl-move",
        directory,
        Command::new(clusterctl)
            .args(["move", "--namespace=default", "-v=5"])
            .arg(format!("--kubeconfig={}", from.kubeconfig.display()))
            .arg(format!("--to-kubeconfig={}", to.kubeconfig.display()))
            // Nothing of this machine's is read, and no newer version looked for.
            .env_clear()
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .env("HOME", directory)
            .env("XDG_CONFIG_HOME", directory),
    )?;
    let status = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(status) = moving.ended()? {
                return anyhow::Ok(status);
            }
            tokio::time::sleep(LOOK).await;
        }
    });
    let Ok(status) = status.await else {
        bail!("clusterctl move did not end within {} s:\n{}", PATIENCE.as_secs(), moving.last_words());
    };
    ensure!(status?.success(), "clusterctl move failed:\n{}", moving.last_words());
    Ok(())
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
    let made = Command::new(clusterctl)
        .args(["generate", "yaml", "--from"])
        .arg(template)
        .env_clear()
        .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
        .env("HOME", directory)
        .env("XDG_CONFIG_HOME", directory)
        .envs(variables)
        .output()
        .with_context(|| format!("cannot start {}", clusterctl.display()))?;
    ensure!(made.status.success(), "clusterctl generate: {}", String::from_utf8_lossy(&made.stderr));
    let text = String::from_utf8(made.stdout)?;
    Ok(serde_saphyr::from_multiple(&text)?)
}
