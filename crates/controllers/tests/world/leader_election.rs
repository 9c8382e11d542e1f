use std::sync::Arc;
use std::time::Duration;

use controllers::leader_election::{Config, Elector, Error};
use controllers::{Clock, NoObserver};
use kubernetes_simulator::{Fault, FaultAction, Kubernetes};
use logs::captured::Captured;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::world::{client, clock, seconds};

type Log = Arc<Mutex<Vec<(String, u64)>>>;

struct Candidate {
    stop: CancellationToken,
    running: JoinHandle<Result<Option<()>, Error>>,
}

fn kubernetes() -> Kubernetes {
    Kubernetes::new(kubernetes_simulator::Options::default())
}

/// A candidate that leads until it is stopped, and records when it starts leading.
fn candidate(kubernetes: &Kubernetes, name: &str, clock: Clock, log: &Log) -> Candidate {
    let stop = CancellationToken::new();
    let config = Config::new(name);
    let elector = Elector::new(client(kubernetes), config, clock, Arc::new(NoObserver)).unwrap();
    let (log, name, start) = (Arc::clone(log), name.to_owned(), Instant::now());
    let running = tokio::spawn(elector.run(stop.clone(), move |stop| async move {
        log.lock().push((name, start.elapsed().as_secs()));
        stop.cancelled().await;
    }));
    Candidate { stop, running }
}

fn lease(kubernetes: &Kubernetes) -> Value {
    kubernetes.get("Lease", "kube-system", "cloud-controller-manager").unwrap().value().clone()
}

fn leaders(log: &Log) -> Vec<String> {
    log.lock().iter().map(|(name, _)| name.clone()).collect()
}

