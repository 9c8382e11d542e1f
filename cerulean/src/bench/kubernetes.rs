//! Benchmark of the simulated Kubernetes under load: thousands of nodes and pods, a list of them, writes, and watches
//! that miss nothing.
//!
//! The simulator runs in a process of its own, so that the kernel reports its memory and processor time, and serves on
//! one thread; the clients run here and use TLS, as real clients do.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures::future::join_all;
use http::{Method, Request};
use http_body_util::BodyExt as _;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::nodes;
use super::parallel::in_parallel;
use super::process::{Running, simulator};
use super::resident::{megabytes, processor_time, resident};
use super::statistics::{milliseconds, seconds};
use crate::kubernetes::ClusterArguments;
use crate::runtime::{TWO_THREADS, runtime};
use crate::screen::{Screen, row};

/// The sizes of the benchmark.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of nodes, as a kubelet writes them.
    #[arg(long, default_value_t = 5_000)]
    nodes: usize,
    /// Number of pods on them.
    #[arg(long, default_value_t = 20_000)]
    pods: usize,
    /// Number of Services of type LoadBalancer.
    #[arg(long, default_value_t = 1_000)]
    services: usize,
    /// Number of heartbeats of nodes (updates of Leases) that are written while watches are open.
    #[arg(long, default_value_t = 20_000)]
    writes: usize,
    /// Number of watches that see each of them.
    #[arg(long, default_value_t = 20)]
    watchers: usize,
    /// Number of clients that write at the same time.
    #[arg(long, default_value_t = 8)]
    clients: usize,
}

/// The same for all: nothing looks for their machines.
const SYSTEM_UUID: &str = "9a1c5d5e-5d35-4d8b-9c0a-1f3f6f5b2a77";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
/// The number of Leases that each client writes in turn.
const LEASES_OF_A_CLIENT: usize = 16;
/// The page size of lists, as in kubectl and client-go.
const PAGE: usize = 500;
/// The number of times that the list of all nodes is read; the best counts.
const LISTS: u32 = 5;
/// The maximum delay of watches after the last write.
const LAG: Duration = Duration::from_secs(60);

/// Measures and prints a table.
///
/// # Errors
/// The simulator does not start or refuses a request unexpectedly, or a watch misses something.
pub fn run(screen: Screen, arguments: &Arguments) -> anyhow::Result<()> {
    let directory = tempfile::Builder::new().prefix("cerulean-bench-").tempdir()?;
    runtime(TWO_THREADS)?.block_on(measure(screen, arguments, directory.path()))
}

async fn measure(screen: Screen, arguments: &Arguments, directory: &Path) -> anyhow::Result<()> {
    let (simulator, client) = start(directory).await?;
    let bench = Arc::new(Bench { client });
    let process = simulator.id();
    let Arguments { nodes, pods, services, writes, watchers, clients } = *arguments;
    let clients = clients.max(1);
    let bar = screen.waiting("laying out");
    let empty = resident(process)?;
    let begun = Instant::now();
    bench.lay_out(arguments, clients).await?;
    let (laid_out, held) = (begun.elapsed(), resident(process)?);
    bar.set_message("listing");
    let listed = bench.list_nodes(nodes).await?;
    bar.set_message("writing");
    let version = bench.version().await?;
    let watches: Vec<_> = (0..watchers)
        .map(|_| tokio::spawn(Arc::clone(&bench).count_changes(version.clone(), writes)))
        .collect();
    // Watches are open once their responses begin.
    sleep(Duration::from_secs(1)).await;
    let (begun, before) = (Instant::now(), processor_time(process)?);
    bench.write(writes, clients).await?;
    let wrote = begun.elapsed();
    let seen = timeout(LAG, join_all(watches)).await.context("watches lag behind")?;
    let (all_seen, worked) = (begun.elapsed(), processor_time(process)?.saturating_sub(before));
    for count in seen {
        let count = count??;
        ensure!(count == writes, "a watch saw {count} of {writes} changes");
    }
    bar.finish_and_clear();
    let rate = |time: Duration| format!("{:.0}", writes as f64 / time.as_secs_f64().max(0.001));
    let lag = all_seen.saturating_sub(wrote);
    let rows = [
        row![format!("laying out {nodes} nodes, {pods} pods, {services} Services"), "", seconds(laid_out)],
        row!["resident before", "", megabytes(empty)],
        row!["resident with all of it", "300 MB", megabytes(held)],
        row![format!("LIST of all nodes, {PAGE} a page"), "400 ms", milliseconds(listed)],
        row![format!("writes a second, {watchers} watches"), "2000", rate(wrote)],
        row!["writes a second of processor time", "2000", rate(worked)],
        row!["last change seen by all watches, after the last write", "", milliseconds(lag)],
        row!["changes that a watch missed", "0", "0"],
        row!["resident afterwards", "300 MB", megabytes(resident(process)?)],
    ];
    screen.table(["WHAT", "GOAL", "MEASURED"], &rows);
    Ok(())
}

