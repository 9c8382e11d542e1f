//! A program that is measured from outside.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};
use simulated_cluster::upstream_arguments;

/// A controller manager that is measured.
#[derive(Debug, Clone)]
pub struct Manager {
    /// What it is called in tables.
    pub name: &'static str,
    /// Its binary.
    pub binary: PathBuf,
    /// Whether it is the program that Cerulean replaces.
    is_peer: bool,
}

impl Manager {
    /// Ours: the binary that is named, or else the one beside this program.
    ///
    /// # Errors
    /// There is none.
    pub fn ours(named: Option<PathBuf>) -> anyhow::Result<Self> {
        let binary = beside_this(named, "azure-cloud-controller-manager")?;
        Ok(Self { name: "ours", binary, is_peer: false })
    }

    /// Whether it initialises nodes by itself. Upstream's has a controller for that, but gives it no worker
    /// (`ConcurrentNodeSyncs` has neither flag nor default in v1.36): it leaves new nodes to the node manager.
    pub fn initialises_nodes(&self) -> bool {
        !self.is_peer
    }

    /// A build of the program that Cerulean replaces.
    ///
    /// # Errors
    /// It is not there.
    pub fn peer(binary: PathBuf) -> anyhow::Result<Self> {
        if !binary.exists() {
            bail!("--peer {}: it is not there; give the path of a build", binary.display());
        }
        Ok(Self { name: "upstream", binary, is_peer: true })
    }
}

/// The binary that is named with `--manager`, or else the one with this name beside this program.
///
/// # Errors
/// There is none.
pub fn beside_this(named: Option<PathBuf>, name: &str) -> anyhow::Result<PathBuf> {
    let binary = match named {
        Some(path) => path,
        None => std::env::current_exe()?.with_file_name(name),
    };
    if !binary.exists() {
        bail!(
            "{} is not there; build it with `cargo build --release`, or name it with --manager",
            binary.display()
        );
    }
    Ok(binary)
}

/// What a controller manager is pointed at.
#[derive(Debug)]
pub struct Files<'a> {
    /// Its azure.json.
    pub cloud_config: &'a Path,
    /// Its kubeconfig.
    pub kubeconfig: &'a Path,
    /// Who signed the certificate of the simulated Azure.
    pub certificate_authority: &'a Path,
    /// The folder for its output.
    pub logs: &'a Path,
}

/// A running controller manager; it is killed when this value goes.
#[derive(Debug)]
pub struct Running {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

/// How many lines of a program's output are shown when it has ended by itself.
const LAST_LINES: usize = 15;

impl Running {
    /// Starts one that leads at once and serves no metrics.
    ///
    /// # Errors
    /// It cannot be run.
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
    /// It cannot be run.
    pub fn launch(name: &'static str, mut command: Command, logs: &Path) -> anyhow::Result<Self> {
        let log = logs.join(format!("{name}.log"));
        let output = File::create(&log).with_context(|| log.display().to_string())?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().with_context(|| command.get_program().display().to_string())?;
        Ok(Self { name, child, log })
    }

    /// The number by which the kernel knows it.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Fails when the program has ended by itself.
    ///
    /// # Errors
    /// It has ended; the text holds the end of its output.
    pub fn must_run(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended by itself with {status}:\n{}", self.name, self.last_words()),
        }
    }

    /// The end of what it has written.
    pub fn last_words(&self) -> String {
        let output = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = output.lines().collect();
        lines.get(lines.len().saturating_sub(LAST_LINES)..).unwrap_or_default().join("\n")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
