//! Private link services: from the manifest to packets from private endpoints, and back to nothing.

use azure_simulator::packet::{Packet, Protocol, Source};
use azure_simulator::typical_latency;
use azure_types::ResourceId;
use serde_json::{Value, json};
use testkit::{World, run};

const MANIFEST: &str = "
apiVersion: v1
kind: Service
metadata:
  name: shop
  namespace: default
  annotations:
    service.beta.kubernetes.io/azure-load-balancer-internal: 'true'
    service.beta.kubernetes.io/azure-pls-create: 'true'
    service.beta.kubernetes.io/azure-pls-name: shop
    service.beta.kubernetes.io/azure-pls-ip-configuration-subnet: links
    service.beta.kubernetes.io/azure-pls-fqdns: shop.example.com
spec:
  type: LoadBalancer
  selector: {app: shop}
  ports:
    - {name: http, port: 80, targetPort: 8080}
";

/// A private endpoint in a network that is not connected to the cluster's, with its address there.
fn connect(world: &World, link: &ResourceId) -> (ResourceId, std::net::IpAddr) {
    let far = world.network("virtualNetworks", "far");
    let subnets = json!([{"name": "s", "properties": {"addressPrefix": "172.16.0.0/24"}}]);
    let network = json!({"location": "westeurope", "properties": {
        "addressSpace": {"addressPrefixes": ["172.16.0.0/16"]}, "subnets": subnets}});
    world.azure.put(&far, network).unwrap();
    let endpoint = world.network("privateEndpoints", "customer");
    let way = json!({"name": "way", "properties": {"privateLinkServiceId": link}});
    let document = json!({"location": "westeurope", "properties": {
        "subnet": {"id": far.child("subnets", "s")}, "privateLinkServiceConnections": [way]}});
    world.azure.put(&endpoint, document).unwrap();
    let shown = world.azure.document(&endpoint).unwrap();
    let interface = shown["properties"]["networkInterfaces"][0]["id"].as_str().unwrap();
    let interface = world.azure.document(&ResourceId::parse(interface).unwrap()).unwrap();
    let address = &interface["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"];
    (endpoint, address.as_str().unwrap().parse().unwrap())
}

/// LB-440, LB-310, LB-322.
#[test]
fn lb_440_private_endpoints_reach_the_nodes() {
    run(async || {
        let builder = World::builder().subnet("links", &["10.241.0.0/24"]);
        let world = builder.latency(typical_latency()).start().await;
        world.apply(MANIFEST).await;
        world.settle().await;
        let link = world.network("privateLinkServices", "shop");
        let document = world.azure.document(&link).unwrap();
        assert_eq!(document["properties"]["fqdns"], json!(["shop.example.com"]));
        let (endpoint, address) = connect(&world, &link);
        let guest = Source::virtual_network("far", "172.16.0.200".parse().unwrap());
        let verdict = world.send(&Packet::new(guest.clone(), address, 80, Protocol::Tcp));
        assert!(
            verdict.arrives && verdict.sentence().contains("private link service shop as 10.241.0."),
            "{verdict}"
        );

        world.delete("default/shop");
        world.come_to_rest().await;
        assert_eq!(world.azure.document(&link), None);
        assert!(!world.send(&Packet::new(guest, address, 80, Protocol::Tcp)).arrives);
        let shown: Value = world.azure.document(&endpoint).unwrap();
        let connection = &shown["properties"]["privateLinkServiceConnections"][0]["properties"];
        assert_eq!(connection["privateLinkServiceConnectionState"]["status"], "Disconnected");
        world.azure.delete(&endpoint).unwrap();
        world.settle().await;
    });
}
