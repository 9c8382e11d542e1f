//! Our manager, with its webhooks.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::ensure;
use capz_api::webhooks::{Task, registration};
use kube::api::PostParams;
use serde_json::json;
use simulated_cluster::WebhookServer;
use tokio::time::Instant;

use super::objects::{api, create};
use super::server::Server;
use crate::program::Program;
use crate::webhooks::{READY_TIMEOUT, ports, served};
use crate::world::World;

/// Starts the manager with the arguments of its manifest, and registers its webhooks once it serves them.
///
/// # Errors
/// The manager does not start, or the API server refuses the webhooks.
pub async fn start(
    binary: &Path,
    directory: &Path,
    place: &World,
    server: &Server,
) -> anyhow::Result<Program> {
    let webhooks = WebhookServer::new(directory.join("capz-webhooks"))?;
    let mut program = Program::start(
        "capz-controller-manager",
        directory,
        Command::new(binary)
            .arg(format!("--kubeconfig={}", server.manager_kubeconfig.display()))
            .args(ports(&webhooks)?)
            .args(["--insecure-diagnostics", "--leader-elect", "--leader-election-namespace=capz-system"])
            // Gates that flavors need.
            .arg("--feature-gates=EdgeZone=true,APIServerILB=true")
            // Addresses on this machine are reached without a proxy.
            .env_clear()
            .env("SSL_CERT_FILE", &place.azure.certificate_authority)
            .env("AZURE_RESOURCE_MANAGER_ENDPOINT", &place.azure.https)
            .env("AZURE_AUTHORITY_HOST", &place.azure.authority),
    )?;
    served(&webhooks, &mut program).await?;
    for task in [Task::Default, Task::Validate] {
        create(&server.client, &webhooks.registration(registration(task))).await?;
    }
    let deadline = Instant::now() + READY_TIMEOUT;
    while !completes(server).await? {
        program.must_run()?;
        ensure!(Instant::now() < deadline, "the webhooks are not asked:\n{}", program.last_words());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(program)
}

/// Whether webhooks complete an object: a registration takes effect a moment after it was created.
async fn completes(server: &Server) -> anyhow::Result<bool> {
    let cluster = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster", "metadata": { "name": "probe" },
        "spec": { "location": "westeurope", "identityRef": { "kind": "AzureClusterIdentity", "name": "identity" } },
    });
    let clusters =
        api(&server.client, "infrastructure.cluster.x-k8s.io/v1beta1", "AzureCluster", Some("default"));
    let parameters = PostParams { dry_run: true, ..PostParams::default() };
    let made = clusters.create(&parameters, &serde_json::from_value(cluster)?).await?;
    Ok(made.data["spec"]["resourceGroup"] == "probe")
}
