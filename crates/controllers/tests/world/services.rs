use std::time::Duration;

use cloud::{Notice, ServiceError};
use kubernetes_simulator::{Fault, FaultAction};
use serde_json::json;

use crate::cloud::{Call, retry};
use crate::world::{World, seconds};

#[tokio::test(start_paused = true)]
async fn a_service_gets_its_finalizer_first_then_its_address_and_the_events() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    assert_eq!(world.addresses("web"), ["20.0.0.1"]);
    assert!(world.has_finalizer("web"));
    assert_eq!(world.cloud.ensured_without_finalizer(), [""; 0]);
    assert_eq!(
        world.events("web"),
        [
            "service-controller Normal EnsuringLoadBalancer: Ensuring load balancer",
            "service-controller Normal EnsuredLoadBalancer: Ensured load balancer",
        ]
    );
    assert_eq!(world.cloud.ensures("web"), 1, "its own writes are no reason to look again");
}

/// LB-330 for the status: one entry per address, in order, with only the address.
#[tokio::test(start_paused = true)]
async fn lb_330_dual_stack_status_has_two_bare_entries() {
    let mut world = World::new();
    world.cloud.address("web", &["20.0.0.1", "2603::1"]);
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    assert_eq!(world.addresses("web"), ["20.0.0.1", "2603::1"]);
    let ingress = world.get("web")["status"]["loadBalancer"]["ingress"].clone();
    for entry in ingress.as_array().unwrap() {
        // `ipMode` is added by the API server.
        assert!(entry.get("hostname").is_none() && entry.get("ports").is_none(), "{entry}");
    }
}

#[tokio::test(start_paused = true)]
async fn services_of_other_types_and_classes_are_left_alone() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("plain", json!({"spec": {"type": "ClusterIP"}}));
    world.service("other", json!({"spec": {"loadBalancerClass": "example.com/other"}}));
    seconds(3600).await;
    assert_eq!(world.cloud.calls(), []);
    assert_eq!(world.status_patches(), 0);
    assert_eq!(world.events("plain").len() + world.events("other").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn two_hundred_services_are_asked_for_at_once() {
    let mut world = World::new();
    world.cloud.writes_take(Duration::from_secs(30));
    world.start(World::services()).await;
    for number in 0..200 {
        world.service(&format!("web-{number}"), json!({}));
    }
    seconds(35).await;
    assert_eq!(world.cloud.most_running(), 200);
    for number in 0..200 {
        assert_eq!(world.addresses(&format!("web-{number}")).len(), 1, "web-{number}");
    }
    assert_eq!(world.status_patches(), 400, "a finalizer and a status each");
}

#[tokio::test(start_paused = true)]
async fn a_second_run_over_the_same_state_writes_nothing_to_services() {
    let mut world = World::new();
    world.start(World::services()).await;
    for number in 0..10 {
        world.service(&format!("web-{number}"), json!({}));
    }
    seconds(5).await;
    let before = world.status_patches();
    world.restart(World::services()).await;
    seconds(3600).await;
    assert_eq!(world.cloud.ensures("web-3"), 2, "asked for once in each run");
    assert_eq!(world.status_patches(), before);
}

#[tokio::test(start_paused = true)]
async fn a_broken_watch_is_taken_up_again_without_new_work() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    world.service("gone", json!({}));
    seconds(5).await;
    world.kubernetes.inject(Fault::status(500).verb("watch").resource("services").times(3));
    world.kubernetes.drop_watches();
    world.delete("gone");
    world.kubernetes.compact();
    seconds(300).await;
    assert_eq!(world.cloud.ensures("web"), 1);
    assert_eq!(world.cloud.deletes(), 1);
    assert!(world.get("gone").is_null());
}

