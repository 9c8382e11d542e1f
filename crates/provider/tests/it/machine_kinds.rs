//! Machines of every kind: the machine of a node, its presence, and its description.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use arm::{ApiVersion, Class, Client, Cloud, Credential, Listing, Transport};
use azure_simulator::{Fault, FaultAction, PowerState};
use azure_types::ResourceId;
use cloud::{Existence, Instance, LogicalTime, Machines, Presence, Proof};
use futures::future::join_all;
use k8s::{Node, names};
use serde_json::{Value, json};
use simulated_cluster::{NodePool, Shape, StandaloneMachine};

use crate::world::*;

/// Uniform and flexible machines whose names have the same prefix, a standalone one, one of an availability set, and
/// one of an availability set in a resource group of its own.
fn every_kind() -> Shape {
    Shape {
        pools: vec![NodePool::new("pool", "pool", 2), NodePool::new("flexible", "pool", 2).flexible()],
        machines: vec![
            StandaloneMachine::new("pool-a"),
            StandaloneMachine::new("pool-b").in_availability_set("placed"),
            StandaloneMachine::new("pool-c").in_availability_set("placed").in_group("machines"),
        ],
        ..shape()
    }
}

fn machine_of(node: &Node) -> ResourceId {
    node.spec.provider_id.strip_prefix("azure://").unwrap().parse().unwrap()
}

fn is_instance(id: &ResourceId) -> bool {
    id.resource_type().eq_ignore_ascii_case(INSTANCES)
}

/// The nodes in Kubernetes: their names are in lower case, whatever the host names are.
fn nodes(world: &World) -> Vec<Node> {
    let nodes = world.nodes.lock();
    let named = |node: &Node| {
        let mut node = node.clone();
        node.metadata.name = node.metadata.name.map(|name| name.to_lowercase());
        node
    };
    nodes.iter().map(|node| named(node)).collect()
}

fn with(node: &Node, patch: &Value) -> Node {
    let mut value = serde_json::to_value(node).unwrap();
    merge(&mut value, patch);
    serde_json::from_value(value).unwrap()
}

fn merge(value: &mut Value, patch: &Value) {
    match (value, patch) {
        (Value::Object(members), Value::Object(changes)) => {
            for (key, change) in changes {
                merge(members.entry(key.as_str()).or_insert(Value::Null), change);
            }
        }
        (value, patch) => *value = patch.clone(),
    }
}

/// A new node of that name, as its kubelet registers it.
fn new(name: &str) -> Node {
    let taint = json!({"key": names::TAINT_UNINITIALIZED, "effect": "NoSchedule"});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"taints": [taint]}})).unwrap()
}

fn in_group(node: &Node, group: &str) -> Node {
    with(node, &json!({"metadata": {"labels": {names::LABEL_RESOURCE_GROUP: group}}}))
}

async fn describe(program: &Program, node: &Node) -> Existence<Instance> {
    program.provider.describe(node, LogicalTime::now()).await
}

async fn presence(program: &Program, node: &Node) -> Existence<Presence> {
    program.provider.presence(node, LogicalTime::now()).await
}

fn why<T: std::fmt::Debug>(answer: Existence<T>) -> String {
    match answer {
        Existence::Unknown(reason) => reason,
        other => panic!("it is known: {other:?}"),
    }
}

fn proof<T: std::fmt::Debug>(answer: Existence<T>) -> Proof {
    match answer {
        Existence::Absent(proof) => proof,
        other => panic!("it is gone: {other:?}"),
    }
}

fn addresses(instance: &Instance) -> Vec<String> {
    instance.addresses.iter().map(|one| format!("{} {}", one.kind, one.address)).collect()
}

/// The paths of all reads, without query parameters of pages.
fn reads(world: &World) -> Vec<String> {
    let journal = world.azure.journal();
    let reads = journal.entries.iter().filter(|entry| entry.method == "GET");
    reads.map(|entry| entry.path.clone()).collect()
}

