//! The real manager of Cluster API's core, with its own definitions and webhooks.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use simulated_cluster::{WebhookServer, free_port};

use super::objects::{create, read, read_all};
use super::place::Place;
use crate::print;
use crate::program::Program;

/// Where the core's manifests are in its sources: since version 1.14, and before.
const MANIFESTS: [&str; 2] = ["core/config", "config"];
/// The labels that its manifests put on all definitions: what they are part of, and the versions of the contract.
const LABELS: [(&str, &str); 3] = [
    ("cluster.x-k8s.io/provider", "cluster-api"),
    ("cluster.x-k8s.io/v1beta1", "v1beta1"),
    ("cluster.x-k8s.io/v1beta2", "v1beta2"),
];

/// Applies its definitions, starts it, and registers its webhooks once it serves them.
///
/// # Errors
/// Something is missing in the sources, is not taken, or does not start.
pub async fn start(
    program: &Path,
    sources: &Path,
    directory: &Path,
    place: &Place,
) -> anyhow::Result<Program> {
    let config = MANIFESTS.iter().map(|folder| sources.join(folder)).find(|folder| folder.is_dir());
    let config = config.with_context(|| format!("{}: there are no manifests in it", sources.display()))?;
    let server = WebhookServer::new(directory.join("core-webhooks"))?;
    let definitions = read_all(&config.join("crd/bases"))?;
    for mut definition in definitions.into_iter().filter(|it| it["kind"] == "CustomResourceDefinition") {
        for (label, value) in LABELS {
            definition["metadata"]["labels"][label] = value.into();
        }
        definition["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": server.client_config("/convert"),
        } });
        create(&place.client, &definition).await?;
    }
    let mut running = Program::start(
        "cluster-api-core",
        directory,
        Command::new(program)
            .arg(format!("--kubeconfig={}", place.kubeconfig.display()))
            .arg(format!("--webhook-port={}", server.port))
            .arg(format!("--webhook-cert-dir={}", server.certificates.display()))
            .arg(format!("--health-addr=127.0.0.1:{}", free_port()?))
            .arg(format!("--diagnostics-address=127.0.0.1:{}", free_port()?))
            .args(["--insecure-diagnostics", "--v=4"])
            .env_clear()
            // API servers of workload clusters are in Azure's networks; Go reaches what is on this machine without it.
            .env("HTTPS_PROXY", &place.proxy),
    )?;
    super::serves(&server, &mut running).await?;
    let registrations: Vec<Value> = read(&config.join("webhook/manifests.yaml"))?;
    ensure!(!registrations.is_empty(), "the core's sources hold no webhooks");
    for registration in registrations {
        create(&place.client, &server.registration(registration)).await?;
    }
    let output = running.output();
    let said = output.split_once("Version: ").and_then(|(_, text)| text.split_whitespace().next());
    let version = said.unwrap_or("of an unknown version");
    print::line(format_args!("Cluster API's core runs: {version}"));
    Ok(running)
}
