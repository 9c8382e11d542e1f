//! A real cluster on machines whose disks are loop devices, with the driver and its side-cars.

use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use real_kubernetes::Enclosure;
use simulated_cluster::machine_disks::{Devices, MachineDisks, Options};
use simulated_cluster::running_host;
use tokio_util::sync::CancellationToken;

use super::accounts::{CONTROLLER, NODE, SNAPSHOTS};
use super::registrar::Registrar;
use super::side_cars::{self, SideCars};
use crate::e2e::machines::{EmptyCluster, Machines};
use crate::e2e::managers;
use crate::e2e::rights::{self, Account};
use crate::e2e::volumes::place::DRIVER;
use crate::program::{Program, STOP_TIMEOUT, output, root, until};

/// The machines, which are also the nodes.
pub const MACHINES: [&str; 2] = ["node-a", "node-b"];
/// The name of the driver in Kubernetes.
pub const NAME: &str = "disk.csi.azure.com";
/// The definitions of snapshots, as our chart has them.
const DEFINITIONS: &str = "deploy/charts/azuredisk-csi-driver/files/definitions";
/// The time limit for a program to listen.
const PATIENCE: Duration = Duration::from_secs(60);

/// The environment, which ends when this value is dropped.
pub struct Place {
    /// Our running programs and the side-cars.
    pub programs: Vec<Program>,
    /// Azure and the cluster.
    pub machines: Machines,
    _registrars: Vec<Registrar>,
    disks: MachineDisks,
    // Disks are released at the end of this value even if it is dropped.
    _stop: tokio_util::sync::DropGuard,
}

impl Deref for Place {
    type Target = Machines;

    fn deref(&self) -> &Machines {
        &self.machines
    }
}

impl Place {
    /// Starts Azure, the cluster, the managers, the driver and its side-cars.
    ///
    /// # Errors
    /// Something does not start.
    pub async fn start(
        enclosure: &Enclosure,
        assets: &Path,
        binaries: &Path,
        side_cars: &SideCars,
    ) -> anyhow::Result<Self> {
        let folder = enclosure.folder();
        share(folder)?;
        let stop = CancellationToken::new();
        let empty = EmptyCluster::start(enclosure, assets, &MACHINES).await?;
        let options =
            Options { folder: folder.join("volumes"), delay: Duration::ZERO, devices: Devices::Loop };
        let disks = MachineDisks::start(&empty.azure.azure, options, running_host, &stop)?;
        let mut changed = disks.changed();
        let _ended = changed.wait_for(|looks| *looks > 0).await;
        let flags = rights::audit_flags(folder);
        let flags = flags.each_ref().map(|(flag, value)| (*flag, value.as_str()));
        let machines = empty.start_nodes(None, &flags).await?;
        let programs = managers::start(&machines, binaries).await?;
        let mut this = Self { programs, machines, _registrars: Vec::new(), disks, _stop: stop.drop_guard() };
        this.start_driver(binaries).await?;
        this.start_side_cars(side_cars).await?;
        Ok(this)
    }

    /// Starts the driver as controller, and on each node.
    async fn start_driver(&mut self, binaries: &Path) -> anyhow::Result<()> {
        let azure_json = managers::write_azure_json(&self.machines)?;
        let kubeconfig = self.grant(CONTROLLER).await?;
        let driver = binaries.join(DRIVER);
        let socket = self.controller_socket();
        let mut command = Command::new(&driver);
        arguments(&mut command, &socket, &kubeconfig);
        command
            .env("AZURE_CREDENTIAL_FILE", &azure_json)
            .env("SSL_CERT_FILE", &self.azure.certificate_authority);
        self.start_listener("driver-controller", &mut command, &socket).await?;

        let kubeconfig = self.grant(NODE).await?;
        for number in 0..MACHINES.len() {
            let Some(node) = self.machines.cluster.nodes.get(number) else { continue };
            let (name, kubelet) = (node.name().to_owned(), self.folder.join(node.name()).join("kubelet"));
            let plugin = kubelet.join("plugins").join(NAME);
            std::fs::create_dir_all(&plugin)?;
            let socket = plugin.join("csi.sock");
            let mut command = node.command(&root().join("scripts/in_machine.sh"));
            command.arg(self.disks.machine(&name)).arg(&driver);
            arguments(&mut command, &socket, &kubeconfig);
            command
                .arg(format!("--nodeid={name}"))
                .env("IN_MACHINE_PROPAGATION", "unchanged")
                .env("AZURE_CREDENTIAL_FILE", &azure_json)
                .env("SSL_CERT_FILE", &self.azure.certificate_authority);
            self.start_listener(&format!("driver-{name}"), &mut command, &socket).await?;
            self._registrars.push(Registrar::start(NAME, &kubelet.join("plugins_registry"), &socket)?);
        }
        Ok(())
    }

