//! A state that is saved and taken up again is the same Azure: the same answers, the same etags, running

//! operations that go on, and no id that is given twice.

use std::time::Duration;

use crate::common::{Client, compute_id, group_path, load_balancer, network_id, public_ip, scale_set};
use azure_simulator::{Azure, BadSnapshot, Fault, FaultAction, LatencyProfile, Options};
use azure_types::ResourceId;
use proptest::prelude::*;
use serde_json::{Value, json};

fn options() -> Options {
    let latency = LatencyProfile::instant().with("*", "*", Duration::from_secs(8));
    Options { latency, budgets: None, ..Options::default() }
}

/// One thing that a client does; the numbers choose names and values.
#[derive(Debug, Clone)]
enum Act {
    Ip(u8, u8),
    NoIp(u8),
    Balancer(u8, Vec<u16>),
    Set(u8, Option<u8>),
    NoSet,
    Wait(u8),
    Trouble,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => (0..3u8, 0..3u8).prop_map(|(ip, tag)| Act::Ip(ip, tag)),
        1 => (0..3u8).prop_map(Act::NoIp),
        3 => (0..3u8, prop::collection::vec(80..84u16, 0..3)).prop_map(|(ip, ports)| Act::Balancer(ip, ports)),
        2 => (0..5u8, prop::option::of(0..3u8)).prop_map(|(capacity, pool)| Act::Set(capacity, pool)),
        1 => Just(Act::NoSet),
        2 => (0..12u8).prop_map(Act::Wait),
        1 => Just(Act::Trouble),
    ];
    prop::collection::vec(act, 1..24)
}

fn ip(number: u8) -> ResourceId {
    network_id(&format!("publicIPAddresses/p{number}"))
}

async fn take(client: &Client, act: &Act) {
    let balancer = network_id("loadBalancers/lb");
    let (set, subnet) =
        (compute_id("virtualMachineScaleSets/s"), network_id("virtualNetworks/net/subnets/nodes"));
    match act {
        Act::Ip(number, tag) => {
            let mut body = public_ip();
            body["tags"] = json!({ "n": tag.to_string() });
            client.put(&ip(*number), body).await;
        }
        Act::NoIp(number) => drop(client.delete(&ip(*number)).await),
        Act::Balancer(number, ports) => {
            drop(client.put(&balancer, load_balancer(&balancer, &ip(*number), ports)).await);
        }
        Act::Set(capacity, pool) => {
            let pools: Vec<ResourceId> =
                pool.iter().map(|_| balancer.child("backendAddressPools", "p")).collect();
            client.put(&set, scale_set(u64::from(*capacity), &subnet, &pools)).await;
        }
        Act::NoSet => drop(client.delete(&set).await),
        Act::Wait(seconds) => tokio::time::sleep(Duration::from_secs(u64::from(*seconds))).await,
        Act::Trouble => client.azure.inject(
            Fault::new(FaultAction::StallOperation)
                .on_method("PUT")
                .on_type("*/publicIPAddresses")
                .after(1)
                .times(1),
        ),
    }
}

/// Everything that a client can read: documents as GETs show them, lists, and the state of every
/// operation.
async fn seen(client: &Client) -> Vec<Value> {
    let mut seen = Vec::new();
    for document in client.azure.documents() {
        let id = document["id"].as_str().unwrap();
        let version = if id.contains("providers") { "2025-05-01" } else { "2021-04-01" };
        let reply =
            client.send("GET", &format!("{id}?api-version={version}&$expand=instanceView"), None, &[]).await;
        seen.push(json!([reply.status, reply.header("etag"), reply.body]));
    }
    let list = format!("{}/resources?api-version=2021-04-01", group_path());
    seen.push(client.send("GET", &list, None, &[]).await.body);
    seen.push(serde_json::to_value(client.azure.operations()).unwrap());
    seen
}