/// NODE-004, NODE-009, NODE-043, NODE-063, NODE-073, NODE-079: by provider ID and by name, each node is matched to its
/// own machine, though all names have the same prefix; a machine in another group is found by the group in the node's
/// label.
#[tokio::test(start_paused = true)]
async fn node_004_node_009_node_043_node_063_node_073_node_079_every_machine_is_its_nodes() {
    let world = World::of(&every_kind());
    let program = world.start();
    let nodes = nodes(&world);
    assert_eq!(nodes.len(), 7);
    for node in nodes {
        let machine = machine_of(&node);
        let document = world.azure.document(&machine).unwrap();
        let described = describe(&program, &node).await.present().unwrap();
        assert!(described.provider_id.eq_ignore_ascii_case(&node.spec.provider_id), "{described:?}");
        assert_eq!(
            (described.instance_type.as_str(), described.region.as_str()),
            ("Standard_D2s_v5", "eastus")
        );
        let zone = document["zones"][0].as_str().map(|zone| format!("eastus-{zone}"));
        assert_eq!(described.zone, zone.unwrap_or("0".to_owned()), "a zone, or else the fault domain");
        let address = node.status.addresses[0].address.clone();
        let expected = [format!("InternalIP {address}"), format!("Hostname {}", node.name())];
        assert_eq!(addresses(&described), expected);
        assert_eq!(presence(&program, &node).await, Existence::Present(Presence { shut_down: false }));

        let mut nameless = new(node.name());
        if machine.group_name() == Some("machines") {
            let text = why(describe(&program, &nameless).await);
            assert!(
                text.contains("resource group rg") && text.contains(names::LABEL_RESOURCE_GROUP),
                "{text}"
            );
            nameless = in_group(&nameless, "machines");
        }
        assert_eq!(describe(&program, &nameless).await, Existence::Present(described));
        assert_eq!(presence(&program, &nameless).await, Existence::Present(Presence { shut_down: false }));
    }
}

/// A machine of another cluster may have a node's name, in a resource group that both share: the vmId decides which of
/// the two machines it is, or that it is neither.
#[tokio::test(start_paused = true)]
async fn a_machine_of_another_cluster_with_a_nodes_name_is_not_the_nodes() {
    let pools = vec![NodePool::new("pool", "node", 1), NodePool::new("theirs", "node", 1)];
    let world = World::of(&Shape { pools, ..shape() });
    let program = world.start();
    let vm_id = |set: &str| {
        let machine = id("virtualMachineScaleSets", set).child("virtualMachines", "0");
        world.azure.document(&machine).unwrap()["properties"]["vmId"].as_str().unwrap().to_owned()
    };
    let made = json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}});
    let mut node = with(&new("node000000"), &made);
    let text = why(describe(&program, &node).await);
    assert!(text.contains("several machines are called node000000"), "{text}");
    for set in ["pool", "theirs"] {
        node.status.system_uuid = vm_id(set).parse().ok();
        let described = describe(&program, &node).await.present().unwrap();
        assert!(described.provider_id.contains(&format!("/{set}/")), "{described:?}");
    }
    // The node's own machine is not in the list yet, or no longer.
    world.azure.delete(&id("virtualMachineScaleSets", "pool")).unwrap();
    let mut stranger = node;
    stranger.status.system_uuid = "5c00bc95-8a1d-44a5-a0b4-4d7b3e8f9a01".parse().ok();
    let text = why(describe(&program, &stranger).await);
    assert!(text.contains("systemUUID") && text.contains("/theirs/"), "{text}");
    // Minutes later its kubelet still runs: it reports another UUID.
    tokio::time::sleep(Duration::from_secs(6 * 60)).await;
    assert!(describe(&program, &stranger).await.present().is_some());
    // The machine of a silent node may have been deleted.
    let unknown = json!([{"type": "Ready", "status": "Unknown"}]);
    stranger.status.conditions = serde_json::from_value(unknown).unwrap();
    let text = why(describe(&program, &stranger).await);
    assert!(text.contains("systemUUID"), "{text}");
}

