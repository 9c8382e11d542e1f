//! A history under way: carries out its acts, and remembers what has to come of them.

use std::collections::BTreeMap;
use std::time::Duration;

use azure_simulator::Fault;
use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::World;
use testkit::types::PUBLIC_IPS;

use super::act::{Act, Shared};
use crate::corpus::Expectations;
use crate::expectation::Expectation;
use crate::features::{self, Row};
use crate::stage::Stage;

/// How many public IPs others have for frontends of their own.
pub(super) const THEIR_ADDRESSES: u64 = 4;

/// A history under way.
#[derive(Debug, Default)]
pub(super) struct Play {
    pub(super) expect: Expectations,
    /// The tag that somebody gave to a public IP, by its address: one that is made anew has another.
    tags: BTreeMap<String, String>,
}

impl Play {
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
                let key = format!("pairs/s{service:03}");
                if self.expect.remove(&key).is_some() {
                    stage.world.delete(&key);
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
            Act::Wait(seconds) => tokio::time::sleep(Duration::from_secs(*seconds)).await,
        }
    }

    async fn apply(&mut self, stage: &Stage, number: usize, row: &Row) {
        let name = format!("s{number:03}");
        let key = format!("pairs/{name}");
        let manifest = features::manifest(row, number, "pairs", &name);
        let before = stage.world.service(&key);
        let mut expectation = features::expectation(row, number, &key);
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
            if matches!(expectation, Expectation::Refused { .. }) {
                expectation = Expectation::KeptAsItWas;
            }
        } else {
            // It is being deleted; whoever applies it now changes what goes.
            return;
        }
        if let Expectation::Served(served) = &mut expectation {
            served.after_trouble = true;
        }
        self.expect.insert(key, expectation);
    }
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
