//! The client and the simulated Azure, in one process on paused time: two crates without shared code agree on the
//! protocol.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arm::{ApiVersion, CallRecord, Class, Client, Cloud, Credential, Listing, Transport};
use azure_simulator::{Azure, LatencyProfile, Options};
use azure_types::ResourceId;
use serde_json::{Value, json};
use tokio::time::Instant;

const V: ApiVersion = ApiVersion::NETWORK;

struct SimulatedAzure {
    client: Client,
    group: ResourceId,
    throttled: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
}

async fn simulated_azure(latency: LatencyProfile) -> SimulatedAzure {
    let options = Options { latency, ..Options::default() };
    let group = ResourceId::group(&options.subscription, "group");
    let azure = Azure::new(options);
    let cloud = Cloud::built_in(&cloud_config::PUBLIC).unwrap();
    let (throttled, calls) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&throttled), Arc::clone(&calls));
    let observer = move |call: &CallRecord<'_>| {
        counts.0.fetch_add(usize::from(call.throttled), Ordering::Relaxed);
        counts.1.fetch_add(1, Ordering::Relaxed);
    };
    let client = Client::builder(cloud, Transport::in_process(azure.router()), Credential::fixed("t"))
        .observer(Arc::new(observer))
        .build();
    let body = json!({"location": "eastus"});
    client.put_and_wait::<_, Value>(&group, ApiVersion::RESOURCES, &body, None, Class::Create).await.unwrap();
    SimulatedAzure { client, group, throttled, calls }
}

fn address() -> Value {
    json!({"location": "eastus", "sku": {"name": "Standard"}, "properties": {"publicIPAllocationMethod": "Static"}})
}

#[tokio::test(start_paused = true)]
async fn a_public_ip_lives_and_dies() {
    let slow = LatencyProfile::instant().with("*", "Microsoft.Network/*", Duration::from_secs(20));
    let SimulatedAzure { client, group, .. } = simulated_azure(slow).await;
    let id = group.resource("Microsoft.Network", "publicIPAddresses", "ip");
    assert_eq!(client.get_optional::<Value>(&id, V, Class::Refresh).await.unwrap(), None);

    let started = Instant::now();
    let made: Value = client.put_and_wait(&id, V, &address(), None, Class::Create).await.unwrap();
    assert_eq!(made["properties"]["provisioningState"], "Succeeded");
    assert!(made["properties"]["ipAddress"].is_string(), "{made}");
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(20) && took < Duration::from_secs(40), "{took:?}");

    let stale = client.put::<_, Value>(&id, V, &made, Some("W/\"stale\""), Class::Create).await.unwrap_err();
    assert!(stale.is_precondition_failed(), "{stale}");
    let etag = made["etag"].as_str().unwrap();
    let mut tagged = made.clone();
    tagged["tags"] = json!({"a": "b"});
    let again = client.put::<_, Value>(&id, V, &tagged, Some(etag), Class::Create).await.unwrap();
    client.wait(&again.operation.unwrap()).await.unwrap();
    let listing = Listing::of(&group, "Microsoft.Network", "publicIPAddresses");
    let all: Vec<Value> = client.list(&listing, V, &[], Class::Refresh).await.unwrap();
    assert_eq!((all.len(), &all[0]["tags"]["a"]), (1, &json!("b")));

    client.delete_and_wait(&id, V, Class::Delete).await.unwrap();
    assert_eq!(client.get_optional::<Value>(&id, V, Class::Refresh).await.unwrap(), None);
    client.delete_and_wait(&id, V, Class::Delete).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn azures_refusal_arrives_in_its_own_words() {
    let SimulatedAzure { client, group, .. } = simulated_azure(LatencyProfile::instant()).await;
    let id = group.resource("Microsoft.Network", "loadBalancers", "lb");
    let gone = group.resource("Microsoft.Network", "publicIPAddresses", "gone");
    let body = json!({"location": "eastus", "sku": {"name": "Standard"}, "properties": {"frontendIPConfigurations": [
        {"name": "f", "properties": {"publicIPAddress": {"id": gone}}}]}});
    let error = client.put_and_wait::<_, Value>(&id, V, &body, None, Class::Create).await.unwrap_err();
    assert!(error.is_refusal(), "{error}");
    assert_eq!(error.code(), "InvalidResourceReference");
    assert!(
        error.to_string().starts_with("PUT loadBalancers/lb: 400 InvalidResourceReference: Resource "),
        "{error}"
    );
}

/// 300 writes at once into a bucket of 200 tokens: they are paced by Azure's remaining tokens, and none is throttled.
#[tokio::test(start_paused = true)]
async fn a_burst_beyond_the_bucket_is_paced_and_never_throttled() {
    let SimulatedAzure { client, group, throttled, calls } = simulated_azure(LatencyProfile::instant()).await;
    let started = Instant::now();
    let tasks: Vec<_> = (0..300)
        .map(|n| {
            let id = group.resource("Microsoft.Network", "publicIPAddresses", &format!("ip{n}"));
            let client = client.clone();
            tokio::spawn(async move { client.put::<_, Value>(&id, V, &address(), None, Class::Create).await })
        })
        .collect();
    for task in tasks {
        task.await.unwrap().unwrap();
    }
    assert_eq!(throttled.load(Ordering::Relaxed), 0);
    assert_eq!(calls.load(Ordering::Relaxed), 300 + 2, "300 writes, and the group's write and read");
    // 190 at once, the rest at ten a second.
    let took = started.elapsed().as_secs_f64();
    assert!((10.0..13.0).contains(&took), "{took}");
}
