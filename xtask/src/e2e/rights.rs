//! Grants our programs exactly the shipped rights in Kubernetes, and checks that they are enough.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::ensure;
use kube::Client;
use real_kubernetes::RealKubernetes;
use rights::audit::Audit;
use serde_json::json;

use super::capz::objects::create;
use super::service_account;
use crate::program::root;
use crate::rights::examine;

/// A service account of kube-system, with the folder of its roles in deploy/rights/kubernetes.
#[derive(Debug, Clone, Copy)]
pub struct Account {
    /// Its name.
    pub name: &'static str,
    /// The folder.
    pub folder: &'static str,
}

impl Account {
    /// An account whose folder has its name.
    pub const fn of(name: &'static str) -> Self {
        Self { name, folder: name }
    }
}

/// The policy by which requests of our programs are logged.
const AUDIT_POLICY: &str = "deploy/rights/audit-policy.yaml";
/// The log of these requests.
pub const AUDIT_LOG: &str = "audit.log";
const NAMESPACE: &str = "kube-system";

/// The flags of kube-apiserver for a log of our programs' requests in a folder.
pub fn audit_flags(folder: &Path) -> [(&'static str, String); 2] {
    [
        ("--audit-policy-file", root().join(AUDIT_POLICY).display().to_string()),
        ("--audit-log-path", folder.join(AUDIT_LOG).display().to_string()),
    ]
}

/// Creates a service account with its rights, and returns a kubeconfig for it.
///
/// # Errors
/// The server's error.
pub async fn grant(
    client: &Client,
    servers: &RealKubernetes,
    assets: &Path,
    account: Account,
) -> anyhow::Result<PathBuf> {
    let name = account.name;
    let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": NAMESPACE}});
    create(client, &object).await?;
    let folder = root().join("deploy/rights/kubernetes").join(account.folder);
    let applied = Command::new(assets.join("kubectl"))
        .arg("--kubeconfig")
        .arg(&servers.kubeconfig)
        .args(["apply", "-k"])
        .arg(&folder)
        .output()?;
    ensure!(applied.status.success(), "{}: {}", folder.display(), String::from_utf8_lossy(&applied.stderr));
    let token = service_account::token(client, NAMESPACE, name).await?;
    Ok(servers.write_kubeconfig(name, &token)?)
}

/// Judges the audit log of a whole run.
///
/// # Errors
/// A request of these accounts was denied, or none was logged.
pub fn audit(log: &Path, accounts: &[Account]) -> anyhow::Result<Audit> {
    let users: Vec<String> = accounts.iter().map(|account| format!("{NAMESPACE}/{}", account.name)).collect();
    let audit = examine(&[log.to_owned()], &[], &users)?;
    ensure!(audit.denied.is_empty(), "requests were denied, and must not be:\n{audit}");
    Ok(audit)
}
