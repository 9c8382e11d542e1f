//! Grants our programs exactly the shipped rights in Kubernetes, and checks that they are enough.

use std::path::Path;
use std::process::Command;

use anyhow::ensure;
use kube::Client;
use real_kubernetes::RealKubernetes;
use rights::audit::Audit;
use serde_json::json;

use crate::e2e::capz::objects::create;
use crate::e2e::service_account;
use crate::program::root;
use crate::rights::examine;

/// The controller manager's service account, and the folder with its roles in deploy/rights/kubernetes. All accounts are
/// in kube-system.
pub const CONTROLLER_MANAGER: &str = "cloud-controller-manager";
/// The node manager's service account and folder.
pub const NODE_MANAGER: &str = "cloud-node-manager";

const NAMESPACE: &str = "kube-system";

/// Creates a service account with its rights, and returns a kubeconfig for it.
///
/// # Errors
/// The server's error.
pub async fn grant(
    client: &Client,
    servers: &RealKubernetes,
    assets: &Path,
    account: &str,
) -> anyhow::Result<std::path::PathBuf> {
    let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": NAMESPACE}});
    create(client, &object).await?;
    let folder = root().join("deploy/rights/kubernetes").join(account);
    let applied = Command::new(assets.join("kubectl"))
        .arg("--kubeconfig")
        .arg(&servers.kubeconfig)
        .args(["apply", "-k"])
        .arg(&folder)
        .output()?;
    ensure!(applied.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&applied.stderr));
    let token = service_account::token(client, NAMESPACE, account).await?;
    Ok(servers.write_kubeconfig(account, &token)?)
}

/// Judges the audit log of a whole run.
///
/// # Errors
/// A request of our programs was denied, or none was logged.
pub fn audit(log: &Path) -> anyhow::Result<Audit> {
    let users = [CONTROLLER_MANAGER, NODE_MANAGER].map(|account| format!("{NAMESPACE}/{account}"));
    let audit = examine(&[log.to_owned()], &[], &users)?;
    ensure!(audit.denied.is_empty(), "requests were denied, and must not be:\n{audit}");
    Ok(audit)
}
