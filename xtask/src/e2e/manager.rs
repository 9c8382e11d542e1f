//! The controller manager under test.

use std::path::Path;
use std::process::Command;

use simulated_cluster::Shape;

use super::cluster::Cluster;
use crate::program::{Built, Program};

/// The name of the release binary.
pub const BINARY: &str = "azure-cloud-controller-manager";

/// The command that runs the controller manager with the cluster's files, as a user does.
pub fn command(built: &Built, cluster: &Cluster) -> Command {
    let mut command = Command::new(built.programs.join(BINARY));
    command
        .arg(format!("--cloud-config={}", cluster.files.join("azure.json").display()))
        .arg(format!("--kubeconfig={}", cluster.files.join("kubeconfig").display()))
        .args(["--cluster-name=e2e", "--secure-port=0", "--node-monitor-period=1s", "--v=2"])
        // Flags that the upstream chart sets by default.
        .args(["--allocate-node-cidrs=true", "--configure-cloud-routes=true"])
        .arg(format!("--cluster-cidr={}", Shape::PODS_V4))
        // The simulated Azure's certificate authority instead of the system's.
        .env("SSL_CERT_FILE", cluster.files.join("ca.pem"));
    command
}

/// Starts the controller manager; `name` distinguishes the log files of several runs.
pub fn start(built: &Built, directory: &Path, cluster: &Cluster, name: &str) -> anyhow::Result<Program> {
    Program::start(name, directory, &mut command(built, cluster))
}
