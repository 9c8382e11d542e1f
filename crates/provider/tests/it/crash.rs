//! Killed after any single call to Azure, the program continues from the observed state and reaches the same end.

use std::sync::Arc;
use std::time::Duration;

use azure_types::ResourceId;
use k8s::Service;
use serde_json::json;
use testkit::{KillSwitch, make_basic};

use crate::private_link::{connect, linked};
use crate::world::*;

/// A task of the program.
#[derive(Clone, Copy, Debug)]
enum Task {
    Create,
    CreateInternal,
    ChangePort,
    Delete,
    DeleteLast,
    Move,
    /// Create with a private link service.
    CreateLinked,
    /// Remove the annotation of a private link service that has connections.
    Unlink,
    DeleteLinked,
    ChangeGroup,
    /// The Service names another group only until the program is killed.
    ChangeGroupBeforeServed,
    /// The load balancers and public IPs are of SKU Basic.
    Migrate,
}

const BYSTANDER: &str = "other";

fn wanted(task: Task) -> Service {
    match task {
        Task::Create | Task::ChangeGroupBeforeServed | Task::Delete | Task::DeleteLast => {
            service("web", &[80])
        }
        Task::Migrate => internal(service("web", &[80])),
        Task::CreateInternal | Task::Move | Task::Unlink => internal(service("web", &[80])),
        Task::CreateLinked | Task::DeleteLinked => linked(service("web", &[80])),
        Task::ChangePort => service("web", &[8080]),
        Task::ChangeGroup => in_group("third"),
    }
}

/// The Service with its public IP in another resource group.
fn in_group(group: &str) -> Service {
    annotated(service("web", &[80]), "azure-load-balancer-resource-group", group)
}

/// The world before the task.
async fn prepared(task: Task) -> World {
    let world = World::new();
    for group in ["other", "third"] {
        let id = ResourceId::group(cluster().config.network_subscription_id(), group);
        world.azure.put(&id, json!({"location": "westeurope"})).unwrap();
    }
    let program = world.start();
    if !matches!(task, Task::DeleteLast) {
        world.serve(&program, service(BYSTANDER, &[80])).await.unwrap();
    }
    let before = match task {
        Task::Create | Task::CreateInternal | Task::CreateLinked | Task::ChangeGroupBeforeServed => None,
        Task::Unlink | Task::DeleteLinked => Some(linked(service("web", &[80]))),
        Task::ChangeGroup => Some(in_group("other")),
        Task::Migrate => Some(internal(service("web", &[80]))),
        _ => Some(service("web", &[80])),
    };
    if let Some(before) = before {
        world.serve(&program, before).await.unwrap();
    }
    if matches!(task, Task::Unlink | Task::DeleteLinked) {
        connect(&world);
    }
    if matches!(task, Task::Migrate) {
        make_basic(&world.azure);
    }
    world.slow();
    world
}

/// The work of the program that is killed.
async fn begin(world: &World, program: &Program, task: Task) {
    match task {
        Task::ChangeGroupBeforeServed => drop(world.serve(program, in_group("other")).await.unwrap()),
        _ => perform(world, program, task).await,
    }
}

async fn perform(world: &World, program: &Program, task: Task) {
    match task {
        Task::Delete | Task::DeleteLast | Task::DeleteLinked => {
            if world.services.lock().contains_key(&key("web").to_string()) {
                world.remove(program, &wanted(task)).await.unwrap();
            }
        }
        _ => {
            let service: Arc<Service> = world.apply(program, wanted(task));
            world.ensure(program, &service).await.unwrap();
        }
    }
    let bystander = world.services.lock().get(&key(BYSTANDER).to_string()).cloned();
    if let Some(bystander) = bystander {
        world.ensure(program, &bystander).await.unwrap();
    }
}

async fn survives(task: Task) {
    let undisturbed = prepared(task).await;
    let program = undisturbed.start();
    begin(&undisturbed, &program, task).await;
    let calls = program.switch.calls();
    assert!(calls > 5, "{calls}");
    perform(&undisturbed, &program, task).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let expected = undisturbed.normalised();
    for number in 0..calls {
        // The next program starts at once, while Azure still executes requests of the first one; or later.
        for pause in [Duration::ZERO, Duration::from_secs(100)] {
            let world = prepared(task).await;
            let dying = world.start_with(KillSwitch::after_call(number));
            tokio::select! {
                biased;
                () = dying.switch.tripped() => {}
                () = begin(&world, &dying, task) => panic!("{task:?} {number}: it should have died"),
            }
            drop(dying);
            tokio::time::sleep(pause).await;
            let program = world.start();
            perform(&world, &program, task).await;
            // Operations on machines that the first program started may still run.
            tokio::time::sleep(Duration::from_secs(60)).await;
            let found = world.normalised();
            if found != expected {
                let differences: Vec<String> = expected
                    .lines()
                    .zip(found.lines())
                    .filter(|(a, b)| a != b)
                    .take(10)
                    .map(|(a, b)| format!("-{a}\n+{b}"))
                    .collect();
                panic!("{task:?} {number} of {calls}, {pause:?}:\n{}", differences.join("\n"));
            }
            // The state is stable.
            world.azure.clear_journal();
            let again = world.start();
            perform(&world, &again, task).await;
            assert_eq!(world.all_writes(), Vec::<String>::new(), "{task:?} {number} of {calls}, {pause:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_after_every_call_of_create() {
    survives(Task::Create).await;
}

#[tokio::test(start_paused = true)]
async fn killed_after_every_call_of_create_internal() {
    survives(Task::CreateInternal).await;
}

#[tokio::test(start_paused = true)]
async fn killed_after_every_call_of_a_port_change() {
    survives(Task::ChangePort).await;
}

#[tokio::test(start_paused = true)]
async fn killed_after_every_call_of_delete() {
    survives(Task::Delete).await;
}

#[tokio::test(start_paused = true)]
async fn killed_after_every_call_of_the_last_deletion() {
    survives(Task::DeleteLast).await;
}

/// LB-407.
#[tokio::test(start_paused = true)]
async fn killed_after_every_call_of_a_change_of_the_resource_group() {
    survives(Task::ChangeGroup).await;
}

/// LB-407: only the tag of its public IP shows the group that was named before.
#[tokio::test(start_paused = true)]
async fn killed_after_every_call_of_a_creation_that_named_another_resource_group() {
    survives(Task::ChangeGroupBeforeServed).await;
}

#[tokio::test(start_paused = true)]
async fn killed_after_every_call_of_a_move_to_the_internal_load_balancer() {
    survives(Task::Move).await;
}

/// LB-205: both load balancers are basic at first, and each is migrated with its Service in turn; addresses stay.
#[tokio::test(start_paused = true)]
async fn killed_after_every_call_of_the_migration_from_sku_basic() {
    survives(Task::Migrate).await;
}

/// LB-310.
#[tokio::test(start_paused = true)]
async fn killed_after_every_call_of_create_with_a_private_link_service() {
    survives(Task::CreateLinked).await;
}

/// LB-323.
#[tokio::test(start_paused = true)]
async fn killed_after_every_call_while_a_private_link_service_goes() {
    survives(Task::Unlink).await;
}

/// LB-322.
#[tokio::test(start_paused = true)]
async fn killed_after_every_call_of_the_deletion_of_a_service_with_a_private_link_service() {
    survives(Task::DeleteLinked).await;
}
