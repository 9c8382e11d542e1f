//! Many Services at once.

use std::time::Duration;

use azure_simulator::{Fault, FaultAction, LatencyProfile, typical_latency};
use serde_json::json;
use testkit::types::{LOAD_BALANCERS, PUBLIC_IPS, SECURITY_GROUPS};
use testkit::{World, run, service};
use tokio::time::Instant;

fn name(number: usize) -> String {
    format!("shop/s{number:03}")
}

fn slow(public_ip: u64, load_balancer: u64) -> LatencyProfile {
    let seconds = Duration::from_secs;
    typical_latency().with("*", PUBLIC_IPS, seconds(public_ip)).with(
        "*",
        LOAD_BALANCERS,
        seconds(load_balancer),
    )
}

/// Applies Services at once and returns the time until all have addresses.
async fn serve(world: &World, count: usize) -> Duration {
    let begin = Instant::now();
    for number in 0..count {
        world.create(service(&name(number)));
    }
    world
        .until("every Service has an address", Duration::from_secs(3600), |world| {
            (0..count).all(|number| !world.addresses(&name(number)).is_empty())
        })
        .await;
    begin.elapsed()
}

async fn two_hundred(latency: LatencyProfile) {
    let mut world = World::builder().latency(latency).start().await;
    world.azure.clear_journal();
    serve(&world, 200).await;
    world.settle().await;
    assert_eq!(world.writes(PUBLIC_IPS), 200);
    let (balancers, groups) = (world.writes(LOAD_BALANCERS), world.writes(SECURITY_GROUPS));
    assert!(balancers <= 6, "{balancers} load balancer writes");
    assert!(groups <= 6, "{groups} security group writes");

    world.azure.clear_journal();
    world.restart().await;
    world.settle().await;
    assert!(world.azure.journal().counts.reads > 0, "the second run has looked");
    assert_eq!(world.changes(), Vec::<String>::new());
}

#[test]
fn two_hundred_services_take_few_writes_and_a_second_run_none_when_azure_answers_at_once() {
    run(async || {
        two_hundred(LatencyProfile::instant()).await;
    });
}

#[test]
fn two_hundred_services_take_few_writes_and_a_second_run_none_when_azure_is_typical() {
    run(async || {
        two_hundred(typical_latency()).await;
    });
}

#[test]
fn two_hundred_services_take_few_writes_and_a_second_run_none_when_azure_is_slow() {
    run(async || {
        two_hundred(slow(5, 20)).await;
    });
}

#[test]
fn five_hundred_services_have_addresses_within_75_seconds_though_a_write_takes_twenty_seconds() {
    run(async || {
        // Three consecutive writes take 61 s, and the end of each is noticed some seconds later.
        let world = World::builder().latency(slow(5, 20)).start().await;
        world.azure.clear_journal();
        let took = serve(&world, 500).await;
        assert!(took <= Duration::from_secs(75), "{took:?}");
        let throttled = world.azure.journal().entries.iter().filter(|entry| entry.status == 429).count();
        assert_eq!(throttled, 0, "the budget is known before Azure refuses");
        let balancers = world.writes(LOAD_BALANCERS);
        assert!(balancers <= 3, "{balancers} load balancer writes");
        assert_eq!(world.writes(PUBLIC_IPS), 500);
    });
}

#[test]
fn a_refused_service_among_fifty_fails_alone_in_azures_words_until_it_is_changed() {
    run(async || {
        const BAD: &str = "shop/bad";
        let mut world = World::builder().start().await;
        world.create(service(BAD).internal().annotation("azure-load-balancer-ipv4", "10.240.0.1"));
        for number in 0..50 {
            world.create(service(&name(number)).internal());
        }
        world.settle().await;
        for number in 0..50 {
            world.address(&name(number));
        }
        assert!(world.addresses(BAD).is_empty());
        let events = world.events(BAD);
        let told = |event: &&String| {
            event.starts_with("Warning ")
                && event.contains("PrivateIPAddressInReservedRange")
                && event.contains("10.240.0.1")
        };
        assert!(events.iter().any(|event| told(&event)), "{events:#?}");

        world.azure.clear_journal();
        world.end_stand_ins();
        tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
        assert_eq!(world.changes(), Vec::<String>::new(), "nothing is tried for a day");

        let key = "service.beta.kubernetes.io/azure-load-balancer-ipv4";
        world.change(BAD, &json!({"metadata": {"annotations": {key: "10.240.9.9"}}}));
        world.settle().await;
        assert_eq!(world.address(BAD).to_string(), "10.240.9.9");
    });
}

