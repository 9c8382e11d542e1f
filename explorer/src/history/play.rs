//! A running history: carries out its acts, and tracks the expected results.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use azure_simulator::Fault;
use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::World;

use super::act::{Act, EXCLUDE, MISTAKES, Mistake, NodeLabel, OVERTAKEN, Shared, Trouble};
use super::cluster::{self, Cluster, Entries};
use super::marks::Marks;
use super::witness;
use crate::corpus::Expectations;
use crate::expectation::Expectation;
use crate::features::{self, Row};
use crate::rule;
use crate::stage::{InitialResource, Stage};

/// The number of public IPs that others have for frontends of their own, on each public load balancer to which they add
/// some.
pub(super) const THEIR_ADDRESSES: u64 = 4;

/// The annotation with which a Service names load balancers.
const NAMED: &str = "service.beta.kubernetes.io/azure-load-balancer-configurations";

/// A running history.
#[derive(Debug, Default)]
pub(super) struct Play {
    pub(super) expect: Expectations,
    cluster: Cluster,
    /// The list of load balancers.
    entries: Entries,
    /// The Services' features.
    rows: BTreeMap<usize, Row>,
    /// The load balancers that Services name.
    asked: BTreeMap<usize, String>,
    /// Services with the label that a load balancer selects.
    labelled: BTreeSet<usize>,
    /// Whether the namespace has the label that a load balancer selects.
    in_front: bool,
    /// Services whose pods are on chosen nodes.
    placed_pods: BTreeSet<usize>,
    /// Services that ask for something that Azure refuses.
    mistaken: BTreeSet<usize>,
    /// Services whose requests all fail.
    afflicted: BTreeSet<usize>,
    /// The faults that cause this, including those for deleted Services.
    afflictions: Vec<Fault>,
    /// Load balancers with additions by others.
    pub(super) shared_with_others: BTreeSet<ResourceId>,
    pub(super) marks: Marks,
}

/// The public IPs of others, for frontends of their own.
pub(super) fn addresses_of_others(cluster: Cluster) -> Vec<InitialResource> {
    let of_second = (cluster == Cluster::Several).then_some(Shared::Second);
    let balancers = [Shared::LoadBalancer].into_iter().chain(of_second);
    let all = balancers
        .flat_map(|shared| (0..THEIR_ADDRESSES).map(move |number| address_of_others(shared, number)));
    all.map(|name| InitialResource::public_ip(&name, "IPv4")).collect()
}

fn address_of_others(shared: Shared, number: u64) -> String {
    let of_second = if shared == Shared::Second { "second-" } else { "" };
    format!("theirs-{of_second}{number}")
}