/// NODE-034.
#[tokio::test(start_paused = true)]
async fn node_034_machines_of_every_kind_are_shut_down_when_they_are() {
    let world = World::of(&every_kind());
    let program = world.start();
    for node in nodes(&world) {
        world.azure.set_power_state(&machine_of(&node), PowerState::Deallocated).unwrap();
        assert_eq!(
            presence(&program, &node).await,
            Existence::Present(Presence { shut_down: true }),
            "{}",
            node.name()
        );
        world.azure.set_power_state(&machine_of(&node), PowerState::Running).unwrap();
        assert_eq!(presence(&program, &node).await, Existence::Present(Presence { shut_down: false }));
    }
}

/// NODE-032: a node's name may lead to another machine.
#[tokio::test(start_paused = true)]
async fn node_032_a_node_without_a_provider_id_is_not_shut_down() {
    let world = World::of(&every_kind());
    let program = world.start();
    for node in nodes(&world) {
        world.azure.set_power_state(&machine_of(&node), PowerState::Deallocated).unwrap();
        let group = machine_of(&node).group_name().unwrap().to_owned();
        let nameless = in_group(&new(node.name()), &group);
        let there = presence(&program, &nameless).await;
        assert_eq!(there, Existence::Present(Presence { shut_down: false }), "{}", nameless.name());
    }
}

/// NODE-011, NODE-031: each machine is deleted in turn, and the others stay. A machine found only by name is never
/// absent.
#[tokio::test(start_paused = true)]
async fn node_011_node_031_a_machine_that_is_gone_is_gone_alone() {
    let world = World::of(&every_kind());
    let program = world.start();
    let mut nodes = nodes(&world);
    while let Some(node) = nodes.pop() {
        let id = machine_of(&node);
        world.azure.delete(&id).unwrap();
        let Proof { machine, answer, .. } = proof(presence(&program, &node).await);
        assert!(machine.eq_ignore_ascii_case(id.as_str()), "{machine}");
        let words = if is_instance(&id) { "InvalidParameter" } else { "ResourceNotFound" };
        assert!(answer.contains(words), "{answer}");
        assert!(matches!(describe(&program, &node).await, Existence::Absent(_)));
        for other in &nodes {
            let present = Existence::Present(Presence { shut_down: false });
            assert_eq!(presence(&program, other).await, present, "{} when {id} is gone", other.name());
        }
    }
}

/// A fault of requests for one machine, or for its list.
fn fault(id: &ResourceId, action: FaultAction, list: bool) -> Fault {
    let kind = if is_instance(id) { INSTANCES } else { MACHINES };
    let fault = Fault::new(action).on_method("GET").on_type(kind);
    match list {
        true => Fault { path: Some("*/virtualMachines".to_owned()), ..fault },
        false => fault.on_resource(id.name()),
    }
}

fn refusal(status: u16, code: &str) -> FaultAction {
    FaultAction::Fail { status, code: code.to_owned(), message: "no".to_owned() }
}

/// NODE-020. One wrong answer proves nothing, and a failed read says nothing.
#[tokio::test(start_paused = true)]
async fn node_020_no_single_answer_is_enough_to_take_a_machine_for_gone() {
    let world = World::of(&every_kind());
    let program = world.start();
    for node in nodes(&world) {
        let id = machine_of(&node);
        world.azure.inject(fault(&id, refusal(404, "ResourceNotFound"), false));
        let answer = presence(&program, &node).await;
        assert!(!matches!(answer, Existence::Absent(_)), "its list shows it: {answer:?}");
        world.azure.clear_faults();
        for (status, code) in
            [(403, "AuthorizationFailed"), (429, "TooManyRequests"), (500, "InternalServerError")]
        {
            for list in [true, false] {
                world.azure.inject(fault(&id, refusal(status, code), list));
            }
            let (presence, described) = (presence(&program, &node).await, describe(&program, &node).await);
            assert!(why(presence).contains(code), "{id} {code}");
            assert!(why(described).contains(code), "{id} {code}");
            world.azure.clear_faults();
        }
        assert!(matches!(presence(&program, &node).await, Existence::Present(_)));
    }
    // Even if the machine is deleted: absence requires both reads.
    for node in nodes(&world) {
        let id = machine_of(&node);
        world.azure.delete(&id).unwrap();
        for list in [true, false] {
            world.azure.inject(fault(&id, refusal(403, "AuthorizationFailed"), list));
            let text = why(presence(&program, &node).await);
            assert!(text.contains("AuthorizationFailed"), "{id}: {text}");
            world.azure.clear_faults();
        }
        proof(presence(&program, &node).await);
    }
}

