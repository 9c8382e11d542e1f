//! Clusters with control planes: creation, changes and deletion.

use crate::world::{World, cluster, condition, machine_template};
use serde_json::{Value, json};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_comes_up_machine_by_machine() {
    let world = World::start(1).await;
    world.apply(&cluster("c", 3)).await;
    world
        .until("an initialised control plane", |world| {
            world.get("Cluster", "c")["status"]["initialization"]["controlPlaneInitialized"] == true
        })
        .await;
    // The second machine is created only once the API answers.
    assert!(world.list("Machine").len() <= 2);
    world
        .until("three machines", |world| {
            world.get("KubeadmControlPlane", "c-control-plane")["status"]["readyReplicas"] == 3
        })
        .await;
    world
        .until("an available cluster", |world| {
            condition(&world.get("Cluster", "c"), "Available")["status"] == "True"
        })
        .await;

    let made = world.get("Cluster", "c");
    assert_eq!(made["spec"]["controlPlaneEndpoint"], json!({"host": "api.example", "port": 6443}));
    assert_eq!(made["status"]["phase"], "Provisioned");
    assert_eq!(made["status"]["failureDomains"][0], json!({"name": "1", "controlPlane": true}));
    assert_eq!(made["metadata"]["finalizers"], json!(["cluster.cluster.x-k8s.io"]));
    let infrastructure = world.get("AzureCluster", "c");
    let owner = &infrastructure["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&json!("Cluster"), &made["metadata"]["uid"]));
    assert_eq!(infrastructure["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "c");

    let machines = world.list("Machine");
    let mut domains: Vec<&str> = machines.iter().map(|one| text(&one["spec"]["failureDomain"])).collect();
    domains.sort_unstable();
    assert_eq!(domains, ["1", "2", "3"]);
    let mut inits = 0;
    for machine in &machines {
        let name = text(&machine["metadata"]["name"]);
        assert_eq!(machine["status"]["phase"], "Running");
        assert_eq!(machine["status"]["nodeRef"]["name"], name);
        assert_eq!(machine["metadata"]["labels"]["cluster.x-k8s.io/control-plane"], "");
        assert_eq!(condition(machine, "UpToDate")["status"], "True");
        for (kind, reference) in [
            ("AzureMachine", &machine["spec"]["infrastructureRef"]),
            ("KubeadmConfig", &machine["spec"]["bootstrap"]["configRef"]),
        ] {
            assert_eq!(text(&reference["name"]), name);
            let object = world.get(kind, name);
            let owners = object["metadata"]["ownerReferences"].as_array().unwrap();
            assert_eq!(owners.len(), 1, "{owners:?}");
            assert_eq!(
                (&owners[0]["uid"], &owners[0]["controller"]),
                (&machine["metadata"]["uid"], &json!(true))
            );
        }
        let cloned = &world.get("AzureMachine", name)["metadata"]["annotations"];
        assert_eq!(cloned["cluster.x-k8s.io/cloned-from-name"], "c-control-plane");
        assert_eq!(
            cloned["cluster.x-k8s.io/cloned-from-groupkind"],
            "AzureMachineTemplate.infrastructure.cluster.x-k8s.io"
        );
        let data = world.bootstrap_data(name);
        assert!(data.starts_with("## template: jinja\n#cloud-config\n"));
        let read: Value = serde_saphyr::from_str(&data).unwrap();
        let files = read["write_files"].as_array().unwrap();
        let file = |path: &str| files.iter().find(|one| one["path"] == path).map(|one| text(&one["content"]));
        assert_eq!(file("/etc/kubernetes/azure.json"), Some("{\n  \"cloud\": \"AzurePublicCloud\"\n}\n"));
        assert!(file("/etc/kubernetes/pki/ca.key").unwrap().contains("PRIVATE KEY"));
        if let Some(config) = file("/run/kubeadm/kubeadm.yaml") {
            inits += 1;
            assert!(config.contains("controlPlaneEndpoint: api.example:6443"), "{config}");
            assert!(config.contains("podSubnet: 192.168.0.0/16"), "{config}");
            assert!(config.contains("kubeadm.k8s.io/v1beta4"), "{config}");
        } else {
            let config: Value =
                serde_saphyr::from_str(file("/run/kubeadm/kubeadm-join-config.yaml").unwrap()).unwrap();
            let discovery = &config["discovery"]["bootstrapToken"];
            assert_eq!(discovery["apiServerEndpoint"], "api.example:6443");
            assert!(text(&discovery["caCertHashes"][0]).starts_with("sha256:"));
            assert_eq!(config["controlPlane"], json!({}));
        }
    }
    assert_eq!(inits, 1);
    let secret = world.get("Secret", "c-kubeconfig");
    assert_eq!(secret["type"], "cluster.x-k8s.io/secret");
    let nodes = world.workload.list("Node");
    assert_eq!(nodes[0]["metadata"]["annotations"]["cluster.x-k8s.io/owner-kind"], "KubeadmControlPlane");
}

#[tokio::test(start_paused = true)]
async fn a_settled_cluster_is_left_alone() {
    let world = World::start(2).await;
    world.apply(&cluster("c", 1)).await;
    world
        .until("a machine", |world| condition(&world.get("Cluster", "c"), "Available")["status"] == "True")
        .await;
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    let before = world.management.resource_version();
    tokio::time::sleep(std::time::Duration::from_secs(600)).await;
    assert_eq!(world.management.resource_version(), before);
}

#[tokio::test(start_paused = true)]
async fn a_new_version_rolls_through_the_control_plane() {
    let world = World::start(3).await;
    world.apply(&cluster("c", 3)).await;
    let ready =
        |world: &World| world.get("KubeadmControlPlane", "c-control-plane")["status"]["readyReplicas"] == 3;
    world.until("three machines", ready).await;
    let old: Vec<String> = names(&world);
    world.apply(&[machine_template("c-larger")]).await;
    world
        .merge(
        "KubeadmControlPlane",
        "c-control-plane",
        json!({"spec": {"version": "v1.34.0", "machineTemplate": {"spec": {"infrastructureRef": {"name": "c-larger"}}}}}),
    )
    .await;
    let mut most = 0;
    world
        .until("new machines", |world| {
            most = most.max(world.list("Machine").len());
            assert!(world.workload.list("Node").len() >= 3);
            let control_plane = world.get("KubeadmControlPlane", "c-control-plane");
            ready(world)
                && control_plane["status"]["observedGeneration"] == control_plane["metadata"]["generation"]
                && control_plane["status"]["replicas"] == 3
                && control_plane["status"]["upToDateReplicas"] == 3
        })
        .await;
    assert_eq!(most, 4);
    assert_eq!(world.get("KubeadmControlPlane", "c-control-plane")["status"]["version"], "v1.34.0");
    let new = names(&world);
    assert!(new.iter().all(|name| !old.contains(name)));
    let mut domains: Vec<Value> =
        world.list("Machine").iter().map(|one| one["spec"]["failureDomain"].clone()).collect();
    domains.sort_by_key(ToString::to_string);
    assert_eq!(domains, ["1", "2", "3"]);
    // The nodes of deleted machines are deleted.
    let mut nodes: Vec<String> =
        world.workload.list("Node").iter().map(|node| node.name().to_owned()).collect();
    nodes.sort();
    assert_eq!(nodes, new);
}

fn names(world: &World) -> Vec<String> {
    let mut names: Vec<String> =
        world.list("Machine").iter().map(|one| text(&one["metadata"]["name"]).to_owned()).collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn a_deleted_cluster_leaves_nothing() {
    let world = World::start(4).await;
    world.apply(&cluster("c", 3)).await;
    world
        .until("three machines", |world| {
            world.get("KubeadmControlPlane", "c-control-plane")["status"]["readyReplicas"] == 3
        })
        .await;
    world.management.delete("Cluster", "default", "c").unwrap();
    let mut seen = Vec::new();
    world
        .until("an end", |world| {
            let reason = text(&condition(&world.get("Cluster", "c"), "Deleting")["reason"]).to_owned();
            if reason.starts_with("Waiting") && seen.last() != Some(&reason) {
                seen.push(reason);
            }
            // The infrastructure is deleted after the machines.
            assert!(world.list("Machine").is_empty() || !world.list("AzureCluster").is_empty());
            world.list("Cluster").is_empty()
        })
        .await;
    assert_eq!(seen, ["WaitingForControlPlaneDeletion", "WaitingForInfrastructureDeletion"]);
    for kind in [
        "Machine",
        "AzureMachine",
        "AzureCluster",
        "KubeadmConfig",
        "KubeadmControlPlane",
        "AzureMachineTemplate",
    ] {
        assert_eq!(world.list(kind), [Value::Null; 0], "{kind}");
    }
    let left: Vec<Value> = world.list("Secret").iter().map(|one| one["metadata"]["name"].clone()).collect();
    assert_eq!(left, ["c-control-plane-azure-json"]);
}