/// Starts the simulator, whose files are in this directory; returns it and a client.
async fn start(directory: &Path) -> anyhow::Result<(Running, Client)> {
    let folder = directory.join("kubernetes");
    let kubeconfig = folder.join("kubeconfig");
    let mut command = simulator("kubernetes")?;
    command.arg("--directory").arg(&folder);
    let running = Running::launch("simulator", command, directory)?;
    for _ in 0..500 {
        // The file is complete once the server listens.
        if kubeconfig.exists() {
            let cluster = ClusterArguments::of_file(&kubeconfig).connect().await?;
            if cluster.client.apiserver_version().await.is_ok() {
                return Ok((running, cluster.client));
            }
        }
        sleep(Duration::from_millis(10)).await;
    }
    bail!("the simulator did not start:\n{}", running.last_words())
}

struct Bench {
    client: Client,
}

impl Bench {
    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
        Ok(self.client.request(request.body(body.into_bytes())?).await?)
    }

    /// Creates the objects, with several clients in parallel.
    async fn lay_out(self: &Arc<Self>, arguments: &Arguments, clients: usize) -> anyhow::Result<()> {
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-node-lease"}});
        if self.send(Method::GET, "/api/v1/namespaces/kube-node-lease", None).await.is_err() {
            self.send(Method::POST, "/api/v1/namespaces", Some(&namespace)).await?;
        }
        let nodes = arguments.nodes.max(1);
        let node = |number| nodes::node(&node_name(number), &address(number), SYSTEM_UUID);
        self.create(arguments.nodes, clients, "/api/v1/nodes", node).await?;
        let pod = move |number| pod(number, &node_name(number % nodes));
        self.create(arguments.pods, clients, "/api/v1/namespaces/default/pods", pod).await?;
        let services = "/api/v1/namespaces/default/services";
        self.create(arguments.services, clients, services, nodes::service).await?;
        self.create(clients * LEASES_OF_A_CLIENT, clients, LEASES, |number| lease(number, 0)).await
    }

    async fn create(
        self: &Arc<Self>,
        count: usize,
        clients: usize,
        path: &'static str,
        object: impl Fn(usize) -> Value + Copy + Send + 'static,
    ) -> anyhow::Result<()> {
        let bench = Arc::clone(self);
        let create = move |_, number| {
            let bench = Arc::clone(&bench);
            async move { bench.send(Method::POST, path, Some(&object(number))).await.map(drop) }
        };
        in_parallel(0..count, clients, create).await
    }

    /// The best time for all pages of nodes, one after the other. Parsing them is not measured.
    async fn list_nodes(&self, count: usize) -> anyhow::Result<Duration> {
        let mut best = Duration::MAX;
        for _ in 0..LISTS {
            let begun = Instant::now();
            let (mut pages, mut next) = (Vec::new(), String::new());
            loop {
                let path = format!("/api/v1/nodes?limit={PAGE}{next}");
                let page = self.client.request_text(Request::get(path).body(Vec::new())?).await?;
                let token = continue_token(&page).map(str::to_owned);
                pages.push(page);
                match token {
                    Some(token) => next = format!("&continue={token}"),
                    None => break,
                }
            }
            best = best.min(begun.elapsed());
            let mut listed = 0;
            for page in pages {
                let page: Value = serde_json::from_str(&page)?;
                listed += page["items"].as_array().map_or(0, Vec::len);
            }
            ensure!(listed == count, "{listed} nodes were listed instead of {count}");
        }
        Ok(best)
    }

    /// The version of the list of Leases.
    async fn version(&self) -> anyhow::Result<String> {
        let list = self.send(Method::GET, &format!("{LEASES}?limit=1"), None).await?;
        Ok(list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned())
    }

    /// Watches Leases until this number of changes came, each with a later version than the previous one.
    async fn count_changes(self: Arc<Self>, version: String, until: usize) -> anyhow::Result<usize> {
        let path = format!("{LEASES}?watch=true&resourceVersion={version}&timeoutSeconds=600");
        let mut answer = self.client.send(Request::get(path).body(Body::empty())?).await?;
        ensure!(answer.status().is_success(), "a watch is answered with {}", answer.status());
        let (mut count, mut latest, mut rest) = (0, 0_u64, Vec::new());
        while count < until {
            let Some(frame) = answer.body_mut().frame().await else { break };
            let Ok(data) = frame?.into_data() else { continue };
            for byte in data {
                if byte != b'\n' {
                    rest.push(byte);
                    continue;
                }
                let line = String::from_utf8_lossy(&rest);
                ensure!(line.contains("\"MODIFIED\""), "a watch of changes shows {line}");
                let version = version_in(&line).with_context(|| format!("no version in {line}"))?;
                ensure!(version > latest, "version {version} comes after {latest}");
                (count, latest) = (count + 1, version);
                rest.clear();
            }
        }
        Ok(count)
    }

    async fn write(self: &Arc<Self>, writes: usize, clients: usize) -> anyhow::Result<()> {
        let bench = Arc::clone(self);
        let renew = move |client, number| {
            let bench = Arc::clone(&bench);
            async move {
                let lease_of = client * LEASES_OF_A_CLIENT + number % LEASES_OF_A_CLIENT;
                let body = json!({"spec": {"renewTime": time(number + 1)}}).to_string();
                let request = Request::patch(format!("{LEASES}/{}", node_name(lease_of)))
                    .header("content-type", "application/merge-patch+json")
                    .body(body.into_bytes())?;
                bench.client.request_text(request).await?;
                Ok(())
            }
        };
        in_parallel(0..writes, clients, renew).await
    }
}

