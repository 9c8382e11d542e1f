//! From a first claim to an empty Azure.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use azure_simulator::PowerState;
use k8s::api::api::core::v1::{Node, PersistentVolumeClaim, Pod};
use k8s::names::TAINT_UNINITIALIZED;
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use serde_json::json;
use tokio::time::Instant;

use super::neighbour;
use super::objects::{self, Content};
use super::place::{MACHINES, Place};
use crate::e2e::capz::objects::create;
use crate::program::output;
use crate::{print, program};

/// The time limit of a step on a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(120);
/// The time limit for a volume of a lost machine to be on another one.
const FAILOVER: Duration = Duration::from_secs(90);
/// Machines of this size take four disks, one of which belongs to another owner.
const VOLUMES_OF_A_NODE: usize = 3;
/// The taint of a node whose machine is off for certain.
const OUT_OF_SERVICE: &str = "node.kubernetes.io/out-of-service=nodeshutdown:NoExecute";
const FILES: &str = "Filesystem";
const BLOCK: &str = "Block";
/// The content of the first volume.
const WORDS: &str = "written on the first node";

/// Runs all steps.
///
/// # Errors
/// The first failed step.
pub async fn play(place: &mut Place) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(place.client.clone());
    until(place, "each node is ready, and has the driver", async |place| {
        let found = nodes.list(&ListParams::default()).await?.items;
        let ready = found.iter().filter(|node| is_ready(node)).count();
        let drivers = place
            .kubectl()
            .args(["get", "csinodes", "-o", "jsonpath={.items[*].spec.drivers[*].name}"])
            .output()?;
        let drivers = String::from_utf8_lossy(&drivers.stdout).split_whitespace().count();
        ensure!((ready, drivers) == (2, 2), "{ready} nodes are ready, and {drivers} have the driver");
        Ok(Some(()))
    })
    .await?;
    neighbour::attach(place)?;
    let growing = growing();
    create(&place.client, &objects::class(growing.unwrap_or("ext4"))).await?;
    create(&place.client, &objects::snapshot_class()).await?;
    moves(place).await?;
    match growing {
        Some(file_system) => grows(place, file_system).await?,
        None => print::line(
            "  skipped: a volume grows under its pod: ext4 needs the capability CAP_SYS_RESOURCE for it, or install xfsprogs",
        ),
    }
    copies(place).await?;
    devices(place).await?;
    crowds(place).await?;
    node_goes(place).await?;
    empties(place).await?;
    neighbour::stays(place)?;
    print::line("  ok  a disk that another owner has attached stayed through all of it");
    Ok(())
}

/// A file moves with its volume from node to node.
async fn moves(place: &mut Place) -> anyhow::Result<()> {
    let begun = Instant::now();
    let [first, second] = MACHINES;
    create(&place.client, &objects::claim("first", 2, FILES, Content::Empty)).await?;
    let script = format!("echo {WORDS} >/data/file; b sync; say written");
    run_pod(place, "writer", first, "first", FILES, &script).await?;
    let read = run_pod(place, "reader", second, "first", FILES, "say $(b cat /data/file)").await?;
    ensure!(read == WORDS, "the second node reads {read:?}");
    done(begun, &format!("a claim waited for its pod; {first} wrote a file, and {second} reads it"));
    Ok(())
}

/// A volume grows while a pod uses it.
async fn grows(place: &mut Place, file_system: &str) -> anyhow::Result<()> {
    let begun = Instant::now();
    // The size in KiB of a file system in 4 GiB, less what it keeps for itself.
    let script = "while [ $(b df -kP /data | b awk 'NR==2 {print $2}') -lt 3700000 ]; do b sleep 0.2; done; \
                  say $(b cat /data/file)";
    create(&place.client, &objects::pod("grower", MACHINES[1], "first", FILES, script)).await?;
    runs(place, "grower").await?;
    let more = json!({"spec": {"resources": {"requests": {"storage": "4Gi"}}}});
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(place.client.clone());
    claims.patch("first", &PatchParams::default(), &Patch::Merge(more)).await?;
    let read = said(place, "grower").await?;
    ensure!(read == WORDS, "after the growth the pod reads {read:?}");
    delete_pod(place, "grower").await?;
    done(
        begun,
        &format!("the volume grew from 2 to 4 GiB under its pod, which sees the larger {file_system}"),
    );
    Ok(())
}

