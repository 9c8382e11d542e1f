//! The real clusterctl, with a repository of components in a folder: the established provider's as released, ours as in
//! `deploy/capz`, and for Cluster API's own providers the definitions of their stand-in.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, ensure};
use kube::Client;
use kube::api::ListParams;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::counterparts::Counterparts;
use super::pods::NAMESPACE;
use crate::e2e::capz::objects::api;
use crate::print;
use crate::program::root;

/// The versions of the established provider, of ours, and of the established one on the way back: clusterctl only
/// upgrades.
pub const ESTABLISHED: &str = "v1.26.0";
/// See [`ESTABLISHED`].
pub const OURS: &str = "v1.27.0";
/// See [`ESTABLISHED`].
pub const BACK: &str = "v1.27.1";
/// The image in our manifest.
pub const OUR_IMAGE: &str = "registry.example/capz-controller-manager:v0.1.0";
/// The pretended version of Cluster API's own providers.
const CORE: &str = "v1.14.2";

/// Cluster API's own providers: folder, file, type, name, namespace and group of kinds.
const PLAYED: [(&str, &str, &str, &str, &str, &str); 3] = [
    ("cluster-api", "core-components", "CoreProvider", "cluster-api", "capi-system", "cluster.x-k8s.io"),
    (
        "bootstrap-kubeadm",
        "bootstrap-components",
        "BootstrapProvider",
        "kubeadm",
        "capi-kubeadm-bootstrap-system",
        "bootstrap.cluster.x-k8s.io",
    ),
    (
        "control-plane-kubeadm",
        "control-plane-components",
        "ControlPlaneProvider",
        "kubeadm",
        "capi-kubeadm-control-plane-system",
        "controlplane.cluster.x-k8s.io",
    ),
];

/// clusterctl for a management cluster.
pub struct Clusterctl {
    program: PathBuf,
    configuration: PathBuf,
    directory: PathBuf,
    /// Cluster API's own providers, as the configuration lists them.
    played: Vec<Value>,
}

