//! Objects of clusters that Azure manages, at a simulated API server that calls the manager's webhooks.

use capz_api::azure_managed_machine_pool::MODE_LABEL;
use capz_api::crd::{Kind, definition};
use serde_json::{Value, json};

use super::place::{core, infrastructure, refusal};
use super::simulated::{World, world};

const POOL: &str = "AzureManagedMachinePool";

fn pool(name: &str, cluster: &str, mode: &str) -> Value {
    let mut pool = infrastructure(POOL, name, json!({ "mode": mode, "sku": "Standard_D2s_v3" }));
    pool["metadata"]["labels"] = json!({ "cluster.x-k8s.io/cluster-name": cluster });
    pool
}

/// CAPZ-194: the other System pools are counted by their labels, in the namespace, at every deletion and every change
/// of a mode.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_system_pool_of_a_cluster_is_not_deleted() {
    let World { place, manager: _manager, folder: _folder, _stop } = world(&[]).await;
    let held = |mut object: Value| {
        object["metadata"]["finalizers"] = json!(["example.com/held"]);
        object
    };
    let cluster = held(core("Cluster", "c-1", json!({})));
    place.create(cluster.clone()).await.unwrap();
    for object in [pool("one", "c-1", "System"), pool("two", "c-1", "User"), pool("else", "c-2", "System")] {
        place.create(object).await.unwrap();
    }
    let last = |name: &str| format!("{name} is the last System pool of its cluster");
    let (code, message, _) = refusal(place.delete(&pool("one", "c-1", "")).await);
    assert!(code == 403 && message.contains(&last("one")), "{code}: {message}");
    let mode = |name: &str, mode: &str| infrastructure(POOL, name, json!({ "mode": mode }));
    let (code, message, causes) = refusal(place.merge(mode("one", "User")).await);
    assert_eq!((code, causes), (422, vec!["spec.mode".to_owned()]), "{message}");

    // With a second one the first may go; a pool that is being deleted does not count.
    let changed = place.merge(mode("two", "System")).await.unwrap();
    assert_eq!(changed["metadata"]["labels"][MODE_LABEL], "System");
    place.create(held(pool("three", "c-1", "System"))).await.unwrap();
    place.delete(&pool("three", "c-1", "")).await.unwrap();
    place.delete(&pool("one", "c-1", "")).await.unwrap();
    let (code, message, _) = refusal(place.delete(&pool("two", "c-1", "")).await);
    assert!(code == 403 && message.contains(&last("two")), "{code}: {message}");
    // It is being deleted already.
    place.delete(&pool("three", "c-1", "")).await.unwrap();

    // A cluster that does not exist, or that goes, needs none.
    place.delete(&pool("else", "c-2", "")).await.unwrap();
    place.delete(&cluster).await.unwrap();
    place.delete(&pool("two", "c-1", "")).await.unwrap();

    place.create(core("Cluster", "c-3", json!({}))).await.unwrap();
    let mut moved = pool("moved", "c-3", "System");
    place.create(moved.clone()).await.unwrap();
    refusal(place.delete(&moved).await);
    moved["metadata"]["annotations"] = json!({ "clusterctl.cluster.x-k8s.io/delete-for-move": "" });
    place.merge(moved.clone()).await.unwrap();
    place.delete(&moved).await.unwrap();
}

/// CAPZ-197: the API server refuses effects that Kubernetes does not have; and sysctls outside of their ranges.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taints_and_sysctls_are_those_of_the_schema() {
    let World { place, manager: _manager, folder: _folder, _stop } = world(&[]).await;
    let with = |member: &str, value: Value| {
        let mut pool = pool("one", "c-1", "User");
        pool["spec"][member] = value;
        place.try_create(pool)
    };
    let taint = |effect: &str| json!([{ "key": "dedicated", "value": "kafka", "effect": effect }]);
    for effect in ["NoSchedule", "NoExecute", "PreferNoSchedule"] {
        with("taints", taint(effect)).await.unwrap();
    }
    let (code, message, causes) = refusal(with("taints", taint("no-schedule")).await);
    assert_eq!((code, causes), (422, vec!["spec.taints[0].effect".to_owned()]), "{message}");

    let definition = definition(Kind::named(POOL).unwrap());
    let sysctls = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/linuxOSConfig/properties/\
        sysctls/properties";
    let mut count = 0;
    for (name, schema) in definition.pointer(sysctls).unwrap().as_object().unwrap() {
        let limit = |limit: &str| schema[limit].to_string().trim_end_matches(".0").parse::<i64>();
        let (Ok(least), Ok(most)) = (limit("minimum"), limit("maximum")) else { continue };
        for (value, is_taken) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
            let said = with("linuxOSConfig", json!({ "sysctls": { name: value } })).await;
            assert_eq!(said.is_ok(), is_taken, "{name}={value}: {said:?}");
        }
        count += 1;
    }
    assert_eq!(count, 26);
}

