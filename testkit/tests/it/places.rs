//! More Services than places on a load balancer.

use std::time::Duration;

use azure_simulator::{RequestKind, typical_latency};
use testkit::types::PUBLIC_IPS;
use testkit::{World, run, service};
use tokio::time::{Instant, sleep};

/// The number of Services.
const SERVICES: usize = 1000;

/// The maximum number of frontends of a load balancer.
const PLACES: usize = 600;

/// The maximum interval of retries.
const MAX_BACKOFF: Duration = Duration::from_secs(300);

fn name(number: usize) -> String {
    format!("shop/s{number:03}")
}

fn is_served(world: &World, number: usize) -> bool {
    !world.addresses(&name(number)).is_empty()
}

/// Places are assigned in order of arrival. A Service without a place has an event, makes no calls to Azure, and gets
/// the next free place.
#[test]
#[ignore = "hours of 400 Services that try again take a minute without optimisation: .ci/run runs it"]
fn a_thousand_services_share_600_places_without_refusals_and_wait_for_the_next_that_is_free() {
    run(async || {
        let world = World::builder().latency(typical_latency()).start().await;
        world.azure.clear_journal();
        let begin = Instant::now();
        for number in 0..SERVICES {
            world.create(service(&name(number)));
        }
        sleep(Duration::from_secs(3600).saturating_sub(begin.elapsed())).await;

        let (served, waiting): (Vec<_>, Vec<_>) =
            (0..SERVICES).partition(|number| is_served(&world, *number));
        assert_eq!(served.len(), PLACES);
        assert_eq!(
            world.azure.documents_of_type(PUBLIC_IPS).len(),
            PLACES,
            "no address is bought without a place"
        );
        assert_eq!(world.writes(PUBLIC_IPS), PLACES);
        for number in &waiting {
            let mut events = world.events(&name(*number));
            events.retain(|event| event.starts_with("Warning "));
            let says_so = matches!(&events[..], [event] if event.contains("600 frontends"));
            assert!(says_so, "{}: {events:#?}", name(*number));
        }
        let journal = world.azure.journal();
        let refused = journal.entries.iter().filter(|entry| {
            matches!(entry.kind, RequestKind::Write | RequestKind::Delete) && entry.status >= 400
        });
        let refused: Vec<String> = refused.map(|e| format!("{} {} {}", e.method, e.path, e.status)).collect();
        assert!(refused.len() <= 20, "{} refused writes: {refused:#?}", refused.len());

        world.delete(&name(served[0]));
        let next = |world: &World| waiting.iter().any(|number| is_served(world, *number));
        world.until("the place that is free serves the next", MAX_BACKOFF * 2, next).await;
        let now = (0..SERVICES).filter(|number| is_served(&world, *number)).count();
        assert_eq!(now, PLACES);
    });
}
