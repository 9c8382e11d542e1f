//! A running life: carries out its acts, maintains Nodes as kubelets would, and records violations.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use azure_simulator::{Consistency, PowerState};
use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::types::{INSTANCES, MACHINES};
use testkit::{World, WorldBuilder};
use tokio::time::{Instant, sleep};

use super::act::Act;
use super::judge::Truth;
use super::layout::{FLEXIBLE, OTHER_GROUP, UNIFORM, standalone};

const SHUTDOWN: &str = "node.cloudprovider.kubernetes.io/shutdown";
const UNINITIALIZED: &str = "node.cloudprovider.kubernetes.io/uninitialized";

/// The maximum age of a list that proves, together with a read of the machine itself, that a machine is gone: ten
/// seconds, and a little.
const LIST_AGE: Duration = Duration::from_secs(11);

/// The Node of a machine outside of Azure.
const UNMANAGED: &str = "on-premises";

/// The time until no former answer can say any more that an initial machine is gone.
const SETTLING: Duration = Duration::from_secs(110);

/// The time after the last trouble within which everything is correct: the longest backoff, and a poll.
const MAX_RECOVERY: Duration = Duration::from_secs(400);

/// How long the node of a deleted machine may stay: a minute, and the list that shows it may be 10 s old.
const MAX_FAREWELL: Duration = Duration::from_secs(71);

/// The maximum number of reads of the machine itself while its node is dead.
const MAX_READS: usize = 2;

/// A machine as Azure holds it.
#[derive(Debug, Clone)]
struct Machine {
    id: ResourceId,
    name: String,
    address: String,
    is_running: bool,
}

pub(super) struct Play {
    world: World,
    truth: Truth,
    /// Nodes with silent kubelets.
    silent: BTreeSet<String>,
    /// Uniform scale sets before their deletion.
    sets: BTreeMap<ResourceId, Value>,
    /// The last observed Nodes, by UID.
    nodes: BTreeMap<String, Value>,
    /// The version of Kubernetes at that time.
    version: u64,
    complaints: Vec<String>,
}

