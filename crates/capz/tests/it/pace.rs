//! The time that clusters take, apart from Azure's own time.

use std::time::Duration;

use serde_json::json;

use crate::world::World;

const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";

/// Azure's own time for requests of this method about these resources, after this request and one after the other: the
/// longest successful one of each.
pub fn chain(world: &World, after: u64, method: &str, names: &[&str]) -> Duration {
    let journal = world.azure.journal_after(after);
    let of = |name: &&str| -> u64 {
        let done = journal.entries.iter().filter(|entry| {
            entry.method == method && entry.path.ends_with(&format!("/{name}")) && entry.status < 300
        });
        done.map(|entry| entry.answer_ms.unwrap_or(0) + entry.operation_ms.unwrap_or(0)).max().unwrap_or(0)
    };
    Duration::from_millis(names.iter().map(of).sum())
}

/// Something takes at most 15 % more than its critical path.
pub fn assert_near(took: Duration, critical: Duration) {
    assert!(critical > Duration::from_secs(30), "{critical:?}");
    assert!(took.as_secs_f64() <= critical.as_secs_f64() * 1.15, "{took:?} instead of {critical:?}");
}

/// Reconciles with a time limit below Azure's time are cut off, and the next ones resume: nothing is written twice.
#[tokio::test(start_paused = true)]
async fn loops_that_end_early_make_the_same_cluster() {
    let made = async |limit: Duration| {
        let mut world = World::with(azure_simulator::typical_latency(), 1);
        world.settings.timeouts.reconcile = limit;
        world.cluster("my-cluster", json!({}));
        world.start();
        world
            .until("the cluster", |world| {
                world.get("AzureCluster", "my-cluster").is_some_and(|it| it["status"]["ready"] == true)
            })
            .await;
        let journal = world.azure.journal();
        let written = journal.entries.iter().filter(|entry| entry.method == "PUT" && entry.status < 300);
        let mut written: Vec<_> = written.map(|entry| entry.path.clone()).collect();
        written.sort();
        (written, journal.entries.len())
    };
    let (written, calls) = made(Duration::from_secs(90 * 60)).await;
    let (in_pieces, more_calls) = made(Duration::from_secs(7)).await;
    assert_eq!(in_pieces, written);
    assert!(more_calls > calls, "no loop was cut off: {more_calls} calls");
}

/// A public cluster with three control planes and three workers.
#[tokio::test(start_paused = true)]
async fn a_cluster_takes_little_more_than_its_longest_chain() {
    let mut world = World::with(azure_simulator::typical_latency(), 1);
    world.cluster("my-cluster", json!({}));
    world.start();
    let is_ready = |world: &World, kind: &str, name: &str| {
        world.get(kind, name).is_some_and(|it| it["status"]["ready"] == true)
    };
    let network = world.until("the cluster", |world| is_ready(world, "AzureCluster", "my-cluster")).await;
    world.provisioned("my-cluster");
    for index in 0..3 {
        world.machine("my-cluster", &format!("cp-{index}"), json!({ (CONTROL_PLANE): "" }), json!({}));
        world.machine("my-cluster", &format!("worker-{index}"), json!({}), json!({}));
    }
    let names: Vec<String> =
        (0..3).flat_map(|index| [format!("cp-{index}"), format!("worker-{index}")]).collect();
    let machines = world
        .until("the machines", |world| names.iter().all(|name| is_ready(world, "AzureMachine", name)))
        .await;
    let took = network + machines;
    // Azure's own time: the longest chain of dependent writes.
    let journal = world.azure.journal();
    let of = |name: &str| -> u64 {
        let written = journal.entries.iter().filter(|entry| {
            entry.method == "PUT" && entry.path.ends_with(&format!("/{name}")) && entry.status < 300
        });
        written.map(|entry| entry.answer_ms.unwrap_or(0) + entry.operation_ms.unwrap_or(0)).max().unwrap_or(0)
    };
    let chain = |names: &[&str]| names.iter().map(|name| of(name)).sum::<u64>();
    let network = chain(&[
        "my-cluster",
        "pip-my-cluster-node-natgw",
        "my-cluster-node-natgw",
        "my-cluster-node-subnet",
    ])
    .max(chain(&["my-cluster", "pip-my-cluster-apiserver", "my-cluster-public-lb"]));
    let machine = |index: usize| {
        let rule = journal
            .entries
            .iter()
            .filter(|entry| entry.path.ends_with(&format!("inboundNatRules/cp-{index}")));
        let rule =
            rule.filter(|it| it.status < 300).filter_map(|it| Some(it.operation_ms? + it.answer_ms?)).max();
        let vm = journal
            .entries
            .iter()
            .filter(|entry| entry.path.ends_with(&format!("virtualMachines/cp-{index}")));
        let vm =
            vm.filter(|it| it.method == "PUT").filter_map(|it| Some(it.operation_ms? + it.answer_ms?)).max();
        rule.unwrap_or(0) + of(&format!("cp-{index}-nic")) + vm.unwrap_or(0)
    };
    let critical = Duration::from_millis(network + (0..3).map(machine).max().unwrap_or(0));
    assert!(critical > Duration::from_secs(40), "{critical:?}");
    assert!(took.as_secs_f64() <= critical.as_secs_f64() * 1.15, "{took:?} instead of {critical:?}");
}
