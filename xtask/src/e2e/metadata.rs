//! Runs the node manager with instance metadata at its address in Azure.
//!
//! Outside Azure no machine has that address, so the step runs in a separate network namespace, where the simulator
//! listens at it: this program starts itself again in that namespace.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s::Node;
use k8s::names::{LABEL_INSTANCE_TYPE, LABEL_REGION, LABEL_ZONE, TAINT_UNINITIALIZED};
use kube::Api;

use super::cluster::Cluster;
use crate::print;
use crate::program::{Built, Program, until, with_logs};

/// The name of the release binary.
const BINARY: &str = "azure-cloud-node-manager";
/// The only machine.
const NODE: &str = "worker000000";
/// The address of instance metadata in Azure.
const ADDRESS: &str = "169.254.169.254:80";
/// Adds the address to the namespace.
const PREPARE: &str = "ip link set lo up && ip addr add 169.254.169.254/32 dev lo";
/// The time limit of a step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A command in its own user and network namespace, where it is root; it needs no rights outside.
fn in_namespace(script: &str) -> Command {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--net", "--kill-child", "sh", "-c", script]);
    command
}

/// Runs the step, or reports that this machine does not support it.
///
/// # Errors
/// The step fails.
pub fn run(built: &Built, directory: &Path) -> anyhow::Result<()> {
    let possible =
        in_namespace(PREPARE).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !possible.is_ok_and(|status| status.success()) {
        print::line(
            "skipped: instance metadata at its own address: this machine makes no network namespaces (unshare, ip)",
        );
        return Ok(());
    }
    print::line("the node manager, with instance metadata at 169.254.169.254");
    let folder = directory.join("namespace");
    std::fs::create_dir_all(&folder)?;
    let status = in_namespace(&format!("{PREPARE} && exec \"$@\""))
        .arg("sh")
        .arg(std::env::current_exe()?)
        .args(["e2e", "--inside-namespace"])
        .arg(&folder)
        .arg("--programs")
        .arg(&built.programs)
        .arg("--cerulean")
        .arg(&built.cerulean)
        .status()
        .context("unshare")?;
    if !status.success() {
        bail!("the step inside of the namespace ended with {status}");
    }
    Ok(())
}

/// The part that runs in the namespace: a cluster of one machine, and the node manager with the arguments of the chart.
///
/// # Errors
/// The node does not match its machine.
pub async fn check(built: &Built, directory: &Path) -> anyhow::Result<()> {
    let options = ["--nodes", "1", "--metadata", ADDRESS];
    let cluster = Cluster::start_with(built, directory, None, &options).await?;
    let mut command = Command::new(built.programs.join(BINARY));
    command
        .arg(format!("--node-name={NODE}"))
        .arg(format!("--kubeconfig={}", cluster.files.join("kubeconfig").display()))
        .args(["--wait-routes=false", "--v=2"])
        .env("NODE_NAME", NODE);
    let mut manager = Program::start("node-manager", directory, &mut command)?;
    let done = describe(&cluster, &mut manager).await;
    done.map_err(|problem| with_logs(problem, &[&manager, &cluster.program]))?;
    let status = manager.terminate(PATIENCE).await?;
    if !status.success() {
        bail!("the node manager ended with {status}:\n{}", manager.last_words());
    }
    Ok(())
}

async fn describe(cluster: &Cluster, manager: &mut Program) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(cluster.kubernetes.clone());
    let initialised = async |_: &Program| {
        Ok(nodes.get_opt(NODE).await?.filter(|node| !node.has_taint(TAINT_UNINITIALIZED)))
    };
    let node = until(manager, Program::must_run, "the node is initialised", PATIENCE, initialised).await?;
    if !node.spec.provider_id.starts_with("azure:///subscriptions/") {
        bail!("the node has the provider id {:?}", node.spec.provider_id);
    }
    for (label, value) in
        [(LABEL_INSTANCE_TYPE, "Standard_D2s_v5"), (LABEL_REGION, "westeurope"), (LABEL_ZONE, "westeurope-1")]
    {
        if node.label(label) != Some(value) {
            bail!("the node has the label {label}={:?}, and not {value:?}", node.label(label));
        }
    }
    Ok(())
}
