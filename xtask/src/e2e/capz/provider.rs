//! The real managers of Cluster API: its core, and kubeadm's bootstrap and control plane providers, each with its own
//! definitions and webhooks.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use serde_json::{Value, json};
use simulated_cluster::{Part, WebhookServer};

use super::clusterctl::{Entry, LABEL};
use super::objects::{create, define, read, read_all};
use super::server::Server;
use crate::program::Program;
use crate::webhooks::{ports, served};
use crate::world::World;

/// A program of Cluster API that replaces a part of the stand-in.
pub struct Provider {
    /// The replaced part.
    pub part: Part,
    /// The name in messages.
    pub title: &'static str,
    /// The program's file name in Cluster API's own build.
    pub program: &'static str,
    /// The folders of its manifests in the sources: since version 1.14, and before.
    manifests: &'static [&'static str],
    /// The value of the provider label on its definitions.
    label: &'static str,
    /// Its name and kind in clusterctl's inventory, and the flag of `clusterctl init` for it.
    inventory: (&'static str, &'static str, &'static str),
}

/// All programs, in the order in which they are started.
pub const PROVIDERS: [Provider; 3] = [
    Provider {
        part: Part::Core,
        title: "core",
        program: "manager",
        manifests: &["core/config", "config"],
        label: "cluster-api",
        inventory: ("cluster-api", "CoreProvider", "core"),
    },
    Provider {
        part: Part::Bootstrap,
        title: "kubeadm bootstrap provider",
        program: "kubeadm-bootstrap-manager",
        manifests: &["bootstrap/kubeadm/config"],
        label: "bootstrap-kubeadm",
        inventory: ("kubeadm", "BootstrapProvider", "bootstrap"),
    },
    Provider {
        part: Part::ControlPlane,
        title: "kubeadm control plane provider",
        program: "kubeadm-control-plane-manager",
        manifests: &["controlplane/kubeadm/config"],
        label: "control-plane-kubeadm",
        inventory: ("kubeadm", "ControlPlaneProvider", "control-plane"),
    },
];

/// The labels of the contract's versions on all definitions.
const CONTRACTS: [(&str, &str); 2] =
    [("cluster.x-k8s.io/v1beta1", "v1beta1"), ("cluster.x-k8s.io/v1beta2", "v1beta2")];

impl Provider {
    /// The program's entry in clusterctl's inventory, with this version.
    pub fn entry(&self, sources: &Path, version: String) -> Option<Entry> {
        let (name, kind, flag) = self.inventory;
        let manifests = self.folder(sources);
        Some(Entry {
            label: self.label,
            name,
            kind,
            flag,
            namespace: "capi-system",
            version,
            manifests: Some(manifests?),
        })
    }

    /// The folder of the manifests in these sources.
    fn folder(&self, sources: &Path) -> Option<&'static str> {
        self.manifests.iter().copied().find(|folder| sources.join(folder).is_dir())
    }
}

/// Enabled feature gates: cluster classes, and bootstrap data for Flatcar.
const GATES: &str = "--feature-gates=ClusterTopology=true,KubeadmBootstrapFormatIgnition=true";

/// Applies the definitions, starts the program, and registers its webhooks once it serves them. Returns it with its
/// version.
///
/// # Errors
/// The sources are incomplete, the API server refuses an object, or the program does not start.
pub async fn start(
    provider: &Provider,
    program: &Path,
    sources: &Path,
    directory: &Path,
    place: &World,
    server: &Server,
) -> anyhow::Result<(Program, String)> {
    let name = provider.label;
    let config = provider.folder(sources).map(|folder| sources.join(folder));
    let config = config.with_context(|| format!("{}: there are no manifests in it", sources.display()))?;
    let webhooks = WebhookServer::new(directory.join(format!("{name}-webhooks")))?;
    let definitions = read_all(&config.join("crd/bases"))?;
    for mut definition in definitions.into_iter().filter(|it| it["kind"] == "CustomResourceDefinition") {
        definition["metadata"]["labels"]["cluster.x-k8s.io/provider"] = name.into();
        definition["metadata"]["labels"][LABEL] = "".into();
        for (label, value) in CONTRACTS {
            definition["metadata"]["labels"][label] = value.into();
        }
        definition["spec"]["conversion"] = json!({ "strategy": "Webhook", "webhook": {
            "conversionReviewVersions": ["v1"], "clientConfig": webhooks.client_config("/convert"),
        } });
        define(&server.client, &definition).await?;
    }
    let mut running = Program::start(
        name,
        directory,
        Command::new(program)
            .arg(format!("--kubeconfig={}", server.kubeconfig.display()))
            .args(ports(&webhooks)?)
            .args(["--insecure-diagnostics", "--v=4", GATES])
            .env_clear()
            // API servers of workload clusters are in Azure's networks; Go connects to this machine without the proxy.
            .env("HTTPS_PROXY", &place.proxy),
    )?;
    served(&webhooks, &mut running).await?;
    let registrations: Vec<Value> = read(&config.join("webhook/manifests.yaml"))?;
    ensure!(!registrations.is_empty(), "the sources of the {} hold no webhooks", provider.title);
    for mut registration in registrations {
        // All of them have the same name in their sources.
        let own = registration["metadata"]["name"].as_str().unwrap_or_default();
        registration["metadata"]["name"] = format!("{name}-{own}").into();
        create(&server.client, &webhooks.registration(registration)).await?;
    }
    let output = running.output();
    let said = output.split_once("Version: ").and_then(|(_, text)| text.split_whitespace().next());
    Ok((running, said.unwrap_or("v0.0.0").to_owned()))
}
