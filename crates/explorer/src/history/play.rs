//! A history under way: carries out its acts, and remembers what has to come of them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use azure_simulator::Fault;
use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::World;
use testkit::types::{LOAD_BALANCERS, MACHINES, PUBLIC_IPS};

use super::act::{Act, EXCLUDE, NodeLabel, Shared};
use super::cluster::{self, Cluster};
use crate::corpus::Expectations;
use crate::expectation::Expectation;
use crate::features::{self, Row};
use crate::stage::Stage;

/// How many public IPs others have for frontends of their own.
pub(super) const THEIR_ADDRESSES: u64 = 4;

/// The annotation with which a Service names load balancers.
const NAMED: &str = "service.beta.kubernetes.io/azure-load-balancer-configurations";

/// A history under way.
#[derive(Debug, Default)]
pub(super) struct Play {
    pub(super) expect: Expectations,
    cluster: Cluster,
    /// The Services' features.
    rows: BTreeMap<usize, Row>,
    /// The load balancers that Services name.
    asked: BTreeMap<usize, &'static str>,
    /// Services with the label that a load balancer selects.
    labelled: BTreeSet<usize>,
    /// Whether the namespace has the label that a load balancer selects.
    in_front: bool,
    /// Services whose pods are on chosen nodes.
    placed_pods: BTreeSet<usize>,
    /// Load balancers to which others added something.
    shared_with_others: BTreeSet<ResourceId>,
    /// The tag that somebody gave to a public IP, by its address: one that is made anew has another.
    tags: BTreeMap<String, String>,
}

fn name_of(service: usize) -> String {
    format!("s{service:03}")
}

fn key_of(service: usize) -> String {
    format!("pairs/s{service:03}")
}

impl Play {
    pub(super) fn of(cluster: Cluster) -> Self {
        Self { cluster, ..Self::default() }
    }

