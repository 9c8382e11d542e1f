//! A real Prometheus scrapes the installation, and answers the queries of dashboards and alerts.

use std::process::Command;

use anyhow::{Context as _, bail, ensure};
use serde_json::json;

use super::place::{CONTROL_PLANE, Place};
use super::replicas;
use crate::e2e::capz::objects::create;
use crate::e2e::service_account;
use crate::print;
use crate::program::root;

/// The account in `deploy/monitoring/rights.yaml`, and the namespaces that the file names.
const ACCOUNT: (&str, &str) = ("kube-system", "prometheus-cerulean");
const NAMESPACES: [&str; 1] = ["capz-system"];
/// The job of the controller manager in `deploy/monitoring/scrape.yaml`, and the port of the chart.
const JOB: &str = "azure-cloud-controller-manager";
const PORT: u16 = 10268;

/// Scrapes the controller manager with the documented rights. Skipped without Prometheus, except in CI.
///
/// # Errors
/// The program cannot be scraped, or a query has no answer.
pub async fn ask(place: &Place) -> anyhow::Result<()> {
    if Command::new("prometheus").arg("--version").output().is_err() {
        if std::env::var_os("CI").is_some() {
            bail!("there is no prometheus, and in CI it must scrape (Debian's package prometheus)");
        }
        print::line("skipped: no prometheus scrapes (Debian's package prometheus has it)");
        return Ok(());
    }
    for name in NAMESPACES {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        create(&place.machines.client, &namespace).await?;
    }
    let rights = root().join("deploy/monitoring/rights.yaml");
    place.kubectl(&["apply", "-f", &rights.display().to_string()])?;
    let token = service_account::token(&place.machines.client, ACCOUNT.0, ACCOUNT.1).await?;
    let file = place.machines.folder.join("prometheus.token");
    std::fs::write(&file, token)?;
    let leader = replicas::leader(place).await?.context("no replica leads")?;
    let node = replicas::node_of(place, &leader).await?.context("no running replica leads")?;
    let nodes = &place.machines.cluster.nodes[..CONTROL_PLANE];
    let node = nodes.iter().find(|it| it.name() == node).context("the leader's node is unknown")?;
    let asked = Command::new(std::env::current_exe()?)
        .args(["monitoring", "ask", "--target", &format!("{JOB}=https://{}:{PORT}", node.address())])
        .arg("--token-file")
        .arg(&file)
        .output()?;
    let said = String::from_utf8_lossy(&asked.stdout);
    ensure!(asked.status.success(), "Prometheus: {said}{}", String::from_utf8_lossy(&asked.stderr));
    // The Secrets of tokens go with their accounts.
    place.kubectl(&["delete", "--ignore-not-found", "-f", &rights.display().to_string()])?;
    print::line(format_args!("  ok  a real Prometheus scraped the leader: {}", said.trim()));
    Ok(())
}