async fn restored(client: &Client) -> Client {
    let other = Client::new(Options { seed: 77, ..options() });
    other.azure.restore(client.azure.save().unwrap()).unwrap();
    other
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_restored_azure_goes_on_as_the_first_would(before in acts(), after in acts()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let first = Client::with_group(options()).await;
            first.network("10.1.0.0/16").await;
            for act in &before {
                take(&first, act).await;
            }
            let second = restored(&first).await;
            assert_eq!(first.azure.save().unwrap()["resources"], second.azure.save().unwrap()["resources"]);
            assert_eq!(first.azure.now(), second.azure.now());
            // What follows is answered alike, byte for byte, although the second was made with another seed.
            for act in &after {
                // Both clocks are tokio's: an act that waits may be taken once only.
                take(&first, act).await;
                if !matches!(act, Act::Wait(_)) {
                    take(&second, act).await;
                }
            }
            assert_eq!(seen(&first).await, seen(&second).await);
            assert_eq!(first.azure.journal().to_lines(), second.azure.journal().to_lines());
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(seen(&first).await, seen(&second).await);
        });
    }
}

#[tokio::test(start_paused = true)]
async fn running_operations_end_when_they_would_have_and_ids_are_new() {
    let first = Client::with_group(options()).await;
    let reply = first.put(&ip(1), public_ip()).await.expect(201);
    tokio::time::sleep(Duration::from_secs(3)).await;
    let second = restored(&first).await;
    let url = reply.header("azure-asyncoperation").unwrap();
    let mut changes = second.azure.subscribe();
    changes.mark_unchanged();
    let started = tokio::time::Instant::now();
    changes.changed().await.unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(5));
    assert_eq!(second.send("GET", url, None, &[]).await.body["status"], "Succeeded");
    let again = second.put(&ip(2), public_ip()).await.expect(201);
    assert_ne!(again.header("azure-asyncoperation"), reply.header("azure-asyncoperation"));
    second.wait(&again).await;
    let address = async |number| second.get(&ip(number)).await.body["properties"]["ipAddress"].clone();
    assert_ne!(address(1).await, address(2).await);
    assert_ne!(again.header("x-ms-request-id"), reply.header("x-ms-request-id"));
    // A resource that was deleted and comes again does not answer to its old etags.
    let etag = second.get(&ip(1)).await.etag();
    let reply = second.delete(&ip(1)).await.expect(202);
    second.wait(&reply).await;
    let third = restored(&second).await;
    third.create(&ip(1), public_ip()).await;
    third.put_if(&ip(1), public_ip(), &etag).await.refused(412, "PreconditionFailed");
}

#[tokio::test(start_paused = true)]
async fn a_state_is_saved_and_restored_over_http_and_strange_ones_are_refused() {
    let first = Client::with_group(options()).await;
    first.create(&ip(1), public_ip()).await;
    let saved = first.send("GET", "/_cerulean/state/snapshot", None, &[]).await.expect(200).body;
    let second = Client::new(options());
    let headers = [("content-type", "application/json")];
    let put = async |body: Value| second.send("PUT", "/_cerulean/state/snapshot", Some(body), &headers).await;
    put(saved.clone()).await.expect(204);
    assert_eq!(second.get(&ip(1)).await.expect(200).body, first.get(&ip(1)).await.expect(200).body);
    put(json!({ "format": 1 })).await.refused(400, "InvalidRequestContent");
    let change = |member: &str, value: Value| {
        let mut changed = saved.clone();
        *changed.pointer_mut(member).unwrap() = value;
        Azure::new(options()).restore(changed)
    };
    assert!(matches!(change("/format", json!(2)), Err(BadSnapshot::Format(2))));
    let kind = change("/resources/1/type", json!("Microsoft.Network/virtualWans"));
    assert!(matches!(kind, Err(BadSnapshot::UnknownType(_))));
    let id = ip(1).as_str().replace(crate::common::SUBSCRIPTION, "99999999-0000-0000-0000-000000000000");
    assert!(matches!(change("/resources/1/id", json!(id)), Err(BadSnapshot::UnknownSubscription(_))));
}
