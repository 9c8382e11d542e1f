//! The controllers die after every single call to Azure; new ones reach the same end state.

use std::time::Duration;

use azure_simulator::LatencyProfile;
use serde_json::{Value, json};
use testkit::types::{LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS};
use testkit::{AzureState, KillSwitch, World, run, service};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Create,
    ChangePort,
    Delete,
}

const WEB: &str = "shop/web";
const BYSTANDER: &str = "shop/bystander";

/// A world at rest before the task, without controllers.
async fn prepared(task: Task) -> World {
    let mut world = World::builder().start().await;
    world.create(service(BYSTANDER).tcp(8443));
    if task != Task::Create {
        world.create(service(WEB).tcp(80));
    }
    world.settle().await;
    world.stop().await;
    let seconds = Duration::from_secs;
    let latency = LatencyProfile::instant()
        .with("*", PUBLIC_IPS, seconds(3))
        .with("*", LOAD_BALANCERS, seconds(10))
        .with("*", SECURITY_GROUPS, seconds(4));
    world.azure.set_latency(latency);
    world
}

fn ask(world: &World, task: Task) {
    match task {
        Task::Create => world.create(service(WEB).tcp(80)),
        Task::ChangePort => world.change(
            WEB,
            &json!({"spec": {"ports": [
            {"name": "tcp-80", "protocol": "TCP", "port": 8080}]}}),
        ),
        Task::Delete => world.delete(WEB),
    }
}

/// The parts of the end state that must be equal: Azure, and what the Services' owners see.
fn end(world: &World) -> (AzureState, Value) {
    let seen = [WEB, BYSTANDER].map(|key| {
        let service = world.service(key);
        let addresses = world.addresses(key).len();
        json!({"addresses": addresses, "there": !service.is_null(),
            "finalizers": service["metadata"]["finalizers"]})
    });
    for key in [WEB, BYSTANDER] {
        // If Azure has the address, traffic arrives.
        for address in world.addresses(key) {
            let port = world.service(key)["spec"]["ports"][0]["port"].as_u64().unwrap();
            assert_eq!(world.reached(address, u16::try_from(port).unwrap()).len(), 3, "{key}");
        }
    }
    (world.azure_state(), json!(seen))
}

async fn survives(task: Task) {
    let mut world = prepared(task).await;
    let switch = KillSwitch::never();
    world.start_with(&switch);
    ask(&world, task);
    world.settle().await;
    let expected = end(&world);
    let calls = switch.calls();
    assert!(calls > 5, "{calls}");
    for number in 0..calls {
        let mut world = prepared(task).await;
        let switch = KillSwitch::after_call(number);
        world.start_with(&switch);
        ask(&world, task);
        let tripped = tokio::time::timeout(Duration::from_secs(3600), switch.tripped()).await;
        tripped.unwrap_or_else(|_| panic!("{task:?}: there was no call {number} of {calls}"));
        world.restart().await;
        world.settle().await;
        let (state, seen) = end(&world);
        assert_eq!(seen, expected.1, "{task:?}, killed after call {number} of {calls}");
        let differences = expected.0.differences(&state);
        assert!(
            differences.is_empty(),
            "{task:?}, killed after call {number} of {calls}:\n{}",
            differences.join("\n")
        );
    }
}

#[test]
fn killed_after_every_call_of_a_creation() {
    run(async || {
        survives(Task::Create).await;
    });
}

#[test]
fn killed_after_every_call_of_a_port_change() {
    run(async || {
        survives(Task::ChangePort).await;
    });
}

#[test]
fn killed_after_every_call_of_a_deletion() {
    run(async || {
        survives(Task::Delete).await;
    });
}