impl Play {
    pub(super) async fn begin(builder: WorldBuilder) -> Self {
        let mut world = builder.build();
        // This history plays the kubelets, so that a long time passes in few steps.
        world.end_stand_ins();
        world.start();
        let unmanaged = json!({"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": UNMANAGED, "labels": {"kubernetes.azure.com/managed": "false"}}});
        world.kubernetes.create(unmanaged).expect("the Node is sound");
        let mut play = Self {
            world,
            truth: Truth::default(),
            silent: BTreeSet::from([UNMANAGED.to_owned()]),
            sets: BTreeMap::new(),
            nodes: BTreeMap::new(),
            version: 0,
            complaints: Vec::new(),
        };
        play.machines_changed();
        play.wait(SETTLING).await;
        play
    }

    pub(super) fn complaints(self) -> Vec<String> {
        self.complaints
    }

    pub(super) async fn act(&mut self, act: &Act) {
        match act {
            Act::Power { machine, state } => {
                if let Some(machine) = self.machine(*machine) {
                    let state = match state.as_str() {
                        "running" => PowerState::Running,
                        "stopped" => PowerState::Stopped,
                        _ => PowerState::Deallocated,
                    };
                    self.world.azure.set_power_state(&machine.id, state).expect("the machine is there");
                }
            }
            Act::Remove { machine } => {
                if let Some(machine) = self.machine(*machine) {
                    self.world.azure.delete(&machine.id).expect("the machine is there");
                }
            }
            Act::Return => self.bring_back(),
            Act::Scale { set, machines } => {
                let names = UNIFORM.iter().chain([&FLEXIBLE]).map(|(name, _)| name);
                let set = names.cycle().nth(*set).map(|name| self.world.shape.scale_set(name));
                // It may have been deleted.
                let _ = set.map(|set| self.world.azure.scale(&set, *machines));
            }
            Act::RemoveSet { set } => {
                let id = self.world.shape.scale_set(UNIFORM[set % UNIFORM.len()].0);
                if let Some(document) = self.world.azure.document(&id) {
                    self.world.azure.delete(&id).expect("uniform sets go with their machines");
                    self.sets.insert(id, document);
                }
            }
            Act::Silence { machine } => drop(self.machine(*machine).map(|one| self.silent.insert(one.name))),
            Act::Speak { machine } => drop(self.machine(*machine).map(|one| self.silent.remove(&one.name))),
            Act::DeleteNode { machine } => {
                if let Some(machine) = self.machine(*machine) {
                    self.look();
                    // It may have no Node yet.
                    let _ = self.world.kubernetes.delete("Node", "", &machine.name);
                    self.see_nodes();
                }
            }
            Act::Trouble { kind, times } => {
                kind.faults(*times).into_iter().for_each(|fault| self.world.azure.inject(fault));
            }
            Act::Lie { about, times } => {
                // Both lies at once could not be detected. A list that lied stays in use for some time.
                self.world.azure.clear_faults();
                self.wait(LIST_AGE).await;
                about.faults(*times).into_iter().for_each(|fault| self.world.azure.inject(fault));
            }
            Act::Lag { seconds } => self.world.azure.set_consistency(Consistency {
                lists_ms: seconds * 1000,
                share: 0.5,
                ..Consistency::default()
            }),
            Act::Calm => self.calm(),
            Act::Kill => self.world.restart().await,
            Act::CutOff => self.world.change_leader().await,
            Act::Wait { seconds } => self.wait(Duration::from_secs(*seconds)).await,
        }
        self.machines_changed();
    }

    /// Ends the trouble, judges the result, and deletes a last machine.
    pub(super) async fn end(&mut self, seed: u64) {
        self.calm();
        self.silent.retain(|name| name == UNMANAGED);
        self.machines_changed();
        self.wait(MAX_RECOVERY).await;
        self.judge_rest();
        if !self.complaints.is_empty() {
            return;
        }
        let machines = self.machines();
        let Some(last) = machines.get(usize::try_from(seed).unwrap_or_default() % machines.len().max(1))
        else {
            return;
        };
        self.world.azure.clear_journal();
        self.world.azure.delete(&last.id).expect("the machine is there");
        self.machines_changed();
        let begin = Instant::now();
        while self.world.node_names().contains(&last.name) {
            if begin.elapsed() > MAX_FAREWELL {
                self.complain(format!("{} is still there, although its machine is gone", last.name));
                return;
            }
            sleep(Duration::from_secs(1)).await;
        }
        // Other readers have read by then.
        self.wait(MAX_FAREWELL).await;
        let id = last.id.to_string();
        let journal = self.world.azure.journal();
        let reads =
            journal.entries.iter().filter(|one| one.method == "GET" && one.path.eq_ignore_ascii_case(&id));
        let reads = reads.count();
        if reads > MAX_READS {
            self.complain(format!("{} was read {reads} times when it was gone", last.name));
        }
    }

    fn calm(&mut self) {
        self.world.azure.clear_faults();
        self.world.azure.set_consistency(Consistency::default());
    }

    /// Every machine is an initialised node, and every node is a machine. A machine that does not run has no kubelet
    /// that would register it again.
    fn judge_rest(&mut self) {
        let machines = self.machines();
        let expected: BTreeSet<&str> =
            machines.iter().map(|machine| machine.name.as_str()).chain([UNMANAGED]).collect();
        let names = self.world.node_names();
        let there: BTreeSet<&str> = names.iter().map(String::as_str).collect();
        for name in there.difference(&expected) {
            self.complain(format!(
                "{name} has no machine and is still a node: {:#?}",
                self.world.events(name)
            ));
        }
        for machine in machines.iter().filter(|one| one.is_running && !there.contains(one.name.as_str())) {
            self.complain(format!("{} is no node", machine.name));
        }
        for machine in machines.iter().filter(|machine| there.contains(machine.name.as_str())) {
            let name = &machine.name;
            let taints = self.world.taints(name);
            let has = |key: &str| taints.iter().any(|taint| taint == key);
            if has(UNINITIALIZED) {
                self.complain(format!("{name} is not initialised: {:#?}", self.world.events(name)));
            }
            if has(SHUTDOWN) == machine.is_running {
                self.complain(format!("{name} runs: {}; its taints: {taints:?}", machine.is_running));
            }
            let id = self.world.node(name)["spec"]["providerID"].as_str().unwrap_or_default().to_owned();
            if !id.eq_ignore_ascii_case(&format!("azure://{}", machine.id)) {
                self.complain(format!("{name} is {id:?} and not {}", machine.id));
            }
        }
    }

    fn complain(&mut self, complaint: String) {
        self.complaints.push(complaint);
    }

    /// Creates deleted machines outside of uniform sets, and deleted sets, again under their old names.
    fn bring_back(&mut self) {
        for machine in standalone() {
            if self.world.azure.document(&self.world.shape.machine(&machine)).is_none() {
                self.world.shape.lay_out_machine(&self.world.azure, &machine).expect("it was there before");
            }
        }
        for (id, document) in std::mem::take(&mut self.sets) {
            self.world.azure.put(&id, document).expect("it was there before");
        }
    }

    /// The machines, sorted by name.
    fn machines(&self) -> Vec<Machine> {
        let documents =
            [INSTANCES, MACHINES].into_iter().flat_map(|kind| self.world.azure.documents_of_type(kind));
        let mut machines: Vec<Machine> = documents.filter_map(|document| self.read(&document)).collect();
        machines.sort_by(|a, b| a.name.cmp(&b.name));
        machines
    }

    fn read(&self, document: &Value) -> Option<Machine> {
        let interface = document.pointer("/properties/networkProfile/networkInterfaces/0/id")?.as_str()?;
        let interface = self.world.azure.document(&interface.parse().ok()?)?;
        let address =
            interface.pointer("/properties/ipConfigurations/0/properties/privateIPAddress")?.as_str()?;
        Some(Machine {
            id: document["id"].as_str()?.parse().ok()?,
            name: document.pointer("/properties/osProfile/computerName")?.as_str()?.to_ascii_lowercase(),
            address: address.to_owned(),
            is_running: simulated_cluster::running_host(document).is_some(),
        })
    }

    fn machine(&self, number: usize) -> Option<Machine> {
        let machines = self.machines();
        (!machines.is_empty()).then(|| machines[number % machines.len()].clone())
    }

    /// Kubelets register and report the current state of their machines.
    fn machines_changed(&mut self) {
        self.look();
        let machines = self.machines();
        let by_id = machines.iter().map(|one| (one.id.to_string().to_lowercase(), one.is_running)).collect();
        self.truth.update(&by_id);
        let running: BTreeMap<&str, &Machine> =
            machines.iter().filter(|one| one.is_running).map(|one| (one.name.as_str(), one)).collect();
        for machine in running.values() {
            if self.world.node(&machine.name).is_null() {
                self.world.kubernetes.create(node(machine)).expect("the Node is sound");
            }
        }
        for name in self.world.node_names() {
            let is_heard = running.contains_key(name.as_str()) && !self.silent.contains(&name);
            let status = if is_heard { "True" } else { "Unknown" };
            let is_told = self.world.node(&name)["status"]["conditions"][0]["status"] == status;
            if !is_told {
                let patch = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
                self.world.kubernetes.merge_status("Node", "", &name, &patch).expect("the Node is there");
            }
        }
        self.look();
    }

    async fn wait(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            sleep(Duration::from_secs(1).min(end - Instant::now())).await;
            self.look();
        }
    }

    /// Checks the changes of Nodes since the last call.
    fn look(&mut self) {
        let version = self.world.kubernetes.resource_version();
        if std::mem::replace(&mut self.version, version) == version {
            return;
        }
        let before = std::mem::take(&mut self.nodes);
        self.see_nodes();
        for (uid, node) in &before {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            if !self.nodes.contains_key(uid) && (name == UNMANAGED || self.truth.lives(&self.id_of(node))) {
                let events = self.world.events(name);
                self.complaints.push(format!("{name} was deleted while its machine lives: {events:#?}"));
            }
        }
        for (uid, node) in &self.nodes {
            let is_new = before.get(uid).is_some_and(|before| !has_taint(before, SHUTDOWN));
            if is_new && has_taint(node, SHUTDOWN) && self.truth.runs(&self.id_of(node)) {
                let name = &node["metadata"]["name"];
                self.complaints.push(format!("{name} was tainted as shut down while its machine runs"));
            }
        }
    }

    fn see_nodes(&mut self) {
        let nodes = self.world.kubernetes.list("Node");
        let uid = |node: &Value| node["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        self.nodes = nodes.iter().map(|node| (uid(node.value()), node.value().clone())).collect();
        self.version = self.world.kubernetes.resource_version();
    }

    /// The machine of a Node: by its provider ID, or by name as long as it has none.
    fn id_of(&self, node: &Value) -> String {
        let said = node["spec"]["providerID"].as_str().and_then(|id| id.strip_prefix("azure://"));
        let said = said.map(str::to_lowercase);
        said.unwrap_or_else(|| {
            let name = node["metadata"]["name"].as_str().unwrap_or_default();
            let machine = self.machines().into_iter().find(|machine| machine.name == name);
            machine.map(|machine| machine.id.to_string().to_lowercase()).unwrap_or_default()
        })
    }
}

fn has_taint(node: &Value, key: &str) -> bool {
    node["spec"]["taints"].as_array().is_some_and(|taints| taints.iter().any(|taint| taint["key"] == key))
}

/// A machine's Node as its kubelet registers it.
fn node(machine: &Machine) -> Value {
    let mut labels = json!({"kubernetes.io/hostname": machine.name});
    // Machines in other groups need a label.
    if machine.id.group_name().is_some_and(|group| group.eq_ignore_ascii_case(OTHER_GROUP)) {
        labels["kubernetes.azure.com/resource-group"] = json!(OTHER_GROUP);
    }
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": machine.name, "labels": labels},
        "spec": {"taints": [{"key": UNINITIALIZED, "value": "true", "effect": "NoSchedule"}]},
        "status": {
            "addresses": [{"type": "InternalIP", "address": machine.address}, {"type": "Hostname", "address": machine.name}],
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    })
}