/// The one that is closed to new Services after Services have been placed there.
fn is_second(name: &str) -> bool {
    name == "second"
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

    /// The load balancers that a Service may use; it is on those for which `at` is true.
    fn eligible(&self, service: usize, at: impl Fn(&str) -> bool) -> Vec<&'static str> {
        let asked = self.asked.get(&service).map_or("any", String::as_str);
        self.entries.eligible(asked, self.labelled.contains(&service), self.in_front, at)
    }

    /// Whether the load balancers that a Service names contradict the address that it asks for (LB-232).
    fn contradicts_its_address(&self, service: usize, row: &Row) -> bool {
        let asked = self.asked.get(&service).map_or("any", String::as_str);
        self.entries.is_list() && asked != "any" && features::is_pinned(row)
    }

    /// Whether earlier events decide whether a Service is served: a load balancer accepts no new ones, or its address
    /// is on one that it may not use any more.
    fn is_open(&self, service: usize, row: &Row) -> bool {
        self.cluster == Cluster::Several
            && (self.entries == Entries::SecondClosed || features::is_pinned(row))
            && !self.eligible(service, is_second).is_empty()
    }

    /// The expected result for a Service that does not choose its placement.
    fn expectation(&self, service: usize, row: &Row) -> Expectation {
        let mut expectation = features::expectation(row, service, &key_of(service));
        if let Expectation::Served(served) = &mut expectation {
            served.after_trouble = true;
            let nowhere = self.cluster == Cluster::Several
                && (self.contradicts_its_address(service, row)
                    || (self.eligible(service, is_second).is_empty()
                        && self.eligible(service, |_| false).is_empty()));
            if nowhere {
                return Expectation::Refused { texts: Vec::new(), by_azure: false };
            }
        }
        expectation
    }

    /// A Service may be placed elsewhere now, or nowhere.
    fn place_anew(&mut self, service: usize) {
        let Some(row) = self.rows.get(&service) else { return };
        let expectation = self.expectation(service, row);
        let kept = matches!(expectation, Expectation::Refused { .. });
        let expectation = if kept { Expectation::KeptAsItWas } else { expectation };
        if let Some(there) = self.expect.get_mut(&key_of(service)) {
            *there = expectation;
        }
    }

    /// Services that are on other load balancers than the allowed ones, or on several. From now on, Services with an
    /// open placement are expected where they are.
    pub(super) fn wrong_places(&mut self, world: &World) -> Vec<String> {
        if self.cluster != Cluster::Several {
            return Vec::new();
        }
        let mut wrong = Vec::new();
        for (service, row) in &self.rows {
            let key = key_of(*service);
            if !matches!(self.expect.get(&key), Some(Expectation::Served(_))) {
                continue;
            }
            let places = cluster::places(world, &world.service(&key));
            let eligible = self.eligible(*service, |name| places.contains(name));
            let is_right = places.len() == 1 && places.iter().all(|place| eligible.contains(&place.as_str()));
            if is_right {
                continue;
            }
            // It stays at its address (LB-235), or is new to a load balancer that accepts no new ones (LB-228).
            let stays = places.len() == 1 && features::is_pinned_where_it_arrives(row);
            let came_late = places.is_empty() && eligible.is_empty();
            if self.is_open(*service, row) && (stays || came_late) {
                self.expect.insert(key, Expectation::KeptAsItWas);
            } else {
                wrong.push(format!("{key} is on {places:?} and not on one of {eligible:?}"));
            }
        }
        wrong
    }

    /// Services that are not served in time because of others that cannot be served and whose requests still fail.
    pub(super) async fn starved(&self, stage: &Stage) -> Vec<String> {
        let refused = self.expect.values().any(|one| !matches!(one, Expectation::Served(_)));
        if self.afflictions.is_empty() && self.mistaken.is_empty() && !refused {
            return Vec::new();
        }
        for fault in &self.afflictions {
            stage.world.azure.inject(fault.clone());
        }
        let sound = self.rows.iter().filter(|(service, row)| {
            matches!(self.expect.get(&key_of(**service)), Some(Expectation::Served(_)))
                && !self.afflicted.contains(service)
                && !self.mistaken.contains(service)
                && !self.is_open(**service, row)
        });
        let sound: Vec<String> = sound.map(|(service, _)| key_of(*service)).collect();
        witness::starved(stage, &sound).await
    }

    /// The users' changes after the trouble: pods move to nodes that get traffic, and at least one node of each kind
    /// does.
    pub(super) fn calm(&mut self, world: &World) {
        // The machines of one set have names with the same prefix.
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

    /// The pods of a Service are chosen by its selector again, or it is deleted.
    fn forget_pods(&mut self, world: &World, service: usize) {
        if self.placed_pods.remove(&service) {
            let slice = format!("{}-by-hand", name_of(service));
            world.kubernetes.delete("EndpointSlice", "pairs", &slice).expect("the slice is there");
        }
    }

    /// All resources for a Service alone have its base name.
    fn afflict(&mut self, world: &World, service: usize, what: Trouble) {
        let document = world.service(&key_of(service));
        if document.is_null() || !self.rows.contains_key(&service) {
            return;
        }
        let name = format!("*{}*", rule::base_name(&document));
        let faults =
            ["PUT", "DELETE"].map(|method| Fault::new(what.action()).on_method(method).on_resource(&name));
        for fault in &faults {
            world.azure.inject(fault.clone());
        }
        self.afflictions.extend(faults);
        self.afflicted.insert(service);
    }

    fn mistake(&mut self, world: &World, service: usize, what: Mistake) {
        if let Some(row) = self.rows.get(&service) {
            // It is not requested if it has no effect.
            let counts = match what {
                Mistake::UnknownTag => features::value(row, "security-rules") == "yes",
                Mistake::AddressTaken => features::is_internal(row),
            };
            if let Some(value) = what.value(world).filter(|_| counts) {
                let annotations = json!({what.annotation(): value});
                world.change(&key_of(service), &json!({"metadata": {"annotations": annotations}}));
                self.mistaken.insert(service);
            }
        }
    }

    /// Services ask for their features again.
    pub(super) fn mend_mistakes(&mut self, stage: &Stage) {
        for service in std::mem::take(&mut self.mistaken) {
            let Some(row) = self.rows.get(&service) else { continue };
            let manifest = features::manifest(row, service, "pairs", &name_of(service));
            let text = stage.fill_in(&manifest["metadata"]["annotations"].to_string());
            let annotations: Value = serde_json::from_str(&text).expect("it is JSON");
            let keys = MISTAKES.map(Mistake::annotation);
            let was: BTreeMap<&str, &Value> = keys.map(|key| (key, &annotations[key])).into();
            stage.world.change(&key_of(service), &json!({"metadata": {"annotations": was}}));
        }
    }

    /// Changes a shared resource as another owner would, if it exists and Azure accepts the change.
    fn edit_foreign(&mut self, world: &World, shared: Shared, edit: impl FnOnce(&mut Value)) {
        let id = shared.id(world);
        if world.azure.document(&id).is_some() && world.try_edit_foreign(&id, edit) {
            self.shared_with_others.insert(id);
        }
    }

    /// Carries out an act.
    pub(super) async fn act(&mut self, stage: &mut Stage, act: &Act) {
        match act {
            Act::Apply { service, row } => self.apply(stage, *service, row).await,
            Act::Delete { service } => {
                let key = key_of(*service);
                if self.expect.remove(&key).is_some() {
                    stage.world.delete(&key);
                    self.rows.remove(service);
                    self.afflicted.remove(service);
                    self.mistaken.remove(service);
                    self.asked.remove(service);
                    self.labelled.remove(service);
                    self.forget_pods(&stage.world, *service);
                }
            }
            Act::Scale(nodes) => {
                let set = stage.world.scale_set();
                // Azure may refuse it, for example while the load balancer is in a failed state.
                let _refused = stage.world.azure.scale(&set, *nodes);
            }
            Act::Trouble { kind, method, what, times } => {
                let fault = Fault::new(what.action()).on_method(method).on_type(kind).times(*times);
                let is_write = *what == Trouble::Overtaken && method == "PUT";
                stage.world.azure.inject(if is_write { fault.named(OVERTAKEN) } else { fault });
            }
            Act::ForeignTag { shared, value } => {
                // A resource that is deleted with its last Service may take the tag along.
                if !shared.comes_and_goes() || self.shared_with_others.contains(&shared.id(&stage.world)) {
                    let tag = |document: &mut Value| document["tags"]["owner"] = value.to_string().into();
                    stage.world.try_edit_foreign(&shared.id(&stage.world), tag);
                }
            }
            Act::ForeignAddressTag(value) => self.marks.tag_addresses(&stage.world, *value),
            Act::ForeignInterfaceTag { number, value } => {
                self.marks.tag_interface(&stage.world, *number, *value);
            }
            Act::ForeignMember { number, pool } => {
                // Where pools hold addresses, interfaces are in no pools.
                if matches!(self.cluster, Cluster::OneSet | Cluster::AllMachines) {
                    let name = format!("theirs-{pool}");
                    let part = json!({"name": name, "properties": {}});
                    self.edit_foreign(&stage.world, Shared::LoadBalancer, |document| {
                        add(document, "backendAddressPools", part);
                    });
                    let pool = stage.world.load_balancer().child("backendAddressPools", &name);
                    self.marks.take_member(&stage.world, *number, &pool);
                }
            }
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
                self.edit_foreign(&stage.world, *shared, |document| {
                    add(document, "backendAddressPools", pool)
                });
            }
            Act::ForeignFrontend { shared, number } => {
                let edit = frontend_of_others(&stage.world, *shared, *number);
                self.edit_foreign(&stage.world, *shared, edit);
            }
            Act::Spoil { shared } => {
                stage.world.stop().await;
                let world = &stage.world;
                // Azure may refuse it, for example while an operation is running.
                let _refused = world
                    .azure
                    .edit(&shared.id(world), |document| take_one_of_ours(document, shared.rules()));
                stage.world.start();
            }
            Act::Kill => stage.world.restart().await,
            Act::CutOff => stage.world.change_leader().await,
            Act::Ask { service, names } if self.expect.contains_key(&key_of(*service)) => {
                let annotation = (names != "any").then_some(names);
                stage
                    .world
                    .change(&key_of(*service), &json!({"metadata": {"annotations": {NAMED: annotation}}}));
                self.asked.insert(*service, names.clone());
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
                // It is created with the first Service.
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
            Act::Afflict { service, what } => self.afflict(&stage.world, *service, *what),
            Act::Mistake { service, what } => self.mistake(&stage.world, *service, *what),
            Act::Configure(entries) if self.cluster == Cluster::Several => {
                stage.world.kill().await;
                stage.world.patch_config(&entries.config());
                stage.world.start();
                self.entries = *entries;
                for service in self.rows.keys().copied().collect::<Vec<_>>() {
                    self.place_anew(service);
                }
            }
            Act::Configure(_) => {}
            Act::Pods { service, nodes } => self.place_pods(&stage.world, *service, *nodes),
            Act::Wait(seconds) => tokio::time::sleep(Duration::from_secs(*seconds)).await,
        }
    }

    async fn apply(&mut self, stage: &Stage, number: usize, row: &Row) {
        let (name, key) = (name_of(number), key_of(number));
        let mut manifest = features::manifest(row, number, "pairs", &name);
        if let Some(names) = self.asked.get(&number).filter(|names| *names != "any") {
            manifest["metadata"]["annotations"][NAMED] = names.as_str().into();
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
            self.mistaken.remove(&number);
            if matches!(expectation, Expectation::Refused { .. }) {
                expectation = Expectation::KeptAsItWas;
            }
        } else {
            // It is being deleted; applying it now would change the object that is being deleted.
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

/// Creates a standalone machine, or deletes it with its interface. Azure may refuse either while operations are
/// running.
fn change_machine(world: &World, number: u64, comes: bool) {
    let machine = cluster::machine(number);
    if comes && world.azure.document(&world.shape.machine(&machine)).is_some() {
        // It exists already.
    } else if comes {
        let _refused = world.shape.lay_out_machine(&world.azure, &machine);
    } else if world.azure.delete(&world.shape.machine(&machine)).is_ok() {
        let _refused = world.azure.delete(&world.shape.interface(&machine));
    }
}

/// Whether the API server refuses a chosen node port because another Service has it: nothing happens then.
fn is_taken<T>(answer: &Result<T, String>) -> bool {
    answer.as_ref().is_err_and(|error| error.contains("provided port is already allocated"))
}

/// Adds a part, unless one of this name exists.
fn add(document: &mut Value, kind: &str, part: Value) {
    let Some(parts) = document["properties"][kind].as_array_mut() else { return };
    if !parts.iter().any(|there| there["name"] == part["name"]) {
        parts.push(part);
    }
}

/// Adds a foreign frontend with a rule, unless it exists.
fn frontend_of_others(world: &World, shared: Shared, number: u64) -> impl FnOnce(&mut Value) + use<> {
    let (id, name) = (shared.id(world), format!("theirs-{number}"));
    let place = if shared.is_internal() {
        json!({"subnet": {"id": world.node_subnet()}, "privateIPAllocationMethod": "Dynamic"})
    } else {
        let address = world.network("publicIPAddresses", &address_of_others(shared, number));
        json!({"publicIPAddress": {"id": address}})
    };
    let part = |kind: &str| json!({"id": format!("{id}/{kind}/{name}")});
    let rule = json!({"name": name, "properties": {
        "frontendIPConfiguration": part("frontendIPConfigurations"),
        "backendAddressPool": part("backendAddressPools"),
        "protocol": "Tcp", "frontendPort": 7000 + number, "backendPort": 7000 + number}});
    move |document| {
        add(document, "frontendIPConfigurations", json!({"name": name, "properties": place}));
        add(document, "backendAddressPools", json!({"name": name, "properties": {}}));
        add(document, "loadBalancingRules", rule);
    }
}

/// Removes the first rule that was created for a Service of the history.
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

/// The merge patch from a Service to a manifest: members that the manifest does not name are removed.
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