#[tokio::test(start_paused = true)]
async fn deleting_removes_the_load_balancer_and_then_the_service() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    world.cloud.writes_take(Duration::from_secs(30));
    world.delete("web");
    seconds(20).await;
    assert!(world.has_finalizer("web"), "the Service stays while the cloud works");
    seconds(20).await;
    assert!(world.get("web").is_null());
    assert_eq!(world.cloud.load_balancers(), 0);
    assert_eq!(
        world.events("web")[2..],
        [
            "service-controller Normal DeletingLoadBalancer: Deleting load balancer",
            "service-controller Normal DeletedLoadBalancer: Deleted load balancer",
        ]
    );
    assert_eq!(world.cloud.deletes(), 1);
}

/// Our finalizer was removed, and another one keeps the Service: it can get none any more, and is cleaned up.
#[tokio::test(start_paused = true)]
async fn a_deletion_without_our_finalizer_cleans_up() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    world.change("web", json!({"metadata": {"finalizers": ["example.com/mine"]}}));
    world.delete("web");
    seconds(5).await;
    assert_eq!(world.cloud.load_balancers(), 0);
    assert_eq!(world.addresses("web").len(), 0);
    assert!(!world.get("web").is_null(), "the other finalizer keeps it");
    world.change("web", json!({"metadata": {"finalizers": []}}));
    seconds(1).await;
    assert!(world.get("web").is_null());
    assert!(!world.events("web").iter().any(|event| event.contains("Warning")), "{:?}", world.events("web"));
}

/// NODE-090.
#[tokio::test(start_paused = true)]
async fn node_090_deleting_a_service_without_a_load_balancer_only_removes_the_finalizer() {
    let mut world = World::new();
    world.service("web", json!({"metadata": {"finalizers": [k8s::names::LOAD_BALANCER_FINALIZER]}}));
    world.delete("web");
    world.start(World::services()).await;
    assert!(world.get("web").is_null());
    assert_eq!(world.events("web"), ["service-controller Normal DeletedLoadBalancer: Deleted load balancer"]);
    assert_eq!(world.cloud.calls(), [Call::PrepareDeletion("web".into())]);
}

#[tokio::test(start_paused = true)]
async fn another_type_cleans_up_and_clears_the_status() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({"metadata": {"finalizers": ["example.com/mine"]}}));
    seconds(1).await;
    assert_eq!(world.addresses("web").len(), 1);
    world.change("web", json!({"spec": {"type": "ClusterIP"}}));
    seconds(1).await;
    assert_eq!(world.cloud.load_balancers(), 0);
    assert_eq!(world.addresses("web").len(), 0);
    assert_eq!(world.get("web")["metadata"]["finalizers"], json!(["example.com/mine"]), "others' stay");
    world.change("web", json!({"spec": {"type": "LoadBalancer"}}));
    seconds(1).await;
    assert_eq!(world.addresses("web").len(), 1, "and back again");
    assert!(world.has_finalizer("web"));
    assert_eq!(world.get("web")["metadata"]["finalizers"].as_array().unwrap().len(), 2);
}

/// NODE-089.
#[tokio::test(start_paused = true)]
async fn node_089_changes_that_matter_are_applied_and_others_are_not() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    world.change("web", json!({"metadata": {"labels": {"a": "b"}}, "spec": {"selector": {"app": "new"}}}));
    seconds(600).await;
    assert_eq!(world.cloud.ensures("web"), 1);
    world.change("web", json!({"metadata": {"annotations": {"a": "b"}}}));
    seconds(1).await;
    assert_eq!(world.cloud.ensures("web"), 2);
    world.change("web", json!({"spec": {"ports": [{"port": 81}]}}));
    seconds(1).await;
    assert_eq!(world.cloud.ensures("web"), 3);
}