/// NODE-013, NODE-015, NODE-016, NODE-017, NODE-018, NODE-019: when a machine that is not found counts as absent, by
/// the age of its node.
#[tokio::test(start_paused = true)]
async fn node_015_node_016_node_017_node_018_node_019_young_nodes_wait_for_their_machines() {
    let world = World::of(&every_kind());
    let nodes = nodes(&world);
    for node in &nodes {
        world.azure.delete(&machine_of(node)).unwrap();
    }
    let made = |node: &Node, time: &str| with(node, &json!({"metadata": {"creationTimestamp": time}}));
    let (minute, ten) = ("2025-12-31T23:59:00Z", "2025-12-31T23:50:00Z");
    for grace in [0, 300] {
        let program = world.start_configured(&json!({"nodeInstanceNotFoundGracePeriodInSeconds": grace}));
        for node in &nodes {
            let young = presence(&program, &made(node, minute)).await;
            assert_eq!(matches!(young, Existence::Absent(_)), grace == 0, "{young:?}");
            if grace > 0 {
                assert!(why(young).contains("nodeInstanceNotFoundGracePeriod"));
            }
            proof(presence(&program, &made(node, ten)).await);
            proof(presence(&program, node).await);
        }
        // NODE-015: the same if only its name could identify it. Such a node always has to be five minutes old.
        let stranger = new("stranger");
        let text = why(presence(&program, &made(&stranger, minute)).await);
        assert!(text.contains("is not initialized yet"), "{text}");
        for old in [made(&stranger, ten), stranger.clone()] {
            let Proof { machine, answer, .. } = proof(presence(&program, &old).await);
            assert!(machine.ends_with("/virtualMachines/stranger"), "{machine}");
            assert!(answer.contains("ResourceNotFound") && answer.contains("no other machine"), "{answer}");
        }
        // A kubelet that does not wait for a cloud may run anywhere.
        let foreign = with(&stranger, &json!({"spec": {"taints": []}}));
        why(presence(&program, &foreign).await);
        for node in [&stranger, &made(&stranger, ten)] {
            for list in [true, false] {
                let id =
                    "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/stranger";
                world.azure.inject(fault(&id.parse().unwrap(), refusal(403, "AuthorizationFailed"), list));
                why(presence(&program, node).await);
                world.azure.clear_faults();
            }
        }
    }
}

/// NODE-062: Azure's answer about a deleted machine is cached for requests that accept its age.
#[tokio::test(start_paused = true)]
async fn node_062_an_absence_is_asked_for_once() {
    let world = World::of(&every_kind());
    let program = world.start();
    let nodes = nodes(&world);
    join_all(nodes.iter().map(|node| presence(&program, node))).await;
    for node in &nodes {
        world.azure.delete(&machine_of(node)).unwrap();
    }
    world.azure.clear_journal();
    let newer_than = LogicalTime::now();
    for _ in 0..3 {
        let asked = nodes.iter().map(|node| program.provider.presence(node, newer_than));
        join_all(asked).await.into_iter().for_each(|answer| drop(proof(answer)));
    }
    let reads = reads(&world);
    let lists = reads.iter().filter(|path| path.to_lowercase().ends_with("/virtualmachines")).count();
    assert_eq!(
        (reads.len() - lists, lists),
        (nodes.len(), 4),
        "one each, and the lists of two sets and two groups: {reads:#?}"
    );
}