    async fn start_side_cars(&mut self, side_cars: &SideCars) -> anyhow::Result<()> {
        let definitions = root().join(DEFINITIONS);
        output(self.kubectl().args(["apply", "-f"]).arg(&definitions))?;
        let controller = self
            .machines
            .cluster
            .servers
            .kubeconfig
            .with_file_name(format!("{}.kubeconfig", CONTROLLER.name));
        let snapshots = self.grant(SNAPSHOTS).await?;
        for one in side_cars::ALL {
            let kubeconfig = if one.account.name == SNAPSHOTS.name { &snapshots } else { &controller };
            let mut command = Command::new(side_cars.program(one));
            command.args(one.arguments).arg(format!("--kubeconfig={}", kubeconfig.display()));
            if one.account.name == CONTROLLER.name {
                command.arg(format!("--csi-address={}", self.controller_socket().display()));
            }
            self.programs.push(Program::start(one.name, &self.machines.folder, &mut command)?);
        }
        Ok(())
    }

    fn controller_socket(&self) -> PathBuf {
        self.folder.join("controller.sock")
    }

    async fn grant(&self, account: Account) -> anyhow::Result<PathBuf> {
        rights::grant(&self.client, &self.cluster.servers, &self.assets, account).await
    }

    /// kubectl with an administrator's rights.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(self.assets.join("kubectl"));
        command.arg("--kubeconfig").arg(&self.cluster.servers.kubeconfig);
        command
    }

    async fn start_listener(
        &mut self,
        name: &str,
        command: &mut Command,
        socket: &Path,
    ) -> anyhow::Result<()> {
        let mut program = Program::start(name, &self.machines.folder, command)?;
        let listens = async |_: &Program| Ok(socket.exists().then_some(()));
        let what = format!("{name} listens");
        let listening = until(&mut program, Program::must_run, &what, PATIENCE, listens).await;
        listening.map_err(|problem| crate::program::with_logs(problem, &[&program]))?;
        self.programs.push(program);
        Ok(())
    }

    /// Fails if a program has ended by itself.
    ///
    /// # Errors
    /// The program with the end of its log.
    pub fn must_run(&mut self) -> anyhow::Result<()> {
        self.machines.must_run()?;
        self.programs.iter_mut().try_for_each(Program::must_run)
    }

    /// Stops the programs, then releases the disks.
    ///
    /// # Errors
    /// A program does not stop.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        for program in &mut self.programs {
            // How side-cars end is no question of ours.
            let _ended = program.terminate(STOP_TIMEOUT).await?;
        }
        self.disks.release().await;
        Ok(())
    }
}

/// The arguments of the driver in both roles.
fn arguments(command: &mut Command, socket: &Path, kubeconfig: &Path) {
    command
        .arg(format!("--endpoint=unix://{}", socket.display()))
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .arg(format!("--drivername={NAME}"))
        .args(["--cloud-config-secret-name=", "--metrics-address=", "--v=5"]);
}

/// What is mounted below the folder in one mount namespace is seen in the others: the driver mounts volumes for the kubelet.
fn share(folder: &Path) -> anyhow::Result<()> {
    output(Command::new("mount").arg("--bind").arg(folder).arg(folder))?;
    output(Command::new("mount").arg("--make-shared").arg(folder))?;
    Ok(())
}