/// The token of the next page, without parsing the whole page, which would distort the measured time.
fn continue_token(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("\"continue\":\"")?;
    rest.split_once('"').map(|(token, _)| token).filter(|token| !token.is_empty())
}

fn version_in(line: &str) -> Option<u64> {
    let (_, rest) = line.split_once("\"resourceVersion\":\"")?;
    rest.split_once('"')?.0.parse().ok()
}

fn node_name(number: usize) -> String {
    format!("worker{number:06}")
}

fn address(number: usize) -> String {
    format!("10.{}.{}.{}", 240 + number / 65_536, number / 256 % 256, number % 256)
}

/// A different time for each number.
fn time(number: usize) -> String {
    let (seconds, micros) = (number / 1_000_000 % 60, number % 1_000_000);
    format!("2026-01-01T00:00:{seconds:02}.{micros:06}Z")
}

fn lease(number: usize, renewed: usize) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": node_name(number), "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": node_name(number), "leaseDurationSeconds": 40, "renewTime": time(renewed)},
    })
}

/// A pod as a Deployment creates it, bound to a node.
fn pod(number: usize, node: &str) -> Value {
    let app = format!("app-{}", number % 1_000);
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": format!("{app}-7d4b9c6f5-{number:05}"), "namespace": "default",
            "labels": {"app": app, "pod-template-hash": "7d4b9c6f5"},
        },
        "spec": {
            "nodeName": node,
            "containers": [{
                "name": "web", "image": format!("registry.example/shop/{app}:v1.4.2"),
                "ports": [{"name": "http", "containerPort": 8080}],
                "env": [{"name": "LEVEL", "value": "info"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
                "readinessProbe": {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10},
            }],
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_and_versions_are_found_in_texts() {
        assert_eq!(continue_token(r#"{"metadata":{"resourceVersion":"7","continue":"abc"}}"#), Some("abc"));
        assert_eq!(continue_token(r#"{"metadata":{"continue":""}}"#), None);
        assert_eq!(version_in(r#"{"metadata":{"resourceVersion":"12"}}"#), Some(12));
    }

    #[test]
    fn each_write_changes_something() {
        assert_ne!(time(1), time(2));
        assert_eq!(time(20_000), "2026-01-01T00:00:00.020000Z");
        assert_eq!(address(70_000), "10.241.17.112");
    }
}
