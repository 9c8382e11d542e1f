//! `cerulean plan` for a cluster whose pods are reached by routes.

use std::process::Output;
use std::time::Duration;

use azure_simulator::Options;
use clock::Clock;
use serde_json::{Value, json};
use simulated_cluster::{HostedCluster, HostedOptions, Shape};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

async fn plan(cluster: &HostedCluster, more: &[&str]) -> Output {
    let files = &cluster.files;
    let mut command = Command::new(env!("CARGO_BIN_EXE_cerulean"));
    command
        .arg("plan")
        .arg("--cloud-config")
        .arg(&files.azure_json)
        .arg("--kubeconfig")
        .arg(&files.kubeconfig);
    command.args(more).env("SSL_CERT_FILE", &files.certificate_authority);
    command.output().await.unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr[..]].concat()).into_owned()
}

/// NODE-265, NODE-269, NODE-272, NODE-273.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_272_plan_shows_the_write_of_the_route_table() {
    let (stop, folder) = (CancellationToken::new(), tempfile::tempdir().unwrap());
    let shape = Shape { route_table: Some("routes".to_owned()), ..Shape::default() };
    let azure = Options { start: Clock::system().now(), ..Options::default() };
    let options = HostedOptions::of(shape, azure, folder.path());
    let cluster = HostedCluster::start(options, &stop).await.unwrap();
    let kubernetes = cluster.kubernetes.clone().unwrap();
    let has_address =
        |node: &Value| node["status"]["addresses"].as_array().is_some_and(|all| !all.is_empty());
    let ready = || kubernetes.list("Node").iter().filter(|node| has_address(node.value())).count() == 3;
    for _ in 0..1200 {
        if ready() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(ready(), "{:?}", kubernetes.list("Node"));
    for (name, range) in [("worker000000", "10.244.1.0/24"), ("worker000001", "10.244.2.0/24")] {
        kubernetes.merge("Node", "", name, &json!({"spec": {"podCIDR": range}})).unwrap();
    }

    let routes = ["--cluster-cidr", Shape::PODS_V4];
    let output = plan(&cluster, &routes).await;
    let said = text(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    for words in [
        "~ route table routes (resource group cluster)",
        "route worker000000____102441024 added",
        "route worker000001____102442024 added",
        "get their routes later: worker000002",
        "Plan: 0 to create, 1 to change, 0 to delete.",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let output = plan(&cluster, &["--cluster-cidr", Shape::PODS_V4, "--output", "json"]).await;
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["steps"][0]["resourceType"], "routeTables");
    assert_eq!(json["steps"][0]["document"]["properties"]["routes"].as_array().unwrap().len(), 2);
    // NODE-265: ranges of pods in the nodes' own subnet, and an invalid range.
    let output = plan(&cluster, &["--cluster-cidr", Shape::NODES_V4]).await;
    let said = text(&output);
    let words =
        format!("Warning: --cluster-cidr={0} is the range {0} of the nodes' subnet nodes", Shape::NODES_V4);
    assert!(said.contains(&words) && said.contains("(pass a range outside the virtual network)"), "{said}");
    // NODE-269: ranges of nodes outside of the cluster's.
    assert!(said.contains("in none of --cluster-cidr: worker000000 10.244.1.0/24"), "{said}");
    let output = plan(&cluster, &["--cluster-cidr", "foo"]).await;
    assert!(
        text(&output).contains("\"foo\" is no range of addresses, such as 10.244.0.0/16"),
        "{}",
        text(&output)
    );
    // NODE-273: a foreign route to a range.
    let foreign =
        json!({"name": "onprem", "properties": {"addressPrefix": "10.244.2.0/24", "nextHopType": "None"}});
    let table = Shape { route_table: Some("routes".to_owned()), ..Shape::default() }.route_table().unwrap();
    let add = |document: &mut Value| document["properties"]["routes"].as_array_mut().unwrap().push(foreign);
    cluster.azure.edit(&table, add).unwrap();
    let output = plan(&cluster, &routes).await;
    let said = text(&output);
    assert!(said.contains("; 1 range of pods gets no route.") && output.status.code() == Some(1), "{said}");
    // Without the ranges of pods, the owner of those routes is unknown.
    let output = plan(&cluster, &[]).await;
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    stop.cancel();
}
