//! Secrets, and the status of machine templates.

use std::time::Duration;

use azure_types::ResourceId;
use logs::captured::Captured;
use serde_json::{Value, json};

use crate::world::{NAMESPACE, SUBSCRIPTION, World};

const LABEL: &str = "my-cluster";

fn azure_json(world: &World, secret: &str) -> Option<Value> {
    serde_json::from_str(&world.secret(secret, "azure.json")?).unwrap()
}

fn data(world: &World, secret: &str) -> Value {
    world.get("Secret", secret).unwrap()["data"].clone()
}

fn service_principal(world: &World) {
    world.put_secret("credentials", &[("clientSecret", "hunter2")]);
    let spec = json!({ "spec": { "type": "ServicePrincipal", "clientSecret": { "name": "credentials" } } });
    world.merge("AzureClusterIdentity", "identity", spec);
}

/// CAPZ-124, CAPZ-125, CAPZ-126: a template gets a status for autoscalers and a Secret for bootstrap configurations,
/// before the cluster has a network; a damaged Secret is repaired, and a user's Secret in its place stays.
#[tokio::test(start_paused = true)]
async fn a_template_gets_a_status_and_a_secret() {
    let mut world = World::new();
    let own = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "own-azure-json", "namespace": NAMESPACE },
        "data": { "worker-node-azure.json": "e30=" },
    });
    world.create(own);
    world.cluster("my-cluster", json!({}));
    world.template("my-cluster", "md-0", json!({}));
    world.template("my-cluster", "own", json!({}));
    world.template("my-cluster", "unknown", json!({ "vmSize": "Standard_Unknown" }));
    world.start();
    world.until("a Secret", |world| world.get("Secret", "md-0-azure-json").is_some()).await;
    let secret = world.get("Secret", "md-0-azure-json").unwrap();
    assert_eq!(secret["metadata"]["labels"], json!({ (LABEL): "owned" }));
    let owner = &secret["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("AzureMachineTemplate"), &json!("md-0")));
    assert_eq!(owner["controller"], true);
    let members: Vec<&str> = secret["data"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["azure.json", "control-plane-azure.json", "worker-node-azure.json"]);
    let read = azure_json(&world, "md-0-azure-json").unwrap();
    assert_eq!(read["aadClientId"], "c");
    assert_eq!(read["subnetName"], "my-cluster-node-subnet");

    world
        .until("a status", |world| {
            world.get("AzureMachineTemplate", "md-0").unwrap()["status"]["capacity"].is_object()
        })
        .await;
    let status = world.get("AzureMachineTemplate", "md-0").unwrap()["status"].clone();
    assert_eq!(status["capacity"], json!({ "cpu": "2", "memory": "8Gi" }));
    assert_eq!(status["nodeInfo"], json!({ "architecture": "amd64", "operatingSystem": "linux" }));
    world
        .until("reported", |world| {
            world.events("AzureMachineTemplate", "unknown").contains(&"SKUNotFound".to_owned())
        })
        .await;

    // Damaged, and repaired at the next reconcile.
    let spoilt =
        json!({ "data": { "azure.json": "e30=", "more": "e30=" }, "metadata": { "ownerReferences": null } });
    world.merge("Secret", "md-0-azure-json", spoilt);
    world.until("mended", |world| data(world, "md-0-azure-json") == secret["data"]).await;
    assert_eq!(
        world.get("Secret", "md-0-azure-json").unwrap()["metadata"]["ownerReferences"],
        secret["metadata"]["ownerReferences"]
    );
    assert_eq!(data(&world, "own-azure-json"), json!({ "worker-node-azure.json": "e30=" }));
    // At rest nothing is written.
    let version = |world: &World| {
        world.get("Secret", "md-0-azure-json").unwrap()["metadata"]["resourceVersion"].clone()
    };
    let before = version(&world);
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(version(&world), before);
}

