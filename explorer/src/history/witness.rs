//! Whether Services that cannot be served delay others: existing ones, and two that are created and deleted meanwhile.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::stage::Stage;

/// The time after the trouble within which all others have their addresses: failed writes are retried within the
/// longest backoff of Services, 300 s.
const MAX_DELAY: Duration = Duration::from_secs(600);

/// The maximum time for a Service that is created then, and for its deletion: a few writes of the shared resources, and
/// those that are already running.
const MAX_WAIT: Duration = Duration::from_secs(120);

/// The Services that wait too long.
pub(super) async fn starved(stage: &Stage, sound: &[String]) -> Vec<String> {
    let world = &stage.world;
    let mut starved = Vec::new();
    let is_served = |key: &String| !world.addresses(key).is_empty();
    for key in waiting(sound, MAX_DELAY, is_served).await {
        starved
            .push(format!("{key} has no address {MAX_DELAY:?} after the trouble, because others have none"));
    }
    let witnesses = [("comes-outside", "false"), ("comes-inside", "true")]
        .map(|(name, internal)| manifest(name, internal));
    let keys = ["keepers/comes-outside", "keepers/comes-inside"].map(str::to_owned);
    stage.apply(&witnesses).await.expect("the API takes the manifests");
    for key in waiting(&keys, MAX_WAIT, is_served).await {
        starved.push(format!("{key} has no address after {MAX_WAIT:?}: {:#?}", world.events(&key)));
    }
    for key in &keys {
        world.delete(key);
    }
    for key in waiting(&keys, MAX_WAIT, |key| world.service(key).is_null()).await {
        starved.push(format!("{key} cannot go within {MAX_WAIT:?}: {:#?}", world.events(&key)));
    }
    starved
}

/// The Services for which a condition does not hold in time.
async fn waiting(keys: &[String], patience: Duration, holds: impl Fn(&String) -> bool) -> Vec<String> {
    let begin = Instant::now();
    while !keys.iter().all(&holds) && begin.elapsed() < patience {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    keys.iter().filter(|key| !holds(key)).cloned().collect()
}

fn manifest(name: &str, internal: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": "keepers", "name": name, "annotations": {
            "service.beta.kubernetes.io/azure-load-balancer-internal": internal}},
        "spec": {"type": "LoadBalancer", "selector": {"app": name}, "ports": [{"port": 9001}],
            "loadBalancerSourceRanges": ["203.0.113.0/24"]},
    })
}
