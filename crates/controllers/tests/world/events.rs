use std::sync::Arc;

use controllers::{NoObserver, Reference, recorder};
use kubernetes_simulator::{Fault, FaultAction};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::world::{World, client, clock, seconds};

fn about(name: &str) -> Reference {
    Reference {
        api_version: "v1",
        kind: "Service",
        namespace: "default".into(),
        name: name.into(),
        uid: "1-2-3".into(),
    }
}

#[tokio::test(start_paused = true)]
async fn events_look_as_client_go_writes_them_and_repeats_are_counted() {
    let world = World::new();
    let (recorder, writer) = recorder(
        client(&world.kubernetes),
        clock(&world.kubernetes),
        "host",
        "service-controller",
        Arc::new(NoObserver),
    );
    tokio::spawn(writer.run(CancellationToken::new()));
    for _ in 0..3 {
        recorder.warning(about("web"), "SyncLoadBalancerFailed", "no");
        seconds(5).await;
    }
    recorder.normal(about("web"), "EnsuredLoadBalancer", "x".repeat(3000));
    seconds(1).await;
    let events = world.kubernetes.list_in("Event", "default");
    assert_eq!(events.len(), 2);
    let repeated = events.iter().find(|event| event["reason"] == "SyncLoadBalancerFailed").unwrap();
    assert_eq!(repeated["count"], 3);
    assert_eq!(repeated["firstTimestamp"], "2026-01-01T00:00:00Z");
    assert_eq!(repeated["lastTimestamp"], "2026-01-01T00:00:10Z");
    assert_eq!(repeated["source"], json!({"component": "service-controller", "host": "host"}));
    let involved = &repeated["involvedObject"];
    assert_eq!((&involved["kind"], &involved["uid"]), (&json!("Service"), &json!("1-2-3")));
    let name = repeated["metadata"]["name"].as_str().unwrap();
    let hex = name.strip_prefix("web.").unwrap();
    assert!(u64::from_str_radix(hex, 16).is_ok(), "{name}");
    let long = events.iter().find(|event| event["reason"] == "EnsuredLoadBalancer").unwrap();
    assert!(long["message"].as_str().unwrap().len() <= 1024);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_has_expired_is_begun_anew_and_failing_writes_are_tried_again() {
    let world = World::new();
    let (recorder, writer) = recorder(
        client(&world.kubernetes),
        clock(&world.kubernetes),
        "",
        "service-controller",
        Arc::new(NoObserver),
    );
    tokio::spawn(writer.run(CancellationToken::new()));
    // kube's client retries 503 by itself; this outlasts that.
    world.kubernetes.inject(Fault::status(500).verb("create").resource("events").times(2));
    recorder.normal(about("web"), "Synced", "done");
    seconds(10).await;
    let events = world.kubernetes.list("Event");
    assert_eq!(events.len(), 1);
    world.kubernetes.delete("Event", "default", events[0].name()).unwrap();
    recorder.normal(about("web"), "Synced", "done");
    seconds(1).await;
    let events = world.kubernetes.list("Event");
    assert_eq!((events.len(), &events[0]["count"]), (1, &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn events_never_hold_up_the_work() {
    let mut world = World::new();
    let stuck = FaultAction::delay(std::time::Duration::from_secs(20));
    world.kubernetes.inject(Fault::new(stuck).verb("create").resource("events").times(10_000));
    world.start(World::services()).await;
    for number in 0..100 {
        world.service(&format!("web-{number}"), json!({}));
    }
    seconds(5).await;
    for number in 0..100 {
        assert_eq!(world.addresses(&format!("web-{number}")).len(), 1);
    }
    assert!(world.kubernetes.list("Event").is_empty());
}