/// CAPZ-127, CAPZ-128, CAPZ-162: a machine from a template uses the template's Secret, one without a template has its
/// own, with the identity's client secret, of which an event warns; a rotated secret is copied within seconds.
#[tokio::test(start_paused = true)]
async fn only_machines_without_template_have_a_secret_of_their_own() {
    let mut world = World::new();
    service_principal(&world);
    world.cluster("my-cluster", json!({}));
    world.machine("my-cluster", "alone", json!({}), json!({}));
    world.machine("my-cluster", "cloned", json!({}), json!({}));
    let from = "AzureMachineTemplate.infrastructure.cluster.x-k8s.io";
    let annotation =
        json!({ "metadata": { "annotations": { "cluster.x-k8s.io/cloned-from-groupkind": from } } });
    world.merge("AzureMachine", "cloned", annotation);
    world.start();
    world.until("a Secret", |world| world.get("Secret", "alone-azure-json").is_some()).await;
    let read = azure_json(&world, "alone-azure-json").unwrap();
    assert_eq!((&read["aadClientId"], &read["aadClientSecret"]), (&json!("c"), &json!("hunter2")));
    assert_eq!(read["useManagedIdentityExtension"], false);
    world
        .until("warned", |world| world.events("AzureMachine", "alone").contains(&"VMIdentityNone".to_owned()))
        .await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.put_secret("credentials", &[("clientSecret", "hunter3")]);
    let waited = world
        .until("rotated", |world| {
            azure_json(world, "alone-azure-json").unwrap()["aadClientSecret"] == "hunter3"
        })
        .await;
    assert!(waited < Duration::from_secs(3), "{waited:?}");
    assert!(world.get("Secret", "cloned-azure-json").is_none());

    // If this is turned off, no Secret is created.
    let mut world = World::new();
    world.settings.machine_secrets = false;
    world.cluster("my-cluster", json!({}));
    world.machine("my-cluster", "alone", json!({}), json!({}));
    world.start();
    tokio::time::sleep(Duration::from_secs(700)).await;
    assert!(world.get("Secret", "alone-azure-json").is_none());
}

/// CAPZ-129: the client ID of a user-assigned identity is read from Azure; until the identity exists an event reports
/// that.
#[tokio::test(start_paused = true)]
async fn the_client_of_a_user_assigned_identity_is_read_from_azure() {
    let mut world = World::new();
    world.azure.put(&ResourceId::group(SUBSCRIPTION, "identities"), json!({ "location": "eastus" })).unwrap();
    let id = ResourceId::group(SUBSCRIPTION, "identities").resource(
        "Microsoft.ManagedIdentity",
        "userAssignedIdentities",
        "nodes",
    );
    world.cluster("my-cluster", json!({}));
    let identities = json!([{ "providerID": format!("azure://{id}") }]);
    let spec = json!({ "identity": "UserAssigned", "userAssignedIdentities": identities });
    world.template("my-cluster", "md-0", spec);
    world.start();
    world
        .until("reported", |world| {
            let reason = "Error reconciling cloud provider secret for AzureMachineTemplate";
            world.events("AzureMachineTemplate", "md-0").contains(&reason.to_owned())
        })
        .await;
    assert!(world.get("Secret", "md-0-azure-json").is_none());
    let made = world.azure.put(&id, json!({ "location": "eastus" })).unwrap();
    world.until("a Secret", |world| world.get("Secret", "md-0-azure-json").is_some()).await;
    let read = azure_json(&world, "md-0-azure-json").unwrap();
    assert_eq!(read["userAssignedIdentityID"], made["properties"]["clientId"]);
    assert!(read["userAssignedIdentityID"].is_string());
    assert_eq!((&read["useManagedIdentityExtension"], &read["aadClientId"]), (&json!(true), &Value::Null));
}

