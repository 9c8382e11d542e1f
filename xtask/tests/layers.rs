//! The manifests keep the layers apart: what a crate links, directly or through other crates of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use anyhow::Context as _;
use serde_json::Value;

/// Crates that have no runtime, no clock and no I/O.
const PURE: [&str; 13] = [
    "azure-types",
    "capz-api",
    "capz-planner",
    "cloud",
    "cloud-config",
    "k8s",
    "logical-time",
    "machine",
    "operator-resources",
    "ownership",
    "planner",
    "rights",
    "volume-planner",
];
/// The simulators and the test crates.
const WITNESSES: [&str; 16] = [
    "azure-contract",
    "azure-engine",
    "azure-entra",
    "azure-imds",
    "azure-packets",
    "azure-providers",
    "azure-simulator",
    "cluster-api-stand-in",
    "faults",
    "kubernetes-simulator",
    "machine-disks",
    "machine-shares",
    "simulated-cluster",
    "stand-ins",
    "testkit",
    "explorer",
];
/// What a crate without HTTP must not link.
const HTTP: [&str; 4] = ["axum", "http", "hyper", "tower"];
/// What a pure crate must not link.
const IMPURE: [&str; 5] = ["tokio", "hyper", "http", "kube", "rand"];

/// All crates that a crate of the workspace links, according to `cargo metadata`.
struct Graph(BTreeMap<String, BTreeSet<String>>);

impl Graph {
    fn read() -> anyhow::Result<Self> {
        let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
        let output = Command::new(cargo)
            .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"])
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .output()?;
        let errors = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "cargo metadata fails: {errors}");
        let metadata: Value = serde_json::from_slice(&output.stdout)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let packages = metadata["packages"].as_array().context("there are no packages")?;
        let links = |package: &Value| {
            let all = package["dependencies"].as_array().cloned().unwrap_or_default();
            all.iter().filter(|one| one["kind"].is_null()).map(|one| text(&one["name"])).collect()
        };
        Ok(Self(packages.iter().map(|package| (text(&package["name"]), links(package))).collect()))
    }

    fn linked_by(&self, name: &str) -> BTreeSet<String> {
        let mut all = BTreeSet::new();
        let mut open = vec![name.to_owned()];
        while let Some(next) = open.pop() {
            for link in self.0.get(&next).into_iter().flatten() {
                if all.insert(link.clone()) {
                    open.push(link.clone());
                }
            }
        }
        assert!(self.0.contains_key(name), "there is no crate {name}: correct this test");
        all
    }

    fn assert_apart(&self, name: &str, others: &[&str]) {
        let linked = self.linked_by(name);
        let found: Vec<_> = others.iter().filter(|other| linked.contains(**other)).collect();
        assert!(found.is_empty(), "{name} links {found:?}, and ARCHITECTURE.md says that it does not");
    }
}

#[test]
fn pure_crates_link_no_runtime() {
    let graph = Graph::read().unwrap();
    for name in PURE {
        graph.assert_apart(name, &IMPURE);
    }
}

#[test]
fn controllers_know_no_cloud_and_the_azure_client_no_kubernetes() {
    let graph = Graph::read().unwrap();
    graph.assert_apart("controllers", &["arm", "provider", "planner", "azure-types", "cloud-config"]);
    graph.assert_apart("arm", &["k8s", "kube", "planner", "cloud"]);
    graph.assert_apart("planner", &["cloud", "arm"]);
    graph.assert_apart("volume-planner", &["cloud", "arm", "k8s", "planner"]);
    graph.assert_apart(
        "volumes-node",
        &["azure-types", "arm", "imds", "k8s", "kube", "csi", "tonic", "volume-planner"],
    );
    graph.assert_apart("csi", &["cloud", "arm", "k8s", "kube", "planner", "provider"]);
    graph.assert_apart("capz", &["planner", "provider", "telemetry"]);
    graph.assert_apart("telemetry", &["arm", "provider", "controllers", "kube"]);
    graph.assert_apart("writer", &["cloud", "k8s", "kube", "planner", "provider", "volume-planner"]);
    graph.assert_apart("freshness", &["azure-types", "cloud", "k8s", "arm"]);
    graph.assert_apart("imds", &["arm", "k8s", "kube", "rustls", "planner", "provider"]);
}