/// CAPZ-201: with the gate closed no raw kind is created, in whichever version; with the gate open resources are stored
/// as they are, and are the same in both versions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn raw_kinds_are_created_where_the_gate_is_open() {
    let resource = json!({
        "apiVersion": "containerservice.azure.com/v1api20250801", "kind": "ManagedCluster",
        "metadata": { "name": "c-1" }, "spec": { "anything": [{ "at": { "any": "level" } }] }
    });
    let raw = |kind: &str, version: &str| {
        let mut object = infrastructure(kind, "c-1", json!({ "resources": [resource] }));
        object["apiVersion"] = json!(format!("infrastructure.cluster.x-k8s.io/{version}"));
        object
    };
    let closed = world(&["--feature-gates=ASOAPI=false"]).await;
    let open = world(&[]).await;
    for kind in ["AzureASOManagedCluster", "AzureASOManagedControlPlane", "AzureASOManagedMachinePool"] {
        for version in ["v1alpha1", "v1beta1"] {
            let (code, message, _) = refusal(closed.place.create(raw(kind, version)).await);
            assert!(code == 403 && message.contains("need the feature gate ASOAPI"), "{code}: {message}");
        }
        open.place.create(raw(kind, "v1alpha1")).await.unwrap();
        for version in ["v1alpha1", "v1beta1"] {
            let found = open.place.get(&raw(kind, version)).await.unwrap();
            assert_eq!(found["spec"], raw(kind, version)["spec"], "{found}");
        }
    }
}

/// CAPZ-167, CAPZ-168: a control plane is held against its Cluster with the write that gives it the Cluster's label, as
/// Cluster API does after both exist. Later changes do not depend on the Cluster.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_control_plane_is_held_against_its_cluster_when_it_gets_the_label() {
    let World { place, manager: _manager, folder: _folder, _stop } = world(&[]).await;
    let spec = json!({
        "location": "westeurope", "resourceGroupName": "g", "version": "v1.31.1", "identityRef": { "name": "id" },
        "dnsServiceIP": "192.168.0.10"
    });
    let control_plane = infrastructure("AzureManagedControlPlane", "c-1", spec);
    let stored = place.create(control_plane.clone()).await.unwrap();
    assert_eq!(stored["spec"]["nodeResourceGroupName"], "MC_g_c-1_westeurope");
    assert_eq!(stored["spec"]["oidcIssuerProfile"], json!({ "enabled": false }));
    let ranges = |services: Value| json!({ "clusterNetwork": { "services": { "cidrBlocks": services } } });
    for (name, services) in [
        ("many", json!(["192.168.0.0/24", "192.168.1.0/24"])),
        ("other", json!(["192.168.1.0/24"])),
        ("right", json!(["192.168.0.0/24"])),
    ] {
        place.create(core("Cluster", name, ranges(services))).await.unwrap();
    }
    let labelled = |cluster: &str| {
        let mut object = infrastructure("AzureManagedControlPlane", "c-1", json!({}));
        object["metadata"]["labels"] = json!({ "cluster.x-k8s.io/cluster-name": cluster });
        object
    };
    for (cluster, path, words) in [
        ("many", "Cluster.spec.clusterNetwork.services.cidrBlocks", "one range"),
        ("other", "spec.dnsServiceIP", "192.168.1.0/24"),
        ("absent", "Cluster.spec.clusterNetwork", "there is no Cluster default/absent"),
    ] {
        let (code, message, causes) = refusal(place.merge(labelled(cluster)).await);
        assert_eq!((code, causes), (422, vec![path.to_owned()]), "{message}");
        assert!(message.contains(words), "{message}");
    }
    place.merge(labelled("right")).await.unwrap();
    place.delete(&core("Cluster", "right", json!({}))).await.unwrap();
    let tags = infrastructure("AzureManagedControlPlane", "c-1", json!({ "additionalTags": { "a": "b" } }));
    let changed = place.merge(tags).await.unwrap();
    assert_eq!(changed["spec"]["additionalTags"]["a"], "b");
    let moved = infrastructure("AzureManagedControlPlane", "c-1", json!({ "location": "eastus" }));
    let (code, _, causes) = refusal(place.merge(moved).await);
    assert_eq!((code, causes), (422, vec!["spec.location".to_owned()]));
}
