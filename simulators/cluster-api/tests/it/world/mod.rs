//! A management cluster with a simulated infrastructure provider, and the resulting workload cluster.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, dead_code)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use cluster_api_stand_in::{ClusterApi, ConversionWebhook, Workloads, conversion_router, install};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;
use kubernetes_simulator::{Kubernetes, Options, WebhookHost};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub const DEFINITIONS: [&str; 6] = [
    include_str!("../../../../../deploy/capz/crd/azureclusters.yaml"),
    include_str!("../../../../../deploy/capz/crd/azuremachines.yaml"),
    include_str!("../../../../../deploy/capz/crd/azuremachinetemplates.yaml"),
    include_str!("../../../../../deploy/capz/crd/azuremachinepools.yaml"),
    include_str!("../../../../../deploy/capz/crd/azuremachinepoolmachines.yaml"),
    include_str!("../../../../../deploy/capz/crd/azureclusteridentities.yaml"),
];
const FINALIZER: &str = "played.example/infrastructure";

/// The behaviour of the simulated machines.
#[derive(Debug, Default)]
pub struct Plan {
    /// How long a machine takes to start.
    pub boot: Duration,
    /// Machines by name, with the start of their creation.
    begun: BTreeMap<String, jiff::Timestamp>,
}

#[derive(Clone)]
pub struct World {
    pub management: Kubernetes,
    pub workload: Kubernetes,
    pub plan: Arc<Mutex<Plan>>,
    pub stop: CancellationToken,
    /// Stops only the controllers.
    pub controllers: Arc<Mutex<CancellationToken>>,
}

struct Way(World);

impl Workloads for Way {
    fn client<'a>(
        &'a self,
        _: &'a str,
        _: &'a str,
        endpoint: &'a str,
        kubeconfig: &'a str,
    ) -> BoxFuture<'a, Option<Client>> {
        async move {
            assert_eq!(endpoint, "api.example:6443");
            assert!(kubeconfig.contains("https://api.example:6443"), "{kubeconfig}");
            // The cluster does not answer until its first machine has started.
            self.0.workload.get("ConfigMap", "kube-system", "kubeadm-config")?;
            Some(Client::new(self.0.workload.router(), "default"))
        }
        .boxed()
    }
}

impl World {
    pub async fn start(seed: u64) -> World {
        let management = Kubernetes::new(Options { seed, ..Options::default() });
        let workload = Kubernetes::new(Options { seed: seed + 1, ..Options::default() });
        for definition in DEFINITIONS {
            let definition: Value = serde_saphyr::from_str(definition).unwrap();
            management.create(definition).unwrap();
        }
        management.webhook_host("cluster-api.example", WebhookHost::InProcess(conversion_router()));
        let client = Client::new(management.router(), "default");
        let authority = management.authority().unwrap().certificate_pem().to_owned();
        let webhook = ConversionWebhook { url: "https://cluster-api.example/convert".to_owned(), authority };
        install(&client, &webhook).await.unwrap();
        let stop = CancellationToken::new();
        let plan = Arc::new(Mutex::new(Plan { boot: Duration::from_secs(60), ..Plan::default() }));
        let controllers = Arc::new(Mutex::new(stop.child_token()));
        let world = World { management, workload, plan, stop, controllers };
        world.start_controllers(seed);
        tokio::spawn(world.stop.clone().run_until_cancelled_owned(world.clone().play()));
        world
    }

    fn start_controllers(&self, seed: u64) {
        let client = Client::new(self.management.router(), "default");
        let (clock, stop) = (self.management.clock(), self.controllers.lock().clone());
        ClusterApi::start(client, Arc::new(Way(self.clone())), clock, seed, stop);
    }

    /// Stops the controllers at any point, and starts new ones without state.
    pub fn restart_controllers(&self, seed: u64) {
        let before = std::mem::replace(&mut *self.controllers.lock(), self.stop.child_token());
        before.cancel();
        self.start_controllers(seed);
    }