    fn eligible(&self, service: usize) -> Vec<&'static str> {
        let asked = self.asked.get(&service).copied().unwrap_or("any");
        cluster::eligible(asked, self.labelled.contains(&service), self.in_front)
    }

    /// What must come of a Service that has no say in its place.
    fn expectation(&self, service: usize, row: &Row) -> Expectation {
        let mut expectation = features::expectation(row, service, &key_of(service));
        if let Expectation::Served(served) = &mut expectation {
            served.after_trouble = true;
            if self.cluster == Cluster::Several && self.eligible(service).is_empty() {
                return Expectation::Refused { texts: Vec::new(), by_azure: false };
            }
        }
        expectation
    }

    /// A Service may be elsewhere now, or nowhere.
    fn place_anew(&mut self, service: usize) {
        let Some(row) = self.rows.get(&service) else { return };
        let expectation = self.expectation(service, row);
        let kept = matches!(expectation, Expectation::Refused { .. });
        let expectation = if kept { Expectation::KeptAsItWas } else { expectation };
        if let Some(there) = self.expect.get_mut(&key_of(service)) {
            *there = expectation;
        }
    }

    /// Services that are on other load balancers than those that they may have, or on several.
    pub(super) fn wrong_places(&self, world: &World) -> Vec<String> {
        if self.cluster != Cluster::Several {
            return Vec::new();
        }
        let wrong = self.rows.keys().filter_map(|service| {
            let key = key_of(*service);
            if !matches!(self.expect.get(&key), Some(Expectation::Served(_))) {
                return None;
            }
            let (places, eligible) = (cluster::places(world, &world.service(&key)), self.eligible(*service));
            let is_right = places.len() == 1 && places.iter().all(|place| eligible.contains(&place.as_str()));
            (!is_right).then(|| format!("{key} is on {places:?} and not on one of {eligible:?}"))
        });
        wrong.collect()
    }

    /// Load balancers that only Services could need who are gone. Two of the stage's own are still there.
    pub(super) fn left_over(&self, world: &World) -> Vec<String> {
        let stays = [world.load_balancer(), world.internal_load_balancer()];
        let ids = world.azure.documents_of_type(LOAD_BALANCERS).into_iter();
        let ids = ids.filter_map(|document| document["id"].as_str()?.parse::<ResourceId>().ok());
        let left = ids.filter(|id| !stays.contains(id) && !self.shared_with_others.contains(id));
        left.map(|id| format!("load balancer {} is left", id.name())).collect()
    }

    /// What people do once the trouble is over: pods go where nodes take traffic, and some node of each kind does.
    pub(super) fn calm(&mut self, world: &World) {
        // The machines of one set have names that begin alike.
        let kind = |name: &str| name.chars().take(5).collect::<String>();
        let serving: BTreeSet<String> = world.serving_nodes().iter().map(|name| kind(name)).collect();
        for name in world.node_names() {
            if !serving.contains(&kind(&name)) && !world.node(&name)["metadata"]["labels"][EXCLUDE].is_null()
            {
                label_node(world, &name, NodeLabel::Included);
            }
        }
        let serving = world.serving_nodes();
        for service in self.placed_pods.clone() {
            let slice =
                world.kubernetes.get("EndpointSlice", "pairs", &format!("{}-by-hand", name_of(service)));
            let slice = slice.map(|slice| slice.value().clone()).unwrap_or_default();
            let endpoints = slice["endpoints"].as_array().cloned().unwrap_or_default();
            let on =
                |endpoint: &Value| endpoint["nodeName"].as_str().is_some_and(|node| serving.contains(node));
            if !endpoints.iter().any(on) {
                self.place_pods(world, service, 1);
            }
        }
    }

    fn place_pods(&mut self, world: &World, service: usize, count: usize) {
        let key = key_of(service);
        if !self.expect.contains_key(&key) {
            return;
        }
        let serving: Vec<String> = world.serving_nodes().into_iter().collect();
        let nodes: Vec<String> =
            serving.iter().cycle().skip(service).take(count.min(serving.len())).cloned().collect();
        if self.placed_pods.insert(service) {
            world.confine_pods(&key, &nodes);
            return;
        }
        let endpoint = |(number, node): (usize, &String)| {
            json!({"addresses": [format!("10.244.0.{}", number + 1)],
            "nodeName": node, "conditions": {"ready": true}})
        };
        let endpoints: Vec<Value> = nodes.iter().enumerate().map(endpoint).collect();
        let slice = format!("{}-by-hand", name_of(service));
        let patch = json!({"endpoints": endpoints});
        world.kubernetes.merge("EndpointSlice", "pairs", &slice, &patch).expect("the slice is there");
    }

    /// The pods of a Service are chosen by its selector again, or it is gone.
    fn forget_pods(&mut self, world: &World, service: usize) {
        if self.placed_pods.remove(&service) {
            let slice = format!("{}-by-hand", name_of(service));
            world.kubernetes.delete("EndpointSlice", "pairs", &slice).expect("the slice is there");
        }
    }

    /// Tags of others on public IPs that did not stay.
    pub(super) fn lost_tags(&self, world: &World) -> Vec<String> {
        let documents = world.azure.documents_of_type(PUBLIC_IPS);
        let lost = documents.iter().filter_map(|document| {
            let wanted = self.tags.get(document["properties"]["ipAddress"].as_str()?)?;
            let found = &document["tags"]["owner"];
            (found != wanted).then(|| format!("public IP {} lost a tag of others", document["name"]))
        });
        lost.collect()
    }

    fn tag_addresses(&mut self, world: &World, value: u64) {
        for document in world.azure.documents_of_type(PUBLIC_IPS) {
            let address = document["properties"]["ipAddress"].as_str();
            let id = document["id"].as_str().and_then(|id| id.parse::<ResourceId>().ok());
            let is_made = !document["tags"]["k8s-azure-service"].is_null();
            let (Some(address), Some(id), true) = (address, id, is_made) else { continue };
            let tagged =
                world.azure.edit(&id, |document| document["tags"]["owner"] = value.to_string().into());
            // Azure may refuse it: while an operation runs, for example.
            if tagged.is_ok() {
                self.tags.insert(address.to_owned(), value.to_string());
            }
        }
    }

    /// Does what an act says.
    pub(super) async fn act(&mut self, stage: &mut Stage, act: &Act) {
        match act {
            Act::Apply { service, row } => self.apply(stage, *service, row).await,
            Act::Delete { service } => {
                let key = key_of(*service);
                if self.expect.remove(&key).is_some() {
                    stage.world.delete(&key);
                    self.rows.remove(service);
                    self.asked.remove(service);
                    self.labelled.remove(service);
                    self.forget_pods(&stage.world, *service);
                }
            }
            Act::Scale(nodes) => {
                let set = stage.world.scale_set();
                // Azure may refuse it: while the load balancer is in a failed state, for example.
                let _refused = stage.world.azure.scale(&set, *nodes);
            }
            Act::Trouble { kind, method, what, times } => {
                let fault = Fault::new(what.action()).on_method(method).on_type(kind).times(*times);
                stage.world.azure.inject(fault);
            }
            Act::ForeignTag { shared, value } => {
                let id = shared.id(&stage.world);
                stage
                    .world
                    .edit_foreign(&id, |document| document["tags"]["owner"] = value.to_string().into());
            }
            Act::ForeignAddressTag(value) => self.tag_addresses(&stage.world, *value),
            Act::ForeignPart { shared: Shared::SecurityGroup, number } => {
                let rule = json!({"name": format!("theirs-{number}"), "properties": {
                    "priority": 200 + number, "access": "Allow", "direction": "Inbound", "protocol": "Icmp",
                    "sourceAddressPrefix": "192.0.2.0/24", "sourcePortRange": "*",
                    "destinationAddressPrefix": "*", "destinationPortRange": "*"}});
                let id = stage.world.security_group();
                stage.world.edit_foreign(&id, |document| add(document, "securityRules", rule));
            }
            Act::ForeignPart { shared, number } => {
                let pool = json!({"name": format!("theirs-{number}"), "properties": {}});
                let id = shared.id(&stage.world);
                stage.world.edit_foreign(&id, |document| add(document, "backendAddressPools", pool));
                self.shared_with_others.insert(id);
            }
            Act::ForeignFrontend { internal, number } => add_frontend(&stage.world, *internal, *number),
            Act::Spoil { shared } => {
                stage.world.stop().await;
                let world = &stage.world;
                // Azure may refuse it: while an operation runs, for example.
                let _refused = world
                    .azure
                    .edit(&shared.id(world), |document| take_one_of_ours(document, shared.rules()));
                stage.world.start();
            }
            Act::Kill => stage.world.restart().await,
            Act::CutOff => stage.world.change_leader().await,
            Act::Ask { service, names } if self.expect.contains_key(&key_of(*service)) => {
                let annotation = (*names != "any").then_some(names);
                stage
                    .world
                    .change(&key_of(*service), &json!({"metadata": {"annotations": {NAMED: annotation}}}));
                self.asked.insert(*service, names);
                self.place_anew(*service);
            }
            Act::Label { service, on } if self.expect.contains_key(&key_of(*service)) => {
                let team = on.then_some("a");
                stage.world.change(&key_of(*service), &json!({"metadata": {"labels": {"team": team}}}));
                if *on {
                    self.labelled.insert(*service);
                } else {
                    self.labelled.remove(service);
                }
                self.place_anew(*service);
            }
            Act::Ask { .. } | Act::Label { .. } => {}
            Act::LabelNamespace(on) => {
                let patch = json!({"metadata": {"labels": {"tier": on.then_some("front")}}});
                // It comes with the first Service.
                if stage.world.kubernetes.merge("Namespace", "", "pairs", &patch).is_ok() {
                    self.in_front = *on;
                    for service in self.rows.keys().copied().collect::<Vec<_>>() {
                        self.place_anew(service);
                    }
                }
            }
            Act::Node { number, label } => {
                let names = stage.world.node_names();
                if let Some(name) = names.get(number % names.len().max(1)) {
                    label_node(&stage.world, name, *label);
                }
            }
            Act::Machine { number, comes } => change_machine(&stage.world, *number, *comes),
            Act::Pods { service, nodes } => self.place_pods(&stage.world, *service, *nodes),
            Act::Wait(seconds) => tokio::time::sleep(Duration::from_secs(*seconds)).await,
        }
    }

    async fn apply(&mut self, stage: &Stage, number: usize, row: &Row) {
        let (name, key) = (name_of(number), key_of(number));
        let mut manifest = features::manifest(row, number, "pairs", &name);
        if let Some(names) = self.asked.get(&number).filter(|names| **names != "any") {
            manifest["metadata"]["annotations"][NAMED] = (*names).into();
        }
        let before = stage.world.service(&key);
        let mut expectation = self.expectation(number, row);
        if before.is_null() {
            let applied = stage.apply(std::slice::from_ref(&manifest)).await;
            if is_taken(&applied) {
                return;
            }
            applied.expect("the API takes the manifest");
        } else if self.expect.contains_key(&key) {
            let text = stage.fill_in(&replacement(&before, &manifest).to_string());
            let patch = serde_json::from_str(&text).expect("it is JSON");
            let changed = stage.world.kubernetes.merge("Service", "pairs", &name, &patch);
            let changed = changed.map_err(|error| format!("{error:?}"));
            if is_taken(&changed) {
                return;
            }
            changed.expect("the API takes the change");
            self.forget_pods(&stage.world, number);
            if matches!(expectation, Expectation::Refused { .. }) {
                expectation = Expectation::KeptAsItWas;
            }
        } else {
            // It is being deleted; whoever applies it now changes what goes.
            return;
        }
        self.rows.insert(number, row.clone());
        self.expect.insert(key, expectation);
    }
}

