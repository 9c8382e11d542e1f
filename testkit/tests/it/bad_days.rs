//! Azure throttles and loses answers, and others write the same resources.

use std::time::Duration;

use azure_simulator::{Actor, ActorAction, Fault, FaultAction};
use serde_json::json;
use testkit::types::{INSTANCES, LOAD_BALANCERS, PUBLIC_IPS, SCALE_SETS, SECURITY_GROUPS};
use testkit::{AzureState, Finding, World, run, service};

const SERVICES: [&str; 3] = ["shop/a", "shop/b", "shop/c"];

/// LB-047: a write after a concurrent write by others is answered with 412; the resource is read and planned again.
#[test]
fn lb_047_a_foreign_write_between_our_read_and_write_is_kept() {
    run(async || {
        let world = World::builder().start().await;
        world.create(service("shop/one"));
        world.settle().await;
        world.azure.clear_journal();
        let patch = json!({"tags": {"owner": "somebody"}});
        world.azure.inject(
            Fault::new(FaultAction::Interfere { id: None, patch })
                .on_method("PUT")
                .on_type(LOAD_BALANCERS)
                .times(1),
        );
        world.create(service("shop/two"));
        world.settle().await;
        assert_eq!(world.put_statuses(LOAD_BALANCERS), [412, 200]);
        let balancer = world.azure.document(&world.load_balancer()).unwrap();
        assert_eq!(balancer["tags"]["owner"], "somebody");
        for key in ["shop/one", "shop/two"] {
            assert_eq!(world.reached(world.address(key), 80).len(), 3);
        }
    });
}

/// The end state of three Services after `fault` has struck the writes of each type.
async fn end(action: Option<FaultAction>) -> AzureState {
    let world = World::builder().start().await;
    for kind in [LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS, SCALE_SETS, INSTANCES] {
        if let Some(action) = &action {
            world
                .azure
                .inject(Fault::new(action.clone()).on_method("PUT").on_type(kind).times(2).named("bad"));
        }
    }
    for key in SERVICES {
        world.create(service(key));
    }
    world.settle().await;
    if action.is_some() {
        let journal = world.azure.journal();
        let struck = journal.entries.iter().filter(|entry| entry.fault.as_deref() == Some("bad")).count();
        assert!(struck >= 5, "only {struck} requests were struck");
    }
    for key in SERVICES {
        assert_eq!(world.reached(world.address(key), 80).len(), 3, "{key}");
    }
    world.azure_state()
}

async fn comes_to_the_same_end(action: FaultAction) {
    let differences = end(None).await.differences(&end(Some(action)).await);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn throttling_is_waited_for_and_changes_nothing_in_the_end() {
    run(async || {
        comes_to_the_same_end(FaultAction::Throttle { retry_after: Some(17) }).await;
    });
}

#[test]
fn lost_answers_make_nothing_twice() {
    run(async || {
        comes_to_the_same_end(FaultAction::DropAnswer).await;
    });
}

#[test]
fn lost_requests_are_made_up_for() {
    run(async || {
        comes_to_the_same_end(FaultAction::DropRequest).await;
    });
}

/// A policy overwrites a tag that `azure.json` sets. The conflict is not resolved, but Services are served all the
/// same, and the load balancer is not written again and again for it.
#[test]
fn a_policy_that_sets_our_tag_back_holds_up_no_service() {
    run(async || {
        let world = World::builder().config(&json!({"tags": "costcenter=7"})).start().await;
        let tags = [("costcenter".to_owned(), "policy".to_owned())].into();
        let policy = ActorAction::Tag { tags, replace: true, after_ms: None };
        world.azure.set_actor(Actor::new("policy", policy).on_type(LOAD_BALANCERS));
        let is_fight = |finding: &Finding| finding.to_string().contains("costcenter");
        for key in SERVICES {
            world.create(service(key));
            world.settle_despite(is_fight).await;
        }
        let writes = world.writes(LOAD_BALANCERS);
        // Each Service makes another difference of it, which the resync finds three or four times, five minutes apart,
        // before it is left alone.
        assert!((3..=18).contains(&writes), "{writes} writes for three Services");
        tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
        let later = world.writes(LOAD_BALANCERS) - writes;
        // The intervals grow to an hour.
        assert!(later <= 28, "{later} more writes in a day");
        for key in SERVICES {
            assert_eq!(world.reached(world.address(key), 80).len(), 3, "{key}");
            let warnings: Vec<String> =
                world.events(key).into_iter().filter(|event| event.starts_with("Warning ")).collect();
            assert_eq!(warnings, Vec::<String>::new(), "{key}");
        }
        let balancer = world.azure.document(&world.load_balancer()).unwrap();
        assert_eq!(balancer["tags"]["costcenter"], "policy");
    });
}