    /// Simulates the infrastructure provider, and the machines.
    async fn play(self) {
        loop {
            for kind in ["AzureCluster", "AzureMachine", "AzureMachinePool", "AzureMachinePoolMachine"] {
                for object in self.management.list(kind) {
                    self.play_one(kind, &object.value().clone());
                }
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    fn play_one(&self, kind: &str, object: &Value) {
        let name = object["metadata"]["name"].as_str().unwrap();
        let merge = |patch: Value| self.management.merge(kind, "default", name, &patch).unwrap();
        let merge_status =
            |patch: Value| self.management.merge_status(kind, "default", name, &patch).unwrap();
        let owned = object["metadata"]["ownerReferences"].is_array();
        if object["metadata"]["deletionTimestamp"].is_string() {
            self.plan.lock().begun.remove(name);
            merge(json!({"metadata": {"finalizers": []}}));
            return;
        }
        if !owned {
            return;
        }
        if object["metadata"]["finalizers"].is_null() {
            merge(json!({"metadata": {"finalizers": [FINALIZER]}}));
        }
        if kind == "AzureCluster" {
            if object["status"]["ready"] != true {
                merge(json!({"spec": {"controlPlaneEndpoint": {"host": "api.example", "port": 6443}}}));
                merge_status(json!({"status": {"ready": true, "failureDomains": {
                    "1": {"controlPlane": true}, "2": {"controlPlane": true}, "3": {"controlPlane": true}}}}));
            }
            return;
        }
        match kind {
            "AzureMachinePool" => return self.play_pool(name, object),
            "AzureMachinePoolMachine" => return,
            _ => {}
        }
        let owner = &object["metadata"]["ownerReferences"][0];
        if owner["kind"] != "Machine" || object["status"]["ready"] == true {
            return;
        }
        let machine = self.get("Machine", owner["name"].as_str().unwrap());
        let Some(secret) = machine["spec"]["bootstrap"]["dataSecretName"].as_str() else { return };
        let (now, boot) = (self.management.now(), self.plan.lock().boot);
        let begun = *self.plan.lock().begun.entry(name.to_owned()).or_insert(now);
        if now < begun + boot {
            return;
        }
        let id = format!("azure:///machines/{name}");
        let data = self.bootstrap_data(secret);
        let mut labels = json!({});
        if data.contains("kubeadm init") {
            self.workload
                .create(json!({"apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"namespace": "kube-system", "name": "kubeadm-config"}}))
                .unwrap();
            labels["node-role.kubernetes.io/control-plane"] = "".into();
        } else {
            assert!(data.contains("kubeadm join"), "{data}");
            assert!(self.knows_token(&data), "{data}");
        }
        self.workload
            .create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
                "spec": {"providerID": id},
                "status": {"conditions": [{"type": "Ready", "status": "True"}]}}))
            .unwrap();
        merge(json!({"spec": {"providerID": id}}));
        merge_status(
            json!({"status": {"ready": true, "addresses": [{"type": "InternalIP", "address": "10.0.0.4"}]}}),
        );
    }

    /// The machines of a pool start at once.
    fn play_pool(&self, name: &str, object: &Value) {
        let pool =
            self.get("MachinePool", object["metadata"]["ownerReferences"][0]["name"].as_str().unwrap());
        if !pool["spec"]["template"]["spec"]["bootstrap"]["dataSecretName"].is_string() {
            return;
        }
        let merge_status = |status: Value| {
            self.management
                .merge_status("AzureMachinePool", "default", name, &json!({ "status": status }))
                .unwrap()
        };
        if object["status"]["infrastructureMachineKind"].is_null() {
            merge_status(json!({"infrastructureMachineKind": "AzureMachinePoolMachine"}));
        }
        let (wanted, labels) = (pool["spec"]["replicas"].as_u64().unwrap(), &pool["metadata"]["labels"]);
        let machines = self.list("AzureMachinePoolMachine");
        for number in 0.. {
            if self.list("AzureMachinePoolMachine").len() as u64 >= wanted {
                break;
            }
            let instance = format!("{name}-{number}");
            if machines.iter().any(|one| one["metadata"]["name"] == instance.as_str()) {
                continue;
            }
            let id = format!("azure:///pools/{name}/{number}");
            self.management
                .create(json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                    "kind": "AzureMachinePoolMachine", "spec": {"providerID": id, "instanceID": number.to_string()},
                    "metadata": {"namespace": "default", "name": instance, "finalizers": [FINALIZER], "labels": {
                        "cluster.x-k8s.io/cluster-name": labels["cluster.x-k8s.io/cluster-name"],
                        "cluster.x-k8s.io/pool-name": pool["metadata"]["name"]},
                        "ownerReferences": [{"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                            "kind": "AzureMachinePool", "name": name, "uid": object["metadata"]["uid"]}]}}))
                .unwrap();
            self.management
                .merge_status(
                    "AzureMachinePoolMachine",
                    "default",
                    &instance,
                    &json!({"status": {"ready": true}}),
                )
                .unwrap();
            if self.workload.get("Node", "", &instance).is_none() {
                self.workload
                    .create(json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": instance},
                        "spec": {"providerID": id}, "status": {"conditions": [{"type": "Ready", "status": "True"}],
                            "nodeInfo": {"kubeletVersion": "v1.33.0"}}}))
                    .unwrap();
            }
        }
        let ids: Vec<Value> = self
            .list("AzureMachinePoolMachine")
            .iter()
            .map(|one| one["spec"]["providerID"].clone())
            .collect();
        if object["spec"]["providerIDList"] != Value::from(ids.clone()) {
            merge_status(json!({"ready": true, "replicas": ids.len()}));
            let list = json!({"spec": {"providerIDList": ids}});
            self.management.merge("AzureMachinePool", "default", name, &list).unwrap();
        }
    }

    fn knows_token(&self, data: &str) -> bool {
        self.workload.list_in("Secret", "kube-system").iter().any(|secret| {
            let text = |key: &str| {
                let data = secret["data"][key].as_str().unwrap_or_default();
                String::from_utf8(STANDARD.decode(data).unwrap()).unwrap()
            };
            data.contains(&format!("{}.{}", text("token-id"), text("token-secret")))
        })
    }

    pub fn bootstrap_data(&self, secret: &str) -> String {
        let secret = self.get("Secret", secret);
        String::from_utf8(STANDARD.decode(secret["data"]["value"].as_str().unwrap()).unwrap()).unwrap()
    }

    /// An object in the namespace `default`, as it is stored.
    pub fn get(&self, kind: &str, name: &str) -> Value {
        let found = self.management.get(kind, "default", name);
        found.map(|object| object.value().clone()).unwrap_or_default()
    }

    pub fn list(&self, kind: &str) -> Vec<Value> {
        self.management.list(kind).iter().map(|object| object.value().clone()).collect()
    }

    /// Applies objects as a user, in their own version.
    pub async fn apply(&self, objects: &[Value]) {
        let client = Client::new(self.management.router(), "default");
        for object in objects {
            let object: kube::api::DynamicObject = serde_json::from_value(object.clone()).unwrap();
            let types = object.types.clone().unwrap();
            let kind = kube::core::GroupVersionKind::try_from(&types).unwrap();
            let api: kube::Api<kube::api::DynamicObject> = kube::Api::namespaced_with(
                client.clone(),
                "default",
                &kube::core::ApiResource::from_gvk(&kind),
            );
            api.create(&kube::api::PostParams::default(), &object).await.unwrap();
        }
    }

    /// Changes an object as a user of `v1beta2`.
    pub async fn merge(&self, kind: &str, name: &str, patch: Value) {
        let group =
            if kind == "KubeadmControlPlane" { "controlplane.cluster.x-k8s.io" } else { "cluster.x-k8s.io" };
        let kind = kube::core::GroupVersionKind::gvk(group, "v1beta2", kind);
        let client = Client::new(self.management.router(), "default");
        let api: kube::Api<kube::api::DynamicObject> =
            kube::Api::namespaced_with(client, "default", &kube::core::ApiResource::from_gvk(&kind));
        let patch = kube::api::Patch::Merge(&patch);
        api.patch(name, &kube::api::PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until a condition holds, or fails with a list of all machines.
    pub async fn until(&self, what: &str, mut holds: impl FnMut(&World) -> bool) {
        for _ in 0..1800 {
            if holds(self) {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let show = |kind: &str| format!("{:#}", Value::from(self.list(kind)));
        panic!(
            "{what} does not come:\n{}\n{}\n{}",
            show("Cluster"),
            show("KubeadmControlPlane"),
            show("Machine")
        );
    }
}

pub fn condition<'a>(object: &'a Value, kind: &str) -> &'a Value {
    const NONE: &Value = &Value::Null;
    let all = object["status"]["conditions"].as_array();
    all.into_iter().flatten().find(|one| one["type"] == kind).unwrap_or(NONE)
}

/// A cluster with a control plane, as written by a user of `v1beta1`.
pub fn cluster(name: &str, control_planes: u64) -> Vec<Value> {
    let template = format!("{name}-control-plane");
    let infrastructure = |kind: &str, name: &str| json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "name": name});
    vec![
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": {"name": name},
            "spec": {"clusterNetwork": {"pods": {"cidrBlocks": ["192.168.0.0/16"]}},
                "infrastructureRef": infrastructure("AzureCluster", name),
                "controlPlaneRef": {"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1",
                    "kind": "KubeadmControlPlane", "name": template}}}),
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
            "metadata": {"name": name}, "spec": {"location": "westeurope", "resourceGroup": name,
                "subscriptionID": "s", "identityRef": {"kind": "AzureClusterIdentity", "name": "i"}, "networkSpec": {"vnet": {"name": "v"}}}}),
        json!({"apiVersion": "controlplane.cluster.x-k8s.io/v1beta1", "kind": "KubeadmControlPlane",
            "metadata": {"name": template},
            "spec": {"replicas": control_planes, "version": "v1.33.0",
                "machineTemplate": {"infrastructureRef": infrastructure("AzureMachineTemplate", &template)},
                "kubeadmConfigSpec": {
                    "clusterConfiguration": {"apiServer": {"extraArgs": {"cloud-provider": "external"}}},
                    "files": [{"path": "/etc/kubernetes/azure.json", "owner": "root:root", "permissions": "0644",
                        "contentFrom": {"secret": {"name": format!("{template}-azure-json"), "key": "azure.json"}}}],
                    "initConfiguration": {"nodeRegistration": {"name": "{{ ds.meta_data[\"local_hostname\"] }}"}},
                    "joinConfiguration": {"nodeRegistration": {"name": "{{ ds.meta_data[\"local_hostname\"] }}"}}}}}),
        machine_template(&template),
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("{template}-azure-json")},
            "data": {"azure.json": STANDARD.encode("{\n  \"cloud\": \"AzurePublicCloud\"\n}\n")}}),
    ]
}