fn label_node(world: &World, name: &str, label: NodeLabel) {
    let (key, value) = label.label();
    let patch = json!({"metadata": {"labels": {key: value}}});
    world.kubernetes.merge("Node", "", name, &patch).expect("the node is there");
}

/// Builds a machine of its own, or takes it away with its interface. Azure may refuse either while operations run.
fn change_machine(world: &World, number: u64, comes: bool) {
    let machine = cluster::machine(number);
    if comes {
        let _refused = world.shape.lay_out_machine(&world.azure, &machine);
    } else if world.azure.delete(&world.shape.machine(&machine)).is_ok() {
        let _refused = world.azure.delete(&world.shape.interface(&machine));
    }
}

/// What is left to people: deletes the nodes of virtual machines that are gone, of whose machines the lifecycle
/// controller knows nothing. Nodes of uniform sets have to go without them. Tells whether there were any.
pub(super) fn delete_nodes_without_machine(world: &World) -> bool {
    let is_without = |name: &String| {
        let id = world.node(name)["spec"]["providerID"]
            .as_str()
            .and_then(|id| id.strip_prefix("azure://")?.parse().ok());
        id.is_some_and(|id: ResourceId| {
            id.resource_type().eq_ignore_ascii_case(MACHINES) && world.azure.document(&id).is_none()
        })
    };
    let gone: Vec<String> = world.node_names().into_iter().filter(is_without).collect();
    for name in &gone {
        world.kubernetes.delete("Node", "", name).expect("the node is there");
    }
    !gone.is_empty()
}

