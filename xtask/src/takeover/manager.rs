//! The two programs, and how each is started with the files of a simulated cluster.

use std::path::{Path, PathBuf};
use std::process::Command;

use simulated_cluster::{HostedCluster, upstream_arguments};

use super::shapes::CLUSTER;
use crate::program::Program;

/// A controller manager.
#[derive(Debug, Clone)]
pub struct Manager {
    /// Its name in tables.
    pub name: &'static str,
    pub binary: PathBuf,
    /// Whether it is the program that Cerulean replaces.
    pub is_peer: bool,
}

impl Manager {
    /// Starts it with its output in `directory`, in a file of this name. With pod ranges it writes routes.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(
        &self,
        directory: &Path,
        log: &str,
        cluster: &HostedCluster,
        azure_json: &Path,
        pod_ranges: &[&str],
    ) -> anyhow::Result<Program> {
        let mut command = Command::new(&self.binary);
        command
            .arg(format!("--cloud-config={}", azure_json.display()))
            .arg(format!("--kubeconfig={}", cluster.files.kubeconfig.display()))
            .arg(format!("--cluster-name={}", CLUSTER))
            .args(["--leader-elect=false", "--secure-port=0", "--v=2", "--allocate-node-cidrs=false"])
            .env("SSL_CERT_FILE", &cluster.files.certificate_authority);
        if pod_ranges.is_empty() {
            command.args(["--controllers=service", "--configure-cloud-routes=false"]);
        } else {
            command
                .args(["--controllers=service,route", "--configure-cloud-routes=true"])
                .arg(format!("--cluster-cidr={}", pod_ranges.join(",")));
        }
        if self.is_peer {
            command.args(upstream_arguments(&cluster.files.kubeconfig));
        }
        Program::start(log, directory, &mut command)
    }
}