/// A snapshot is restored, and a volume is cloned.
async fn copies(place: &mut Place) -> anyhow::Result<()> {
    let begun = Instant::now();
    let [first, second] = MACHINES;
    create(&place.client, &objects::snapshot("photo", "first")).await?;
    until(place, "the snapshot is ready", async |place| {
        let jsonpath = "jsonpath={.status.readyToUse} {.status.error.message}";
        let ready = output(place.kubectl().args(["get", "volumesnapshot", "photo", "-o", jsonpath]))?;
        ensure!(ready.starts_with("true"), "it is not: {ready}");
        Ok(Some(()))
    })
    .await?;
    for (name, node, content) in
        [("restored", first, Content::Snapshot("photo")), ("cloned", second, Content::Claim("first"))]
    {
        create(&place.client, &objects::claim(name, 4, FILES, content)).await?;
        let read = run_pod(place, name, node, name, FILES, "say $(b cat /data/file)").await?;
        ensure!(read == WORDS, "the {name} volume has {read:?}");
    }
    done(begun, "a restored snapshot and a clone have the content of their source");
    Ok(())
}

/// A volume without a file system.
async fn devices(place: &mut Place) -> anyhow::Result<()> {
    let begun = Instant::now();
    let [first, second] = MACHINES;
    create(&place.client, &objects::claim("device", 1, BLOCK, Content::Empty)).await?;
    let script = format!("echo {WORDS} | b dd of=/data bs=512 conv=sync,fsync 2>/dev/null; say written");
    run_pod(place, "device-writer", first, "device", BLOCK, &script).await?;
    let script = format!("say $(b dd if=/data bs=1 count={} 2>/dev/null)", WORDS.len());
    let read = run_pod(place, "device-reader", second, "device", BLOCK, &script).await?;
    ensure!(read == WORDS, "the device has {read:?}");
    done(begun, "a pod wrote to a device without a file system, and one on the other node reads it");
    Ok(())
}

/// As many pods with volumes as the machines take, at once.
async fn crowds(place: &mut Place) -> anyhow::Result<()> {
    let begun = Instant::now();
    let names: Vec<(String, &str)> = MACHINES
        .iter()
        .flat_map(|node| (0..VOLUMES_OF_A_NODE).map(move |number| (format!("crowd-{node}-{number}"), *node)))
        .collect();
    for (name, node) in &names {
        create(&place.client, &objects::claim(name, 1, FILES, Content::Empty)).await?;
        let script = format!("echo {name} >/data/file; b sync; say $(b cat /data/file)");
        create(&place.client, &objects::pod(name, node, name, FILES, &script)).await?;
    }
    for (name, _) in &names {
        let read = said(place, name).await?;
        ensure!(read == *name, "the volume of {name} has {read:?}");
    }
    for (name, _) in &names {
        delete_pod(place, name).await?;
    }
    done(begun, &format!("{} pods on two nodes had their volumes at once", names.len()));
    Ok(())
}

/// A machine is lost under a pod, and its volume is used on the other one. Kubernetes waits six minutes for a lost node to
/// unmount, and no flag changes it; an administrator who knows that the machine is off says so by a taint.
async fn node_goes(place: &mut Place) -> anyhow::Result<()> {
    let [first, second] = MACHINES;
    let holds = "b sleep 1000000";
    create(&place.client, &objects::pod("holder", second, "first", FILES, holds)).await?;
    runs(place, "holder").await?;
    let begun = Instant::now();
    let machine = place.shape.machine(&place.shape.machines[1]);
    place.machines.cluster.nodes[1].stop_kubelet();
    place.azure.azure.set_power_state(&machine, PowerState::Deallocated)?;
    output(place.kubectl().args(["taint", "node", second, OUT_OF_SERVICE]))?;
    let script = "say $(b cat /data/file)";
    create(&place.client, &objects::pod("heir", first, "first", FILES, script)).await?;
    let read = said(place, "heir").await?;
    ensure!(read == WORDS, "the volume of the lost node has {read:?}");
    let took = begun.elapsed();
    ensure!(took <= FAILOVER, "the volume was on the other node after {:.1} s", took.as_secs_f64());
    delete_pod(place, "heir").await?;
    done(begun, &format!("{second} was switched off, and is out of service: {first} reads its volume"));
    let begun = Instant::now();
    place.azure.azure.delete(&machine)?;
    let nodes: Api<Node> = Api::all(place.client.clone());
    until(place, "the deleted machine's node is gone", async |_| {
        Ok(nodes.get_opt(second).await?.is_none().then_some(()))
    })
    .await?;
    done(begun, &format!("the machine of {second} was deleted, and its node is gone"));
    Ok(())
}

