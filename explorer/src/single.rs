//! One cluster in an Azure with a ledger: for trials of edits and refusals.

use std::sync::Arc;
use std::time::Duration;

use azure_simulator::Azure;
use azure_simulator::packet::Network;
use serde_json::{Value, json};
use testkit::{Pace, Tap, World};
use tokio::time::{Instant, sleep};

use crate::ledger::{Ledger, Pen};
use crate::neighbours::{Sharing, sharing, traffic};
use crate::service_option::{self, SERVICES, ServiceOption};

/// Kubelets with rare heartbeats: nothing here depends on them, and each one costs time.
pub(crate) const UNHURRIED: Pace = Pace {
    heartbeat: Duration::from_secs(600),
    monitor_period: Duration::from_secs(300),
    grace: Duration::from_secs(3_000),
    startup_grace: Duration::from_secs(3_000),
};

/// A cluster in an Azure of its own.
pub(crate) struct Single {
    pub(crate) azure: Azure,
    pub(crate) world: Vec<World>,
    pub(crate) ledger: Arc<Ledger>,
}

impl Single {
    /// Creates everything; no controllers run yet. `prepare` changes the Azure before.
    pub(crate) fn build(seed: u64, slow: bool, by_address: bool, tap: Option<Arc<dyn Tap>>) -> Self {
        let sharing = Sharing::default();
        let azure = Sharing::azure(seed, slow);
        let shape = sharing.shape(0, 1);
        shape.lay_out(&azure).expect("the cluster's parts are sound");
        sharing::guard(&azure, &shape);
        let ledger = Ledger::open(&azure, vec![shape.clone()]);
        let mut pen = Pen::of(&ledger, 0);
        if let Some(tap) = tap {
            pen = pen.after(tap);
        }
        let kind = if by_address { "nodeIP" } else { "nodeIPConfiguration" };
        let world = World::builder()
            .in_azure(&azure)
            .seed(seed)
            .shape(shape)
            .config(&json!({"loadBalancerBackendPoolConfigurationType": kind}))
            .pace(UNHURRIED)
            .tap(Arc::new(pen))
            .build();
        Self { azure, world: vec![world], ledger }
    }

    /// The world.
    pub(crate) fn world(&self) -> &World {
        &self.world[0]
    }

    /// The world, mutable, to start and kill its controllers.
    pub(crate) fn world_mut(&mut self) -> &mut World {
        &mut self.world[0]
    }

    /// Creates a Service, and its namespace.
    pub(crate) fn create(&self, key: &str, options: &[ServiceOption], annotations: &[(&str, &str)]) {
        let world = self.world();
        let mut manifest = service_option::manifest(
            key,
            options,
            &world.shape.subscription,
            &Sharing::default().static_address(0),
        );
        for (key, value) in annotations {
            manifest["metadata"]["annotations"][format!("service.beta.kubernetes.io/{key}")] =
                (*value).into();
        }
        world.create_in_namespace(manifest);
    }

    /// Why a Service is not served; empty if it is.
    pub(crate) fn unserved(&self, key: &str, options: &[ServiceOption]) -> Vec<String> {
        let world = self.world();
        if world.addresses(key).is_empty() {
            return vec![format!("{key} has no address: {:#?}", world.events(key))];
        }
        let network = Network::read(&self.azure);
        traffic::lost(
            &network,
            &self.world,
            0,
            key,
            service_option::port(key),
            service_option::is_internal(options),
        )
    }

    /// Whether the latest event of a Service says that its current state cannot be served.
    pub(crate) fn is_refused(&self, key: &str) -> bool {
        latest_is_refusal(self.world(), key)
    }

    /// Waits on virtual time until nothing has happened for this long.
    pub(crate) async fn rest(&self, quiet: Duration) {
        rest(&self.azure, &self.world, quiet).await;
    }
}

/// After this time worlds are judged even if they are not at rest.
const MAX_UNREST: Duration = Duration::from_secs(3_000);

/// Waits on virtual time until nothing has happened for this long: no write to Azure, no running operation, no change of
/// a Service or of the number of nodes.
pub(crate) async fn rest(azure: &Azure, worlds: &[World], quiet: Duration) {
    let signs = || {
        let counts = azure.journal_after(u64::MAX).counts;
        let services = worlds.iter().flat_map(|world| world.kubernetes.list("Service"));
        let versions: Vec<u64> = services.map(|service| service.version()).collect();
        let nodes: usize = worlds.iter().map(|world| world.kubernetes.list("Node").len()).sum();
        (counts.writes, counts.deletes, versions, nodes)
    };
    let begin = Instant::now();
    let (mut seen, mut quiet_since) = (signs(), begin);
    while begin.elapsed() < MAX_UNREST && quiet_since.elapsed() < quiet {
        sleep(Duration::from_secs(2)).await;
        let now = signs();
        if now != seen || azure.running_operations() > 0 {
            (seen, quiet_since) = (now, Instant::now());
        }
    }
}

/// Whether the latest event of a Service says that its current state cannot be served.
pub(crate) fn latest_is_refusal(world: &World, key: &str) -> bool {
    let service = world.service(key);
    let namespace = service["metadata"]["namespace"].as_str().unwrap_or_default();
    let events = world.kubernetes.list_in("Event", namespace);
    let of_it = events.iter().map(|event| event.value()).filter(|event| {
        event["involvedObject"]["uid"] == service["metadata"]["uid"]
            && (event["reason"] == "SyncLoadBalancerFailed" || event["reason"] == "EnsuredLoadBalancer")
    });
    let time = |event: &&Value| event["lastTimestamp"].as_str().unwrap_or_default().to_owned();
    of_it.max_by_key(time).is_some_and(|event| event["reason"] == "SyncLoadBalancerFailed")
}

/// The first Services, each with its options.
pub(crate) fn keyed(
    services: &[Vec<ServiceOption>],
) -> impl Iterator<Item = (&'static str, &Vec<ServiceOption>)> {
    SERVICES.into_iter().zip(services)
}
