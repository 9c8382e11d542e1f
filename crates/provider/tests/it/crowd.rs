//! Hundreds of Services at once.

use std::time::Duration;

use cloud::ServiceError;
use futures::future::join_all;
use tokio::time::Instant;

use crate::world::*;

fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("s{number:03}")).collect()
}

async fn serve_all(world: &World, program: &Program, count: usize) -> Vec<Result<(), ServiceError>> {
    let names = names(count);
    let services: Vec<_> = names.iter().map(|name| world.apply(program, service(name, &[80, 443]))).collect();
    join_all(services.iter().map(|service| async move { world.ensure(program, service).await.map(drop) }))
        .await
}

async fn two_hundred(public_ip: u64, load_balancer: u64, security_group: u64) {
    let world = World::new();
    world.latency(public_ip, load_balancer, security_group);
    let program = world.start();
    let begin = Instant::now();
    for result in serve_all(&world, &program, 200).await {
        result.unwrap();
    }
    let (ips, lbs, groups) =
        (world.writes(PUBLIC_IPS), world.writes(LOAD_BALANCERS), world.writes(SECURITY_GROUPS));
    println_figures("200 Services", begin.elapsed(), ips, lbs, groups);
    assert_eq!(ips, 200);
    assert!(lbs <= 6, "{lbs} load balancer writes");
    assert!(groups <= 6, "{groups} security group writes");
    assert_eq!(world.writes(SCALE_SETS), 1);
    assert_eq!(world.writes(INSTANCES), 3);
}

#[allow(clippy::print_stdout, reason = "figures for runs with --nocapture")]
fn println_figures(what: &str, took: Duration, ips: usize, lbs: usize, groups: usize) {
    println!("{what}: {took:?}, {ips} public IP, {lbs} load balancer, {groups} security group writes");
}

#[tokio::test(start_paused = true)]
async fn two_hundred_services_in_few_writes_when_azure_answers_at_once() {
    two_hundred(0, 0, 0).await;
}

#[tokio::test(start_paused = true)]
async fn two_hundred_services_in_few_writes_when_azure_takes_its_time() {
    two_hundred(5, 20, 5).await;
}

#[tokio::test(start_paused = true)]
async fn five_hundred_services_in_three_minutes() {
    let world = World::new();
    world.latency(5, 20, 5);
    let program = world.start();
    let begin = Instant::now();
    for result in serve_all(&world, &program, 500).await {
        result.unwrap();
    }
    println_figures(
        "500 Services",
        begin.elapsed(),
        world.writes(PUBLIC_IPS),
        world.writes(LOAD_BALANCERS),
        world.writes(SECURITY_GROUPS),
    );
    assert!(begin.elapsed() < Duration::from_secs(180), "{:?}", begin.elapsed());
    assert!(world.writes(LOAD_BALANCERS) <= 60);
    assert_eq!(world.writes(PUBLIC_IPS), 500);
}

#[tokio::test(start_paused = true)]
async fn a_restart_writes_nothing_and_reads_no_more_for_many_services_than_for_few() {
    let mut reads = Vec::new();
    for count in [10, 200] {
        let world = World::new();
        let program = world.start();
        for result in serve_all(&world, &program, count).await {
            result.unwrap();
        }
        drop(program);
        world.azure.clear_journal();
        let program = world.start();
        let services: Vec<_> = world.services.lock().values().cloned().collect();
        let all = join_all(services.iter().map(|service| world.ensure(&program, service))).await;
        assert!(all.into_iter().all(|result| result.is_ok()));
        assert_eq!(world.all_writes(), Vec::<String>::new());
        reads.push(world.reads());
    }
    assert_eq!(reads[0], reads[1]);
    assert!(reads[0] <= 8, "{reads:?}");
}

#[tokio::test(start_paused = true)]
async fn many_services_leave_together_in_few_writes() {
    let world = World::new();
    let program = world.start();
    for result in serve_all(&world, &program, 100).await {
        result.unwrap();
    }
    world.azure.clear_journal();
    let services: Vec<_> = world.services.lock().values().cloned().collect();
    for result in join_all(services.iter().map(|service| world.remove(&program, service))).await {
        result.unwrap();
    }
    assert!(world.documents(LOAD_BALANCERS).is_empty());
    assert!(world.documents(PUBLIC_IPS).is_empty());
    assert!(
        world.writes(LOAD_BALANCERS) <= 6 && world.writes(SECURITY_GROUPS) <= 6,
        "{:#?}",
        world.all_writes()
    );
}

#[tokio::test(start_paused = true)]
async fn a_service_that_azure_refuses_among_fifty_fails_alone_with_azures_words() {
    let world = World::new();
    let program = world.start();
    let bad = annotated(internal(service("bad", &[80])), "azure-load-balancer-ipv4", "10.240.0.1");
    let bad = world.apply(&program, bad);
    let good: Vec<_> =
        names(50).iter().map(|name| world.apply(&program, internal(service(name, &[80])))).collect();
    let all = join_all(good.iter().map(|service| world.ensure(&program, service)));
    let (bad, all) = futures::join!(world.ensure(&program, &bad), all);
    for result in all {
        result.unwrap();
    }
    let Err(ServiceError::Refused { message, .. }) = bad else { panic!("{bad:?}") };
    assert!(message.contains("10.240.0.1"), "{message}");
    assert!(message.contains("PrivateIPAddressInReservedRange"), "{message}");
    assert!(message.len() <= 1024);
    let balancer = world.load_balancer("kube-internal").unwrap();
    assert_eq!(balancer["properties"]["frontendIPConfigurations"].as_array().unwrap().len(), 50);
}
