//! Workers: MachineDeployments, MachinePools and MachineHealthChecks.

use std::time::Duration;

use crate::world::{World, cluster, condition, machine_template, pool, workers};
use serde_json::{Value, json};

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn of_workers(world: &World) -> Vec<Value> {
    let all = world.list("Machine").into_iter();
    all.filter(|one| one["metadata"]["labels"]["cluster.x-k8s.io/control-plane"].is_null()).collect()
}

async fn start(seed: u64, replicas: u64) -> World {
    let world = World::start(seed).await;
    world.apply(&cluster("c", 1)).await;
    world.apply(&workers("c", replicas)).await;
    world
        .until("workers", |world| {
            let deployment = world.get("MachineDeployment", "c-md-0");
            deployment["status"]["availableReplicas"] == replicas
                && deployment["status"]["phase"] == "Running"
        })
        .await;
    world
}

#[tokio::test(start_paused = true)]
async fn deployments_make_machines_from_templates() {
    let world = start(1, 3).await;
    let deployment = world.get("MachineDeployment", "c-md-0");
    let selected = &deployment["spec"]["selector"]["matchLabels"];
    assert_eq!(selected["cluster.x-k8s.io/deployment-name"], "c-md-0");
    let sets = world.list("MachineSet");
    assert_eq!(sets.len(), 1);
    let set = text(&sets[0]["metadata"]["name"]);
    for machine in of_workers(&world) {
        let labels = &machine["metadata"]["labels"];
        assert_eq!(labels["cluster.x-k8s.io/set-name"], set);
        assert_eq!(labels["cluster.x-k8s.io/deployment-name"], "c-md-0");
        let name = text(&machine["metadata"]["name"]);
        assert!(name.starts_with(set), "{name}");
        let config = world.get("KubeadmConfig", name);
        assert_eq!(config["metadata"]["annotations"]["cluster.x-k8s.io/cloned-from-name"], "c-md-0");
        let data = world.bootstrap_data(name);
        assert!(data.contains("cloud-provider") && !data.contains("ca.key"), "{data}");
    }
    for kind in ["AzureMachineTemplate", "KubeadmConfigTemplate"] {
        assert_eq!(world.get(kind, "c-md-0")["metadata"]["ownerReferences"][0]["kind"], "Cluster");
    }
    world
        .until("an available cluster", |world| {
            condition(&world.get("Cluster", "c"), "Available")["status"] == "True"
        })
        .await;
    assert_eq!(world.get("Cluster", "c")["status"]["workers"]["readyReplicas"], 3);
}