/// One list answers for all machines in it, and no node costs a request of its own; a machine outside of zones is asked
/// for its fault domain once.
#[tokio::test(start_paused = true)]
async fn lists_answer_for_all_nodes_at_once() {
    let mut shape = every_kind();
    shape.pools[0].nodes = 20;
    shape.pools[1].nodes = 20;
    let world = World::of(&shape);
    let program = world.start();
    let nodes = nodes(&world);
    assert_eq!(nodes.len(), 43);
    world.azure.clear_journal();
    for round in 0..3 {
        let newer_than = LogicalTime::now();
        let answers = join_all(nodes.iter().map(|node| program.provider.describe(node, newer_than))).await;
        assert!(answers.into_iter().all(|answer| answer.present().is_some()));
        let lists = reads(&world);
        // Instances and their interfaces; machines and interfaces of two groups.
        let expected = 6 * (round + 1);
        let single = lists.iter().filter(|path| path.contains("/virtualMachines/pool-")).count();
        assert!(single <= 2 * (round + 1), "{lists:#?}");
        assert_eq!(lists.len() - single, expected, "{lists:#?}");
    }
}

/// NODE-280: new nodes whose names no machine has share two lists, however many they are and however often they are
/// reconciled at that time.
#[tokio::test(start_paused = true)]
async fn node_280_nodes_whose_names_no_machine_bears_share_their_lists() {
    let world = World::of(&every_kind());
    let program = world.start();
    let strangers: Vec<Node> = (0..20).map(|number| new(&format!("stranger-{number}"))).collect();
    world.azure.clear_journal();
    let newer_than = LogicalTime::now();
    for _ in 0..3 {
        let answers =
            join_all(strangers.iter().map(|node| program.provider.describe(node, newer_than))).await;
        for answer in answers {
            let text = why(answer);
            assert!(text.contains("is not initialized yet"), "{text}");
        }
    }
    assert_eq!(reads(&world).len(), 2, "scale sets and virtual machines: {:#?}", reads(&world));
}

/// NODE-281: an unknown fault domain is not replaced by the first one; a node's zone is written once.
#[tokio::test(start_paused = true)]
async fn node_281_a_fault_domain_that_is_not_known_is_not_guessed() {
    let world = World::of(&every_kind());
    let program = world.start();
    let placed = nodes(&world).into_iter().find(|node| node.name() == "pool-b").unwrap();
    let id = machine_of(&placed);
    for (status, code) in [(404, "ResourceNotFound"), (500, "InternalServerError")] {
        world.azure.inject(fault(&id, refusal(status, code), false));
        let text = why(describe(&program, &new("pool-b")).await);
        assert!(text.contains(code), "{text}");
        world.azure.clear_faults();
    }
    assert_eq!(
        describe(&program, &new("pool-b")).await.present().unwrap().zone,
        "0",
        "that is its fault domain"
    );
    // Once known, it suffices for updates of the machine's addresses.
    world.azure.inject(fault(&id, refusal(404, "ResourceNotFound"), false));
    assert!(matches!(describe(&program, &placed).await, Existence::Present(_)));
}

/// The machine of a Windows node is found by the node's name, though Azure spells names in capitals.
#[tokio::test(start_paused = true)]
async fn names_compare_without_regard_to_case() {
    let shape = Shape {
        pools: vec![NodePool::new("npwin", "AKSNPWIN", 2), NodePool::new("flexwin", "AKSFLX", 1).flexible()],
        machines: vec![StandaloneMachine::new("WINBOX")],
        ..shape()
    };
    let world = World::of(&shape);
    let program = world.start();
    for node in nodes(&world) {
        let described = describe(&program, &new(node.name())).await.present().unwrap();
        assert!(described.provider_id.eq_ignore_ascii_case(&node.spec.provider_id), "{described:?}");
        let own = format!("Hostname {}", node.name());
        assert!(addresses(&described).contains(&own), "{described:?}");
    }
    let names: BTreeSet<String> = nodes(&world).iter().map(|node| node.name().to_owned()).collect();
    assert!(names.contains("aksnpwin000001") && names.contains("winbox"), "{names:?}");
}

