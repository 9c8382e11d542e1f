//! Our controller manager and node managers on a real cluster, with the arguments of their charts.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::machines::{CLIENT_SECRET, Machines};
use super::rights::{self, Account};
use crate::program::Program;

/// The controller manager's service account.
pub const CONTROLLER_ACCOUNT: Account = Account::of("cloud-controller-manager");
/// The node manager's service account.
pub const NODE_ACCOUNT: Account = Account::of("cloud-node-manager");

const CONTROLLER_MANAGER: &str = "azure-cloud-controller-manager";
const NODE_MANAGER: &str = "azure-cloud-node-manager";

/// Writes the configuration of programs that sign in to Azure as the application that owns everything.
///
/// # Errors
/// The file cannot be written.
pub fn write_azure_json(machines: &Machines) -> anyhow::Result<PathBuf> {
    let path = machines.folder.join("azure.json");
    let document = machines.shape.azure_json(&machines.azure.https, CLIENT_SECRET);
    std::fs::write(&path, document.to_string())?;
    Ok(path)
}

/// Starts the controller manager, and a node manager on each machine.
///
/// # Errors
/// Something does not start.
pub async fn start(machines: &Machines, binaries: &Path) -> anyhow::Result<Vec<Program>> {
    let azure_json = write_azure_json(machines)?;
    let servers = &machines.cluster.servers;
    let kubeconfig = rights::grant(&machines.client, servers, &machines.assets, CONTROLLER_ACCOUNT).await?;
    let mut command = Command::new(binaries.join(CONTROLLER_MANAGER));
    command
        .arg(format!("--cloud-config={}", azure_json.display()))
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(["--controllers=*,-cloud-node", "--cluster-name=kubelets", "--secure-port=0", "--v=2"])
        .args(["--node-monitor-period=1s", "--configure-cloud-routes=false"])
        .env("SSL_CERT_FILE", &machines.azure.certificate_authority);
    let mut programs = vec![Program::start(CONTROLLER_MANAGER, &machines.folder, &mut command)?];

    let kubeconfig = rights::grant(&machines.client, servers, &machines.assets, NODE_ACCOUNT).await?;
    for node in &machines.cluster.nodes {
        let mut command = node.command(&binaries.join(NODE_MANAGER));
        command
            .arg(format!("--node-name={}", node.name()))
            .arg(format!("--kubeconfig={}", kubeconfig.display()))
            .args(["--wait-routes=false", "--v=2"])
            .env("NODE_NAME", node.name());
        let name = format!("{NODE_MANAGER}-{}", node.name());
        programs.push(Program::start(&name, &machines.folder, &mut command)?);
    }
    Ok(programs)
}
