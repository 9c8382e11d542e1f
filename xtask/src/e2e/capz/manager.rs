//! Our manager, with its webhooks.

use std::path::Path;
use std::process::Command;

use capz_api::webhooks::{Task, registration};

use super::objects::create;
use super::place::Place;
use super::webhooks::{WebhookServer, free_port};
use crate::program::Program;

/// Starts it as its manifest does, and registers its webhooks once it serves them.
///
/// # Errors
/// It does not start, or the API server does not take the webhooks.
pub async fn start(binary: &Path, directory: &Path, place: &Place) -> anyhow::Result<Program> {
    let server = WebhookServer::new(directory.join("capz-webhooks"))?;
    let mut program = Program::start(
        "capz-controller-manager",
        directory,
        Command::new(binary)
            .arg(format!("--kubeconfig={}", place.kubeconfig.display()))
            .arg(format!("--webhook-port={}", server.port))
            .arg(format!("--webhook-cert-dir={}", server.certificates.display()))
            .arg(format!("--health-addr=127.0.0.1:{}", free_port()?))
            .arg(format!("--diagnostics-address=127.0.0.1:{}", free_port()?))
            .args(["--insecure-diagnostics", "--leader-elect", "--leader-election-namespace=capz-system"])
            // What is on this machine is reached without a proxy.
            .env_clear()
            .env("SSL_CERT_FILE", &place.azure.certificate_authority)
            .env("AZURE_RESOURCE_MANAGER_ENDPOINT", &place.azure.https)
            .env("AZURE_AUTHORITY_HOST", &place.azure.authority),
    )?;
    server.wait(&mut program).await?;
    for task in [Task::Default, Task::Validate] {
        create(&place.client, &server.registration(registration(task))).await?;
    }
    Ok(program)
}