#[tokio::test(start_paused = true)]
async fn a_template_that_does_not_exist_is_named_until_it_does() {
    let world = World::start(6).await;
    world.apply(&cluster("c", 1)).await;
    let (templates, rest): (Vec<Value>, Vec<Value>) =
        workers("c", 1).into_iter().partition(|one| one["kind"] == "AzureMachineTemplate");
    world.apply(&rest).await;
    world
        .until("words about the template", |world| {
            world.list("MachineSet").iter().any(|set| {
                let conditions = set["status"]["deprecated"]["v1beta1"]["conditions"].as_array();
                conditions.into_iter().flatten().any(|one| {
                    one["type"] == "MachinesCreated"
                        && one["reason"] == "InfrastructureTemplateCloningFailed"
                        && one["message"] == "AzureMachineTemplate c-md-0 does not exist"
                })
            })
        })
        .await;
    world.apply(&templates).await;
    world
        .until("a worker", |world| {
            world.get("MachineDeployment", "c-md-0")["status"]["availableReplicas"] == 1
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn rollouts_keep_to_their_limits_and_scaling_takes_who_is_asked() {
    let world = start(2, 3).await;
    world.apply(&[machine_template("c-larger")]).await;
    let before = of_workers(&world);
    world
        .merge(
            "MachineDeployment",
            "c-md-0",
            json!({"spec": {
            "rollout": {"strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}},
            "template": {"spec": {"infrastructureRef": {"name": "c-larger"}}}}}),
        )
        .await;
    let mut most = 0;
    world
        .until("new machines", |world| {
            let machines = of_workers(world);
            most = most.max(machines.len());
            let ready = machines.iter().filter(|one| condition(one, "Ready")["status"] == "True").count();
            assert!(ready >= 3, "{ready} of {}", machines.len());
            machines.len() == 3
                && machines
                    .iter()
                    .all(|one| before.iter().all(|old| old["metadata"]["uid"] != one["metadata"]["uid"]))
        })
        .await;
    assert_eq!(most, 4);
    world.until("one set", |world| world.list("MachineSet").len() == 1).await;

    // The machine with the annotation is deleted.
    let asked = text(&of_workers(&world)[1]["metadata"]["name"]).to_owned();
    let annotation = json!({"metadata": {"annotations": {"cluster.x-k8s.io/delete-machine": "yes"}}});
    world.merge("Machine", &asked, annotation).await;
    world.merge("MachineDeployment", "c-md-0", json!({"spec": {"replicas": 2}})).await;
    world.until("two machines", |world| of_workers(world).len() == 2).await;
    assert!(of_workers(&world).iter().all(|one| text(&one["metadata"]["name"]) != asked));
    assert!(world.workload.get("Node", "", &asked).is_none());
}

#[tokio::test(start_paused = true)]
async fn nodes_are_drained_before_their_machines_go() {
    let world = start(3, 1).await;
    let node = text(&of_workers(&world)[0]["status"]["nodeRef"]["name"]).to_owned();
    let pod = |name: &str| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"namespace": "default", "name": name, "labels": {"app": "web"}},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}})
    };
    world.workload.create(pod("web")).unwrap();
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"namespace": "default", "name": "web"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    world.workload.create(budget).unwrap();
    world.merge("MachineDeployment", "c-md-0", json!({"spec": {"replicas": 0}})).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    let machine = of_workers(&world).remove(0);
    assert_eq!(condition(&machine, "Deleting")["reason"], "DrainingNode", "{machine:#}");
    assert_eq!(world.workload.get("Node", "", &node).unwrap()["spec"]["unschedulable"], true);
    // The infrastructure is untouched while its node drains.
    let infrastructure = world.get("AzureMachine", text(&machine["spec"]["infrastructureRef"]["name"]));
    assert!(infrastructure["metadata"]["deletionTimestamp"].is_null());
    world.workload.delete("PodDisruptionBudget", "default", "web").unwrap();
    world
        .until("an eviction", |world| {
            world.workload.get("Pod", "default", "web").is_some_and(|pod| pod.is_terminating())
        })
        .await;
    // Deletes the pod as a kubelet does.
    let client = kube::Client::new(world.workload.router(), "default");
    let kind = kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk("", "v1", "Pod"));
    let pods: kube::Api<kube::api::DynamicObject> = kube::Api::namespaced_with(client, "default", &kind);
    pods.delete("web", &kube::api::DeleteParams::default().grace_period(0)).await.unwrap();
    world.until("no worker", |world| of_workers(world).is_empty()).await;
    assert!(world.workload.get("Node", "", &node).is_none());
}