/// Runs on every node, in contrast to the programs that run once.
#[test]
fn the_node_manager_knows_no_load_balancers() {
    let graph = Graph::read().unwrap();
    graph.assert_apart("cloud-node-manager", &["provider", "planner", "clap"]);
    graph.assert_apart("program", &["provider", "planner", "controllers", "telemetry"]);
}

/// Started for every image pull, or running on every node.
#[test]
fn small_programs_link_little() {
    let graph = Graph::read().unwrap();
    graph.assert_apart(
        "acr-credential-provider",
        &["k8s", "kube", "clap", "planner", "provider", "telemetry"],
    );
    graph.assert_apart("health-probe-proxy", &["arm", "cloud-config", "k8s", "clap", "telemetry"]);
}

/// A gRPC client is linked only by the two managers: programs on nodes and libraries do without.
#[test]
fn who_sends_no_traces_does_not_link_what_does() {
    let graph = Graph::read().unwrap();
    for name in [
        "cloud-node-manager",
        "acr-credential-provider",
        "health-probe-proxy",
        "capz",
        "arm",
        "controllers",
        "provider",
    ] {
        graph.assert_apart(name, &["traces", "opentelemetry", "tonic"]);
    }
}

#[test]
fn what_runs_in_production_and_its_witnesses_are_apart() {
    let graph = Graph::read().unwrap();
    for name in [
        "capz",
        "capz-controller-manager",
        "cloud-controller-manager",
        "csi",
        "volumes-node",
        "provider",
        "controllers",
        "arm",
        "acr-credential-provider",
        "health-probe-proxy",
        "cloud-node-manager",
        "imds",
    ] {
        graph.assert_apart(name, &WITNESSES);
    }
    for name in ["azure-simulator", "cluster-api-stand-in", "kubernetes-simulator", "stand-ins"] {
        graph.assert_apart(name, &["arm", "provider", "controllers", "planner", "cloud", "cloud-config"]);
    }
}

/// They also work with a real server.
#[test]
fn stand_ins_and_the_simulated_kubernetes_do_not_know_each_other() {
    let graph = Graph::read().unwrap();
    for name in ["stand-ins", "cluster-api-stand-in"] {
        graph.assert_apart(name, &["kubernetes-simulator", "azure-simulator", "capz-api"]);
    }
    graph.assert_apart("kubernetes-simulator", &["stand-ins", "azure-simulator"]);
}

/// A further provider changes no line of the engine, and no provider depends on the transport of requests.
#[test]
fn the_engine_of_the_simulated_azure_knows_no_provider_and_providers_no_http() {
    let graph = Graph::read().unwrap();
    let others = ["azure-providers", "azure-packets", "azure-entra", "azure-imds", "azure-simulator"];
    graph.assert_apart("azure-engine", &others);
    graph.assert_apart(
        "azure-contract",
        &["azure-engine", "azure-types", "azure-providers", "azure-simulator"],
    );
    graph.assert_apart("azure-providers", &["azure-packets", "azure-entra", "azure-imds", "azure-simulator"]);
    graph.assert_apart("azure-packets", &["azure-providers", "azure-entra", "azure-imds", "azure-simulator"]);
    graph.assert_apart("azure-imds", &["azure-packets", "azure-simulator"]);
    graph.assert_apart("azure-entra", &["azure-engine", "azure-providers", "azure-packets", "azure-imds"]);
    for name in ["azure-contract", "azure-engine", "azure-providers", "azure-packets"] {
        graph.assert_apart(name, &HTTP);
    }
}
