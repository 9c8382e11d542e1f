//! Features that a subscription must ask for: their states, and what AKS refuses without them.

use std::time::Duration;

use crate::common::*;
use azure_simulator::{LatencyProfile, Options};
use azure_types::ResourceId;
use serde_json::{Value, json};

const V: &str = "api-version=2021-07-01";

fn features(below: &str) -> String {
    format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Features/{below}?{V}")
}

fn feature(name: &str, action: &str) -> String {
    features(&format!("providers/microsoft.containerservice/features/{name}{action}"))
}

async fn state(client: &Client, name: &str) -> Value {
    client.send("GET", &feature(name, ""), None, &[]).await.expect(200).body["properties"]["state"].clone()
}

async fn register(client: &Client, name: &str) {
    client.send("POST", &feature(name, "/register"), None, &[]).await.expect(200);
}

fn cluster() -> ResourceId {
    ResourceId::group(SUBSCRIPTION, GROUP).resource("Microsoft.ContainerService", "managedClusters", "c")
}

fn body(properties: Value, pool: Value) -> Value {
    let mut body = json!({
        "location": "eastus",
        "identity": { "type": "SystemAssigned" },
        "properties": properties,
    });
    body["properties"]["dnsPrefix"] = "c".into();
    let mut system = json!({ "name": "system", "mode": "System", "count": 1, "vmSize": "Standard_D2s_v3" });
    system.as_object_mut().unwrap().extend(pool.as_object().unwrap().clone());
    body["properties"]["agentPoolProfiles"] = json!([system]);
    body
}

#[tokio::test(start_paused = true)]
async fn features_are_registered_and_given_up() {
    let latency = LatencyProfile::instant().with("*", "Microsoft.Resources/*", Duration::from_secs(60));
    let client = Client::with_group(Options { latency, ..Options::default() }).await;
    assert_eq!(state(&client, "KubeletDisk").await, "NotRegistered");
    let asked = client.send("POST", &feature("kubeletdisk", "/register"), None, &[]).await.expect(200).body;
    assert_eq!(asked["properties"]["state"], "Registering");
    assert_eq!(asked["name"], "Microsoft.ContainerService/KubeletDisk");
    assert_eq!(asked["type"], "Microsoft.Features/providers/features");
    let id = format!(
        "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Features/providers/Microsoft.ContainerService/features/KubeletDisk"
    );
    assert_eq!(asked["id"], id);
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(state(&client, "KubeletDisk").await, "Registered");
    assert_eq!(state(&client, "DisableSSHPreview").await, "NotRegistered");
    // A second time changes nothing.
    let again = client.send("POST", &feature("KubeletDisk", "/register"), None, &[]).await.expect(200).body;
    assert_eq!(again["properties"]["state"], "Registered");
    client.send("POST", &feature("KubeletDisk", "/unregister"), None, &[]).await.expect(200);
    assert_eq!(state(&client, "KubeletDisk").await, "Unregistering");
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(state(&client, "KubeletDisk").await, "Unregistered");
    // Providers are registered as before.
    let provider = format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.ContainerService?{V}");
    let provider = client.send("GET", &provider, None, &[]).await.expect(200).body;
    assert_eq!(provider["registrationState"], "Registered");
}

#[tokio::test(start_paused = true)]
async fn features_are_listed_by_namespace() {
    let client = Client::with_group(Options::default()).await;
    for (below, some) in [
        ("features", true),
        ("providers/Microsoft.ContainerService/features", true),
        ("providers/Microsoft.Network/features", false),
    ] {
        let list = client.send("GET", &features(below), None, &[]).await.expect(200).body;
        assert_eq!(!list["value"].as_array().unwrap().is_empty(), some, "{below}");
    }
    let reply = client.send("GET", &feature("StartStopPreview", ""), None, &[]).await;
    let refused = reply.refused(404, "FeatureNotFound");
    assert!(refused.message().contains("The feature 'StartStopPreview' could not be found."));
    client.send("DELETE", &feature("KubeletDisk", ""), None, &[]).await.refused(404, "InvalidResourceType");
}

#[tokio::test(start_paused = true)]
async fn clusters_and_pools_need_what_they_use() {
    for (name, properties, pool, code) in [
        ("KubeletDisk", json!({}), json!({ "kubeletDiskType": "Temporary" }), "PreviewFeatureNotRegistered"),
        (
            "DisableSSHPreview",
            json!({}),
            json!({ "securityProfile": { "sshAccess": "Disabled" } }),
            "BadRequest",
        ),
        (
            "KubeProxyConfigurationPreview",
            json!({ "networkProfile": { "networkPlugin": "azure", "kubeProxyConfig": { "enabled": true } } }),
            json!({}),
            "PreviewFeatureNotRegistered",
        ),
        (
            "EnablePodIdentityPreview",
            json!({ "podIdentityProfile": { "enabled": true } }),
            json!({}),
            "PodIdentityAddonFeatureFlagNotEnabled",
        ),
    ] {
        let client = Client::with_group(Options::default()).await;
        let wanted = body(properties, pool);
        let refused = client.put(&cluster(), wanted.clone()).await.refused(400, code);
        assert!(
            refused.message().contains(&format!("Microsoft.ContainerService/{name}")),
            "{}",
            refused.message()
        );
        register(&client, name).await;
        client.put(&cluster(), wanted.clone()).await.expect(201);
        // What is there stays usable.
        client.send("POST", &feature(name, "/unregister"), None, &[]).await.expect(200);
        client.put(&cluster(), wanted).await.expect(200);
    }
    let client = Client::with_group(Options::default()).await;
    client.put(&cluster(), body(json!({}), json!({ "kubeletDiskType": "OS" }))).await.expect(201);
    let pool = cluster().child("agentPools", "user");
    let wanted = json!({ "properties": { "count": 1, "kubeletDiskType": "Temporary" } });
    client.put(&pool, wanted.clone()).await.refused(400, "PreviewFeatureNotRegistered");
    register(&client, "KubeletDisk").await;
    client.put(&pool, wanted).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn a_header_names_features_where_the_subscription_may_use_it() {
    let client = Client::with_group(Options::default()).await;
    let path = format!("{}?api-version=2025-08-01", cluster());
    let wanted = body(json!({}), json!({ "kubeletDiskType": "Temporary" }));
    let named = "Microsoft.ContainerService/Other, microsoft.containerservice/kubeletdisk";
    let header = [("AKSHTTPCustomFeatures", named)];
    let put = async |headers: &[(&str, &str)]| client.send("PUT", &path, Some(wanted.clone()), headers).await;
    put(&header).await.refused(400, "PreviewFeatureNotRegistered");
    register(&client, "AKSHTTPCustomFeatures").await;
    put(&[]).await.refused(400, "PreviewFeatureNotRegistered");
    put(&[("AKSHTTPCustomFeatures", "KubeletDisk")]).await.refused(400, "PreviewFeatureNotRegistered");
    put(&header).await.expect(201);
}
