//! How a managed cluster is reached, and how its nodes reach others.

use super::*;

fn in_node_group(kind: &str, name: &str) -> ResourceId {
    ResourceId::group(SUBSCRIPTION, NODE_GROUP).resource("Microsoft.Network", kind, name)
}

/// What the group of the nodes holds of a type.
async fn held(client: &Client, kind: &str) -> Vec<Value> {
    let group = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{NODE_GROUP}");
    let path = format!("{group}/providers/Microsoft.Network/{kind}?api-version=2024-05-01");
    let list = client.send("GET", &path, None, &[]).await.expect(200).body;
    list["value"].as_array().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn a_managed_nat_gateway_comes_and_goes_with_its_cluster() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.1.0.0/16").await;
    let with = |profile: Value| {
        body(|body| {
            body["properties"]["networkProfile"] = profile;
            body["properties"]["agentPoolProfiles"][0]["vnetSubnetID"] = subnet.as_str().into();
        })
    };
    for wrong in [
        json!({ "managedOutboundIPProfile": { "count": 17 } }),
        json!({ "managedOutboundIPProfile": { "count": 0 } }),
        json!({ "idleTimeoutInMinutes": 121 }),
    ] {
        let wrong = with(json!({ "outboundType": "managedNATGateway", "natGatewayProfile": wrong }));
        put(&client, &cluster(), wrong).await.refused(400, "InvalidParameter");
    }
    let shown = done(&client, &cluster(), with(json!({ "outboundType": "managedNATGateway" }))).await;
    let profile = &shown["properties"]["networkProfile"]["natGatewayProfile"];
    assert_eq!(profile["managedOutboundIPProfile"]["count"], 1);
    assert_eq!(profile["idleTimeoutInMinutes"], 4);
    let gateways = held(&client, "natGateways").await;
    let [gateway] = gateways.as_slice() else { panic!("{gateways:?}") };
    assert_eq!(gateway["properties"]["publicIpAddresses"], profile["effectiveOutboundIPs"]);
    assert_eq!(gateway["properties"]["subnets"], json!([{ "id": subnet.as_str() }]));
    assert!(held(&client, "loadBalancers").await.is_empty());
    // More addresses, and another time.
    let more = json!({ "managedOutboundIPProfile": { "count": 2 }, "idleTimeoutInMinutes": 30 });
    let more = json!({ "outboundType": "managedNATGateway", "natGatewayProfile": more });
    let shown = done(&client, &cluster(), with(more)).await;
    let outbound = &shown["properties"]["networkProfile"]["natGatewayProfile"]["effectiveOutboundIPs"];
    assert_eq!(outbound.as_array().unwrap().len(), 2);
    assert_eq!(held(&client, "natGateways").await[0]["properties"]["idleTimeoutInMinutes"], 30);
    // A subnet of another group lets the gateway go.
    ask(&client, "DELETE", cluster().as_str(), Value::Null).await.expect(202);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(client.get(&subnet).await.body["properties"].get("natGateway"), None);
    client.get(&ResourceId::group(SUBSCRIPTION, NODE_GROUP)).await.refused(404, "ResourceGroupNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_private_cluster_is_reached_through_an_endpoint() {
    let client = Client::with_group(Options::default()).await;
    let private = |profile: Value| {
        body(|body| {
            body["properties"]["apiServerAccessProfile"] = profile;
            body["properties"]["apiServerAccessProfile"]["enablePrivateCluster"] = true.into();
        })
    };
    let shown = done(&client, &cluster(), private(json!({ "enablePrivateClusterPublicFQDN": false }))).await;
    assert_eq!(shown["properties"].get("fqdn"), None);
    let host = shown["properties"]["privateFQDN"].as_str().unwrap().to_owned();
    let (label, zone) = host.split_once('.').unwrap();
    let endpoint = client.get(&in_node_group("privateEndpoints", "kube-apiserver")).await.body;
    let connection = &endpoint["properties"]["privateLinkServiceConnections"][0]["properties"];
    assert_eq!(connection["privateLinkServiceConnectionState"]["status"], "Approved");
    assert_eq!(connection["groupIds"], json!(["management"]));
    let interface = endpoint["properties"]["networkInterfaces"][0]["id"].as_str().unwrap();
    let interface = client.get(&ResourceId::parse(interface).unwrap()).await.body;
    let address = &interface["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"];
    let record = in_node_group("privateDnsZones", zone).child("A", label);
    let path = format!("{record}?api-version=2020-06-01");
    let record = client.send("GET", &path, None, &[]).await.expect(200).body;
    assert_eq!(record["properties"]["aRecords"], json!([{ "ipv4Address": address }]));
    let links =
        ask(&client, "GET", &format!("{}/privateLinkResources", cluster()), Value::Null).await.expect(200);
    assert_eq!(links.body["value"][0]["groupId"], "management");
    ask(&client, "DELETE", cluster().as_str(), Value::Null).await.expect(202);
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    client.get(&ResourceId::group(SUBSCRIPTION, NODE_GROUP)).await.refused(404, "ResourceGroupNotFound");
    // Without a zone there is the endpoint alone.
    done(&client, &cluster(), private(json!({ "privateDNSZone": "none" }))).await;
    assert!(held(&client, "privateDnsZones").await.is_empty());
    assert_eq!(held(&client, "privateEndpoints").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_private_cluster_stands_in_the_zone_that_its_client_brings() {
    let client = Client::with_group(Options::default()).await;
    let zone = network_id("privateDnsZones/privatelink.eastus.azmk8s.io");
    let path = format!("{zone}?api-version=2020-06-01");
    client.send("PUT", &path, Some(json!({ "location": "global" })), &[]).await;
    let wanted = body(|body| {
        body["properties"].as_object_mut().unwrap().remove("dnsPrefix");
        body["properties"]["fqdnSubdomain"] = "inner".into();
        body["properties"]["apiServerAccessProfile"] =
            json!({ "enablePrivateCluster": true, "privateDNSZone": zone.as_str() });
    });
    let shown = done(&client, &cluster(), wanted).await;
    assert_eq!(shown["properties"]["privateFQDN"], "inner.privatelink.eastus.azmk8s.io");
    let record = zone.child("A", "inner");
    let record = client.send("GET", &format!("{record}?api-version=2020-06-01"), None, &[]).await.expect(200);
    assert_eq!(record.body["properties"]["aRecords"].as_array().unwrap().len(), 1);
    assert!(held(&client, "privateDnsZones").await.is_empty());
}
