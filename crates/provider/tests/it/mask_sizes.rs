//! The sizes of nodes' pod ranges, from the tags of scale sets and availability sets.

use azure_simulator::{Fault, FaultAction};
use azure_types::ResourceId;
use cloud::{Existence, LogicalTime, MaskSizes, NodeRanges};
use futures::future::join_all;
use k8s::Node;
use serde_json::json;
use simulated_cluster::{NodePool, Shape, StandaloneMachine};

use crate::world::*;

fn every_kind() -> Shape {
    Shape {
        pools: vec![NodePool::new("pool", "pool", 2), NodePool::new("flexible", "flex", 2).flexible()],
        machines: vec![
            StandaloneMachine::new("alone"),
            StandaloneMachine::new("placed").in_availability_set("set"),
            StandaloneMachine::new("elsewhere").in_availability_set("set").in_group("machines"),
        ],
        ..shape()
    }
}

fn compute(group: &str, kind: &str, name: &str) -> ResourceId {
    ResourceId::group(SUBSCRIPTION, group).resource("Microsoft.Compute", kind, name)
}

fn tag(world: &World, id: &ResourceId, v4: &str, v6: &str) {
    let tags = json!({"kubernetesNodeCIDRMaskIPV4": v4, "kubernetesNodeCIDRMaskIPV6": v6});
    world.azure.edit(id, |document| document["tags"] = tags).unwrap();
}

async fn ask(program: &Program, node: &Node) -> Existence<MaskSizes> {
    program.provider.mask_sizes(node, LogicalTime::now()).await
}

/// NODE-067, NODE-077: tags of uniform and flexible scale sets and availability sets define the sizes, standalone
/// machines have the defaults. One list answers for all nodes of a kind.
#[tokio::test(start_paused = true)]
async fn node_067_node_077_sets_of_every_kind_say_how_large_ranges_are() {
    let world = World::of(&every_kind());
    tag(&world, &compute("rg", "virtualMachineScaleSets", "pool"), "25", "65");
    tag(&world, &compute("rg", "virtualMachineScaleSets", "flexible"), "26", "66");
    tag(&world, &compute("rg", "availabilitySets", "set"), "27", "67");
    tag(&world, &compute("machines", "availabilitySets", "set"), "28", "none");
    let program = world.start();
    let nodes = world.nodes.lock().clone();
    let answers = join_all(nodes.iter().map(|node| ask(&program, node))).await;
    for (node, answer) in nodes.iter().zip(answers) {
        let expected = match node.name() {
            "alone" => (24, 64),
            "placed" => (27, 67),
            "elsewhere" => (28, 64),
            name if name.starts_with("pool") => (25, 65),
            _ => (26, 66),
        };
        let (v4, v6) = expected;
        assert_eq!(answer, Existence::Present(MaskSizes { v4, v6 }), "{}", node.name());
    }
    assert_eq!(world.reads(), 5, "scale sets; machines and availability sets of two groups");
}

/// NODE-067: an unknown size is not replaced by the default.
#[tokio::test(start_paused = true)]
async fn node_067_masks_that_nobody_knows_are_not_the_defaults() {
    let world = World::of(&every_kind());
    let program = world.start();
    let nodes = world.nodes.lock().clone();
    let fault = FaultAction::Fail { status: 403, code: "AuthorizationFailed".into(), message: "no".into() };
    world.azure.inject(Fault::new(fault).on_method("GET"));
    for node in &nodes {
        let answer = ask(&program, node).await;
        assert!(
            matches!(&answer, Existence::Unknown(why) if why.contains("AuthorizationFailed")),
            "{answer:?}"
        );
    }
    world.azure.clear_faults();
    for id in ["invalid", "", "azure:///subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/VM/x"] {
        let node = json!({"metadata": {"name": "node"}, "spec": {"providerID": id}});
        let answer = ask(&program, &serde_json::from_value(node).unwrap()).await;
        assert!(
            matches!(&answer, Existence::Unknown(why) if why.contains(&format!("failed to check the providerID `{id}`"))),
            "{answer:?}"
        );
    }
    let stranger = format!("azure://{}", compute("rg", "virtualMachines", "stranger"));
    let node = json!({"metadata": {"name": "stranger"}, "spec": {"providerID": stranger}});
    assert!(matches!(ask(&program, &serde_json::from_value(node).unwrap()).await, Existence::Unknown(_)));
}
