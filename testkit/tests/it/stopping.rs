//! SIGTERM: the state after an orderly stop.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arm::{Clock, Credential};
use async_trait::async_trait;
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::time::OffsetDateTime;
use azure_simulator::{Fault, FaultAction, typical_latency};
use testkit::{World, run, service};
use tokio::time::{Instant, sleep};

/// Kubernetes gives a pod 30 s; a leader takes up to three more to release its Lease.
const MAX_STOP: Duration = Duration::from_secs(17);

fn warnings(world: &World, count: usize) -> Vec<String> {
    let events = (0..count).flat_map(|number| world.events(&name(number)));
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

/// Issues tokens that are valid for a moment, until it stops answering: a metadata service, or an authority.
#[derive(Debug)]
struct Authority {
    clock: Clock,
    silent: AtomicBool,
}

#[async_trait]
impl TokenCredential for Authority {
    async fn get_token(
        &self,
        _: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        if self.silent.load(Ordering::Relaxed) {
            pending::<()>().await;
        }
        let end = OffsetDateTime::UNIX_EPOCH + self.clock.since_1970() + Duration::from_secs(2);
        Ok(AccessToken::new("token".to_owned(), end))
    }
}

fn name(number: usize) -> String {
    format!("shop/s{number:03}")
}

/// Stops the controllers a few seconds after `COUNT` Services were created; the next start finishes the work.
async fn stop_among_200(mut world: World, silence: impl AsyncFn(&World), speak: impl FnOnce(&World)) {
    const COUNT: usize = 200;
    for number in 0..COUNT {
        world.create(service(&name(number)));
    }
    sleep(Duration::from_secs(6)).await;
    silence(&world).await;
    let took = stop(&mut world).await;
    assert!(took <= MAX_STOP, "{took:?}");
    assert_eq!(warnings(&world, COUNT), Vec::<String>::new());
    assert_eq!(lease_holder(&world), "");
    let served =
        |world: &World| (0..COUNT).filter(|number| !world.addresses(&name(*number)).is_empty()).count();
    assert!(served(&world) < COUNT, "the stop came in the middle");
    speak(&world);
    // Started operations end by themselves, and the next process continues from the observed state.
    world.start();
    world.settle().await;
    assert_eq!(served(&world), COUNT);
    assert_eq!(warnings(&world, COUNT), Vec::<String>::new());
}

#[test]
fn a_stop_in_the_middle_of_200_services_loses_no_work_and_tells_nobody_of_a_failure() {
    run(async || {
        let world = World::builder().latency(typical_latency()).start().await;
        stop_among_200(world, async |_| {}, |_| {}).await;
    });
}

#[test]
fn nor_does_a_stop_while_neither_azure_nor_the_metadata_service_answers() {
    run(async || {
        let clock = Clock::following_tokio(Duration::from_secs(1_767_225_600));
        let authority = Arc::new(Authority { clock: clock.clone(), silent: AtomicBool::new(false) });
        let credential = Credential::from_source(Arc::clone(&authority) as _, "a managed identity", clock);
        let builder = World::builder().latency(typical_latency()).credential(credential);
        let silence = async |world: &World| {
            world.azure.inject(Fault::new(FaultAction::Delay { ms: 100_000_000 }));
            authority.silent.store(true, Ordering::Relaxed);
            // The last tokens expire: some calls now wait for an answer, and some for a token.
            sleep(Duration::from_secs(5)).await;
        };
        let speak = |world: &World| {
            world.azure.clear_faults();
            authority.silent.store(false, Ordering::Relaxed);
        };
        stop_among_200(builder.start().await, silence, speak).await;
    });
}

#[test]
fn a_stop_ends_the_wait_for_the_first_answers_of_azure() {
    run(async || {
        let mut world = World::builder().build();
        world.azure.inject(Fault::new(FaultAction::Delay { ms: 100_000_000 }));
        world.create(service("shop/s000"));
        world.start();
        sleep(Duration::from_secs(5)).await;
        let took = stop(&mut world).await;
        assert!(took <= MAX_STOP, "{took:?}");
        assert_eq!(warnings(&world, 1), Vec::<String>::new());
        assert_eq!(lease_holder(&world), "");
        world.azure.clear_faults();
        world.start();
        world.settle().await;
        world.address("shop/s000");
    });
}
