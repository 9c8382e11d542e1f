//! From the established chart's objects to ours and back, with a Service that is served all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use azure_simulator::JournalEntry;
use azure_simulator::packet::{self, AlwaysHealthy, Packet, Protocol, Source};
use k8s::api::api::apps::v1::{DaemonSet, Deployment};
use k8s::api::api::core::v1::{Node, Service};
use k8s::names::TAINT_UNINITIALIZED;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::place::{CONTROL_PLANE, MACHINES, Place};
use super::{monitoring, replicas};
use crate::e2e::capz::objects::create;
use crate::e2e::machines::EXCHANGES;
use crate::{print, program, rights};

/// The time limit of a step on a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(120);
/// A host on the internet.
const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 7));
/// The release's name.
const RELEASE: &str = "azure";
/// The programs' accounts.
const ACCOUNTS: [&str; 2] = ["kube-system/cloud-controller-manager", "kube-system/cloud-node-manager"];
/// How long others wait before they take over from a silent leader (--leader-elect-lease-duration).
const LEASE: Duration = Duration::from_secs(15);
/// How long after the end of a Lease another replica may lead: a candidate attempts every 2 s, with its jitter every 4.4 s,
/// and may have seen the last renewal one attempt late; the rest is for a busy machine.
const ATTEMPTS: Duration = Duration::from_secs(15);

/// Runs all steps.
///
/// # Errors
/// The first failed step.
pub async fn play(place: &mut Place) -> anyhow::Result<()> {
    let values = place.reader.values.display().to_string();
    let established = place.established.display().to_string();
    let empty = objects(place)?;
    place.helm.run(&["install", RELEASE, &established, "--values", &values])?;
    rolled_out(place, 1).await?;
    nodes_are_described(place).await?;
    create(&place.machines.client, &service("before")).await?;
    served(place, "before").await?;
    print::line(
        "  ok  our images in the established chart's objects, with its rights: nodes and a Service are served",
    );

    let (before, journal) = (objects(place)?, Writes::of(place));
    for section in ["Look", "Compare"] {
        place.guide.follow(section)?;
    }
    let begun = Instant::now();
    place.guide.follow("Switch")?;
    rolled_out(place, 1).await?;
    let took = begun.elapsed().as_secs_f64();
    a_leader(place).await?;
    place.guide.follow("Check")?;
    print::line(format_args!("  ok  the guide's helm upgrade to our chart, rolled out after {took:.1} s"));
    journal.ensure_none(place, "the switch")?;
    create(&place.machines.client, &service("after")).await?;
    served(place, "after").await?;
    print::line(
        "  ok  it wrote nothing to Azure, and the next Service is served with the rights of our chart alone",
    );

    monitoring::ask(place).await?;
    two_replicas(place).await?;
    place.guide.follow("Stop")?;
    rolled_out(place, 1).await?;

    let journal = Writes::of(place);
    place.guide.follow("Back")?;
    rolled_out(place, 1).await?;
    a_leader(place).await?;
    journal.ensure_none(place, "the way back")?;
    create(&place.machines.client, &service("back")).await?;
    served(place, "back").await?;
    let left: Vec<String> = objects(place)?.difference(&before).cloned().collect();
    ensure!(left.is_empty(), "helm rollback left {left:?}");
    print::line(
        "  ok  the guide's helm rollback wrote nothing to Azure, and left nothing of our chart behind",
    );

    // Roles end before the programs that have them.
    denied(place)?;
    place.helm.run(&["uninstall", RELEASE, "--wait"])?;
    let left: Vec<String> = objects(place)?.difference(&empty).cloned().collect();
    ensure!(left.is_empty(), "helm uninstall left {left:?}");
    for name in ["before", "after", "back"] {
        ensure!(packet_arrives(place, name).await?, "{name} is not served any more");
    }
    Ok(())
}