#[tokio::test(start_paused = true)]
async fn what_azure_refuses_waits_for_a_change_and_says_why() {
    let mut world = World::new();
    world.start(World::services()).await;
    let words = "PrivateIPAddressNotInSubnet: Private static IP address 10.9.9.9 does not belong to the range of \
                 subnet prefix 10.240.0.0/16; change spec.loadBalancerIP";
    world.cloud.refuse("bad", words);
    world.service("bad", json!({}));
    for number in 0..50 {
        world.service(&format!("good-{number}"), json!({}));
    }
    seconds(10).await;
    for number in 0..50 {
        assert_eq!(world.addresses(&format!("good-{number}")).len(), 1);
    }
    let event = format!(
        "service-controller Warning SyncLoadBalancerFailed: Error syncing load balancer: \
         failed to ensure load balancer: {words}"
    );
    assert_eq!(world.events("bad")[1], event);
    world.change("bad", json!({"metadata": {"labels": {"a": "b"}}}));
    world.kubernetes.drop_watches();
    world.kubernetes.compact();
    seconds(86_400).await;
    assert_eq!(world.cloud.ensures("bad"), 1, "a day later it was asked for once");
    world.change("bad", json!({"spec": {"ports": [{"port": 81}]}}));
    seconds(1).await;
    assert_eq!(world.cloud.ensures("bad"), 2, "a change is worth a try");
}

#[tokio::test(start_paused = true)]
async fn failures_back_off_and_a_wait_that_azure_names_is_kept() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.cloud.fail("web", (0..3).map(|_| retry("busy", None)));
    world.cloud.fail("web", [retry("throttled", Some(77)), retry("busy", None)]);
    world.service("web", json!({}));
    seconds(1000).await;
    let times = world.cloud.times(|call| matches!(call, Call::Ensure(..)));
    let waits: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(waits, [5, 10, 20, 77, 40]);
    assert_eq!(world.addresses("web").len(), 1);
    assert_eq!(world.count_of("web", "SyncLoadBalancerFailed"), 5);
}

/// LB-333.
#[tokio::test(start_paused = true)]
async fn lb_333_without_an_address_the_status_stays_and_it_is_tried_again() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.cloud.address("web", &["20.0.0.7"]);
    world.service("web", json!({}));
    seconds(1).await;
    assert_eq!(world.addresses("web"), ["20.0.0.7"]);
    world.cloud.address("late", &[]);
    world.service("late", json!({}));
    seconds(16).await;
    assert_eq!(world.cloud.ensures("late"), 3);
    assert_eq!(world.addresses("late").len(), 0);
    assert_eq!(world.count_of("late", "EnsuredLoadBalancer"), 0);
    // A failing ensure of a Service with an address keeps that address.
    world.cloud.fail("web", [retry("public IP without an address", None)]);
    world.change("web", json!({"metadata": {"annotations": {"a": "b"}}}));
    seconds(1).await;
    assert_eq!(world.addresses("web"), ["20.0.0.7"]);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_was_replaced_under_its_name_is_cleaned_up_first() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    let old = world.get("web")["metadata"]["uid"].as_str().unwrap().to_owned();
    world.change("web", json!({"metadata": {"finalizers": null}}));
    world.delete("web");
    world.service("web", json!({}));
    let new = world.get("web")["metadata"]["uid"].as_str().unwrap().to_owned();
    assert_ne!(old, new);
    seconds(1).await;
    let calls: Vec<_> =
        world.cloud.calls().into_iter().filter(|c| !matches!(c, Call::PrepareDeletion(_))).collect();
    let (ensure, delete) =
        (|uid: &str| Call::Ensure("web".into(), uid.into()), Call::Delete("web".into(), old.clone()));
    assert_eq!(calls, [ensure(&old), delete, ensure(&new)]);
    assert_eq!(world.cloud.load_balancers(), 1);
    assert_eq!(world.addresses("web").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_deleted_by_force_leaves_nothing_behind() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    world.cloud.fail_deletes([retry("busy", None)]);
    world.change("web", json!({"metadata": {"finalizers": null}}));
    world.delete("web");
    assert!(world.get("web").is_null());
    seconds(1).await;
    assert_eq!(world.cloud.load_balancers(), 1);
    assert_eq!(world.reasons("web").last().unwrap(), "DeleteLoadBalancerFailed");
    seconds(5).await;
    assert_eq!(world.cloud.load_balancers(), 0);
    assert_eq!(world.reasons("web").last().unwrap(), "DeletedLoadBalancer");
}

