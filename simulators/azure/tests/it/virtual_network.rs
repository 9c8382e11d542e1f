//! Virtual networks, subnets and peerings: what they may hold, and what they say about each other.

use crate::common::{Client, NETWORK_VERSION, compute_id, network_id, scale_set};
use azure_simulator::Options;
use azure_types::ResourceId;
use serde_json::{Value, json};

fn network(name: &str) -> ResourceId {
    network_id(&format!("virtualNetworks/net-{name}"))
}

fn space(prefixes: &[&str]) -> Value {
    json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": prefixes } } })
}

fn interface(subnet: &ResourceId) -> Value {
    json!({ "location": "eastus", "properties": { "ipConfigurations": [
        { "name": "c", "properties": { "subnet": { "id": subnet } } }] } })
}

#[tokio::test(start_paused = true)]
async fn subnets_are_checked() {
    let client = Client::with_group(Options::default()).await;
    let net = network("n");
    client.create(&net, space(&["10.0.0.0/16", "fd00::/48"])).await;
    let delegation = |service: &str| json!({ "name": service.replace('/', "."), "properties": { "serviceName": service } });
    for (code, properties) in [
        ("InvalidAddressPrefixFormat", json!({ "addressPrefix": "10.0.0.0/33" })),
        ("InvalidAddressPrefixFormat", json!({ "addressPrefixes": ["10.0.0.0/24", "x"] })),
        ("InvalidCIDRNotation", json!({ "addressPrefix": "10.0.0.1/24" })),
        ("NetcfgInvalidSubnet", json!({ "addressPrefix": "10.0.0.0/30" })),
        ("NetcfgInvalidSubnet", json!({ "addressPrefixes": ["10.0.0.0/24", "fd00::/80"] })),
        ("NetcfgSubnetRangeOutsideVnet", json!({ "addressPrefix": "10.1.0.0/24" })),
        (
            "SubnetCannotHaveMultipleDelegations",
            json!({ "addressPrefix": "10.0.0.0/24", "delegations": [delegation("A.B/c"), delegation("A.B/d")] }),
        ),
        (
            "InvalidServiceNameOnDelegation",
            json!({ "addressPrefix": "10.0.0.0/24", "delegations": [delegation("servers")] }),
        ),
        (
            "DuplicateServiceEndpoint",
            json!({ "addressPrefix": "10.0.0.0/24",
                "serviceEndpoints": [{ "service": "Microsoft.Sql" }, { "service": "microsoft.sql" }] }),
        ),
        (
            "InvalidResourceReference",
            json!({ "addressPrefix": "10.0.0.0/24",
            "serviceEndpointPolicies": [{ "id": network_id("serviceEndpointPolicies/none") }] }),
        ),
        (
            "SharingScopeNeedsNoDefaultOutboundAccess",
            json!({ "addressPrefix": "10.0.0.0/24", "sharingScope": "Tenant" }),
        ),
    ] {
        let reply = client.put(&net.child("subnets", "s"), json!({ "properties": properties })).await;
        let found = reply.code() == code || reply.message().contains(code);
        assert!(reply.status == 400 && found, "{code}: {}", reply.body);
    }
    let overlapping = space(&["10.0.0.0/16", "10.0.1.0/24"]);
    client.put(&network("o"), overlapping).await.refused(400, "VnetAddressPrefixesOverlap");
}

#[tokio::test(start_paused = true)]
async fn a_delegated_subnet_takes_no_machines_and_a_used_one_no_delegation() {
    let client = Client::with_group(Options::default()).await;
    let net = network("n");
    client.create(&net, space(&["10.0.0.0/16"])).await;
    let (given, plain) = (net.child("subnets", "given"), net.child("subnets", "plain"));
    let delegations = json!([{ "name": "d", "properties": { "serviceName": "Microsoft.Web/serverFarms" } }]);
    let body = json!({ "properties": { "addressPrefix": "10.0.0.0/24", "delegations": delegations,
        "serviceEndpoints": [{ "service": "Microsoft.Storage" }, { "service": "Microsoft.KeyVault" }] } });
    let shown = client.create(&given, body).await;
    let delegation = &shown["properties"]["delegations"][0];
    assert_eq!(delegation["id"], given.child("delegations", "d").as_str());
    assert_eq!(delegation["properties"]["provisioningState"], "Succeeded");
    let endpoints = &shown["properties"]["serviceEndpoints"];
    assert_eq!(endpoints[0]["locations"], json!(["eastus"]), "{endpoints}");
    assert_eq!(endpoints[1]["locations"], json!(["*"]), "{endpoints}");
    // What was shown can be sent back and changes nothing.
    let again = client.put(&given, shown.clone()).await.expect(200).body;
    assert_eq!(again, shown);

    let nic = network_id("networkInterfaces/one");
    client.put(&nic, interface(&given)).await.refused(400, "SubnetHasDelegations");
    let frontend = json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {
        "frontendIPConfigurations": [{ "name": "f", "properties": { "subnet": { "id": given } } }] } });
    client.put(&network_id("loadBalancers/lb"), frontend).await.refused(400, "SubnetHasDelegations");
    let set = compute_id("virtualMachineScaleSets/set");
    client.put(&set, scale_set(0, &given, &[])).await.refused(400, "SubnetHasDelegations");
    client.create(&plain, json!({ "properties": { "addressPrefix": "10.0.1.0/24" } })).await;
    client.put(&nic, interface(&plain)).await.expect(201);
    let late = json!({ "properties": { "addressPrefix": "10.0.1.0/24", "delegations": delegations } });
    client.put(&plain, late).await.refused(400, "SubnetDelegationsCannotChangeWhenSubnetUsedByResource");
}

