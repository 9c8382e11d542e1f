//! Installs the providers with clusterctl, and removes ours again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use kube::Client;
use kube::api::ListParams;
use serde_json::json;
use tokio::time::Instant;

use crate::e2e::capz::clusterctl::{self, Entry, LABEL};
use crate::e2e::capz::objects::{api, define, definition_of_anything};
use crate::e2e::capz::server::Server;
use crate::e2e::capz::stage::Stage;
use crate::print;
use crate::program::root;

const EXTENSIONS: &str = "apiextensions.k8s.io/v1";
const REGISTRATIONS: &str = "admissionregistration.k8s.io/v1";

/// The label of all objects of our provider.
const OURS: &str = "cluster.x-k8s.io/provider=infrastructure-azure";
/// The time limit for deleted objects to be gone.
const GOING: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(200);

/// Kinds that clusterctl installs, each with the minimum number of objects.
const INSTALLED: [(&str, &str, usize); 7] = [
    (EXTENSIONS, "CustomResourceDefinition", 24),
    ("apps/v1", "Deployment", 4),
    ("cert-manager.io/v1", "Certificate", 4),
    ("cert-manager.io/v1", "Issuer", 4),
    (REGISTRATIONS, "MutatingWebhookConfiguration", 4),
    (REGISTRATIONS, "ValidatingWebhookConfiguration", 4),
    (clusterctl::INVENTORY_VERSION, "Provider", 4),
];
/// The kinds of cert-manager of which the manifests contain objects.
const CERTIFICATES: [&str; 2] = ["Certificate", "Issuer"];

/// Runs `clusterctl init` for all four providers, from folders, in an empty management cluster; then
/// `clusterctl delete` for ours.
///
/// # Errors
/// clusterctl fails, or an object is missing or left.
pub async fn play(stage: &mut Stage<'_>) -> anyhow::Result<()> {
    let directory = stage.directory.join("empty");
    std::fs::create_dir_all(&directory)?;
    let server = Server::empty(&directory, stage.programs.assets.as_deref(), &stage.place.stop).await?;
    for kind in CERTIFICATES {
        define(&server.client, &definition_of_anything("cert-manager.io", "v1", kind)).await?;
    }
    let entries = stage.management.entries.clone();
    let configuration = repository(stage, &directory, &entries)?;
    let named = |entry: &Entry| format!("--{}={}:{}", entry.flag, entry.name, entry.version);
    let mut arguments = vec!["init".to_owned()];
    arguments.extend(entries.iter().map(named));
    let environment = [("CAPZ_IMAGE", "registry.example/capz-controller-manager:e2e")];
    run(stage, &directory, &server, &configuration, &arguments, &environment).await?;
    for (version, kind, least) in INSTALLED {
        let found = installed(&server.client, version, kind, LABEL).await?;
        ensure!(found.len() >= least, "{} of the kind {kind}, and not {least}: {found:?}", found.len());
    }
    print::line(format_args!("  ok    clusterctl init installs {} providers", entries.len()));

    let away = ["delete", "--infrastructure=azure", "--include-crd"].map(str::to_owned);
    run(stage, &directory, &server, &configuration, &away, &[]).await?;
    let deadline = Instant::now() + GOING;
    for (version, kind, _) in INSTALLED {
        loop {
            let left = installed(&server.client, version, kind, OURS).await?;
            if left.is_empty() {
                break;
            }
            ensure!(Instant::now() < deadline, "left of the kind {kind}: {left:?}");
            tokio::time::sleep(LOOK).await;
        }
    }
    print::line("  ok    clusterctl delete takes ours away");
    Ok(())
}

/// The names of the objects of a kind that clusterctl has installed.
async fn installed(client: &Client, version: &str, kind: &str, label: &str) -> anyhow::Result<Vec<String>> {
    let found = match api(client, version, kind, None).list(&ListParams::default().labels(label)).await {
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        found => found?,
    };
    Ok(found.into_iter().filter_map(|object| object.metadata.name).collect())
}

/// Creates folders with the manifests of all providers, and the configuration file of clusterctl.
fn repository(stage: &Stage<'_>, directory: &Path, entries: &[Entry]) -> anyhow::Result<PathBuf> {
    let mut providers = Vec::new();
    for entry in entries {
        let folder = directory.join(entry.label).join(&entry.version);
        std::fs::create_dir_all(&folder)?;
        let file = folder.join(format!("{}-components.yaml", entry.flag));
        let (manifests, metadata) = match entry.manifests {
            Some(config) => {
                let sources = stage.programs.sources.as_deref().context("--core-sources is missing")?;
                (kustomized(stage, &sources.join(config).join("default"))?, sources.join("metadata.yaml"))
            }
            None => {
                let ours = root().join("deploy/capz");
                (std::fs::read(ours.join("infrastructure-components.yaml"))?, ours.join("metadata.yaml"))
            }
        };
        std::fs::write(&file, manifests)?;
        std::fs::copy(metadata, folder.join("metadata.yaml"))?;
        providers.push(json!({ "name": entry.name, "type": entry.kind, "url": file }));
    }
    let path = directory.join("clusterctl.yaml");
    std::fs::write(&path, json!({ "providers": providers }).to_string())?;
    Ok(path)
}

/// The manifests of a folder, as built by kubectl's kustomize.
fn kustomized(stage: &Stage<'_>, folder: &Path) -> anyhow::Result<Vec<u8>> {
    let kubectl = stage.programs.kubectl.as_deref().context("KUBEBUILDER_ASSETS has no kubectl")?;
    let made = std::process::Command::new(kubectl).arg("kustomize").arg(folder).output()?;
    ensure!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    Ok(made.stdout)
}

async fn run(
    stage: &Stage<'_>,
    directory: &Path,
    server: &Server,
    configuration: &Path,
    arguments: &[String],
    environment: &[(&str, &str)],
) -> anyhow::Result<()> {
    let program = stage.programs.clusterctl.as_deref().context("--clusterctl is missing")?;
    let mut all = arguments.to_vec();
    all.push(format!("--config={}", configuration.display()));
    all.push(format!("--kubeconfig={}", server.kubeconfig.display()));
    clusterctl::run(program, directory, &all, environment).await
}