impl Clusterctl {
    /// Fills the repository; the definitions of Cluster API's kinds are read from this management cluster.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub async fn prepare(
        counterparts: &Counterparts,
        client: &Client,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let repository = directory.join("repository");
        let mut providers = Vec::new();
        let definitions = api(client, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None)
            .list(&ListParams::default())
            .await?;
        for (folder, file, of_type, name, namespace, group) in PLAYED {
            let mut objects =
                vec![json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } })];
            for definition in definitions.items.iter().filter(|it| it.data["spec"]["group"] == group) {
                let labels = &definition.metadata.labels;
                objects.push(json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": { "name": definition.metadata.name, "labels": labels }, "spec": definition.data["spec"] }));
            }
            let folder = repository.join(folder).join(CORE);
            std::fs::create_dir_all(&folder)?;
            let texts: Vec<String> = objects.iter().map(|object| format!("{object:#}\n")).collect();
            let path = folder.join(format!("{file}.yaml"));
            std::fs::write(&path, texts.join("---\n"))?;
            std::fs::write(folder.join("metadata.yaml"), metadata(1, 14, "v1beta2"))?;
            providers.push(json!({ "name": name, "type": of_type, "url": path }));
        }
        let deploy = root().join("deploy/capz");
        for (version, from) in
            [(ESTABLISHED, &counterparts.components), (OURS, &deploy), (BACK, &counterparts.components)]
        {
            let folder = repository.join("infrastructure-azure").join(version);
            std::fs::create_dir_all(&folder)?;
            let components = from.join("infrastructure-components.yaml");
            let text =
                std::fs::read_to_string(&components).with_context(|| components.display().to_string())?;
            std::fs::write(folder.join("infrastructure-components.yaml"), text)?;
            // The new version's metadata must contain the series of the installed version: on the way back that is
            // ours.
            let series = if version == BACK { &deploy } else { from };
            std::fs::copy(series.join("metadata.yaml"), folder.join("metadata.yaml"))?;
        }
        let configuration = directory.join("clusterctl.yaml");
        let this = Self {
            program: counterparts.clusterctl.clone(),
            configuration: configuration.clone(),
            directory: directory.to_owned(),
            played: providers,
        };
        this.write_configuration(&configuration, &repository)?;
        Ok(this)
    }

    /// Writes a configuration with the infrastructure provider in another repository, and Cluster API's own providers in this one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_configuration(&self, file: &Path, repository: &Path) -> anyhow::Result<()> {
        let url = repository.join("infrastructure-azure").join(OURS).join("infrastructure-components.yaml");
        let azure = json!({ "name": "azure", "type": "InfrastructureProvider", "url": url });
        let providers: Vec<&Value> = self.played.iter().chain([&azure]).collect();
        Ok(std::fs::write(file, json!({ "providers": providers }).to_string())?)
    }

    /// Installs Cluster API and this version of the provider.
    ///
    /// # Errors
    /// clusterctl's error.
    pub async fn init(&self, kubeconfig: &Path, version: &str) -> anyhow::Result<()> {
        let (core, kubeadm) = (format!("cluster-api:{CORE}"), format!("kubeadm:{CORE}"));
        let azure = format!("azure:{version}");
        self.run(
            kubeconfig,
            &[
                "init",
                "--core",
                &core,
                "--bootstrap",
                &kubeadm,
                "--control-plane",
                &kubeadm,
                "--infrastructure",
                &azure,
            ],
        )
        .await
    }

    /// Runs a command and prints its duration.
    ///
    /// # Errors
    /// clusterctl's error.
    pub async fn run(&self, kubeconfig: &Path, arguments: &[&str]) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut command = Command::new(&self.program);
        command
            .arg("--config")
            .arg(&self.configuration)
            .args(arguments)
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .env_clear()
            .env("HOME", &self.directory)
            .env("CLUSTERCTL_DISABLE_VERSIONCHECK", "true")
            .env("CAPZ_IMAGE", OUR_IMAGE)
            // The identities of workload clusters use Secrets here.
            .env("AZURE_SUBSCRIPTION_ID_B64", "");
        let output = tokio::task::spawn_blocking(move || command.output()).await??;
        let said =
            format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        std::fs::write(self.directory.join(format!("clusterctl-{}.log", arguments[0])), &said)?;
        ensure!(output.status.success(), "clusterctl {}:\n{said}", arguments.join(" "));
        print::line(format_args!(
            "  clusterctl {}: {:.0} s",
            arguments.join(" "),
            begun.elapsed().as_secs_f64()
        ));
        Ok(())
    }
}

fn metadata(major: u32, minor: u32, contract: &str) -> String {
    let series: BTreeMap<&str, Value> =
        BTreeMap::from([("major", major.into()), ("minor", minor.into()), ("contract", contract.into())]);
    json!({ "apiVersion": "clusterctl.cluster.x-k8s.io/v1alpha3", "kind": "Metadata", "releaseSeries": [series] })
        .to_string()
}

/// The lines that the guide's command lists.
pub fn left_in(kubectl: &mut Command) -> anyhow::Result<Vec<String>> {
    let kinds = "resourcegroups.resources.azure.com,virtualnetworks.network.azure.com,virtualnetworkssubnets.network.azure.com,natgateways.network.azure.com,bastionhosts.network.azure.com,privateendpoints.network.azure.com";
    let output = kubectl.args(["get", kinds, "--all-namespaces", "--no-headers"]).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "kubectl get {kinds}: {said}");
    Ok(String::from_utf8(output.stdout)?.lines().map(str::to_owned).collect())
}

/// The arguments of kubectl that replace the image of the manager.
pub fn set_image(image: &str) -> Vec<String> {
    let image = format!("manager={image}");
    ["set", "image", "deployment/capz-controller-manager", &image, "--namespace", NAMESPACE]
        .map(str::to_owned)
        .to_vec()
}