/// NODE-240.
#[tokio::test(start_paused = true)]
async fn of_two_machines_with_one_name_neither_is_taken() {
    let world = World::of(&every_kind());
    let program = world.start();
    let flexible =
        nodes(&world).into_iter().find(|node| machine_of(node).name().starts_with("flexible_")).unwrap();
    let twin = StandaloneMachine::new(flexible.name());
    every_kind().lay_out_machine(&world.azure, &twin).unwrap();
    let text = why(describe(&program, &new(flexible.name())).await);
    let ids = [machine_of(&flexible), every_kind().machine(&twin)];
    assert!(ids.iter().all(|id| text.contains(id.as_str())), "{text}");
    assert!(matches!(describe(&program, &flexible).await, Existence::Present(_)), "its id says which it is");
}

/// NODE-061.
#[tokio::test(start_paused = true)]
async fn node_061_a_machine_that_is_being_deleted_is_gone() {
    let world = World::of(&every_kind());
    let program = world.start();
    let other = another_program(&world);
    world.azure.inject(Fault::new(FaultAction::SlowOperation { ms: 3_600_000 }).on_method("DELETE"));
    for node in nodes(&world) {
        let id = machine_of(&node);
        other.delete(&id, ApiVersion::COMPUTE, None, Class::Delete).await.unwrap();
        assert_eq!(world.azure.document(&id).unwrap()["properties"]["provisioningState"], "Deleting");
        let Proof { answer, .. } = proof(presence(&program, &node).await);
        assert_eq!(answer, "Azure is deleting it");
        let by_name = describe(&program, &new(node.name())).await;
        assert!(!matches!(by_name, Existence::Present(_)), "{by_name:?}");
    }
}

/// NODE-063, NODE-064: without standalone machines no list of virtual machines is read, but a provider ID is followed.
#[tokio::test(start_paused = true)]
async fn node_063_node_064_names_are_looked_for_where_configuration_says() {
    let world = World::of(&every_kind());
    let lists = |world: &World| {
        let reads = reads(world);
        reads.iter().filter(|path| path.ends_with("Microsoft.Compute/virtualMachines")).count()
    };
    for (flexible, expected) in [(false, 0), (true, 1)] {
        let program = world
            .start_configured(&json!({"disableAvailabilitySetNodes": true, "enableVmssFlexNodes": flexible}));
        world.azure.clear_journal();
        let found = describe(&program, &new("pool-a")).await;
        assert_eq!((matches!(found, Existence::Present(_)), lists(&world)), (flexible, expected));
        for node in nodes(&world) {
            assert!(matches!(presence(&program, &node).await, Existence::Present(_)), "{}", node.name());
        }
    }
    let program = world.start();
    let refused = refusal(403, "AuthorizationFailed");
    world.azure.inject(Fault { path: Some("*Compute/virtualMachines".to_owned()), ..Fault::new(refused) });
    let text = why(describe(&program, &new("pool-a")).await);
    assert!(text.starts_with("failed to list VMs"), "{text}");
    let instance = nodes(&world).into_iter().find(|node| is_instance(&machine_of(node))).unwrap();
    assert!(
        matches!(describe(&program, &new(instance.name())).await, Existence::Present(_)),
        "it needs no such list"
    );
}

