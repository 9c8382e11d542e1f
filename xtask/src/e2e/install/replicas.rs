//! Two replicas of the controller manager: one is killed without notice, one is suspended while it leads.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use k8s::api::api::coordination::v1::Lease;
use kube::Api;
use tokio::time::Instant;

use super::place::Place;

/// The labels of the controller manager's pods.
pub const SELECTOR: &str = "component=cloud-controller-manager";

/// The process of the controller manager on a node, found by its network.
///
/// # Errors
/// No such process runs on the node.
pub fn process_on(node: &str) -> anyhow::Result<u32> {
    let network = |path: &Path| {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::metadata(path).map(|file| file.ino()).ok()
    };
    let machine = network(&Path::new("/run/netns").join(node)).context("the machine has no network")?;
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let is_manager = std::fs::read_to_string(entry.path().join("cmdline"))
            .is_ok_and(|line| line.split('\0').next() == Some("cloud-controller-manager"));
        if is_manager && network(&entry.path().join("ns/net")) == Some(machine) {
            return Ok(id);
        }
    }
    anyhow::bail!("{node} runs no cloud-controller-manager")
}

/// The memory of a process that is resident, in kilobytes.
///
/// # Errors
/// The process has ended.
pub fn resident(process: u32) -> anyhow::Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse()?)
}

/// Sends a signal.
///
/// # Errors
/// There is no such process.
pub fn signal(process: u32, name: &str) -> anyhow::Result<()> {
    let status =
        std::process::Command::new("kill").args([&format!("-{name}"), &process.to_string()]).status()?;
    ensure!(status.success(), "kill -{name} {process}: {status}");
    Ok(())
}

/// The identity of the replica that leads.
///
/// # Errors
/// The server's error.
pub async fn leader(place: &Place) -> anyhow::Result<Option<String>> {
    let leases: Api<Lease> = Api::namespaced(place.machines.client.clone(), "kube-system");
    let lease = leases.get_opt("cloud-controller-manager").await?;
    Ok(lease.and_then(|lease| lease.spec?.holder_identity).filter(|holder| !holder.is_empty()))
}

/// The node on which the replica with this identity runs; `None` if no running pod has led under it.
///
/// # Errors
/// The server's error.
pub async fn node_of(place: &Place, identity: &str) -> anyhow::Result<Option<String>> {
    for pod in place.pods(SELECTOR).await? {
        let name = pod.metadata.name.clone().unwrap_or_default();
        // A standby's log names the leader, too.
        let is_its_own = |line: &str| line.contains("became leader") && line.contains(identity);
        if place.log(&name, false).await.is_ok_and(|log| log.lines().any(is_its_own)) {
            return Ok(pod.spec.and_then(|spec| spec.node_name));
        }
    }
    Ok(None)
}

/// How long it took until another replica than `former` led, and its identity.
///
/// # Errors
/// None did within `patience`.
pub async fn taken_over(
    place: &Place,
    former: &str,
    patience: Duration,
) -> anyhow::Result<(String, Duration)> {
    let begun = Instant::now();
    loop {
        if let Some(leader) = leader(place).await?.filter(|leader| leader != former) {
            return Ok((leader, begun.elapsed()));
        }
        ensure!(begun.elapsed() < patience, "no other replica led within {} s", patience.as_secs());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
