//! The same seed and the same input give the same journal, byte for byte, with everything in force at

//! once that is drawn at random: latencies, faults, lagging reads, budgets, names and addresses.

use std::time::Duration;

use crate::common::{Client, compute_id, group_path, load_balancer, network_id, public_ip, scale_set};
use azure_simulator::journal::diff;
use azure_simulator::{Consistency, Fault, Journal, Options, typical_latency};
use azure_types::ResourceId;
use serde_json::{Value, json};

/// A linear congruential generator: what the clients choose must not depend on the simulator.
struct Choice(u64);

impl Choice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

fn faults() -> Vec<Fault> {
    serde_json::from_value(json!([
        { "name": "slow", "method": "PUT", "share": 0.1, "action": { "do": "delay", "ms": 700 } },
        { "name": "busy", "method": "GET", "share": 0.05, "action": { "do": "throttle", "retryAfter": 2 } },
        { "name": "lost", "share": 0.05, "action": { "do": "dropAnswer" } },
        { "name": "gone", "share": 0.05, "action": { "do": "dropRequest" } },
        { "name": "luck", "method": "PUT", "share": 0.1, "action": { "do": "failOperation", "code": "BadLuck" } },
        { "name": "stop", "method": "PUT", "share": 0.1, "action": { "do": "cancelOperation" } },
        { "name": "other", "method": "PUT", "share": 0.05, "action": { "do": "interfere", "patch": { "tags": { "x": "y" } } } },
        { "name": "away", "method": "DELETE", "share": 0.1, "action": { "do": "forgetOperation" } },
    ]))
    .unwrap()
}

async fn request(client: &Client, method: &str, id: &ResourceId, body: Option<Value>) {
    let version = if id.as_str().contains("Compute") {
        crate::common::COMPUTE_VERSION
    } else {
        crate::common::NETWORK_VERSION
    };
    let path = format!("{id}?api-version={version}");
    if let Some(reply) = client.try_send(method, &path, body, &[]).await
        && let Some(url) = reply.header("azure-asyncoperation").map(str::to_owned)
    {
        client.try_send("GET", &url, None, &[]).await;
    }
}

/// One of several clients that work at the same time.
async fn work(client: &Client, number: u64, subnet: &ResourceId) {
    let mut choice = Choice(number * 77 + 5);
    for _ in 0..200 {
        let address = network_id(&format!("publicIPAddresses/p{}", choice.below(6)));
        let balancer = network_id(&format!("loadBalancers/b{}", choice.below(3)));
        let set = compute_id(&format!("virtualMachineScaleSets/s{}", choice.below(2)));
        let pool = balancer.child("backendAddressPools", "p");
        match choice.below(12) {
            0..=2 => request(client, "PUT", &address, Some(public_ip())).await,
            3 => request(client, "DELETE", &address, None).await,
            4 | 5 => {
                let ports: Vec<u16> = (0..choice.below(4)).map(|port| 80 + port as u16).collect();
                request(client, "PUT", &balancer, Some(load_balancer(&balancer, &address, &ports))).await;
            }
            6 => request(client, "DELETE", &balancer, None).await,
            7 => request(client, "PUT", &set, Some(scale_set(choice.below(5), subnet, &[pool]))).await,
            8 => request(client, "GET", &balancer, None).await,
            9 => {
                request(client, "GET", &set.child("virtualMachines", &choice.below(6).to_string()), None)
                    .await
            }
            10 => {
                let list = format!("{}/providers/Microsoft.Network/publicIPAddresses", group_path());
                client.try_send("GET", &format!("{list}?api-version=2025-05-01"), None, &[]).await;
            }
            _ => tokio::time::sleep(Duration::from_millis(choice.below(9_000))).await,
        }
    }
}

/// Journal and last state of one run.
fn run(seed: u64) -> (Journal, Value) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let client = Client::new(Options { seed, ..Options::default() });
        client
            .azure
            .put(&ResourceId::parse(&group_path()).unwrap(), json!({ "location": "eastus" }))
            .unwrap();
        let subnet = client.network("10.1.0.0/16").await;
        client.azure.set_latency(typical_latency());
        client.azure.set_consistency(Consistency { reads_ms: 1_500, lists_ms: 4_000, share: 0.5 });
        faults().into_iter().for_each(|fault| client.azure.inject(fault));
        futures::future::join_all((0..5).map(|number| work(&client, number, &subnet))).await;
        tokio::time::sleep(Duration::from_secs(600)).await;
        assert_eq!(client.azure.running_operations(), 0, "every operation ends");
        (client.azure.journal(), client.azure.save().unwrap())
    })
}

#[test]
fn the_same_seed_and_input_give_the_same_journal_byte_for_byte() {
    let (first, state) = run(1);
    let (second, same_state) = run(1);
    assert!(diff(&first, &second).is_empty(), "{}", diff(&first, &second));
    assert_eq!(first.to_lines(), second.to_lines());
    assert_eq!(state.to_string(), same_state.to_string());
    // It was a run worth comparing: every fault struck, and Azure refused and accepted much.
    assert!(first.counts.requests > 1_000, "{:?}", first.counts);
    for fault in faults() {
        let struck = first.entries.iter().any(|entry| entry.fault.as_ref() == Some(&fault.name));
        assert!(struck, "the fault '{}' never struck", fault.name);
    }
    assert!(first.counts.refused > 50 && first.counts.throttled > 5, "{:?}", first.counts);
    let (other, _) = run(2);
    assert!(diff(&first, &other).first.is_some(), "another seed gives another run");
}