#[tokio::test(start_paused = true)]
async fn free_addresses_can_be_asked_for() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/29").await;
    let net = subnet.parent().unwrap();
    let nic = network_id("networkInterfaces/one");
    client.put(&nic, interface(&subnet)).await.expect(201);
    let ask = async |address: &str| {
        let path =
            format!("{net}/CheckIPAddressAvailability?ipAddress={address}&api-version={NETWORK_VERSION}");
        client.send("GET", &path, None, &[]).await
    };
    let taken = ask("10.1.0.4").await.expect(200).body;
    let expected = json!({ "available": false, "availableIPAddresses": ["10.1.0.5", "10.1.0.6"],
        "isPlatformReserved": false });
    assert_eq!(taken, expected);
    assert_eq!(ask("10.1.0.6").await.expect(200).body["available"], true);
    assert_eq!(ask("10.1.0.1").await.expect(200).body["isPlatformReserved"], true);
    ask("10.9.0.4").await.refused(400, "PrivateIPAddressNotInAnySubnet");
    ask("ten").await.refused(400, "InvalidIPAddressFormat");
}

#[tokio::test(start_paused = true)]
async fn peerings_are_alive_when_both_sides_have_one() {
    let client = Client::with_group(Options::default()).await;
    let (a, b) = (network("a"), network("b"));
    client.create(&a, space(&["10.0.0.0/16"])).await;
    client.create(&b, space(&["10.1.0.0/16"])).await;
    client.create(&network("c"), space(&["10.1.2.0/24"])).await;
    let to = |remote: &ResourceId| json!({ "properties": { "remoteVirtualNetwork": { "id": remote } } });
    let (there, back) = (a.child("virtualNetworkPeerings", "p"), b.child("virtualNetworkPeerings", "q"));
    for (code, body) in [
        ("InvalidResourceReference", to(&network("none"))),
        ("CannotPeerVirtualNetworkWithItself", to(&a)),
        (
            "RemoteVnetHasNoGateways",
            json!({ "properties": { "remoteVirtualNetwork": { "id": b }, "useRemoteGateways": true } }),
        ),
    ] {
        client.put(&there, body).await.refused(400, code);
    }
    let state = async |id: &ResourceId| client.get(id).await.body["properties"]["peeringState"].clone();
    client.create(&there, to(&b)).await;
    assert_eq!(state(&there).await, "Initiated");
    client
        .put(&a.child("virtualNetworkPeerings", "again"), to(&b))
        .await
        .refused(400, "AnotherPeeringAlreadyReferencesRemoteVnet");
    client
        .put(&b.child("virtualNetworkPeerings", "x"), to(&network("c")))
        .await
        .refused(400, "VnetAddressSpacesOverlap");
    let shown = client.create(&back, to(&a)).await;
    assert_eq!(shown["properties"]["remoteAddressSpace"]["addressPrefixes"], json!(["10.0.0.0/16"]));
    assert_eq!((state(&there).await, state(&back).await), (json!("Connected"), json!("Connected")));
    // A network that is written without its peerings keeps them; the other side hears of new addresses.
    client.put(&a, space(&["10.0.0.0/16", "10.4.0.0/16"])).await;
    let shown = client.get(&back).await.body["properties"].clone();
    assert_eq!(
        (&shown["peeringState"], &shown["peeringSyncLevel"]),
        (&json!("Connected"), &json!("LocalNotInSync"))
    );
    client.put(&back, to(&a)).await.expect(200);
    assert_eq!(client.get(&back).await.body["properties"]["peeringSyncLevel"], "FullyInSync");

    client.delete(&back).await.expect(202);
    assert_eq!(state(&there).await, "Disconnected");
    client.put(&back, to(&a)).await.refused(400, "RemotePeeringIsDisconnected");
    client.delete(&there).await.expect(202);
    client.create(&there, to(&b)).await;
    client.create(&back, to(&a)).await;
    assert_eq!(state(&there).await, "Connected");
    // Peerings hold no network; the other side stays behind.
    client.delete(&b).await.expect(202);
    assert_eq!(state(&there).await, "Disconnected");
    client.delete(&a).await.expect(202);
}