/// The leader is killed, and then its successor is suspended. Each time another replica takes over while a Service waits.
async fn two_replicas(place: &mut Place) -> anyhow::Result<()> {
    let chart = Place::chart().display().to_string();
    let two = "cloudControllerManager.replicas=2";
    place.helm.run(&["upgrade", RELEASE, &chart, "--reuse-values", "--set", two])?;
    rolled_out(place, 2).await?;
    let first = a_leader(place).await?;
    let node = replicas::node_of(place, &first).await?.context("the leader has logged no identity")?;
    let number = MACHINES.iter().position(|name| *name == node).context("an unknown node")?;
    // The kubelet would start it again at once.
    place.machines.cluster.nodes[number].stop_kubelet();
    create(&place.machines.client, &service("killed")).await?;
    replicas::signal(replicas::process_on(&node)?, "KILL")?;
    let (second, took) = replicas::taken_over(place, &first, LEASE + ATTEMPTS).await?;
    served(place, "killed").await?;
    written_once(place)?;
    print::line(format_args!(
        "  ok  the leader was killed, and the other replica took over after {:.1} s; nothing was written twice",
        took.as_secs_f64()
    ));

    place.machines.cluster.nodes[number].start_kubelet()?;
    rolled_out(place, 2).await?;
    let node = replicas::node_of(place, &second).await?.context("the leader has logged no identity")?;
    let process = replicas::process_on(&node)?;
    create(&place.machines.client, &service("suspended")).await?;
    replicas::signal(process, "STOP")?;
    let (_, took) = replicas::taken_over(place, &second, LEASE + ATTEMPTS).await?;
    served(place, "suspended").await?;
    let journal = Writes::of(place);
    replicas::signal(process, "CONT")?;
    program::until(place, must_run, "the suspended leader ends", STEP_TIMEOUT, async |_| {
        Ok(replicas::process_on(&node).map_or(true, |running| running != process).then_some(()))
    })
    .await?;
    journal.ensure_none(place, "the suspended leader")?;
    written_once(place)?;
    print::line(format_args!(
        "  ok  a suspended leader lost its lease after {:.1} s, and ended without a write when it ran again",
        took.as_secs_f64()
    ));
    measure(place).await?;
    let one = "cloudControllerManager.replicas=1";
    place.helm.run(&["upgrade", RELEASE, &chart, "--reuse-values", "--set", one])?;
    rolled_out(place, 1).await
}

fn must_run(place: &mut Place) -> anyhow::Result<()> {
    place.machines.must_run()
}

/// Waits until Deployment and DaemonSets are as the release demands.
async fn rolled_out(place: &mut Place, replicas: i32) -> anyhow::Result<()> {
    let client = place.machines.client.clone();
    let deployments: Api<Deployment> = Api::namespaced(client.clone(), "kube-system");
    let daemon_sets: Api<DaemonSet> = Api::namespaced(client, "kube-system");
    program::until(place, must_run, "the release is rolled out", STEP_TIMEOUT, async |_| {
        let found = deployments.get("cloud-controller-manager").await?;
        let (generation, status) = (found.metadata.generation, found.status.unwrap_or_default());
        let is_current = status.observed_generation == generation;
        let counts = [status.replicas, status.updated_replicas, status.available_replicas];
        if !is_current || counts.iter().any(|count| *count != Some(replicas)) {
            return Ok(None);
        }
        let found = daemon_sets.get("cloud-node-manager").await?;
        let (generation, status) = (found.metadata.generation, found.status.unwrap_or_default());
        let wanted = status.desired_number_scheduled;
        let is_done = status.observed_generation == generation
            && wanted == MACHINES.len() as i32
            && status.updated_number_scheduled == Some(wanted)
            && status.number_available == Some(wanted);
        Ok(is_done.then_some(()))
    })
    .await
}

async fn nodes_are_described(place: &mut Place) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(place.machines.client.clone());
    program::until(place, must_run, "the nodes have provider IDs and no taint", STEP_TIMEOUT, async |_| {
        let found = nodes.list(&ListParams::default()).await?.items;
        let is_described = |node: &Node| {
            let spec = node.spec.clone().unwrap_or_default();
            spec.provider_id.is_some_and(|id| id.starts_with("azure:///subscriptions/"))
                && !spec.taints.into_iter().flatten().any(|taint| taint.key == TAINT_UNINITIALIZED)
        };
        Ok((found.len() == MACHINES.len() && found.iter().all(is_described)).then_some(()))
    })
    .await
}

/// The identity of the leader, which runs in a pod of today.
async fn a_leader(place: &mut Place) -> anyhow::Result<String> {
    program::until(place, must_run, "a running replica leads", STEP_TIMEOUT, async |place| {
        let Some(leader) = replicas::leader(place).await? else { return Ok(None) };
        Ok(replicas::node_of(place, &leader).await?.map(|_| leader))
    })
    .await
}

fn service(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"},
        "spec": {"type": "LoadBalancer", "selector": {"app": "web"}, "ports": [{"port": 80}]},
    })
}