/// LB-045.
#[tokio::test(start_paused = true)]
async fn lb_045_a_deletion_that_is_repeated_asks_for_no_second_one() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    world.kubernetes.inject(Fault::status(500).verb("patch").resource("services/status").times(2));
    world.delete("web");
    seconds(60).await;
    assert!(world.get("web").is_null());
    assert_eq!(world.cloud.deletes(), 1);
    assert_eq!(world.cloud.calls().iter().filter(|call| matches!(call, Call::PrepareDeletion(_))).count(), 3);
    assert_eq!(world.count_of("web", "DeletedLoadBalancer"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_refused_deletion_is_tried_on_slowly() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    let refusal = || ServiceError::Refused { message: "AuthorizationFailed: no".into(), notices: vec![] };
    world.cloud.fail_deletes([refusal(), refusal()]);
    world.delete("web");
    seconds(2000).await;
    let times = world.cloud.times(|call| matches!(call, Call::Delete(..)));
    assert_eq!(times.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>(), [300, 300]);
    assert!(world.get("web").is_null());
    let failed = world.events("web").into_iter().find(|event| event.contains("SyncLoadBalancerFailed"));
    assert!(failed.unwrap().ends_with("failed to delete load balancer: AuthorizationFailed: no"));
}

#[tokio::test(start_paused = true)]
async fn notices_become_events_of_the_provider() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.service("other", json!({}));
    seconds(1).await;
    for (service, warning, reason) in [
        ("web", true, "InvalidSourceRanges"),
        ("other", false, "ConflictConfiguration"),
        ("absent", true, "X"),
    ] {
        let service = k8s::ObjectKey::new("default", service);
        world.cloud.notify("web", Notice { service, warning, reason, message: "10.0.0.0/40".into() });
    }
    world.service("web", json!({}));
    seconds(1).await;
    let from_provider = |name: &str| -> Vec<String> {
        world.events(name).into_iter().filter(|e| e.starts_with("azure-cloud-provider")).collect()
    };
    assert_eq!(from_provider("web"), ["azure-cloud-provider Warning InvalidSourceRanges: 10.0.0.0/40"]);
    assert_eq!(from_provider("other"), ["azure-cloud-provider Normal ConflictConfiguration: 10.0.0.0/40"]);
}

#[tokio::test(start_paused = true)]
async fn failing_writes_to_kubernetes_are_tried_again() {
    let mut world = World::new();
    world.start(World::services()).await;
    world.kubernetes.inject(Fault::status(403).verb("patch").resource("services/status"));
    world.service("web", json!({}));
    seconds(1).await;
    assert_eq!(world.cloud.calls(), [], "no finalizer, no call");
    world.kubernetes.clear_faults();
    seconds(5).await;
    assert_eq!(world.addresses("web").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_service_without_nodes_is_served_with_a_warning() {
    let mut world = World::new();
    world.kubernetes.delete("Node", "", "n1").unwrap();
    world.start(World::services()).await;
    world.service("web", json!({}));
    seconds(1).await;
    assert_eq!(
        world.reasons("web"),
        ["EnsuringLoadBalancer", "UnAvailableLoadBalancer", "EnsuredLoadBalancer"]
    );
    assert_eq!(world.addresses("web").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_list_or_a_watch_without_an_answer_is_asked_for_again() {
    for verb in ["list", "watch"] {
        for resource in ["services", "nodes"] {
            let mut world = World::new();
            let never = FaultAction::delay(Duration::from_secs(1_000_000));
            world.kubernetes.inject(Fault::new(never).verb(verb).resource(resource));
            world.start(World::services()).await;
            world.service("web", json!({}));
            seconds(120).await;
            assert_eq!(world.addresses("web").len(), 1, "{verb} {resource}");
        }
    }
}
