//! Whatever happened before, the final state matches the Services.

use std::sync::Arc;
use std::time::Duration;

use azure_simulator::{Fault, FaultAction};
use futures::future::join_all;
use k8s::Service;
use proptest::prelude::*;

use crate::world::*;

/// An event of one of the Services.
#[derive(Debug, Clone, Copy)]
enum Happening {
    Serve { port: i32, internal: bool },
    Remove,
}

/// A fault of one request of a type.
#[derive(Debug, Clone, Copy)]
enum Trouble {
    DropAnswer,
    DropRequest,
    Throttle,
    Fault,
    FailedOperation,
    ForeignWrite,
}

const KINDS: [&str; 5] = [LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS, SCALE_SETS, INSTANCES];

fn wanted(number: usize, port: i32, is_internal: bool) -> Service {
    let service = service(&format!("s{number}"), &[port]);
    if is_internal { internal(service) } else { service }
}

fn happenings() -> impl Strategy<Value = Vec<(usize, Happening)>> {
    let one = prop_oneof![
        3 => (prop_oneof![Just(80), Just(443), Just(8080)], any::<bool>())
            .prop_map(|(port, internal)| Happening::Serve { port, internal }),
        1 => Just(Happening::Remove),
    ];
    proptest::collection::vec((0_usize..5, one), 1..5)
}

fn troubles() -> impl Strategy<Value = Option<(Trouble, usize, u64)>> {
    let trouble = prop_oneof![
        Just(Trouble::DropAnswer),
        Just(Trouble::DropRequest),
        Just(Trouble::Throttle),
        Just(Trouble::Fault),
        Just(Trouble::FailedOperation),
        Just(Trouble::ForeignWrite),
    ];
    proptest::option::of((trouble, 0_usize..KINDS.len(), 0_u64..3))
}

fn cause(world: &World, (trouble, kind, skip): (Trouble, usize, u64)) {
    let action = match trouble {
        Trouble::DropAnswer => FaultAction::DropAnswer,
        Trouble::DropRequest => FaultAction::DropRequest,
        Trouble::Throttle => FaultAction::Throttle { retry_after: Some(3) },
        Trouble::Fault => {
            FaultAction::Fail { status: 503, code: "ServiceUnavailable".into(), message: "later".into() }
        }
        Trouble::FailedOperation => {
            FaultAction::FailOperation { code: "InternalServerError".into(), message: "oops".into() }
        }
        Trouble::ForeignWrite => {
            // Another client changes the load balancer, if there is one.
            let _ = world.azure.edit(&id("loadBalancers", "kube"), |document| {
                document["tags"] = serde_json::json!({ "touched": "yes" });
            });
            return;
        }
    };
    world.azure.inject(Fault::new(action).on_type(KINDS[kind]).on_method("PUT").after(skip).times(1));
}

async fn do_it(world: &World, program: &Program, number: usize, happening: Happening) -> bool {
    match happening {
        Happening::Serve { port, internal } => {
            world.serve(program, wanted(number, port, internal)).await.is_ok()
        }
        Happening::Remove => {
            let service = wanted(number, 80, false);
            let known = world.services.lock().contains_key(&service.key().to_string());
            !known || world.remove(program, &service).await.is_ok()
        }
    }
}

async fn settle(world: &World, program: &Program) {
    let services: Vec<Arc<Service>> = world.services.lock().values().cloned().collect();
    let all = services.iter().map(|service| async move {
        for _ in 0..6 {
            match world.ensure(program, service).await {
                Ok(_) => return,
                Err(_) => tokio::time::sleep(Duration::from_secs(100)).await,
            }
        }
        world.ensure(program, service).await.unwrap();
    });
    join_all(all).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
}

/// Concurrent events, and a fault among them: the fault, the type, and after how many requests.
type Round = (Vec<(usize, Happening)>, Option<(Trouble, usize, u64)>);

async fn run(rounds: Vec<Round>) -> (String, String) {
    let world = World::new();
    world.slow();
    let mut program = world.start();
    // Two Services that stay, so that both load balancers exist throughout.
    world.serve(&program, service("anchor", &[9])).await.unwrap();
    world.serve(&program, internal(service("anchor2", &[9]))).await.unwrap();
    for (number, (happenings, trouble)) in rounds.into_iter().enumerate() {
        if let Some(trouble) = trouble {
            cause(&world, trouble);
        }
        // One event per Service at a time, as the Service controller ensures.
        let mut distinct = std::collections::BTreeMap::new();
        distinct.extend(happenings);
        let mut left: Vec<(usize, Happening)> = distinct.into_iter().collect();
        for _ in 0..6 {
            let done = join_all(left.iter().map(|(n, h)| do_it(&world, &program, *n, *h))).await;
            left = left.into_iter().zip(done).filter(|(_, done)| !done).map(|(left, _)| left).collect();
            if left.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_secs(100)).await;
        }
        assert!(left.is_empty(), "round {number}: {left:?}");
        if number % 3 == 2 {
            program = world.start();
        }
    }
    world.azure.clear_faults();
    settle(&world, &program).await;
    world
        .azure
        .edit(&id("loadBalancers", "kube"), |document| document["tags"] = serde_json::json!({}))
        .unwrap();

    let fresh = World::new();
    let first = fresh.start();
    for service in world.services.lock().values() {
        let mut service = Service::clone(service);
        service.status = k8s::ServiceStatus::default();
        fresh.apply(&first, service);
    }
    settle(&fresh, &first).await;
    fresh
        .azure
        .edit(&id("loadBalancers", "kube"), |document| document["tags"] = serde_json::json!({}))
        .unwrap();
    (world.normalised(), fresh.normalised())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 60, ..ProptestConfig::default() })]

    #[test]
    fn every_history_ends_as_if_it_had_not_been(
        rounds in proptest::collection::vec((happenings(), troubles()), 1..8),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (found, expected) = runtime.block_on(run(rounds));
        if found != expected {
            let differences: Vec<String> = expected
                .lines()
                .zip(found.lines())
                .filter(|(a, b)| a != b)
                .take(12)
                .map(|(a, b)| format!("-{a}\n+{b}"))
                .collect();
            prop_assert!(false, "{}", differences.join("\n"));
        }
    }
}
