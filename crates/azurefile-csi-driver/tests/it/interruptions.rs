//! The driver is killed after each of its calls to Azure: the next one comes to the same end.

use serde_json::Value;
use testkit::KillSwitch;

use crate::world::{Driver, World, create};

/// A story: what a side-car asks, one call after the other, each until it succeeds.
const STEPS: [&str; 7] =
    ["create", "expand", "modify", "snapshot", "delete snapshot", "delete", "create other"];

#[derive(Default)]
struct Ids {
    volume: String,
    snapshot: String,
}

async fn step(driver: &Driver, step: &str, ids: &mut Ids) -> bool {
    let class = [
        ("skuName", "PremiumV2_LRS"),
        ("disableDeleteRetentionPolicy", "true"),
        ("secretNamespace", "default"),
    ];
    let outcome = match step {
        "create" => driver.create(create("a", 40, &class)).await.map(|volume| ids.volume = volume.volume_id),
        "expand" => driver.expand(&ids.volume, 41).await.map(drop),
        "modify" => driver.modify(&ids.volume, &[("provisionedIOPS", "4000")]).await,
        "snapshot" => driver.snapshot("s", &ids.volume).await.map(|taken| ids.snapshot = taken.snapshot_id),
        "delete snapshot" => driver.delete_snapshot(&ids.snapshot).await,
        "delete" => driver.delete(&ids.volume).await,
        _ => driver.create(create("b", 40, &class)).await.map(drop),
    };
    outcome.is_ok()
}

/// Everything in Azure but what differs from run to run: times, and versions.
fn end_state(world: &World) -> Vec<Value> {
    let mut documents = world.azure.documents();
    documents.iter_mut().for_each(scrub);
    documents
}

fn scrub(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, _| {
                let key = key.to_ascii_lowercase();
                !key.contains("time") && !key.ends_with("at") && key != "etag"
            });
            members.values_mut().for_each(scrub);
        }
        Value::Array(entries) => entries.iter_mut().for_each(scrub),
        _ => {}
    }
}

/// Plays the story with a driver that dies after this call, and with another one from then on.
async fn play(fatal: Option<usize>) -> (Vec<Value>, usize) {
    let world = World::new();
    let switch = fatal.map_or_else(KillSwitch::never, KillSwitch::after_call);
    let mut driver = world.driver_with(&switch, world.client.clone());
    let mut ids = Ids::default();
    for name in STEPS {
        let mut tries = 0;
        loop {
            tries += 1;
            assert!(tries < 20, "{name} does not succeed after call {fatal:?}");
            let done = tokio::select! {
                done = step(&driver, name, &mut ids) => done,
                () = switch.tripped(), if fatal.is_some() && tries == 1 => false,
            };
            if done {
                break;
            }
            driver = world.driver();
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
        }
    }
    // Operations that a dead driver has begun end.
    tokio::time::sleep(std::time::Duration::from_secs(120)).await;
    (end_state(&world), switch.calls())
}

/// FILE-044. Killed after every call to Azure: the same end.
#[tokio::test(start_paused = true)]
async fn a_driver_that_is_killed_after_any_call_leaves_nothing_undone() {
    let (expected, calls) = play(None).await;
    assert!(calls > 15, "{calls} calls");
    for fatal in 0..calls {
        let (end, _) = play(Some(fatal)).await;
        assert_eq!(end, expected, "killed after call {fatal}");
    }
}
