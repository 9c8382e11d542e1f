//! AzureMachines.

use std::time::Duration;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::world::World;

fn vm(world: &World, name: &str) -> ResourceId {
    world.group("my-cluster").resource("Microsoft.Compute", "virtualMachines", name)
}

async fn cluster() -> World {
    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.start();
    world.until("the cluster is ready", |world| world.is_ready("AzureCluster", "my-cluster")).await;
    world
}

const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";

/// An AzureCluster that is deleted before its machines waits for them, and keeps all its resources until then.
#[tokio::test(start_paused = true)]
async fn a_cluster_that_is_deleted_first_waits_for_its_machines() {
    let world = cluster().await;
    world.provisioned("my-cluster");
    world.machine("my-cluster", "worker", json!({}), json!({ "additionalTags": { "a": "b" } }));
    world.until("ready", |world| world.is_ready("AzureMachine", "worker")).await;
    let all = world.azure.documents().len();
    world.delete("AzureCluster", "my-cluster");
    world
        .until("it waits", |world| {
            let object = world.get("AzureCluster", "my-cluster").unwrap();
            let conditions = object["status"]["conditions"].as_array().unwrap();
            let told = conditions.iter().find(|it| it["type"] == "NetworkInfrastructureReady").unwrap();
            told["message"] == "waiting for these to be deleted first: worker"
        })
        .await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(world.azure.documents().len(), all, "nothing is taken away under a machine");
    world.delete("AzureMachine", "worker");
    world.until("the machine is gone", |world| world.get("AzureMachine", "worker").is_none()).await;
    world.until("and so is the cluster", |world| world.get("AzureCluster", "my-cluster").is_none()).await;
}

/// CAPZ-102, CAPZ-104, CAPZ-113, CAPZ-114: machines wait for their dependencies, and then have a provider ID and
/// addresses.
#[tokio::test(start_paused = true)]
async fn machines_are_made_once_their_network_and_data_are_there() {
    let world = cluster().await;
    let calls = world.sequence();
    world.machine("my-cluster", "cp-0", json!({ (CONTROL_PLANE): "" }), json!({}));
    world.machine("my-cluster", "cp-1", json!({ (CONTROL_PLANE): "" }), json!({}));
    world.machine("my-cluster", "worker", json!({ "cluster.x-k8s.io/deployment-name": "md-0" }), json!({}));
    world
        .until("it waits", |world| {
            world.condition("AzureMachine", "worker", "VMRunning")
                == Some(("False".into(), "WaitingForClusterInfrastructure".into()))
        })
        .await;
    assert_eq!(world.requests_after(calls), (0, 0));
    world.provisioned("my-cluster");
    for name in ["cp-0", "cp-1", "worker"] {
        world.until(name, |world| world.is_ready("AzureMachine", name)).await;
        let object = world.get("AzureMachine", name).unwrap();
        let id = format!(
            "azure:///subscriptions/{}/resourceGroups/my-cluster/providers/Microsoft.Compute/virtualMachines/{name}",
            crate::world::SUBSCRIPTION
        );
        assert_eq!(object["spec"]["providerID"], id.as_str());
        assert_eq!(object["status"]["vmState"], "Succeeded");
        assert_eq!(object["status"]["addresses"][0], json!({ "type": "InternalDNS", "address": name }));
        assert_eq!(object["status"]["addresses"][1]["type"], "InternalIP");
        assert_eq!(
            world.condition("AzureMachine", name, "Ready"),
            Some(("True".into(), String::new())),
            "{object:#}"
        );
    }
    let balancer =
        world.group("my-cluster").resource("Microsoft.Network", "loadBalancers", "my-cluster-public-lb");
    let balancer = world.azure.document(&balancer).unwrap();
    let mut ports: Vec<_> = balancer["properties"]["inboundNatRules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|rule| rule["properties"]["frontendPort"].as_i64().unwrap())
        .collect();
    ports.sort_unstable();
    assert_eq!(ports, [22, 2201]);
    assert_eq!(balancer["properties"]["loadBalancingRules"][0]["name"], "LBRuleHTTPS");
}

/// CAPZ-113: a machine whose network is ready waits for its bootstrap data, and causes no calls to Azure before.
#[tokio::test(start_paused = true)]
async fn a_machine_waits_for_its_bootstrap_data() {
    let world = cluster().await;
    world.provisioned("my-cluster");
    tokio::time::sleep(Duration::from_secs(60)).await;
    let calls = world.sequence();
    world.machine("my-cluster", "worker", json!({}), json!({}));
    let bootstrap = |name: Value| json!({ "spec": { "bootstrap": { "dataSecretName": name } } });
    world.merge("Machine", "worker", bootstrap(Value::Null));
    let waits = Some(("False".to_owned(), "WaitingForBootstrapData".to_owned()));
    world.until("it waits", |world| world.condition("AzureMachine", "worker", "VMRunning") == waits).await;
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert_eq!(world.requests_after(calls), (0, 0));
    world.merge("Machine", "worker", bootstrap(json!("worker-data")));
    world.until("ready", |world| world.is_ready("AzureMachine", "worker")).await;
}

/// CAPZ-120: deleting a machine deletes the resources created for it, and no others. CAPZ-115: a machine that is gone
/// is not created again.
#[tokio::test(start_paused = true)]
async fn machines_end_with_all_that_was_made_for_them() {
    let world = cluster().await;
    world.provisioned("my-cluster");
    let before = world.azure.documents();
    world.machine(
        "my-cluster",
        "cp-0",
        json!({ (CONTROL_PLANE): "" }),
        json!({ "allocatePublicIP": true,
        "dataDisks": [{ "nameSuffix": "etcd", "diskSizeGB": 64 }] }),
    );
    world.until("ready", |world| world.is_ready("AzureMachine", "cp-0")).await;
    assert!(world.azure.document(&vm(&world, "cp-0")).is_some());
    world.delete("AzureMachine", "cp-0");
    world.until("gone", |world| world.get("AzureMachine", "cp-0").is_none()).await;
    let names = |documents: &[serde_json::Value]| -> Vec<String> {
        documents.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&world.azure.documents()), names(&before));

    world.machine("my-cluster", "lost", json!({}), json!({}));
    world.until("ready", |world| world.is_ready("AzureMachine", "lost")).await;
    world.azure.delete(&vm(&world, "lost")).unwrap();
    world
        .until("reported", |world| {
            world.get("AzureMachine", "lost").unwrap()["status"]["failureReason"] == "UpdateError"
        })
        .await;
    let status = world.get("AzureMachine", "lost").unwrap()["status"].clone();
    assert_eq!((&status["vmState"], &status["ready"]), (&json!("Deleted"), &json!(false)));
    world
        .until("event", |world| world.events("AzureMachine", "lost").contains(&"VMDeleted".to_owned()))
        .await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert!(world.azure.document(&vm(&world, "lost")).is_none());
}
