//! The stage of a story: Azure, a management cluster, and clusterctl.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;
use azure_simulator::Options;
use clock::Clock;
use kube::api::DeleteParams;
use serde_json::Value;
use simulated_cluster::{Shape, WorkloadOptions};
use tokio::time::Instant;

use super::clusterctl::Clusterctl;
use super::counterparts::Counterparts;
use super::management::{Management, View};
use crate::e2e::capz::objects::api;
use crate::print;
use crate::program::root;
use crate::seam::azure::{Watch, documents};
use crate::seam::cluster::apply_cluster;
use crate::world::World;

/// Azure, and the management cluster in which a story begins.
pub struct Stage<'a> {
    counterparts: &'a Counterparts,
    /// The flavor of the cluster, and its name.
    pub flavor: &'a str,
    shape: Shape,
    world: World,
    directory: PathBuf,
    /// The management cluster.
    pub here: Management,
    /// clusterctl, with its repository.
    pub clusterctl: Clusterctl,
}

impl<'a> Stage<'a> {
    /// Starts a management cluster in which no provider is installed.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn set(
        counterparts: &'a Counterparts,
        flavor: &'a str,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let shape = Shape { region: "eastus".to_owned(), ..Shape::default() };
        let options = Options { start: Clock::system().now(), ..Options::default() };
        let world = World::start(directory, &shape, WorkloadOptions::default().management, options).await?;
        let here = Management::start(counterparts, &directory.join("here"), &world).await?;
        let clusterctl = Clusterctl::prepare(counterparts, &here.client, directory).await?;
        Ok(Self { counterparts, flavor, shape, world, directory: directory.to_owned(), here, clusterctl })
    }

    /// A second management cluster, without a provider.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn second(&self) -> anyhow::Result<Management> {
        Management::start(self.counterparts, &self.directory.join("there"), &self.world).await
    }

    /// Applies the cluster as a user, and waits until it is at rest.
    ///
    /// # Errors
    /// It takes too long.
    pub async fn make_cluster(&self) -> anyhow::Result<()> {
        let begun = Instant::now();
        apply_cluster(&self.world, &self.here.client, self.flavor, &self.shape).await?;
        self.here.rests().await?;
        print::line(format_args!("  the cluster is made and rests: {:.0} s", begun.elapsed().as_secs_f64()));
        Ok(())
    }

    /// Runs `cerulean check takeover`, which must report no obstacles.
    ///
    /// # Errors
    /// There are obstacles.
    pub fn check_takeover(&self, management: &Management) -> anyhow::Result<()> {
        let Some(cerulean) = &self.counterparts.cerulean else {
            print::line("  cerulean check takeover: left out, for --cerulean names no program");
            return Ok(());
        };
        let output = Command::new(cerulean)
            .args(["check", "takeover", "--kubeconfig"])
            .arg(management.kubeconfig())
            .env("NO_PROXY", "127.0.0.1")
            .output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
        print::line(format_args!("  cerulean check takeover:\n{}", said.trim_end()));
        Ok(())
    }

    /// Upgrades the provider with clusterctl.
    ///
    /// # Errors
    /// clusterctl's error.
    pub async fn upgrade(&self, version: &str) -> anyhow::Result<()> {
        let to = format!("azure:{version}");
        self.clusterctl.run(self.here.kubeconfig(), &["upgrade", "apply", "--infrastructure", &to]).await
    }

    /// Moves all clusters with clusterctl.
    ///
    /// # Errors
    /// clusterctl's error.
    pub async fn move_cluster(&self, from: &Management, to: &Management) -> anyhow::Result<()> {
        let to = to.kubeconfig().display().to_string();
        self.clusterctl
            .run(from.kubeconfig(), &["move", "--namespace", "default", "--to-kubeconfig", &to])
            .await
    }

    /// Deletes the Cluster as a user.
    ///
    /// # Errors
    /// The API server refuses it.
    pub async fn delete_cluster(&self, management: &Management) -> anyhow::Result<()> {
        let clusters = api(&management.client, "cluster.x-k8s.io/v1beta2", "Cluster", Some("default"));
        clusters.delete(self.flavor, &DeleteParams::default()).await?;
        Ok(())
    }

    /// Whether our manager plays the established one.
    pub fn plays_established(&self) -> bool {
        self.counterparts.operator.is_none()
    }

    /// The ids of the cluster's resources in Azure, in lower case.
    pub fn of_cluster(&self) -> Vec<String> {
        let group = format!("/resourcegroups/{}", self.flavor);
        documents(&self.world.azure.azure).into_keys().filter(|id| id.contains(&group)).collect()
    }

    /// Writes the files that a reader of the guide has: this repository's, the established components, and clusterctl's
    /// configuration.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write_files_of_reader(&self, folder: &Path) -> anyhow::Result<()> {
        std::os::unix::fs::symlink(root().join("deploy"), folder.join("deploy"))?;
        std::os::unix::fs::symlink(&self.counterparts.components, folder.join("established"))?;
        self.clusterctl.write_configuration(&folder.join("clusterctl.yaml"), &folder.join("providers"))
    }

    /// The variables of the shell of a reader of the guide.
    pub fn variables_of_reader(&self) -> Vec<(String, String)> {
        let cerulean = self.counterparts.cerulean.as_deref().and_then(Path::parent);
        let programs =
            [Some(self.counterparts.assets.as_path()), self.counterparts.clusterctl.parent(), cerulean];
        let folders = programs.into_iter().flatten().map(|folder| folder.display().to_string());
        let path = folders.chain(std::env::var("PATH")).collect::<Vec<_>>().join(":");
        let kubeconfig = self.here.kubeconfig().display().to_string();
        vec![("PATH".to_owned(), path), ("KUBECONFIG".to_owned(), kubeconfig)]
    }

    /// Starts watching Azure.
    pub fn watch_azure(&self) -> Watch {
        Watch::begin(&self.world.azure.azure)
    }

    /// Whether nothing is left of the cluster, neither in Azure nor in Kubernetes.
    pub fn is_gone(&self, view: &View) -> bool {
        let group = format!("/resourcegroups/{}", self.flavor);
        let none = |kind| -> bool { view.objects.of(kind).iter().all(Value::is_null) };
        ["AzureCluster", "Cluster", "Machine", "AzureMachine"].into_iter().all(none)
            && view.operators.is_empty()
            && !documents(&self.world.azure.azure).keys().any(|id| id.contains(&group))
    }

    /// The ends of the programs' logs.
    pub fn words(&self) -> String {
        self.here.words()
    }
}
