//! The time that pools take, apart from that of Azure and of the machines, and the number of their requests.

use std::time::Duration;

use azure_simulator::typical_latency;
use serde_json::json;
use tokio::time::Instant;

use crate::pool_flow::{names, running_with, settled, upgrade};
use crate::pool_world::INSTANCES;
use crate::world::World;

/// The time from the creation of a machine until its node is ready, in worlds of this play.
const BOOT: Duration = Duration::from_secs(60);

/// The requests to Azure after this one: when instances were listed, in seconds after the first of all requests, how
/// many requests were throttled, and how long the longest deletion of an instance took.
fn asked(world: &World, sequence: u64) -> (Vec<f64>, usize, Duration) {
    let journal = world.azure.journal_after(sequence);
    let begin = journal.entries[0].time;
    let of = |method: &'static str| {
        journal
            .entries
            .iter()
            .filter(move |entry| entry.method == method && entry.resource_type.as_deref() == Some(INSTANCES))
    };
    let lists = of("GET").filter(|entry| entry.path.ends_with("/virtualMachines"));
    let lists = lists.map(|entry| entry.time.duration_since(begin).as_secs_f64()).collect();
    let throttled = journal.entries.iter().filter(|entry| entry.status == 429).count();
    let deletions = of("DELETE").map(|it| it.answer_ms.unwrap_or(0) + it.operation_ms.unwrap_or(0));
    (lists, throttled, Duration::from_millis(deletions.max().unwrap_or(0)))
}

/// CAPZ-139: a roll takes as long as the machines take to become nodes one after the other, and as Azure takes to
/// delete the last one; instances are listed four times for each machine, and never in a burst.
#[tokio::test(start_paused = true)]
async fn a_roll_takes_what_azure_and_machines_take() {
    let (world, workloads) = running_with(typical_latency(), 3, json!({})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    let (before, sequence, begin) = (names(&world), world.sequence(), Instant::now());
    upgrade(&world, "v1.34.0").await;
    world.until("none is left", |world| names(world).is_disjoint(&before) && names(world).len() == 3).await;
    settled(&world, &workloads, 3).await;
    let took = begin.elapsed();
    let (lists, throttled, deletion) = asked(&world, sequence);
    let critical = BOOT * 3 + deletion;
    assert!(took < critical + Duration::from_secs(3 * 3), "{took:?} instead of {critical:?}");
    assert!(lists.len() <= 12, "{lists:?}");
    assert!(lists.windows(2).all(|pair| pair[1] - pair[0] > 0.9), "{lists:?}");
    assert_eq!(throttled, 0);
}