/// CAPZ-132, CAPZ-133: pools have a Secret if machine pools are enabled, and nothing else happens if they are not.
#[tokio::test(start_paused = true)]
async fn pools_have_a_secret_where_pools_are_on() {
    for on in [true, false] {
        let mut world = World::new();
        world.settings.gates.machine_pool = on;
        world.cluster("my-cluster", json!({}));
        world.create(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureMachinePool",
            "metadata": { "name": "mp", "namespace": NAMESPACE, "labels": { "cluster.x-k8s.io/cluster-name": "my-cluster" } },
            "spec": { "location": "eastus", "template": { "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux" } } },
        }));
        world.template("my-cluster", "md-0", json!({}));
        world.start();
        world.until("the template's", |world| world.get("Secret", "md-0-azure-json").is_some()).await;
        if on {
            world.until("the pool's", |world| world.get("Secret", "mp-azure-json").is_some()).await;
            assert_eq!(azure_json(&world, "mp-azure-json").unwrap()["enableVmssFlexNodes"], true);
        } else {
            tokio::time::sleep(Duration::from_secs(700)).await;
            assert!(world.get("Secret", "mp-azure-json").is_none());
            let pool = world.get("AzureMachinePool", "mp").unwrap();
            assert_eq!(pool["metadata"]["finalizers"], Value::Null);
        }
    }
}

/// The Secret for Azure Service Operator is created where that operator is installed, and kept up to date if it exists.
#[tokio::test(start_paused = true)]
async fn the_operators_secret_is_for_those_who_have_the_operator() {
    let mut world = World::new();
    service_principal(&world);
    world.cluster("none", json!({}));
    world.cluster("my-cluster", json!({}));
    let object = world.get("AzureCluster", "my-cluster").unwrap();
    world.create(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "my-cluster-aso-secret", "namespace": NAMESPACE, "labels": { "my-cluster": "owned" },
            "ownerReferences": [{ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
                "name": "my-cluster", "uid": object["metadata"]["uid"], "controller": true }] },
        "data": { "AZURE_CLIENT_SECRET": "b2xk" },
    }));
    world.start();
    let secret = |world: &World, name: &str| world.secret(name, "AZURE_CLIENT_SECRET");
    world.until("true", |world| secret(world, "my-cluster-aso-secret").as_deref() == Some("hunter2")).await;
    assert_eq!(world.secret("my-cluster-aso-secret", "AZURE_SUBSCRIPTION_ID").as_deref(), Some(SUBSCRIPTION));
    tokio::time::sleep(Duration::from_secs(700)).await;
    assert!(world.get("Secret", "none-aso-secret").is_none());
    // A user installs the operator.
    world.create(json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": "resourcegroups.resources.azure.com" },
        "spec": {
            "group": "resources.azure.com", "scope": "Namespaced",
            "names": { "kind": "ResourceGroup", "listKind": "ResourceGroupList", "plural": "resourcegroups",
                "singular": "resourcegroup" },
            "versions": [{ "name": "v1api20200601", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } } }],
        },
    }));
    world.until("made", |world| secret(world, "none-aso-secret").as_deref() == Some("hunter2")).await;
}

/// No log line and no event shows a secret, whatever is refused.
#[tokio::test(start_paused = true)]
async fn no_line_and_no_event_shows_a_secret() {
    let (captured, guard) = Captured::of_this_thread();
    let mut world = World::new();
    service_principal(&world);
    world.cluster("my-cluster", json!({}));
    world.template("my-cluster", "md-0", json!({}));
    world.create(json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": { "name": "my-cluster-aso-secret", "namespace": NAMESPACE, "labels": { "my-cluster": "owned" } },
    }));
    for status in [500, 403, 422] {
        world
            .kubernetes
            .inject(kubernetes_simulator::Fault::status(status).verb("create").resource("secrets").times(2));
        world
            .kubernetes
            .inject(kubernetes_simulator::Fault::status(status).verb("patch").resource("secrets").times(2));
    }
    world.start();
    world
        .until("both", |world| {
            world.get("Secret", "md-0-azure-json").is_some()
                && world.secret("my-cluster-aso-secret", "AZURE_CLIENT_SECRET").is_some()
        })
        .await;
    drop(guard);
    let text = captured.text();
    assert!(text.contains("a Secret was not written"), "the log is listened to");
    let events =
        json!(world.kubernetes.list("Event").iter().map(|it| it.value().clone()).collect::<Vec<_>>());
    assert!(events.to_string().contains("Error reconciling"));
    for secret in ["hunter2", "aHVudGVyMg"] {
        let line = text.lines().find(|line| line.contains(secret));
        assert_eq!(line, None);
        assert!(!events.to_string().contains(secret));
    }
}
