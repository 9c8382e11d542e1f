//! The established provider's manager, with its own definitions and webhooks.

use std::path::Path;
use std::process::Command;

use simulated_cluster::{WebhookServer, free_port};

use super::place::{Place, serves};
use crate::e2e::capz::objects::{create, read, read_all};
use crate::program::Program;

/// The labels that its manifests put on all definitions.
const LABELS: [(&str, &str); 2] =
    [("cluster.x-k8s.io/provider", "infrastructure-azure"), ("cluster.x-k8s.io/v1beta1", "v1beta1")];

/// Applies its definitions, starts it as its manifest does, and registers its webhooks once it serves them. It looks again sooner than it would.
///
/// # Errors
/// It does not start, or the API server does not take its webhooks.
pub async fn start(
    program: &Path,
    sources: &Path,
    directory: &Path,
    place: &Place,
) -> anyhow::Result<Program> {
    for mut definition in read_all(&sources.join("config/crd/bases"))? {
        for (label, value) in LABELS {
            definition["metadata"]["labels"][label] = value.into();
        }
        create(&place.client, &definition).await?;
    }
    let server = WebhookServer::new(directory.join("provider-webhooks"))?;
    let mut running = Program::start(
        "provider",
        directory,
        Command::new(program)
            .arg(format!("--webhook-port={}", server.port))
            .arg(format!("--webhook-cert-dir={}", server.certificates.display()))
            .arg(format!("--health-addr=127.0.0.1:{}", free_port()?))
            .arg(format!("--diagnostics-address=127.0.0.1:{}", free_port()?))
            .args(["--insecure-diagnostics", "--v=4", "--reconciler-requeue=2s", "--debouncing-timer=1s"])
            .arg("--feature-gates=MachinePool=true,EdgeZone=true")
            .env_clear()
            .env("KUBECONFIG", &place.kubeconfig)
            .env("SSL_CERT_FILE", &place.azure.certificate_authority)
            .env("POD_NAMESPACE", "capz-system")
            // Go reaches what is on this machine without it.
            .env("HTTPS_PROXY", &place.proxy),
    )?;
    serves(&server, &mut running).await?;
    for registration in read(&sources.join("config/webhook/manifests.yaml"))? {
        create(&place.client, &server.registration(registration)).await?;
    }
    Ok(running)
}
