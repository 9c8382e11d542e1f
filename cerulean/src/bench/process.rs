//! A program that is measured from outside.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};
use simulated_cluster::upstream_arguments;

/// A controller manager that is measured.
#[derive(Debug, Clone)]
pub struct Manager {
    /// Its name in tables.
    pub name: &'static str,
    /// Its binary.
    pub binary: PathBuf,
    /// Whether it is the program that Cerulean replaces.
    is_peer: bool,
}

impl Manager {
    /// Ours: the named binary, or else the one next to this program.
    ///
    /// # Errors
    /// The binary does not exist.
    pub fn ours(named: Option<PathBuf>) -> anyhow::Result<Self> {
        let binary = beside_this(named, "azure-cloud-controller-manager", "--manager")?;
        Ok(Self { name: "ours", binary, is_peer: false })
    }

    /// Whether it initialises nodes itself. The established provider has a controller for that, but gives it no worker
    /// (`ConcurrentNodeSyncs` has neither flag nor default in v1.36): it leaves new nodes to the node manager.
    pub fn initialises_nodes(&self) -> bool {
        !self.is_peer
    }

    /// A build of the program that Cerulean replaces.
    ///
    /// # Errors
    /// The binary does not exist.
    pub fn peer(binary: PathBuf) -> anyhow::Result<Self> {
        if !binary.exists() {
            bail!("--peer {}: it is not there; give the path of a build", binary.display());
        }
        Ok(Self { name: "upstream", binary, is_peer: true })
    }
}

/// The binary that an option names, or else the one with this name next to this program.
///
/// # Errors
/// The binary does not exist.
pub fn beside_this(named: Option<PathBuf>, name: &str, option: &str) -> anyhow::Result<PathBuf> {
    let binary = match named {
        Some(path) => path,
        None => std::env::current_exe()?.with_file_name(name),
    };
    if !binary.exists() {
        bail!(
            "{} is not there; build it with `cargo build --release`, or name it with {option}",
            binary.display()
        );
    }
    Ok(binary)
}

/// The command of a simulator of this program, which serves on one thread and so has one core at most.
///
/// # Errors
/// The path of this program is unknown.
pub fn simulator(kind: &str) -> anyhow::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["simulate", kind, "--threads=1"]);
    Ok(command)
}

/// The files that a controller manager is started with.
#[derive(Debug)]
pub struct Files<'a> {
    /// Its azure.json.
    pub cloud_config: &'a Path,
    /// Its kubeconfig.
    pub kubeconfig: &'a Path,
    /// The authority that signed the simulated Azure's certificate.
    pub certificate_authority: &'a Path,
    /// The folder for its output.
    pub logs: &'a Path,
}

/// A running program; it is killed on drop.
#[derive(Debug)]
pub struct Running {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

/// The number of output lines that are shown if the program ends by itself.
const LAST_LINES: usize = 15;

impl Running {
    /// Starts a controller manager that leads at once and serves no metrics.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(manager: &Manager, files: &Files<'_>) -> anyhow::Result<Self> {
        let mut command = Command::new(&manager.binary);
        command
            .arg(format!("--cloud-config={}", files.cloud_config.display()))
            .arg(format!("--kubeconfig={}", files.kubeconfig.display()))
            .args(["--cluster-name=bench", "--secure-port=0", "--leader-elect=false"])
            .args(["--configure-cloud-routes=false", "--allocate-node-cidrs=false"]);
        if manager.is_peer {
            command.args(upstream_arguments(files.kubeconfig));
        }
        command.env("SSL_CERT_FILE", files.certificate_authority);
        Self::launch(manager.name, command, files.logs)
    }

    /// Runs a command whose output goes to a file in the folder `logs`.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn launch(name: &'static str, mut command: Command, logs: &Path) -> anyhow::Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let output = File::create(&log).with_context(|| log.display().to_string())?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| command.get_program().display().to_string())?;
        Ok(Self { name, child, log })
    }

    /// The process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails if the program has ended by itself.
    ///
    /// # Errors
    /// It has ended; the text contains the end of its output.
    pub fn must_run(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended by itself with {status}:\n{}", self.name, self.last_words()),
        }
    }

    /// The end of its output.
    pub fn last_words(&self) -> String {
        let output = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = output.lines().collect();
        lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only if the process has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