/// Whether the API refuses a chosen node port, because it has given it to another Service: nothing happens then.
fn is_taken<T>(answer: &Result<T, String>) -> bool {
    answer.as_ref().is_err_and(|error| error.contains("provided port is already allocated"))
}

/// Adds a part, if none of this name is there.
fn add(document: &mut Value, kind: &str, part: Value) {
    let Some(parts) = document["properties"][kind].as_array_mut() else { return };
    if !parts.iter().any(|there| there["name"] == part["name"]) {
        parts.push(part);
    }
}

/// Adds a frontend of others with a rule, if it is not there.
fn add_frontend(world: &World, internal: bool, number: u64) {
    let shared = if internal { Shared::InternalLoadBalancer } else { Shared::LoadBalancer };
    let (id, name) = (shared.id(world), format!("theirs-{number}"));
    let place = if internal {
        json!({"subnet": {"id": world.node_subnet()}, "privateIPAllocationMethod": "Dynamic"})
    } else {
        json!({"publicIPAddress": {"id": world.network("publicIPAddresses", &name)}})
    };
    let part = |kind: &str| json!({"id": format!("{id}/{kind}/{name}")});
    let rule = json!({"name": name, "properties": {
        "frontendIPConfiguration": part("frontendIPConfigurations"),
        "backendAddressPool": part("backendAddressPools"),
        "protocol": "Tcp", "frontendPort": 7000 + number, "backendPort": 7000 + number}});
    world.edit_foreign(&id, |document| {
        add(document, "frontendIPConfigurations", json!({"name": name, "properties": place}));
        add(document, "backendAddressPools", json!({"name": name, "properties": {}}));
        add(document, "loadBalancingRules", rule);
    });
}

/// Takes the first rule away that was made for a Service of the history.
fn take_one_of_ours(document: &mut Value, kind: &str) {
    let Some(parts) = document["properties"][kind].as_array_mut() else { return };
    let is_ours = |part: &Value| {
        let name = part["name"].as_str().unwrap_or_default();
        name.starts_with("k8s-azure-lb_allow") || name.starts_with('a')
    };
    if let Some(at) = parts.iter().position(is_ours) {
        parts.remove(at);
    }
}

/// The merge patch that makes a Service what a manifest says: what the manifest does not name goes.
pub(super) fn replacement(before: &Value, manifest: &Value) -> Value {
    let mut annotations = manifest["metadata"]["annotations"].clone();
    for key in before["metadata"]["annotations"].as_object().into_iter().flatten().map(|(key, _)| key) {
        if annotations[key].is_null() {
            annotations[key] = Value::Null;
        }
    }
    let mut spec = manifest["spec"].clone();
    let usual = [
        ("externalTrafficPolicy", json!("Cluster")),
        ("sessionAffinity", json!("None")),
        ("allocateLoadBalancerNodePorts", json!(true)),
    ];
    for (member, value) in usual {
        if spec[member].is_null() {
            spec[member] = value;
        }
    }
    for member in ["loadBalancerSourceRanges", "loadBalancerIP"] {
        if spec[member].is_null() {
            spec[member] = Value::Null;
        }
    }
    json!({"metadata": {"annotations": annotations}, "spec": spec})
}
