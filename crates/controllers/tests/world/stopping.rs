use std::time::Duration;

use controllers::{Error, HealthChecks, Options};
use kubernetes_simulator::{Fault, FaultAction};
use serde_json::json;
use tokio::time::Instant;

use crate::cloud::Call;
use crate::world::{World, client, seconds};

#[tokio::test(start_paused = true)]
async fn stopping_finishes_what_runs_and_leaves_no_lease_behind() {
    let mut world = World::new();
    world.cloud.writes_take(Duration::from_secs(10));
    world.start(Options { resource_lease: true, ..World::services() }).await;
    world.service("web", json!({}));
    seconds(1).await;
    world.stop.cancel();
    seconds(1).await;
    world.service("late", json!({}));
    let start = Instant::now();
    world.stop().await;
    assert!(start.elapsed() <= Duration::from_secs(10));
    assert_eq!(world.addresses("web").len(), 1);
    assert_eq!(world.reasons("web").last().unwrap(), "EnsuredLoadBalancer", "events are sent to the last");
    assert_eq!(world.cloud.ensures("late"), 0);
    let lease = world.kubernetes.get("Lease", "kube-system", "aks-managed-resource-locker").unwrap();
    assert_eq!(lease["spec"]["holderIdentity"], "");
    let holder = "cloud-controller-manager".to_owned();
    let stopped = Call::Stop { lease_holder: holder };
    assert_eq!(world.cloud.calls().last(), Some(&stopped), "writing ends before the lease goes");
}

#[tokio::test(start_paused = true)]
async fn stopping_abandons_what_takes_too_long() {
    let mut world = World::new();
    world.cloud.writes_take(Duration::from_secs(1000));
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    let start = Instant::now();
    world.stop().await;
    assert_eq!(start.elapsed().as_secs(), 12);
    let reasons = world.reasons("web");
    assert_eq!(reasons, ["EnsuringLoadBalancer"], "what is cut short by the stop is no failure");
    world.cloud.writes_take(Duration::ZERO);
    world.stop = tokio_util::sync::CancellationToken::new();
    world.cloud = world.cloud.restarted();
    world.start(World::services()).await;
    assert_eq!(world.addresses("web").len(), 1, "the next process goes on");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_api_server_does_not_hold_up_the_stop() {
    let mut world = World::new();
    world.start(Options { resource_lease: true, ..World::services() }).await;
    world.service("web", json!({}));
    let stuck = || Fault::new(FaultAction::delay(Duration::from_secs(100_000))).times(1000);
    world.kubernetes.inject(stuck().resource("events"));
    seconds(2).await;
    world.kubernetes.inject(stuck().resource("leases"));
    let start = Instant::now();
    world.stop().await;
    assert!(start.elapsed() <= Duration::from_secs(5), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn health_checks_carry_the_controllers_names() {
    let mut world = World::new();
    let health = HealthChecks::default();
    world.start(Options { health: health.clone(), ..Options::default() }).await;
    let names: Vec<_> = health.all().iter().map(|check| check.name().to_owned()).collect();
    assert_eq!(names, ["service-lb-controller", "cloud-node-controller", "cloud-node-lifecycle-controller"]);
    assert!(health.all().iter().all(|check| check.check().is_ok()));
    world.stop().await;
}

#[tokio::test(start_paused = true)]
async fn periods_of_zero_are_refused() {
    let world = World::new();
    let options = Options { node_monitor_period: Duration::ZERO, ..Options::default() };
    let cloud = world.cloud.ports();
    let outcome = controllers::run(client(&world.kubernetes), cloud, options, world.stop.clone()).await;
    let Err(Error::Options(problem)) = outcome else { panic!("must be refused") };
    assert!(problem.contains("--node-monitor-period"), "{problem}");
}