#[tokio::test(start_paused = true)]
async fn pools_get_a_machine_for_each_instance() {
    let world = World::start(4).await;
    world.apply(&cluster("c", 1)).await;
    world.apply(&pool("c", 3)).await;
    world
        .until("a running pool", |world| world.get("MachinePool", "c-mp-0")["status"]["phase"] == "Running")
        .await;
    let made = world.get("MachinePool", "c-mp-0");
    assert_eq!(made["status"]["nodeRefs"].as_array().unwrap().len(), 3);
    assert_eq!(made["spec"]["providerIDList"].as_array().unwrap().len(), 3);
    let machines = of_workers(&world);
    assert_eq!(machines.len(), 3);
    for machine in &machines {
        assert_eq!(machine["spec"]["infrastructureRef"]["kind"], "AzureMachinePoolMachine");
        assert_eq!(machine["metadata"]["ownerReferences"][0]["kind"], "MachinePool");
        assert_eq!(machine["metadata"]["labels"]["cluster.x-k8s.io/pool-name"], "c-mp-0");
    }
    world
        .until("running machines", |world| {
            of_workers(world).iter().all(|one| one["status"]["phase"] == "Running")
        })
        .await;
    let theirs = world.get("AzureMachinePoolMachine", "c-mp-0-1");
    let kinds: Vec<&str> = theirs["metadata"]["ownerReferences"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| text(&one["kind"]))
        .collect();
    assert_eq!(kinds, ["AzureMachinePool", "Machine"]);

    // A pool's token is renewed while it may be needed, and the data changes with it.
    let data = world.bootstrap_data("c-mp-0");
    tokio::time::sleep(Duration::from_secs(900)).await;
    assert_ne!(world.bootstrap_data("c-mp-0"), data);

    // Deleting a Machine deletes its instance; the pool creates another.
    let uid = theirs["metadata"]["uid"].clone();
    let deleted: kube::Api<kube::api::DynamicObject> = kube::Api::namespaced_with(
        kube::Client::new(world.management.router(), "default"),
        "default",
        &kube::core::ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(
            "cluster.x-k8s.io",
            "v1beta1",
            "Machine",
        )),
    );
    deleted.delete("c-mp-0-1", &Default::default()).await.unwrap();
    world
        .until("another instance", |world| {
            let now = world.get("AzureMachinePoolMachine", "c-mp-0-1");
            now.is_object() && now["metadata"]["uid"] != uid && of_workers(world).len() == 3
        })
        .await;
    world.management.delete("Cluster", "default", "c").unwrap();
    world.until("an end", |world| world.list("Cluster").is_empty()).await;
    assert_eq!(world.list("AzureMachinePoolMachine"), [Value::Null; 0]);
}

#[tokio::test(start_paused = true)]
async fn machines_that_are_not_well_are_replaced() {
    let world = start(5, 2).await;
    let check = json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineHealthCheck", "metadata": {"name": "h"},
        "spec": {"clusterName": "c", "maxUnhealthy": "50%",
            "selector": {"matchLabels": {"cluster.x-k8s.io/deployment-name": "c-md-0"}},
            "unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "5m0s"}]}});
    world.apply(&[check]).await;
    let sick = text(&of_workers(&world)[0]["metadata"]["name"]).to_owned();
    let since = world.management.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let status = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown", "lastTransitionTime": since}]}});
    world.workload.merge_status("Node", "", &sick, &status).unwrap();
    tokio::time::sleep(Duration::from_secs(280)).await;
    assert_eq!(world.get("MachineHealthCheck", "h")["status"]["currentHealthy"], 2);
    world
        .until("another machine", |world| {
            of_workers(world).len() == 2
                && of_workers(world).iter().all(|one| text(&one["metadata"]["name"]) != sick)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn whoever_starts_anew_goes_on() {
    for seed in 0..2 {
        let world = World::start(seed).await;
        world.apply(&cluster("c", 3)).await;
        world.apply(&workers("c", 2)).await;
        world.apply(&pool("c", 2)).await;
        for number in 0..30 {
            tokio::time::sleep(Duration::from_millis(700 + 1_300 * (number * 7 % 11) + 37 * seed)).await;
            world.restart_controllers(100 * seed + number);
        }
        world
            .until("an available cluster", |world| {
                condition(&world.get("Cluster", "c"), "Available")["status"] == "True"
                    && world.get("KubeadmControlPlane", "c-control-plane")["status"]["readyReplicas"] == 3
            })
            .await;
        assert_eq!(world.list("Machine").len(), 7, "seed {seed}");
        assert_eq!(world.workload.list("Node").len(), 7, "seed {seed}");
    }
}