async fn served(place: &mut Place, name: &str) -> anyhow::Result<()> {
    let what = format!("{name} has an address, and packets arrive");
    program::until(place, must_run, &what, STEP_TIMEOUT, async |place| {
        Ok(packet_arrives(place, name).await?.then_some(()))
    })
    .await
}

/// Whether the Service has an address that leads to the node for pods.
async fn packet_arrives(place: &Place, name: &str) -> anyhow::Result<bool> {
    let services: Api<Service> = Api::default_namespaced(place.machines.client.clone());
    let status = services.get(name).await?.status;
    let ingress = status.and_then(|status| status.load_balancer?.ingress?.into_iter().next()?.ip);
    let Some(address) = ingress else { return Ok(false) };
    let packet = Packet::new(Source::internet(SENDER), address.parse()?, 80, Protocol::Tcp);
    let verdict = packet::trace(&place.machines.azure.azure, &AlwaysHealthy, &packet);
    ensure!(verdict.arrives, "{}", verdict.sentence());
    Ok(true)
}

/// The writes to Azure after a moment.
struct Writes(u64);

impl Writes {
    fn of(place: &Place) -> Self {
        Self(place.machines.azure.azure.journal().entries.last().map_or(0, |entry| entry.sequence))
    }

    /// The paths that were written since.
    fn since(&self, place: &Place) -> Vec<String> {
        let journal = place.machines.azure.azure.journal_after(self.0);
        let is_write = |entry: &&JournalEntry| {
            ["PUT", "POST", "PATCH", "DELETE"].contains(&entry.method.as_str())
                && entry.path.starts_with("/subscriptions/")
        };
        let written = journal.entries.iter().filter(is_write);
        written.map(|entry| entry.path.clone()).collect()
    }

    fn ensure_none(&self, place: &Place, what: &str) -> anyhow::Result<()> {
        let written = self.since(place);
        ensure!(written.is_empty(), "{what} wrote to Azure: {written:?}");
        Ok(())
    }
}

/// Fails if a write repeats the one before of the same resource.
fn written_once(place: &Place) -> anyhow::Result<()> {
    let mut last: BTreeMap<String, String> = BTreeMap::new();
    for line in std::fs::read_to_string(place.machines.folder.join(EXCHANGES))?.lines() {
        let exchange: Value = serde_json::from_str(line)?;
        let succeeded = exchange["status"].as_u64().is_some_and(|status| (200..300).contains(&status));
        if exchange["method"] != "PUT" || !succeeded {
            continue;
        }
        let (url, body) = (exchange["url"].to_string(), exchange["body"].to_string());
        ensure!(last.insert(url.clone(), body.clone()) != Some(body), "{url} was written twice");
    }
    Ok(())
}

/// The objects of the charts' kinds.
fn objects(place: &Place) -> anyhow::Result<BTreeSet<String>> {
    let kinds =
        "deployments,daemonsets,serviceaccounts,configmaps,roles,rolebindings,services,poddisruptionbudgets";
    let names = ["-o", "name"];
    let namespaced = place.kubectl(&[&["get", kinds, "-n", "kube-system"], &names[..]].concat())?;
    let cluster = place.kubectl(&[&["get", "clusterroles,clusterrolebindings"], &names[..]].concat())?;
    Ok(namespaced
        .lines()
        .chain(cluster.lines())
        .filter(|name| name.contains("cloud"))
        .map(str::to_owned)
        .collect())
}

/// Prints the memory of both replicas, once both run: that of the suspended leader is started again with a pause.
async fn measure(place: &mut Place) -> anyhow::Result<()> {
    for name in &MACHINES[..CONTROL_PLANE] {
        let what = format!("{name} runs a replica");
        let resident = program::until(place, must_run, &what, STEP_TIMEOUT, async |_| {
            Ok(Some(replicas::resident(replicas::process_on(name)?)?))
        })
        .await?;
        print::line(format_args!(
            "      {name}: cloud-controller-manager has {:.1} MB resident",
            resident as f64 / 1e3
        ));
    }
    Ok(())
}

/// Fails if the API server denied a request of a program.
fn denied(place: &Place) -> anyhow::Result<()> {
    let audit = rights::examine(std::slice::from_ref(&place.audit_log), &[], &ACCOUNTS.map(str::to_owned))?;
    ensure!(audit.denied.is_empty(), "the API server denied requests:\n{audit}");
    print::line(format_args!("  ok  none of {} requests of the programs was denied", audit.requests));
    Ok(())
}
