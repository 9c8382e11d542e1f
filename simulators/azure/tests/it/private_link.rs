//! Private link services, private endpoints and the connections between them.

use std::time::Duration;

use crate::common::{Client, NETWORK_VERSION, group_path, network_id};
use azure_simulator::{LatencyProfile, Options};
use azure_types::ResourceId;
use serde_json::{Value, json};

const OTHER: &str = "22222222-2222-2222-2222-222222222222";

fn frontend(n: u8) -> ResourceId {
    network_id("loadBalancers/inner").child("frontendIPConfigurations", &format!("f{n}"))
}

/// A network with a subnet for services (policies off) and one for endpoints, and a balancer with two
/// internal frontends.
async fn prepared() -> Client {
    world_of(Options { more_subscriptions: vec![OTHER.into()], ..Options::default() }).await
}

async fn world_of(options: Options) -> Client {
    let client = Client::with_group(options).await;
    let net = network_id("virtualNetworks/net");
    let subnet = |name: &str, prefix: &str, policies: &str| {
        json!({ "name": name, "properties": {
            "addressPrefix": prefix, "privateLinkServiceNetworkPolicies": policies } })
    };
    client
        .create(
            &net,
            json!({ "location": "eastus", "properties": {
                "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] },
                "subnets": [subnet("services", "10.1.0.0/28", "Disabled"), subnet("nodes", "10.2.0.0/28", "Enabled")],
            }}),
        )
        .await;
    let frontends: Vec<Value> = (0..2)
        .map(|n| json!({ "name": format!("f{n}"), "properties": { "subnet": { "id": net.child("subnets", "nodes") } } }))
        .collect();
    client
        .create(
            &network_id("loadBalancers/inner"),
            json!({ "location": "eastus", "sku": { "name": "Standard" },
                "properties": { "frontendIPConfigurations": frontends } }),
        )
        .await;
    client
}

fn subnet(name: &str) -> ResourceId {
    network_id("virtualNetworks/net").child("subnets", name)
}

fn service(frontends: &[ResourceId]) -> Value {
    let frontends: Vec<Value> = frontends.iter().map(|id| json!({ "id": id })).collect();
    json!({ "location": "eastus", "properties": {
        "loadBalancerFrontendIpConfigurations": frontends,
        "ipConfigurations": [{ "name": "first", "properties": { "subnet": { "id": subnet("services") } } }],
    }})
}

fn endpoint(connections: &str, target: &str) -> Value {
    json!({ "location": "eastus", "properties": {
        "subnet": { "id": subnet("nodes") },
        connections: [{ "name": "way", "properties": { "privateLinkServiceId": target } }],
    }})
}

const AUTOMATIC: &str = "privateLinkServiceConnections";
const MANUAL: &str = "manualPrivateLinkServiceConnections";

fn status(endpoint: &Value, connections: &str) -> Value {
    endpoint["properties"][connections][0]["properties"]["privateLinkServiceConnectionState"]["status"]
        .clone()
}

