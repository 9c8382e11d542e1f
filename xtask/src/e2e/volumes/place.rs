//! A simulated machine, and the driver on it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;

use crate::e2e::cluster::Cluster;
use crate::program::{Built, Program, STOP_TIMEOUT, output, root, until, with_logs};

/// The name of the driver in a folder of programs.
pub const DRIVER: &str = "azurediskplugin";
/// The size of the machine, which takes 16 data disks.
pub const SIZE: &str = "Standard_D8s_v5";
/// How many disks the driver is to attach at most.
const LIMIT: &str = "16";
/// The only machine.
const MACHINE: &str = "worker000000";
/// The time limit for the driver to listen.
const PATIENCE: Duration = Duration::from_secs(60);

/// What runs, and where.
pub struct Settings<'a> {
    /// The driver.
    pub driver: &'a Path,
    /// Its arguments beside the usual ones.
    pub arguments: &'a [String],
    /// The size of the machine.
    pub size: &'a str,
}

/// A cluster of one machine, with the driver on it as controller and as node.
pub struct Place {
    cluster: Cluster,
    /// The driver.
    pub driver: Program,
    /// Its socket.
    pub socket: PathBuf,
}

/// What this machine lacks for loop devices and mount namespaces, in words with the remedy.
pub fn lacks() -> Option<&'static str> {
    let succeeds = |program: &str, arguments: &[&str]| {
        let mut command = Command::new(program);
        let command =
            command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let is_root = output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0");
    if !is_root {
        Some("they need root")
    } else if !succeeds("losetup", &["--find"]) {
        Some("there are no loop devices: load the module loop, and install losetup of util-linux")
    } else if !succeeds("unshare", &["--mount", "--propagation", "private", "true"]) {
        Some("this machine makes no mount namespaces (unshare --mount)")
    } else if !succeeds("mkfs.ext4", &["-V"]) {
        Some("there is no mkfs.ext4: install e2fsprogs")
    } else {
        None
    }
}

impl Place {
    /// Starts the cluster, and the driver on its machine.
    ///
    /// # Errors
    /// One of them does not start.
    pub async fn start(built: &Built, directory: &Path, settings: &Settings<'_>) -> anyhow::Result<Self> {
        let volumes = directory.join("volumes");
        let folder = volumes.display().to_string();
        // In no zone, as disks of a driver without zones are.
        let machine = ["--nodes", "1", "--size", settings.size, "--machine-zones=", "--without-budgets"];
        let options = [&machine[..], &["--volumes", &folder]].concat();
        let cluster = Cluster::start_with(built, directory, None, &options).await?;
        let socket = directory.join("csi.sock");
        let mut command = Command::new(root().join("scripts/in_machine.sh"));
        command
            .arg(volumes.join(MACHINE))
            .arg(settings.driver)
            .arg(format!("--endpoint=unix://{}", socket.display()))
            .arg(format!("--nodeid={MACHINE}"))
            .arg(format!("--kubeconfig={}", cluster.files.join("kubeconfig").display()))
            .arg(format!("--volume-attach-limit={LIMIT}"))
            .args(["--drivername=disk.csi.azure.com", "--cloud-config-secret-name=", "--metrics-address="])
            .args([
                "--enable-list-volumes=true",
                "--enable-list-snapshots=true",
                "--support-zone=false",
                "--v=5",
            ])
            .args(settings.arguments)
            .env("AZURE_CREDENTIAL_FILE", cluster.files.join("azure.json"))
            .env("SSL_CERT_FILE", cluster.files.join("ca.pem"));
        let mut driver = Program::start("driver", directory, &mut command)?;
        let listens = async |_: &Program| Ok(socket.exists().then_some(()));
        let listening = until(&mut driver, Program::must_run, "the driver listens", PATIENCE, listens).await;
        listening.map_err(|problem| with_logs(problem, &[&driver, &cluster.program]))?;
        Ok(Self { cluster, driver, socket })
    }

    /// A command that runs where the driver does, and sees its mounts.
    pub fn beside_the_driver(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--target={}", self.driver.id())).args(["--mount", "--"]).arg(program);
        command
    }

    /// Stops the driver, then the simulators, which release their devices.
    ///
    /// # Errors
    /// One of them does not stop.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        // How it ends is no question of csi-sanity.
        let _ended = self.driver.terminate(STOP_TIMEOUT).await.context("the driver")?;
        let ended = self.cluster.program.terminate(STOP_TIMEOUT).await.context("the simulated cluster")?;
        anyhow::ensure!(ended.success(), "the simulated cluster ended with {ended}");
        Ok(())
    }
}