/// Workers of a cluster: a MachineDeployment.
pub fn workers(cluster: &str, replicas: u64) -> Vec<Value> {
    let name = format!("{cluster}-md-0");
    vec![
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDeployment", "metadata": {"name": name},
            "spec": {"clusterName": cluster, "replicas": replicas, "selector": {"matchLabels": null},
                "template": {"spec": {"clusterName": cluster, "version": "v1.33.0",
                    "bootstrap": {"configRef": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                        "kind": "KubeadmConfigTemplate", "name": name}},
                    "infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                        "kind": "AzureMachineTemplate", "name": name}}}}}),
        machine_template(&name),
        json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfigTemplate",
            "metadata": {"name": name}, "spec": {"template": {"spec": {"joinConfiguration": {"nodeRegistration": {
                "kubeletExtraArgs": {"cloud-provider": "external"}}}}}}}),
    ]
}

/// Workers of a cluster: a MachinePool.
pub fn pool(cluster: &str, replicas: u64) -> Vec<Value> {
    let name = format!("{cluster}-mp-0");
    vec![
        json!({"apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachinePool", "metadata": {"name": name},
            "spec": {"clusterName": cluster, "replicas": replicas,
                "template": {"spec": {"clusterName": cluster, "version": "v1.33.0",
                    "bootstrap": {"configRef": {"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1",
                        "kind": "KubeadmConfig", "name": name}},
                    "infrastructureRef": {"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                        "kind": "AzureMachinePool", "name": name}}}}}),
        json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureMachinePool",
            "metadata": {"name": name}, "spec": {"location": "westeurope", "template": {"vmSize": "Standard_D2s_v3",
                "osDisk": {"osType": "Linux"}}}}),
        json!({"apiVersion": "bootstrap.cluster.x-k8s.io/v1beta1", "kind": "KubeadmConfig", "metadata": {"name": name},
            "spec": {"joinConfiguration": {"nodeRegistration": {"name": "n"}}}}),
    ]
}

pub fn machine_template(name: &str) -> Value {
    json!({"apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureMachineTemplate",
        "metadata": {"name": name}, "spec": {"template": {"spec": {"vmSize": "Standard_D2s_v3",
            "osDisk": {"osType": "Linux", "diskSizeGB": 128}}}}})
}