#[tokio::test(start_paused = true)]
async fn a_service_has_an_alias_an_interface_and_addresses() {
    let client = prepared().await;
    let id = network_id("privateLinkServices/Shop");
    let shown = client.create(&id, service(&[frontend(0)])).await;
    let properties = &shown["properties"];
    let alias = properties["alias"].as_str().unwrap();
    assert!(alias.starts_with("shop.") && alias.ends_with(".eastus.azure.privatelinkservice"), "{alias}");
    assert_eq!(properties["loadBalancerFrontendIpConfigurations"], json!([{ "id": frontend(0) }]));
    let first = &properties["ipConfigurations"][0];
    assert_eq!(first["properties"]["primary"], true, "the first one, where none says so");
    assert_eq!(first["properties"]["privateIPAllocationMethod"], "Dynamic");
    assert_eq!(properties["privateEndpointConnections"], json!([]));
    let interface = properties["networkInterfaces"][0]["id"].as_str().unwrap();
    assert!(interface.contains("/networkInterfaces/Shop.nic."), "{interface}");
    let nic = client.get(&ResourceId::parse(interface).unwrap()).await.expect(200).body;
    assert_eq!(nic["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"], "10.1.0.4");
    assert_eq!(nic["properties"]["privateLinkService"]["id"], id.as_str());
    // What was shown can be sent back, with an empty etag, and changes nothing.
    let mut again = shown.clone();
    again["etag"] = json!("");
    assert_eq!(client.put(&id, again).await.expect(200).body, shown);

    let mut more = service(&[frontend(0)]);
    more["properties"]["ipConfigurations"].as_array_mut().unwrap().push(json!({ "name": "second", "properties": {
        "subnet": { "id": subnet("services") }, "privateIPAllocationMethod": "Static", "privateIPAddress": "10.1.0.9" } }));
    client.create(&id, more).await;
    let nic = client.get(&ResourceId::parse(interface).unwrap()).await.expect(200).body;
    let addresses: Vec<&Value> = nic["properties"]["ipConfigurations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|ip| &ip["properties"]["privateIPAddress"])
        .collect();
    assert_eq!(addresses, ["10.1.0.4", "10.1.0.9"], "an address that was given stays");

    client.delete(&id).await.expect(202);
    client.get(&ResourceId::parse(interface).unwrap()).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn services_are_checked_and_guard_their_frontends() {
    let client = prepared().await;
    let id = network_id("privateLinkServices/one");
    let case = |edit: &dyn Fn(&mut Value)| {
        let mut body = service(&[frontend(0)]);
        edit(&mut body["properties"]);
        body
    };
    let configuration =
        |edit: &dyn Fn(&mut Value)| case(&|p| edit(&mut p["ipConfigurations"][0]["properties"]));
    for (code, body) in [
        ("PrivateLinkServiceMustHaveLoadBalancerFrontendIpConfiguration", service(&[])),
        ("InvalidResourceReference", service(&[frontend(7)])),
        ("PrivateLinkServiceInvalidNumberOfIpConfigurations", case(&|p| p["ipConfigurations"] = json!([]))),
        (
            "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled",
            configuration(&|p| p["subnet"]["id"] = json!(subnet("nodes"))),
        ),
        ("InvalidResourceReference", configuration(&|p| p["subnet"]["id"] = json!(subnet("none")))),
        (
            "PrivateLinkServiceIPv6NotSupported",
            configuration(&|p| p["privateIPAddressVersion"] = json!("IPv6")),
        ),
        ("PrivateIPAddressNotProvided", configuration(&|p| p["privateIPAllocationMethod"] = json!("Static"))),
        ("InvalidRequestFormat", case(&|p| p["frontends"] = json!([]))),
    ] {
        client.put(&id, body).await.refused(400, code);
    }
    let nine: Vec<Value> = (0..9)
        .map(|n| json!({ "name": format!("c{n}"), "properties": { "subnet": { "id": subnet("services") } } }))
        .collect();
    client
        .put(&id, case(&|p| p["ipConfigurations"] = json!(nine)))
        .await
        .refused(400, "PrivateLinkServiceInvalidNumberOfIpConfigurations");

    client.create(&id, service(&[frontend(0)])).await;
    client
        .put(&network_id("privateLinkServices/two"), service(&[frontend(0)]))
        .await
        .refused(400, "LoadBalancerFrontendIPConfigurationInUseByPrivateLinkService");
    client
        .put(&id, service(&[frontend(1)]))
        .await
        .refused(400, "PrivateLinkServiceFrontendIpConfigurationsCannotBeChanged");
    let balancer = network_id("loadBalancers/inner");
    client
        .delete(&balancer)
        .await
        .refused(400, "LoadBalancerFrontendIPConfigurationInUseByPrivateLinkService");
    let mut without = client.get(&balancer).await.body;
    without["properties"]["frontendIPConfigurations"].as_array_mut().unwrap().remove(0);
    client
        .put(&balancer, without)
        .await
        .refused(400, "LoadBalancerFrontendIPConfigurationInUseByPrivateLinkService");
    client.delete(&subnet("services")).await.refused(400, "InUseSubnetCannotBeDeleted");
    client.delete(&id).await.expect(202);
    client.delete(&balancer).await.expect(202);
    client.delete(&subnet("services")).await.expect(202);
}

#[tokio::test(start_paused = true)]
async fn a_connection_is_asked_for_decided_and_removed() {
    let client = prepared().await;
    let id = network_id("privateLinkServices/shop");
    client.create(&id, service(&[frontend(0)])).await;
    let (auto, manual) = (network_id("privateEndpoints/auto"), network_id("privateEndpoints/manual"));
    let shown = client.create(&auto, endpoint(AUTOMATIC, id.as_str())).await;
    assert_eq!(status(&shown, AUTOMATIC), "Approved");
    assert_eq!(shown["properties"][MANUAL], json!([]));
    assert_eq!(shown["properties"]["customDnsConfigs"], json!([]), "a service has no names of its own");
    let nodes = client.get(&subnet("nodes")).await.body;
    assert_eq!(nodes["properties"]["privateEndpoints"], json!([{ "id": auto }]));
    let mut asked = endpoint(MANUAL, id.as_str());
    asked["properties"][MANUAL][0]["properties"]["requestMessage"] = json!("please");
    let shown = client.create(&manual, asked).await;
    assert_eq!(status(&shown, MANUAL), "Pending");

    let before = client.get(&id).await.body;
    let connections = before["properties"]["privateEndpointConnections"].as_array().unwrap().clone();
    assert_eq!(connections.len(), 2);
    let pending = &connections[1];
    assert_eq!(pending["properties"]["privateEndpoint"]["id"], manual.as_str());
    assert_eq!(pending["properties"]["privateLinkServiceConnectionState"]["description"], "please");
    let connection = ResourceId::parse(pending["id"].as_str().unwrap()).unwrap();
    assert_eq!(client.get(&connection).await.expect(200).body, *pending);
    let listed = format!("{id}/privateEndpointConnections?api-version={NETWORK_VERSION}");
    assert_eq!(client.send("GET", &listed, None, &[]).await.expect(200).body["value"], json!(connections));

    // The owner approves; both sides and both etags say so.
    let endpoint_before = client.get(&manual).await.body;
    let mut decided = pending.clone();
    let state = &mut decided["properties"]["privateLinkServiceConnectionState"];
    (state["status"], state["description"]) = (json!("approved"), json!("welcome"));
    let answer = client.put(&connection, decided.clone()).await.expect(200).body;
    assert_eq!(answer["properties"]["privateLinkServiceConnectionState"]["status"], "Approved");
    let after = client.get(&manual).await.body;
    assert_eq!(status(&after, MANUAL), "Approved");
    assert_ne!(after["etag"], endpoint_before["etag"]);
    assert_ne!(client.get(&id).await.etag(), before["etag"].as_str().unwrap());
    decided["properties"]["privateLinkServiceConnectionState"]["status"] = json!("Disconnected");
    client.put(&connection, decided).await.refused(400, "PrivateEndpointConnectionStatusInvalid");
    client.put(&id.child("privateEndpointConnections", "none"), json!({})).await.refused(404, "NotFound");

    client
        .delete(&id)
        .await
        .refused(400, "PrivateLinkServiceCannotBeDeletedBecauseItHasPrivateEndpointConnections");
    let gone = client.delete(&connection).await.expect(202);
    assert_eq!(client.wait(&gone).await["status"], "Succeeded");
    client.get(&connection).await.refused(404, "NotFound");
    client.delete(&connection).await.expect(204);
    assert_eq!(status(&client.get(&manual).await.body, MANUAL), "Disconnected");
    // The endpoint that goes takes its connection along.
    client.delete(&auto).await.expect(202);
    assert_eq!(client.get(&id).await.body["properties"]["privateEndpointConnections"], json!([]));
    client.delete(&id).await.expect(202);
    client.get(&manual).await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_waits_for_its_service() {
    let latency = LatencyProfile::instant().with("PUT", "*/privateLinkServices", Duration::from_secs(30));
    let client = world_of(Options { latency, ..Options::default() }).await;
    let id = network_id("privateLinkServices/shop");
    let running = client.put(&id, service(&[frontend(0)])).await.expect(201);
    let endpoint_id = network_id("privateEndpoints/e");
    let refused =
        client.put(&endpoint_id, endpoint(AUTOMATIC, id.as_str())).await.refused(429, "RetryableError");
    assert!(refused.message().contains("ReferencedResourceNotProvisioned"), "{}", refused.message());
    client.put(&id, service(&[frontend(0)])).await.refused(429, "RetryableError");
    client.wait(&running).await;
    client.put(&endpoint_id, endpoint(AUTOMATIC, id.as_str())).await.expect(201);
}

#[tokio::test(start_paused = true)]
async fn an_alias_leads_only_those_who_may_see_the_service() {
    let client = prepared().await;
    let id = network_id("privateLinkServices/shop");
    let alias = client.create(&id, service(&[frontend(0)])).await["properties"]["alias"].clone();
    let alias = alias.as_str().unwrap();
    let mine = network_id("privateEndpoints/mine");
    let shown = client.create(&mine, endpoint(MANUAL, alias)).await;
    assert_eq!(status(&shown, MANUAL), "Pending");
    assert_eq!(shown["properties"][MANUAL][0]["properties"]["privateLinkServiceId"], alias);

    let mut open = client.get(&id).await.body;
    open["properties"]["visibility"] = json!({ "subscriptions": [OTHER] });
    open["properties"]["autoApproval"] = json!({ "subscriptions": ["*"] });
    client.create(&id, open).await;
    let next = network_id("privateEndpoints/next");
    let shown = client.create(&next, endpoint(MANUAL, alias)).await;
    assert_eq!(status(&shown, MANUAL), "Approved", "its subscription needs no decision");
    assert_eq!(status(&client.get(&mine).await.body, MANUAL), "Pending", "what was asked before still waits");
}

#[tokio::test(start_paused = true)]
async fn endpoints_lead_to_other_kinds_and_are_checked() {
    let client = prepared().await;
    let id = network_id("privateEndpoints/files");
    let account = format!("{}/providers/Microsoft.Storage/storageAccounts/Depot", group_path());
    let depot = json!({ "location": "eastus", "kind": "StorageV2", "sku": { "name": "Standard_LRS" } });
    client.azure.put(&ResourceId::parse(&account.to_lowercase()).unwrap(), depot).unwrap();
    let mut body = endpoint(AUTOMATIC, &account);
    client.put(&id, body.clone()).await.refused(400, "PrivateEndpointGroupIdsRequired");
    body["properties"][AUTOMATIC][0]["properties"]["groupIds"] = json!(["file"]);
    let shown = client.create(&id, body.clone()).await;
    let interface =
        ResourceId::parse(shown["properties"]["networkInterfaces"][0]["id"].as_str().unwrap()).unwrap();
    let nic = client.get(&interface).await.expect(200).body;
    let ip = &nic["properties"]["ipConfigurations"][0]["properties"];
    assert_eq!(ip["privateIPAddress"], "10.2.0.6", "after the two frontends");
    assert_eq!(ip["privateLinkConnectionProperties"]["groupId"], "file");
    assert_eq!(
        shown["properties"]["customDnsConfigs"],
        json!([{ "fqdn": "depot.file.core.windows.net", "ipAddresses": ["10.2.0.6"] }])
    );
    assert_eq!(nic["properties"]["privateEndpoint"]["id"], id.as_str());

    let mut named = body.clone();
    named["properties"]["customNetworkInterfaceName"] = json!("way-in");
    named["properties"]["ipConfigurations"] = json!([{ "name": "fixed", "properties": {
        "groupId": "file", "memberName": "file", "privateIPAddress": "10.2.0.12" } }]);
    let other = network_id("privateEndpoints/other");
    let shown = client.create(&other, named.clone()).await;
    assert_eq!(
        shown["properties"]["networkInterfaces"][0]["id"],
        network_id("networkInterfaces/way-in").as_str()
    );
    assert_eq!(shown["properties"]["customDnsConfigs"][0]["ipAddresses"], json!(["10.2.0.12"]));

    let third = network_id("privateEndpoints/third");
    client.put(&third, named.clone()).await.refused(400, "PrivateEndpointCustomNetworkInterfaceNameInUse");
    named["properties"]["customNetworkInterfaceName"] = json!("");
    client
        .put(&other, named.clone())
        .await
        .refused(400, "PrivateEndpointCustomNetworkInterfaceNameCannotBeChanged");
    client.put(&third, named).await.refused(400, "PrivateIPAddressIsAllocated");
    let case = |edit: &dyn Fn(&mut Value)| {
        let mut body = body.clone();
        edit(&mut body["properties"]);
        body
    };
    let missing = network_id("privateLinkServices/none");
    for (code, body) in [
        ("SubnetRequired", case(&|p| p["subnet"] = Value::Null)),
        ("InvalidResourceReference", case(&|p| p["subnet"]["id"] = json!(subnet("none")))),
        ("PrivateEndpointMustHaveOnePrivateLinkServiceConnection", case(&|p| p[AUTOMATIC] = json!([]))),
        ("InvalidResourceReference", endpoint(AUTOMATIC, missing.as_str())),
        ("PrivateLinkServiceIdNotSupported", endpoint(AUTOMATIC, network_id("loadBalancers/inner").as_str())),
        ("PrivateLinkServiceAliasNotFound", endpoint(MANUAL, "shop.none.eastus.azure.privatelinkservice")),
    ] {
        client.put(&third, body).await.refused(400, code);
    }
    let moved = case(&|p| p["subnet"]["id"] = json!(subnet("services")));
    client.put(&id, moved).await.refused(400, "PrivateEndpointSubnetCannotBeChanged");
    client.delete(&subnet("nodes")).await.refused(400, "InUseSubnetCannotBeDeleted");
    client.delete(&id).await.expect(202);
    client.get(&interface).await.expect(404);
}
