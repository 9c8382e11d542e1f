//! A program that is measured from outside.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail};

/// The controller manager's binary: the one that is named, or else the one beside this program.
///
/// # Errors
/// There is none.
pub fn controller_manager(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let manager = match named {
        Some(path) => path,
        None => std::env::current_exe()?.with_file_name("azure-cloud-controller-manager"),
    };
    if !manager.exists() {
        bail!(
            "{} is not there; build it with `cargo build --release`, or name it with --manager",
            manager.display()
        );
    }
    Ok(manager)
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
}

/// A running controller manager; it is killed when this value goes.
#[derive(Debug)]
pub struct Running(Child);

impl Running {
    /// Starts one that leads at once and serves no metrics.
    ///
    /// # Errors
    /// It cannot be run.
    pub fn start(manager: &Path, files: &Files<'_>) -> anyhow::Result<Self> {
        let child = Command::new(manager)
            .arg(format!("--cloud-config={}", files.cloud_config.display()))
            .arg(format!("--kubeconfig={}", files.kubeconfig.display()))
            .args(["--cluster-name=bench", "--secure-port=0", "--leader-elect=false"])
            .env("SSL_CERT_FILE", files.certificate_authority)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| manager.display().to_string())?;
        Ok(Self(child))
    }

    /// The number by which the kernel knows it.
    pub fn id(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both fail only when it has already ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