#[tokio::test(start_paused = true)]
async fn one_of_two_leads_and_a_release_hands_over_at_once() {
    let (kubernetes, log) = (kubernetes(), Log::default());
    let a = candidate(&kubernetes, "a", clock(&kubernetes), &log);
    seconds(1).await;
    let b = candidate(&kubernetes, "b", clock(&kubernetes), &log);
    seconds(600).await;
    assert_eq!(leaders(&log), ["a"]);
    let held = lease(&kubernetes);
    assert_eq!(held["spec"]["holderIdentity"], "a");
    assert_eq!(held["spec"]["leaseDurationSeconds"], 15);
    assert_eq!(held["spec"]["leaseTransitions"], 0);
    assert_eq!(held["spec"]["acquireTime"], "2026-01-01T00:00:00.000000Z");
    a.stop.cancel();
    assert_eq!(a.running.await.unwrap(), Ok(Some(())));
    assert_eq!(lease(&kubernetes)["spec"]["holderIdentity"], "", "released");
    assert_eq!(lease(&kubernetes)["spec"]["leaseDurationSeconds"], 1);
    seconds(5).await;
    assert_eq!(leaders(&log), ["a", "b"]);
    assert_eq!(lease(&kubernetes)["spec"]["holderIdentity"], "b");
    assert_eq!(lease(&kubernetes)["spec"]["leaseTransitions"], 1);
    let messages: Vec<_> = (kubernetes.list_in("Event", "kube-system").iter())
        .map(|event| {
            assert_eq!(event["reason"], "LeaderElection");
            assert_eq!(event["involvedObject"]["kind"], "Lease");
            event["message"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(messages, ["a became leader", "a stopped leading", "b became leader"]);
    drop(b);
}

#[tokio::test(start_paused = true)]
async fn a_dead_leader_is_followed_after_its_lease_and_not_before() {
    let (kubernetes, log) = (kubernetes(), Log::default());
    let a = candidate(&kubernetes, "a", clock(&kubernetes), &log);
    seconds(1).await;
    let b = candidate(&kubernetes, "b", clock(&kubernetes), &log);
    seconds(60).await;
    a.running.abort();
    let death = Instant::now();
    while log.lock().len() < 2 {
        seconds(1).await;
    }
    let wait = death.elapsed();
    // The last renewal was up to 2 s before the death; candidates try every 2.0 to 4.4 s.
    assert!(wait >= Duration::from_secs(13) && wait <= Duration::from_secs(21), "{wait:?}");
    drop(b);
}

#[tokio::test(start_paused = true)]
async fn clocks_of_other_machines_do_not_matter() {
    let (kubernetes, log) = (kubernetes(), Log::default());
    let a = candidate(&kubernetes, "a", clock(&kubernetes), &log);
    seconds(1).await;
    for hours in [-24, 24] {
        let skewed = kubernetes.now().checked_add(jiff::SignedDuration::from_hours(hours)).unwrap();
        let b =
            candidate(&kubernetes, "b", Clock::following_tokio(skewed.as_duration().unsigned_abs()), &log);
        seconds(600).await;
        assert_eq!(leaders(&log), ["a"], "{hours} hours off");
        b.stop.cancel();
        assert_eq!(b.running.await.unwrap(), Ok(None));
    }
    drop(a);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_stops_before_others_may_start() {
    let (kubernetes, log) = (kubernetes(), Log::default());
    let a = candidate(&kubernetes, "a", clock(&kubernetes), &log);
    seconds(60).await;
    for verb in ["get", "update"] {
        kubernetes.inject(Fault::status(500).verb(verb).resource("leases").times(1000));
    }
    let start = Instant::now();
    let Err(Error::Lost(reason)) = a.running.await.unwrap() else { panic!("must be lost") };
    assert!(start.elapsed() < Duration::from_secs(13), "{:?}", start.elapsed());
    assert!(reason.contains("10 s") && reason.contains("injected fault"), "{reason}");
    assert_eq!(lease(&kubernetes)["spec"]["holderIdentity"], "a", "what is lost is not written");
}

#[tokio::test(start_paused = true)]
async fn a_hanging_api_server_costs_the_lead_in_time() {
    let (kubernetes, log) = (kubernetes(), Log::default());
    let a = candidate(&kubernetes, "a", clock(&kubernetes), &log);
    seconds(60).await;
    let stuck = FaultAction::delay(Duration::from_secs(10_000));
    kubernetes.inject(Fault::new(stuck).resource("leases").times(1000));
    let start = Instant::now();
    assert!(matches!(a.running.await.unwrap(), Err(Error::Lost(_))));
    assert!(start.elapsed() < Duration::from_secs(13), "{:?}", start.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_short_outage_is_survived() {
    let (kubernetes, log) = (kubernetes(), Log::default());
    let a = candidate(&kubernetes, "a", clock(&kubernetes), &log);
    seconds(60).await;
    kubernetes.inject(Fault::status(500).resource("leases").times(6));
    seconds(60).await;
    assert!(!a.running.is_finished());
    assert_eq!(lease(&kubernetes)["spec"]["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_leader_whose_lease_was_taken_stops_at_once() {
    let (kubernetes, log) = (kubernetes(), Log::default());
    let a = candidate(&kubernetes, "a", clock(&kubernetes), &log);
    seconds(60).await;
    let taken = json!({"spec": {"holderIdentity": "thief"}});
    kubernetes.merge("Lease", "kube-system", "cloud-controller-manager", &taken).unwrap();
    let start = Instant::now();
    assert_eq!(a.running.await.unwrap(), Err(Error::Lost("thief holds the lease".into())));
    assert!(start.elapsed() <= Duration::from_secs(3), "{:?}", start.elapsed());
    assert_eq!(lease(&kubernetes)["spec"]["holderIdentity"], "thief");
}

/// Candidates wait 15 s from the last write that they saw. A leader that counted its 10 s from its next attempt would
/// lead two seconds too long.
#[tokio::test(start_paused = true)]
async fn the_renew_deadline_counts_from_the_last_success() {
    for late in [0, 500, 1000, 1500, 1900] {
        let (kubernetes, log) = (kubernetes(), Log::default());
        let a = candidate(&kubernetes, "a", clock(&kubernetes), &log);
        seconds(60).await;
        let updates = kubernetes.requests("update", "leases");
        while kubernetes.requests("update", "leases") == updates {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let renewed = Instant::now();
        tokio::time::sleep(Duration::from_millis(late)).await;
        kubernetes.inject(
            Fault::new(FaultAction::delay(Duration::from_secs(10_000))).resource("leases").times(1000),
        );
        assert!(matches!(a.running.await.unwrap(), Err(Error::Lost(_))));
        let led = renewed.elapsed();
        assert!(led <= Duration::from_millis(10_010), "{late} ms after a renewal: led for {led:?} more");
    }
}

#[tokio::test(start_paused = true)]
async fn a_standby_says_once_that_it_waits_and_for_whom() {
    let (captured, _guard) = Captured::of_this_thread();
    let (kubernetes, log) = (kubernetes(), Log::default());
    let a = candidate(&kubernetes, "a", clock(&kubernetes), &log);
    seconds(1).await;
    let b = candidate(&kubernetes, "b", clock(&kubernetes), &log);
    seconds(600).await;
    let text = captured.text();
    let waiting: Vec<_> = text.lines().filter(|line| line.contains("waiting to become leader")).collect();
    assert_eq!(waiting.len(), 1, "{text}");
    assert!(waiting[0].contains("leader=\"a\""), "{}", waiting[0]);
    drop((a, b));
}

#[tokio::test(start_paused = true)]
async fn a_hanging_api_server_does_not_hold_up_the_release() {
    let (kubernetes, log) = (kubernetes(), Log::default());
    let a = candidate(&kubernetes, "a", clock(&kubernetes), &log);
    seconds(60).await;
    kubernetes.inject(Fault::new(FaultAction::delay(Duration::from_secs(10_000))).times(1000));
    let start = Instant::now();
    a.stop.cancel();
    assert_eq!(a.running.await.unwrap(), Ok(Some(())));
    assert!(start.elapsed() <= Duration::from_secs(4), "{:?}", start.elapsed());
}

/// A Go replica holds the Lease, renews it for a while, and dies. The opposite direction is the release in the first
/// test, which client-go reads.
#[tokio::test(start_paused = true)]
async fn a_go_replica_is_respected_and_followed() {
    let (kubernetes, log) = (kubernetes(), Log::default());
    kubernetes
        .create(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": "cloud-controller-manager", "namespace": "kube-system", "labels": {"a": "b"}},
            "spec": {"acquireTime": "2020-01-01T11:22:33.000045Z", "holderIdentity": "go_1",
                     "leaseDurationSeconds": 30, "leaseTransitions": 7, "renewTime": "2020-01-01T12:00:00.000000Z"},
        }))
        .unwrap();
    let a = candidate(&kubernetes, "a", clock(&kubernetes), &log);
    for second in 0..60 {
        // Its clock is years behind, which must not matter.
        let renew = json!({"spec": {"renewTime": format!("2020-01-01T12:{:02}:{:02}.000000Z", second / 6, second % 6 * 10)}});
        kubernetes.merge("Lease", "kube-system", "cloud-controller-manager", &renew).unwrap();
        seconds(10).await;
        assert_eq!(leaders(&log).len(), 0, "after {second} renewals");
    }
    seconds(15).await;
    assert_eq!(leaders(&log).len(), 0, "its own duration of 30 s counts");
    seconds(15).await;
    assert_eq!(leaders(&log), ["a"]);
    let held = lease(&kubernetes);
    assert_eq!(held["spec"]["leaseTransitions"], 8);
    assert_eq!(held["spec"]["leaseDurationSeconds"], 15);
    assert_eq!(held["metadata"]["labels"], json!({"a": "b"}));
    drop(a);
}

#[tokio::test(start_paused = true)]
async fn of_many_that_start_together_one_leads() {
    for round in 0..4 {
        let (kubernetes, log) = (kubernetes(), Log::default());
        let names: Vec<_> = (0..8).map(|number| format!("c{number}-{round}")).collect();
        let all: Vec<_> =
            names.iter().map(|name| candidate(&kubernetes, name, clock(&kubernetes), &log)).collect();
        seconds(60).await;
        assert_eq!(leaders(&log).len(), 1);
        drop(all);
    }
}

#[tokio::test(start_paused = true)]
async fn renewing_costs_one_request_and_is_healthy() {
    let kubernetes = kubernetes();
    let config = Config::new("a");
    let elector =
        Elector::new(client(&kubernetes), config, clock(&kubernetes), Arc::new(NoObserver)).unwrap();
    let check = elector.health_check();
    let stop = CancellationToken::new();
    let running = tokio::spawn(elector.run(stop.clone(), |stop| async move { stop.cancelled().await }));
    seconds(200).await;
    assert_eq!(check.name(), "leaderElection");
    assert_eq!(check.check(), Ok(()));
    assert_eq!(kubernetes.requests("get", "leases"), 1);
    let updates = kubernetes.requests("update", "leases");
    assert!((95..=100).contains(&updates), "{updates} renewals");
    stop.cancel();
    assert_eq!(running.await.unwrap(), Ok(Some(())));
}
