//! Helm, as its user runs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::print;
use crate::program::root;

/// The exit code of `scripts/helm.sh` on a machine where helm cannot be had.
const CANNOT_BE_HAD: i32 = 3;

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
        let script = root().join("scripts/helm.sh");
        let output = Command::new(&script).output().with_context(|| script.display().to_string())?;
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        match output.status.code() {
            Some(0) => Ok(Some(String::from_utf8(output.stdout)?.trim().into())),
            Some(CANNOT_BE_HAD) if std::env::var_os("CI").is_none() => {
                print::line(format_args!("skipped: {said}"));
                Ok(None)
            }
            _ => bail!("{}: {said}", script.display()),
        }
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