/// Creates Services and returns the time until all have addresses, to a hundredth of a second.
async fn serve_exactly(world: &World, names: &[String]) -> Duration {
    let begin = Instant::now();
    for name in names {
        world.create(service(name));
    }
    while names.iter().any(|name| world.addresses(name).is_empty()) {
        assert!(begin.elapsed() < Duration::from_secs(600), "they are served within ten minutes");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    begin.elapsed()
}

async fn delete_exactly(world: &World, names: &[String]) -> Duration {
    let begin = Instant::now();
    for name in names {
        world.delete(name);
    }
    while names.iter().any(|name| !world.service(name).is_null()) {
        assert!(begin.elapsed() < Duration::from_secs(600), "they are gone within ten minutes");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    begin.elapsed()
}

fn names(count: usize) -> Vec<String> {
    (0..count).map(name).collect()
}

fn lists_of_public_ips(world: &World) -> usize {
    let journal = world.azure.journal();
    let is_list = |path: &str| path.ends_with("/publicIPAddresses");
    journal.entries.iter().filter(|entry| entry.method == "GET" && is_list(&entry.path)).count()
}

/// No step of a Service waits for a fixed time: all time is Azure's, and that of its budget for 200 writes at once.
#[test]
fn an_azure_that_answers_at_once_is_waited_for_no_longer_than_it_takes() {
    run(async || {
        for (count, calls, milliseconds) in [(1, 24, 100), (20, 46, 100), (200, 227, 2000)] {
            let limit = Duration::from_millis(milliseconds);
            let world = World::builder().latency(LatencyProfile::instant()).start().await;
            world.azure.clear_journal();
            let took = serve_exactly(&world, &names(count)).await;
            assert!(took <= limit, "{count} are served after {took:?}");
            let counts = world.azure.journal().counts;
            assert!(counts.requests <= calls, "{count}: {counts:?}");
            // A public IP for each, the load balancer, the security group, the scale set and its three machines.
            assert_eq!(counts.writes, count as u64 + 6, "{count}: {counts:?}");
            let took = delete_exactly(&world, &names(count)).await;
            assert!(took <= limit, "{count} are gone after {took:?}");
        }
    });
}

/// LB-493: the duration of public IP operations is learned: the list is read when they are likely done, once for all
/// that are written together.
#[test]
fn the_list_of_public_ips_is_read_when_they_are_likely_done() {
    run(async || {
        // The resync with Azure every five minutes reads a list, too.
        let options = controllers::Options { azure_resync_period: Duration::ZERO, ..Default::default() };
        let world = World::builder().latency(typical_latency()).options(options).start().await;
        let mut lists = Vec::new();
        for _ in 0..6 {
            world.azure.clear_journal();
            serve_exactly(&world, &names(20)).await;
            lists.push(lists_of_public_ips(&world));
            delete_exactly(&world, &names(20)).await;
        }
        // One before anything is decided, one for every five seconds of the operations, and a few when they should be
        // done.
        assert!(lists[1..].iter().all(|lists| *lists <= 6), "{lists:?}");
    });
}

/// The 90th percentile.
fn p90(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() * 9 / 10).copied().unwrap_or_default()
}

/// A world for chains. Azure limits concurrent writes and writes per second, and if the load balancer is deleted and
/// created again, machines leave its pools and join them. Neither happens here, so that only our own waiting is left.
async fn world_for_chains() -> World {
    let world = World::builder().latency(LatencyProfile::instant()).budgets(None).start().await;
    serve_exactly(&world, &["shop/stays".to_owned()]).await;
    world
}

/// LB-493: 50 Services that are created and deleted in a chain, alone or two at a time, take no longer than Azure's
/// operations.
#[test]
fn services_that_come_and_go_in_a_chain_wait_for_nothing_of_ours() {
    for together in [1, 2] {
        run(async || {
            let world = world_for_chains().await;
            let groups: Vec<_> = names(50).chunks(together).map(<[String]>::to_vec).collect();
            let (mut came, mut went) = (Vec::new(), Vec::new());
            let (alternately, in_two_rows) = groups.split_at(groups.len() / 2);
            for names in alternately {
                came.push(serve_exactly(&world, names).await);
                went.push(delete_exactly(&world, names).await);
            }
            for names in in_two_rows {
                came.push(serve_exactly(&world, names).await);
            }
            for names in in_two_rows {
                went.push(delete_exactly(&world, names).await);
            }
            let limits = (Duration::from_millis(50), Duration::from_millis(100));
            assert!(p90(came.clone()) <= limits.0, "{together} at a time, created after {came:?}");
            assert!(p90(went.clone()) <= limits.1, "{together} at a time, gone after {went:?}");
        });
    }
}

/// LB-493: a Service that Azure defers does not delay others that are created and deleted meanwhile.
#[test]
fn services_in_a_chain_do_not_wait_for_one_that_azure_puts_off() {
    run(async || {
        let world = world_for_chains().await;
        world.create(service("shop/stuck"));
        let uid = world.service("shop/stuck")["metadata"]["uid"].as_str().unwrap().replace('-', "");
        let busy =
            FaultAction::Fail { status: 503, code: "ServiceUnavailable".into(), message: "busy".into() };
        let fault = Fault::new(busy).on_method("PUT").on_type(PUBLIC_IPS).named("stuck");
        let path = format!("*/publicIPAddresses/*a{}", &uid[..31]);
        world.azure.inject(Fault { path: Some(path), ..fault });
        // Until it is known whether it is deferred, each batch waits some seconds for it.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let mut times = Vec::new();
        for name in names(20) {
            tokio::time::sleep(Duration::from_secs(10)).await;
            times.push(serve_exactly(&world, std::slice::from_ref(&name)).await);
            times.push(delete_exactly(&world, &[name]).await);
        }
        let journal = world.azure.journal();
        assert!(journal.entries.iter().any(|entry| entry.fault.as_deref() == Some("stuck")));
        assert!(world.addresses("shop/stuck").is_empty());
        assert!(p90(times.clone()) <= Duration::from_millis(100), "{times:?}");
    });
}
