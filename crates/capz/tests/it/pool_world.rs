//! A pool in a world where the test itself plays the part of Cluster API's core that a pool needs: it creates a Machine
//! for each AzureMachinePoolMachine, finds its node, and drains the node and deletes the infrastructure of a deleted
//! Machine.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use azure_simulator::{Guest, GuestReport, GuestStart};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World};

pub const POOL: &str = "AzureMachinePool";
pub const INSTANCE: &str = "AzureMachinePoolMachine";
pub const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
const FINALIZER: &str = "machine.cluster.x-k8s.io";

/// Random numbers (xorshift64*).
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 33) % bound
    }

    /// Whether an event with this probability in percent happens.
    pub fn in_hundred(&mut self, times: u64) -> bool {
        self.below(100) < times
    }
}

/// The boot of a pool's machines: it takes some time, and fails for some.
pub struct Boots {
    pub draw: Mutex<Draw>,
    /// The percentage that fails.
    pub failing: Mutex<u64>,
    /// Those that failed.
    pub failed: Mutex<BTreeSet<String>>,
}

impl Guest for Boots {
    fn start(&self, start: GuestStart) -> BoxFuture<'static, GuestReport> {
        let mut draw = self.draw.lock();
        let (seconds, fails) = (10 + draw.below(60), draw.in_hundred(*self.failing.lock()));
        if fails {
            self.failed.lock().insert(start.machine.to_string());
        }
        async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            if fails { GuestReport::failed("the disk is broken") } else { GuestReport::default() }
        }
        .boxed()
    }
}

/// A part of Cluster API's core.
pub struct Core {
    draw: Draw,
    /// How many rounds it takes until a node is found, and until it is drained.
    waits: BTreeMap<String, u64>,
    /// Machines that were deleted.
    pub gone: BTreeSet<String>,
    /// How many other nodes must be ready when a ready one is deleted.
    pub allowed: usize,
    /// Longest waits, in rounds; zero if everything happens at once.
    slowness: u64,
}

impl Core {
    pub fn new(seed: u64, slowness: u64) -> RefCell<Self> {
        let draw = Draw::new(seed);
        let none = BTreeMap::new();
        RefCell::new(Self { draw, waits: none, gone: BTreeSet::new(), allowed: 0, slowness })
    }

    /// Whether the wait for this is over.
    fn has_come(&mut self, what: String) -> bool {
        let longest = self.slowness + 1;
        let draw = &mut self.draw;
        let wait = self.waits.entry(what).or_insert_with(|| draw.below(longest));
        *wait = wait.saturating_sub(1);
        *wait == 0
    }

    /// One round over all objects.
    pub fn look(&mut self, world: &World) {
        let is_ready =
            world.get("AzureCluster", "my-cluster").is_some_and(|it| it["status"]["ready"] == true);
        if is_ready && world.get("Cluster", "my-cluster").unwrap()["status"].is_null() {
            world.provisioned("my-cluster");
        }
        self.look_in(world, "my-cluster");
    }

    /// One round over all machines, which belong to this cluster.
    pub fn look_in(&mut self, world: &World, cluster: &str) {
        for object in world.kubernetes.list(INSTANCE) {
            let name = object["metadata"]["name"].as_str().unwrap();
            if object["metadata"]["deletionTimestamp"].is_null() && world.get("Machine", name).is_none() {
                adopt(world, cluster, object.value(), name);
            }
        }
        let machines: Vec<Value> =
            world.kubernetes.list("Machine").iter().map(|it| it.value().clone()).collect();
        for machine in &machines {
            let name = machine["metadata"]["name"].as_str().unwrap();
            if machine["metadata"]["deletionTimestamp"].is_null() {
                self.find_node(world, machine, name);
            } else {
                self.let_go(world, &machines, machine, name);
            }
        }
    }

    fn find_node(&mut self, world: &World, machine: &Value, name: &str) {
        let provisioned = world.get(INSTANCE, name).is_some_and(|it| it["status"]["ready"] == true);
        if machine["status"]["nodeRef"].is_null() && provisioned && self.has_come(format!("{name} joins")) {
            set_ready(world, name, true);
        }
    }

    fn let_go(&mut self, world: &World, machines: &[Value], machine: &Value, name: &str) {
        if self.gone.insert(name.to_owned()) && is_ready(machine) {
            let others = machines
                .iter()
                .filter(|it| it["metadata"]["deletionTimestamp"].is_null() && is_ready(it))
                .count();
            assert!(others >= self.allowed, "{name} goes, and {others} are left of {}", self.allowed);
        }
        match world.get(INSTANCE, name) {
            None => world.merge("Machine", name, json!({ "metadata": { "finalizers": null } })),
            Some(object) => {
                if self.has_come(format!("{name} is drained")) {
                    let said = json!([{ "type": "Deleting", "status": "True", "reason": "WaitingForInfrastructureDeletion" }]);
                    let status = json!({ "status": { "conditions": said } });
                    world.kubernetes.merge_status("Machine", NAMESPACE, name, &status).unwrap();
                    if object["metadata"]["deletionTimestamp"].is_null() {
                        world.delete(INSTANCE, name);
                    }
                }
            }
        }
    }
}