/// All claims are deleted, and nothing is left of their volumes in Azure.
async fn empties(place: &mut Place) -> anyhow::Result<()> {
    let begun = Instant::now();
    let claims: Api<PersistentVolumeClaim> = Api::default_namespaced(place.client.clone());
    output(place.kubectl().args(["delete", "volumesnapshot", "--all", "--wait=false"]))?;
    claims.delete_collection(&DeleteParams::default(), &ListParams::default()).await?;
    until(place, "no disk or snapshot of ours is left", async |place| {
        let left = ours(place);
        ensure!(left.is_empty(), "there are {left:?}");
        Ok(Some(()))
    })
    .await?;
    done(begun, "all was deleted, and no disk or snapshot of ours is left");
    Ok(())
}

/// The names of disks and snapshots of the driver in Azure.
fn ours(place: &Place) -> Vec<String> {
    let documents = ["disks", "snapshots"]
        .iter()
        .flat_map(|kind| place.azure.azure.documents_of_type(&format!("Microsoft.Compute/{kind}")));
    let names = documents.filter_map(|document| document["name"].as_str().map(str::to_owned));
    names.filter(|name| ["pvc-", "snapshot-"].iter().any(|start| name.starts_with(start))).collect()
}

/// Runs a pod to its end, deletes it, and returns what it said.
async fn run_pod(
    place: &mut Place,
    name: &str,
    node: &str,
    claim: &str,
    mode: &str,
    script: &str,
) -> anyhow::Result<String> {
    create(&place.client, &objects::pod(name, node, claim, mode, script)).await?;
    let said = said(place, name).await?;
    delete_pod(place, name).await?;
    Ok(said)
}

async fn delete_pod(place: &Place, name: &str) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(place.client.clone());
    pods.delete(name, &DeleteParams::default()).await?;
    Ok(())
}

async fn runs(place: &mut Place, name: &str) -> anyhow::Result<()> {
    let pods: Api<Pod> = Api::default_namespaced(place.client.clone());
    until(place, &format!("the pod {name} runs"), async |_| {
        let phase = pods.get(name).await?.status.and_then(|status| status.phase).unwrap_or_default();
        ensure!(phase == "Running", "it is {phase}");
        Ok(Some(()))
    })
    .await
}

/// What a pod said at its end.
async fn said(place: &mut Place, name: &str) -> anyhow::Result<String> {
    let pods: Api<Pod> = Api::default_namespaced(place.client.clone());
    until(place, &format!("the pod {name} succeeds"), async |_| {
        let status = pods.get(name).await?.status.context("the pod has no status")?;
        let phase = status.phase.unwrap_or_default();
        let container = status.container_statuses.unwrap_or_default().into_iter().next();
        let state = container.and_then(|one| one.state);
        let message = state.as_ref().and_then(|state| state.terminated.as_ref()?.message.clone());
        if phase == "Failed" {
            bail!("it failed: {}", message.unwrap_or_default());
        }
        ensure!(phase == "Succeeded", "it is {phase}: {:?}", state.and_then(|state| state.waiting));
        Ok(Some(message.unwrap_or_default().trim().to_owned()))
    })
    .await
}

/// A file system that can grow on this machine while it is mounted.
fn growing() -> Option<&'static str> {
    const CAP_SYS_RESOURCE: u32 = 24;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let set = capabilities.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or_default();
    let has_xfs = || Command::new("mkfs.xfs").arg("-V").output().is_ok_and(|ended| ended.status.success());
    if set >> CAP_SYS_RESOURCE & 1 == 1 { Some("ext4") } else { has_xfs().then_some("xfs") }
}

fn done(begun: Instant, what: &str) {
    print::line(format_args!("  ok  {:5.1} s  {what}", begun.elapsed().as_secs_f64()));
}

fn is_ready(node: &Node) -> bool {
    let spec = node.spec.as_ref();
    let waits =
        spec.is_some_and(|spec| spec.taints.iter().flatten().any(|taint| taint.key == TAINT_UNINITIALIZED));
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    !waits && conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True")
}

/// Waits until `condition` returns a value.
async fn until<T>(
    place: &mut Place,
    what: &str,
    condition: impl AsyncFn(&Place) -> anyhow::Result<Option<T>>,
) -> anyhow::Result<T> {
    program::until(place, Place::must_run, what, STEP_TIMEOUT, condition).await
}
