//! SIGTERM: what a stop in good order leaves behind.

use std::time::Duration;

use azure_simulator::{Fault, FaultAction, LatencyProfile};
use testkit::{World, run, service};
use tokio::time::{Instant, sleep};

/// What Kubernetes gives a pod is 30 s; a leader takes up to three more to give its Lease away.
const MAX_STOP: Duration = Duration::from_secs(17);

fn warnings(world: &World, count: usize) -> Vec<String> {
    let events = (0..count).flat_map(|number| world.events(&format!("shop/s{number:03}")));
    events.filter(|event| event.starts_with("Warning")).collect()
}

fn lease_holder(world: &World) -> String {
    let lease = world.kubernetes.get("Lease", "kube-system", "aks-managed-resource-locker").unwrap();
    lease["spec"]["holderIdentity"].as_str().unwrap().to_owned()
}

async fn stop(world: &mut World) -> Duration {
    let begin = Instant::now();
    world.stop().await;
    begin.elapsed()
}

#[test]
fn a_stop_in_the_middle_of_200_services_loses_no_work_and_tells_nobody_of_a_failure() {
    run(async || {
        const COUNT: usize = 200;
        let mut world = World::builder().latency(LatencyProfile::typical()).start().await;
        for number in 0..COUNT {
            world.create(service(&format!("shop/s{number:03}")));
        }
        sleep(Duration::from_secs(6)).await;
        let took = stop(&mut world).await;
        assert!(took <= MAX_STOP, "{took:?}");
        assert_eq!(warnings(&world, COUNT), Vec::<String>::new());
        assert_eq!(lease_holder(&world), "");
        let served = |world: &World| {
            (0..COUNT).filter(|number| !world.addresses(&format!("shop/s{number:03}")).is_empty()).count()
        };
        assert!(served(&world) < COUNT, "the stop came in the middle");
        // Operations that were begun end by themselves, and the next process takes up what is there.
        world.start();
        world.settle().await;
        assert_eq!(served(&world), COUNT);
        assert_eq!(warnings(&world, COUNT), Vec::<String>::new());
    });
}

#[test]
fn an_azure_that_does_not_answer_does_not_hold_up_the_stop() {
    run(async || {
        let mut world = World::builder().start().await;
        let never = FaultAction::Delay { ms: 100_000_000 };
        world.azure.inject(Fault::new(never));
        for number in 0..5 {
            world.create(service(&format!("shop/s{number:03}")));
        }
        sleep(Duration::from_secs(5)).await;
        let took = stop(&mut world).await;
        assert!(took <= MAX_STOP, "{took:?}");
        assert_eq!(warnings(&world, 5), Vec::<String>::new());
        assert_eq!(lease_holder(&world), "");
    });
}