/// NODE-065, NODE-066: only the machines of a deleted resource group are absent; an unreadable group proves nothing.
#[tokio::test(start_paused = true)]
async fn node_065_node_066_a_group_that_is_gone_takes_its_own_machines_along() {
    let world = World::of(&every_kind());
    let program = world.start();
    let (elsewhere, here): (Vec<Node>, Vec<Node>) =
        nodes(&world).into_iter().partition(|node| machine_of(node).group_name() == Some("machines"));
    world.azure.delete(&ResourceId::group(SUBSCRIPTION, "machines")).unwrap();
    for node in &elsewhere {
        let Proof { answer, .. } = proof(presence(&program, node).await);
        assert!(answer.contains("NotFound"), "{answer}");
    }
    for node in &here {
        assert!(matches!(presence(&program, node).await, Existence::Present(_)), "{}", node.name());
    }
    let refused = refusal(403, "AuthorizationFailed");
    world.azure.inject(Fault { path: Some("*/resourceGroups/rg/*".to_owned()), ..Fault::new(refused) });
    for node in &here {
        why(presence(&program, node).await);
    }
}

/// NODE-021, NODE-032, NODE-050, NODE-051: nodes that are not Azure's exist without any request; they have no zone.
#[tokio::test(start_paused = true)]
async fn node_021_node_032_node_050_node_051_nodes_of_others_are_there_without_a_question() {
    let world = World::of(&every_kind());
    let program = world.start();
    world.azure.clear_journal();
    for node in [
        json!({"metadata": {"name": "edge", "labels": {names::LABEL_MANAGED: "False"}}}),
        json!({"metadata": {"name": "edge", "labels": {names::LABEL_MANAGED: "false"}},
            "spec": {"providerID": "azure:///subscriptions/s/resourceGroups/r/providers/Microsoft.Compute/virtualMachines/x"}}),
        json!({"metadata": {"name": "edge"}, "spec": {"providerID": "invalid/id"}}),
    ] {
        let node: Node = serde_json::from_value(node).unwrap();
        assert_eq!(presence(&program, &node).await, Existence::Present(Presence { shut_down: false }));
        let described = describe(&program, &node).await.present().unwrap();
        assert_eq!((described.zone.as_str(), described.region.as_str()), ("", ""));
        assert!(described.addresses.is_empty() && described.instance_type.is_empty());
    }
    assert_eq!(world.reads(), 0);
}

/// Another program in the same Azure.
fn another_program(world: &World) -> Client {
    let cloud = Cloud::built_in(&cloud_config::PUBLIC).unwrap();
    Client::builder(cloud, Transport::in_process(world.azure.router()), Credential::fixed("token")).build()
}

/// The public address of each machine, as Azure shows it: of an instance in the list of its scale set, of every other
/// machine on its interface.
async fn public_addresses(world: &World, scale_set: &ResourceId) -> BTreeMap<ResourceId, String> {
    let mut documents = world.documents(PUBLIC_IPS);
    let listing = Listing::children(scale_set, "publicIPAddresses");
    let version = ApiVersion::SCALE_SET_NETWORK;
    documents
        .extend(another_program(world).list::<Value>(&listing, version, &[], Class::Refresh).await.unwrap());
    let owner = |document: &Value| {
        let user: ResourceId =
            document["properties"]["ipConfiguration"]["id"].as_str().unwrap().parse().unwrap();
        let interface = user.parent().unwrap();
        let instance = interface.parent().filter(is_instance);
        instance.unwrap_or_else(|| {
            let interface = world.azure.document(&interface).unwrap();
            interface["properties"]["virtualMachine"]["id"].as_str().unwrap().parse().unwrap()
        })
    };
    let address = |document: &Value| document["properties"]["ipAddress"].as_str().unwrap().to_owned();
    documents.iter().map(|document| (owner(document), address(document))).collect()
}

