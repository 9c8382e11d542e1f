//! Grants our programs exactly the documented rights in Kubernetes.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use kube::Client;
use real_kubernetes::RealKubernetes;
use serde_json::json;

use crate::e2e::capz::objects::create;
use crate::e2e::service_account;
use crate::program::root;

/// The controller manager's service account, with the page that has its rights in the first YAML block. All accounts
/// are in kube-system.
pub const CONTROLLER_MANAGER: (&str, &str) = ("cloud-controller-manager", "docs/rights.md");
/// The node manager's service account and page.
pub const NODE_MANAGER: (&str, &str) = ("cloud-node-manager", "docs/cloud-node-manager.md");

const NAMESPACE: &str = "kube-system";

/// Creates a service account with its rights, and returns a kubeconfig for it.
///
/// # Errors
/// The server's error.
pub async fn grant(
    folder: &Path,
    client: &Client,
    servers: &RealKubernetes,
    assets: &Path,
    (account, page): (&str, &str),
) -> anyhow::Result<std::path::PathBuf> {
    let text = std::fs::read_to_string(root().join(page)).with_context(|| page.to_owned())?;
    let file = folder.join(format!("{account}.yaml"));
    std::fs::write(&file, rights_in(&text).with_context(|| format!("{page} has no block of YAML"))?)?;
    let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": NAMESPACE}});
    create(client, &object).await?;
    let applied = Command::new(assets.join("kubectl"))
        .arg("--kubeconfig")
        .arg(&servers.kubeconfig)
        .args(["apply", "-f"])
        .arg(&file)
        .output()?;
    ensure!(applied.status.success(), "{page}: {}", String::from_utf8_lossy(&applied.stderr));
    let token = service_account::token(client, NAMESPACE, account).await?;
    Ok(servers.write_kubeconfig(account, &token)?)
}

/// The roles and bindings in the first YAML block of a page.
fn rights_in(page: &str) -> Option<String> {
    let block = page.split_once("```yaml\n")?.1.split_once("\n```")?.0;
    let is_right = |document: &&str| {
        document.lines().any(|line| matches!(line, "kind: ClusterRole" | "kind: ClusterRoleBinding"))
    };
    Some(block.split("\n---\n").filter(is_right).collect::<Vec<_>>().join("\n---\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_are_taken_from_a_page_and_nothing_else() {
        let page = "text\n```yaml\nkind: ClusterRole\nrules: []\n---\nkind: DaemonSet\n---\nkind: ClusterRoleBinding\n```\n\
                    ```yaml\nkind: ClusterRole\n```\n";
        assert_eq!(rights_in(page).unwrap(), "kind: ClusterRole\nrules: []\n---\nkind: ClusterRoleBinding");
        assert_eq!(rights_in("no block"), None);
    }
}
