//! Helm, as its user runs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::program::of_script;

/// Helm for one cluster.
pub struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
    /// For its caches and settings.
    folder: PathBuf,
}

impl Helm {
    /// Installs helm from its Go module if it is missing. `None` with a message where it cannot be had.
    ///
    /// # Errors
    /// The script fails, or helm cannot be had in CI.
    pub fn find() -> anyhow::Result<Option<PathBuf>> {
        of_script("helm.sh")
    }

    /// Helm for the cluster of a kubeconfig, with its files in `folder`.
    pub fn new(program: &Path, kubeconfig: &Path, folder: &Path) -> Self {
        let (program, kubeconfig) = (program.to_owned(), kubeconfig.to_owned());
        Self { program, kubeconfig, folder: folder.join("helm") }
    }

    /// Runs a command in `kube-system`, and returns what it prints.
    ///
    /// # Errors
    /// Its error.
    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = Command::new(&self.program)
            .args(arguments)
            .args(["--namespace", "kube-system", "--kubeconfig"])
            .arg(&self.kubeconfig)
            .envs(
                ["CACHE", "CONFIG", "DATA"].map(|kind| (format!("HELM_{kind}_HOME"), self.folder.join(kind))),
            )
            .output()
            .context("cannot run helm")?;
        if !output.status.success() {
            bail!("helm {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
