//! The taint of a node whose driver is not ready: pods with volumes wait until the scheduler knows how many the node takes.

use std::time::Duration;

use k8s::api::api::core::v1::{Node, Taint};
use k8s::api::api::storage::v1::CSINode;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::call::{CallError, call};

/// Attempts before the slow rhythm, and the pause after the first of them; each further pause is twice as long.
const QUICK_ATTEMPTS: u32 = 10;
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// The slow rhythm, from 4 to 6 minutes: each node has a time of its own, so that not all of them ask at once.
const SLOW_PAUSE: Duration = Duration::from_secs(240);
const SPREAD: u64 = 120;

/// How the taint is taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaintOptions {
    /// `--taint-removal-initial-delay-seconds`: when to look first.
    pub initial_delay: Duration,
    /// `--never-stop-taint-removal`: whether to go on for ever, as the taint may come back.
    pub never_stops: bool,
}

impl Default for TaintOptions {
    fn default() -> Self {
        Self { initial_delay: Duration::from_secs(30), never_stops: true }
    }
}

/// Takes the taint `<driver>/agent-not-ready` off a node once its CSINode says how many volumes of the driver it takes. No error
/// ends this: it is tried again, ten times in ten minutes, and then, unless the options say otherwise, every 4 to 6
/// minutes until `stop`.
pub async fn remove_agent_taint(
    client: Client,
    node: &str,
    driver: &str,
    options: TaintOptions,
    stop: CancellationToken,
) {
    let removal = Removal { client, node, driver, key: format!("{driver}/agent-not-ready") };
    let _ = stop.run_until_cancelled(removal.run(options)).await;
}

struct Removal<'a> {
    client: Client,
    node: &'a str,
    driver: &'a str,
    key: String,
}

impl Removal<'_> {
    async fn run(&self, options: TaintOptions) {
        sleep(options.initial_delay).await;
        let mut pause = FIRST_PAUSE;
        for _ in 0..QUICK_ATTEMPTS {
            if self.attempt().await {
                break;
            }
            sleep(pause).await;
            pause *= 2;
        }
        if !options.never_stops {
            return;
        }
        loop {
            sleep(SLOW_PAUSE + Duration::from_secs(spread(self.node) % SPREAD)).await;
            self.attempt().await;
        }
    }

    /// Whether the node is known to be without the taint now.
    async fn attempt(&self) -> bool {
        match self.remove().await {
            Ok(is_done) => is_done,
            Err(error) => {
                tracing::warn!(node = self.node, taint = self.key, %error, "cannot take a taint off; it is tried again");
                false
            }
        }
    }

    async fn remove(&self) -> Result<bool, CallError> {
        let node_name = self.node;
        let drivers = Api::<CSINode>::all(self.client.clone());
        let registered = call(format!("read CSINode {node_name}"), drivers.get(node_name)).await?;
        let own = registered.spec.drivers.iter().find(|one| one.name == self.driver);
        if own.and_then(|own| own.allocatable.as_ref()?.count).is_none() {
            return Ok(false);
        }
        let nodes = Api::<Node>::all(self.client.clone());
        let node = call(format!("read node {node_name}"), nodes.get(node_name)).await?;
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let left: Vec<&Taint> = taints.iter().filter(|taint| taint.key != self.key).collect();
        if left.len() == taints.len() {
            return Ok(true);
        }
        // On condition of what was read, so that no taint of another program is lost.
        let patch = json!({
            "metadata": { "resourceVersion": node.metadata.resource_version },
            "spec": { "taints": left },
        });
        let (params, patch) = (PatchParams::default(), Patch::Merge(patch));
        call(format!("write the taints of node {node_name}"), nodes.patch(node_name, &params, &patch))
            .await?;
        tracing::info!(node = node_name, taint = self.key, "took a taint off: the driver is registered");
        Ok(true)
    }
}

/// A number that belongs to a name.
fn spread(name: &str) -> u64 {
    name.bytes().fold(5_381, |sum: u64, byte| sum.wrapping_mul(33).wrapping_add(u64::from(byte)))
}
