//! Who may be in which pools and behind which rules, and what becomes of members when those go.

use crate::common::{Client, compute_id, load_balancer, network_id, scale_set};
use azure_simulator::Options;
use azure_types::ResourceId;
use serde_json::{Value, json};

fn lb() -> ResourceId {
    network_id("loadBalancers/lb")
}

fn named(name: &str, properties: Value) -> Value {
    json!([{ "name": name, "properties": properties }])
}

fn interface(subnet: &ResourceId, pools: &[ResourceId], rules: &[ResourceId]) -> Value {
    let list = |ids: &[ResourceId]| ids.iter().map(|id| json!({ "id": id })).collect::<Vec<Value>>();
    json!({ "location": "eastus", "properties": { "ipConfigurations": named("c", json!({
        "subnet": { "id": subnet },
        "loadBalancerBackendAddressPools": list(pools), "loadBalancerInboundNatRules": list(rules) })) } })
}

/// The balancer `lb` with a pool `p`, and a NAT rule `ssh` for one machine.
async fn prepared() -> (Client, ResourceId) {
    let client = Client::with_group(Options::default()).await;
    let pip = client.public_ip("a").await;
    let subnet = client.network("10.1.0.0/24").await;
    let mut body = load_balancer(&lb(), &pip, &[80]);
    body["properties"]["inboundNatRules"] = named(
        "ssh",
        json!({
        "frontendIPConfiguration": { "id": lb().child("frontendIPConfigurations", "f") },
        "protocol": "Tcp", "frontendPort": 22, "backendPort": 22 }),
    );
    client.create(&lb(), body).await;
    (client, subnet)
}

#[tokio::test(start_paused = true)]
async fn interfaces_join_pools_and_rules_and_let_go_of_them() {
    let (client, subnet) = prepared().await;
    let (pool, rule) = (lb().child("backendAddressPools", "p"), lb().child("inboundNatRules", "ssh"));
    let nic = network_id("networkInterfaces/one");
    let body = interface(&subnet, std::slice::from_ref(&pool), std::slice::from_ref(&rule));
    client.put(&nic, body.clone()).await.expect(201);
    let configuration = nic.child("ipConfigurations", "c");
    let shown = client.get(&pool).await.body;
    assert_eq!(shown["properties"]["backendIPConfigurations"], json!([{ "id": configuration }]));
    let shown = client.get(&rule).await.body;
    assert_eq!(shown["properties"]["backendIPConfiguration"]["id"], configuration.as_str());
    client.put(&network_id("networkInterfaces/two"), body).await.refused(400, "InboundNatRuleInUse");

    // A state is said of a member that is there; who is named otherwise is not waited for.
    let state = |id: &ResourceId| {
        json!({ "properties": { "loadBalancerBackendAddresses": [{ "name": "x", "properties": {
        "networkInterfaceIPConfiguration": { "id": id }, "adminState": "Down" } }] } })
    };
    let absent = network_id("networkInterfaces/none/ipConfigurations/c");
    let shown = client.create(&pool, state(&absent)).await;
    assert_eq!(shown["properties"]["loadBalancerBackendAddresses"][0]["properties"].get("adminState"), None);
    let shown = client.create(&pool, state(&configuration)).await;
    assert_eq!(shown["properties"]["loadBalancerBackendAddresses"][0]["properties"]["adminState"], "Down");

    // A pool or rule that goes is left by its members, whose etag says so.
    let before = client.get(&nic).await.etag();
    client.delete(&rule).await.expect(202);
    let after = client.get(&nic).await;
    assert_ne!(after.etag(), before);
    let members = &after.body["properties"]["ipConfigurations"][0]["properties"];
    assert!(members.get("loadBalancerInboundNatRules").is_none(), "{members}");
    client.delete(&lb()).await.expect(202);
    let members = client.get(&nic).await.body["properties"]["ipConfigurations"][0]["properties"].clone();
    assert!(members.get("loadBalancerBackendAddressPools").is_none(), "{members}");
    client.delete(&nic).await;
    client.delete(&subnet).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn a_machine_is_behind_one_public_and_one_internal_balancer() {
    let client = Client::with_group(Options::default()).await;
    let (a, b) = (client.public_ip("a").await, client.public_ip("b").await);
    let subnet = client.network("10.1.0.0/24").await;
    let inner = network_id("loadBalancers/inner");
    let other = network_id("loadBalancers/other");
    client.create(&lb(), load_balancer(&lb(), &a, &[80])).await;
    client.create(&other, load_balancer(&other, &b, &[80])).await;
    let body = json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {
        "frontendIPConfigurations": named("f", json!({ "subnet": { "id": subnet } })),
        "backendAddressPools": [{ "name": "p" }] } });
    client.create(&inner, body).await;
    let pool = |id: &ResourceId| id.child("backendAddressPools", "p");
    let set = compute_id("virtualMachineScaleSets/set");
    client
        .put(&set, scale_set(1, &subnet, &[pool(&lb()), pool(&other)]))
        .await
        .refused(400, "VMScaleSetCannotUseMultipleLoadBalancersOfSameType");
    client.create(&set, scale_set(1, &subnet, &[pool(&lb()), pool(&inner)])).await;
    let instance = set.child("virtualMachines", "0");
    let mut moved = client.get(&instance).await.body;
    moved["properties"]["networkProfileConfiguration"]["networkInterfaceConfigurations"][0]["properties"]["ipConfigurations"]
        [0]["properties"]["loadBalancerBackendAddressPools"] =
        json!([{ "id": pool(&lb()) }, { "id": pool(&other) }]);
    client.put(&instance, moved).await.refused(400, "AnotherPublicLoadBalancerExists");

    let addresses = json!({ "properties": { "virtualNetwork": { "id": network_id("virtualNetworks/net") },
        "loadBalancerBackendAddresses": [{ "name": "x", "properties": { "ipAddress": "10.1.0.99" } }] } });
    client.create(&pool(&other), addresses).await;
    client
        .put(&compute_id("virtualMachineScaleSets/two"), scale_set(1, &subnet, &[pool(&other)]))
        .await
        .refused(400, "BackendAddressPoolMixedMembership");
    // Machines lose what they were in when its balancer goes; a set's model keeps it from going.
    client.delete(&inner).await.refused(400, "LoadBalancerInUseByVirtualMachineScaleSet");
}
