//! A real Kubernetes API, with kubectl to apply manifests.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;

/// Running servers, and kubectl.
pub struct RealKubernetes {
    servers: real_kubernetes::RealKubernetes,
    kubectl: PathBuf,
}

impl RealKubernetes {
    /// Starts etcd and kube-apiserver from `assets` and waits until the API is ready.
    ///
    /// # Errors
    /// A program is missing or does not start.
    pub async fn start(assets: &Path, directory: &Path) -> anyhow::Result<Self> {
        let kubectl = assets.join("kubectl");
        ensure!(kubectl.exists(), "KUBEBUILDER_ASSETS={}: there is no kubectl in it", assets.display());
        let servers = real_kubernetes::RealKubernetes::start(assets, &directory.join("kubernetes")).await?;
        Ok(Self { servers, kubectl })
    }

    /// The kubeconfig of the administrator.
    pub fn kubeconfig(&self) -> &Path {
        &self.servers.kubeconfig
    }

    /// kubectl with the run's kubeconfig.
    pub fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(self.kubeconfig());
        command
    }
}