/// NODE-036: public addresses, which interfaces reference by id, of every kind of machine; and their changes.
#[tokio::test(start_paused = true)]
async fn node_036_public_addresses_are_external_ones() {
    let shape = Shape {
        pools: vec![
            NodePool::new("pool", "pool", 2).with_public_addresses(),
            NodePool::new("flexible", "pool", 1).flexible().with_public_addresses(),
        ],
        ..every_kind()
    };
    let world = World::of(&shape);
    let alone = &shape.machines[0];
    let public = id("publicIPAddresses", "own");
    let document = json!({"location": "eastus", "sku": {"name": "Standard"}, "zones": ["1", "2", "3"],
        "properties": {"publicIPAllocationMethod": "Static"}});
    world.azure.put(&public, document).unwrap();
    let attach = |public: Value| {
        let edit = |document: &mut Value| {
            document["properties"]["ipConfigurations"][0]["properties"]["publicIPAddress"] = public;
        };
        world.azure.edit(&shape.interface(alone), edit).unwrap();
    };
    attach(json!({"id": public}));
    let program = world.start();
    let public = public_addresses(&world, &id("virtualMachineScaleSets", "pool")).await;
    assert_eq!(public.len(), 4, "{public:?}");
    for node in nodes(&world) {
        let described = describe(&program, &node).await.present().unwrap();
        let private = node.status.addresses[0].address.clone();
        let mut expected = vec![format!("InternalIP {private}"), format!("Hostname {}", node.name())];
        let own = public.iter().find(|(machine, _)| **machine == machine_of(&node));
        expected.extend(own.map(|(_, address)| format!("ExternalIP {address}")));
        assert_eq!(addresses(&described), expected, "{}", node.name());
        let by_name =
            describe(&program, &in_group(&new(node.name()), machine_of(&node).group_name().unwrap())).await;
        assert_eq!(addresses(&by_name.present().unwrap()), expected, "{}", node.name());
    }
    attach(Value::Null);
    let node = nodes(&world).into_iter().find(|node| node.name() == "pool-a").unwrap();
    let described = describe(&program, &node).await.present().unwrap();
    assert_eq!(described.addresses.len(), 2, "it was taken away: {described:?}");
}

/// NODE-083: a machine that keeps running without its node gets no traffic, until its kubelet registers again.
#[tokio::test(start_paused = true)]
async fn node_083_the_machine_of_a_deleted_node_leaves_the_pools() {
    let world = World::of(&every_kind());
    let program = world.start();
    world.serve(&program, service("web", &[80])).await.unwrap();
    let nodes = world.nodes.lock().clone();
    assert_eq!(world.members("kube"), nodes.len());
    for node in nodes {
        program.provider.state().remove_node(node.name());
        program.provider.update_nodes(LogicalTime::now()).await.unwrap();
        assert_eq!(world.members("kube"), 6, "without {}", node.name());
        world.azure.clear_journal();
        program.provider.update_nodes(LogicalTime::now()).await.unwrap();
        assert_eq!(world.all_writes(), Vec::<String>::new());
        program.provider.state().apply_node(node);
        program.provider.update_nodes(LogicalTime::now()).await.unwrap();
        assert_eq!(world.members("kube"), 7);
    }
}

/// Names of virtual machines are reused: a new machine is not described by cached data of the previous one.
#[tokio::test(start_paused = true)]
async fn a_machine_that_is_made_again_under_its_name_has_its_own_address() {
    let world = World::of(&every_kind());
    let program = world.start();
    let node = new("pool-a");
    let before = describe(&program, &node).await.present().unwrap();
    let shape = every_kind();
    world.azure.delete(&shape.machine(&shape.machines[0])).unwrap();
    world.azure.delete(&shape.interface(&shape.machines[0])).unwrap();
    // Another machine takes its address.
    shape.lay_out_machine(&world.azure, &StandaloneMachine::new("pool-z")).unwrap();
    shape.lay_out_machine(&world.azure, &shape.machines[0]).unwrap();
    let after = describe(&program, &node).await.present().unwrap();
    assert_eq!(describe(&program, &new("pool-z")).await.present().unwrap().addresses[0], before.addresses[0]);
    assert_ne!(after.addresses[0], before.addresses[0]);
}
