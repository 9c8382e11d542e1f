//! The node manager with `--use-instance-metadata=false`.

use std::collections::BTreeSet;

use testkit::{NodePool, StandaloneMachine, World, run};

use super::stage::{MINUTE, allow, builder, give_public_address, refused_actions, shipped, without};

const PROGRAM: &str = "cloud-node-manager";

/// A node of each kind of machine, with public addresses where Azure has them for the kind.
fn world() -> World {
    let world = builder()
        .pool(NodePool::new("public", "public", 1).with_public_addresses())
        .machine(StandaloneMachine::new("alone"))
        .build();
    give_public_address(&world, "alone");
    world
}

/// Runs a node manager for each node.
async fn live(world: &World) {
    tokio::time::sleep(MINUTE).await;
    let names = world.node_names();
    assert_eq!(names.len(), 3, "{names:?}");
    let running: Vec<_> = names.iter().map(|name| world.run_node_manager_by_resource_manager(name)).collect();
    tokio::time::sleep(10 * MINUTE).await;
    drop(running);
}

#[test]
fn the_role_is_enough_to_initialise_nodes() {
    run(async || {
        let world = world();
        allow(&world, &[(world.shape.group(), shipped(PROGRAM, "resource-manager"))]);
        live(&world).await;
        assert_eq!(refused_actions(&world), BTreeSet::new());
        for name in world.node_names() {
            assert!(world.taints(&name).is_empty(), "{name}: {:?}", world.taints(&name));
        }
    });
}

#[test]
fn each_action_of_the_role_is_needed() {
    run(async || {
        let all = shipped(PROGRAM, "resource-manager");
        let mut idle = Vec::new();
        for action in &all {
            let world = world();
            allow(&world, &without(&[(world.shape.group(), all.clone())], action, None));
            live(&world).await;
            if !refused_actions(&world).contains(&action.to_ascii_lowercase()) {
                idle.push(action.clone());
            }
        }
        assert_eq!(idle, Vec::<String>::new(), "nothing was refused without these");
    });
}