/// Whether the node of a Machine is ready.
pub fn is_ready(machine: &Value) -> bool {
    machine["status"]["conditions"]
        .as_array()
        .is_some_and(|all| all.iter().any(|it| it["type"] == "NodeReady" && it["status"] == "True"))
}

pub fn set_ready(world: &World, name: &str, ready: bool) {
    let status = if ready { "True" } else { "False" };
    let status = json!({ "status": { "nodeRef": { "name": name },
        "conditions": [{ "type": "NodeReady", "status": status, "reason": "NodeReady" }] } });
    world.kubernetes.merge_status("Machine", NAMESPACE, name, &status).unwrap();
}

/// Creates a Machine that owns an instance's object.
fn adopt(world: &World, cluster: &str, object: &Value, name: &str) {
    let machine = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": { "name": name, "namespace": NAMESPACE, "finalizers": [FINALIZER],
            "labels": { "cluster.x-k8s.io/cluster-name": cluster } },
        "spec": { "clusterName": cluster, "bootstrap": { "dataSecretName": "" },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": INSTANCE, "name": name } },
    }));
    let mut owners = object["metadata"]["ownerReferences"].as_array().unwrap().clone();
    owners.push(
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine", "name": name, "controller": true,
        "uid": machine["metadata"]["uid"] }),
    );
    world.merge(INSTANCE, name, json!({ "metadata": { "ownerReferences": owners } }));
}

/// A cluster with a network, its MachinePool and AzureMachinePool, as they are after admission and the core's first
/// reconcile.
pub fn ask(world: &World, replicas: u64, spec: Value) {
    world.cluster("my-cluster", json!({}));
    ask_for(world, "my-pool", replicas, spec);
}

/// A MachinePool and AzureMachinePool of this name in the same cluster.
pub fn ask_for(world: &World, name: &str, replicas: u64, spec: Value) {
    ask_in(world, "my-cluster", name, replicas, spec);
}

/// The same in this cluster.
pub fn ask_in(world: &World, cluster: &str, name: &str, replicas: u64, spec: Value) {
    let data = format!("{name}-data");
    world.put_secret(&data, &[("value", "#cloud-config")]);
    let pool = world.create(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool",
        "metadata": { "name": name, "namespace": NAMESPACE },
        "spec": { "clusterName": cluster, "replicas": replicas, "template": { "spec": {
            "clusterName": cluster, "version": "v1.33.0", "bootstrap": { "dataSecretName": data },
            "infrastructureRef": { "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": POOL, "name": name } } } },
    }));
    let mut object = json!({
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": POOL,
        "metadata": { "name": name, "namespace": NAMESPACE,
            "labels": { "cluster.x-k8s.io/cluster-name": cluster },
            "ownerReferences": [{ "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachinePool", "name": name,
                "uid": pool["metadata"]["uid"] }] },
        "spec": { "location": "eastus", "template": {
            "vmSize": "Standard_D2s_v3", "osDisk": { "osType": "Linux", "diskSizeGB": 30 } } },
    });
    object["spec"].as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
    world.admit(POOL, object);
}

/// Changes the MachinePool.
pub fn change(world: &World, patch: Value) {
    world.merge("MachinePool", "my-pool", json!({ "spec": patch }));
}

pub fn version(version: &str) -> Value {
    json!({ "template": { "spec": { "version": version } } })
}

/// Whether the pool has this many machines, all ready and as declared, and nothing is under way.
pub fn is_settled(world: &World, replicas: usize) -> bool {
    let Some(pool) = world.get(POOL, "my-pool") else { return false };
    let (objects, machines) = (world.kubernetes.list(INSTANCE), world.kubernetes.list("Machine"));
    pool["status"]["replicas"] == replicas
        && pool["spec"]["providerIDList"].as_array().map_or(0, Vec::len) == replicas
        && pool["status"]["provisioningState"] == "Succeeded"
        && pool["status"]["longRunningOperationStates"].is_null()
        && objects.len() == replicas
        && machines.len() == replicas
        && world.azure.documents_of_type(INSTANCES).len() == replicas
        && objects
            .iter()
            .all(|it| it["status"]["latestModelApplied"] == true && it["status"]["ready"] == true)
        && machines.iter().all(|it| is_ready(it.value()))
}

/// A guest on all machines of the world.
pub fn boots(world: &World, seed: u64) -> Arc<Boots> {
    let boots = Arc::new(Boots {
        draw: Mutex::new(Draw::new(seed ^ 0x5eed)),
        failing: Mutex::new(0),
        failed: Mutex::default(),
    });
    world.azure.set_guest(Arc::clone(&boots) as Arc<dyn Guest>);
    boots
}
