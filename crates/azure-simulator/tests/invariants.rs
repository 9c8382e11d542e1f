//! What must hold whatever clients do: nothing dangles, no address is given twice, every operation
//! ends, and the same seed and input give the same journal.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeMap;
use std::time::Duration;

use azure_simulator::{Azure, LatencyProfile, Options};
use azure_types::ResourceId;
use common::{Client, compute_id, load_balancer, network_id, public_ip, scale_set};
use proptest::prelude::*;
use serde_json::{Value, json};

/// One thing that a client does; the numbers choose names and values.
#[derive(Debug, Clone)]
enum Step {
    PutPublicIp(u8),
    DeletePublicIp(u8),
    PutBalancer { balancer: u8, public_ip: u8, ports: Vec<u8> },
    PutInternal { balancer: u8, frontends: Vec<Option<u8>> },
    DeleteBalancer(u8),
    PutSet { set: u8, capacity: u8, pools: Vec<u8> },
    UpgradeInstance { set: u8, instance: u8, pools: Vec<u8> },
    RemoveInstance { set: u8, instance: u8 },
    DeleteSet(u8),
    DeleteSubnet,
    PutSubnet(u8),
    PutPrefix(u8),
    DeletePrefix(u8),
    PutPublicIpOf { public_ip: u8, prefix: u8 },
    PutNatRule { balancer: u8, start: u8 },
    MigratePool(u8),
    PutService { service: u8, balancer: u8 },
    DeleteService(u8),
    PutEndpoint { endpoint: u8, service: u8, manual: bool },
    DeleteEndpoint(u8),
    Decide { service: u8, approve: Option<bool> },
    Wait(u8),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let few = || 0..4u8;
    let step = prop_oneof![
        4 => few().prop_map(Step::PutPublicIp),
        1 => few().prop_map(Step::DeletePublicIp),
        4 => (few(), few(), prop::collection::vec(0..6u8, 0..4))
            .prop_map(|(balancer, public_ip, ports)| Step::PutBalancer { balancer, public_ip, ports }),
        4 => (few(), prop::collection::vec(prop::option::of(0..20u8), 1..4))
            .prop_map(|(balancer, frontends)| Step::PutInternal { balancer, frontends }),
        1 => few().prop_map(Step::DeleteBalancer),
        3 => (0..2u8, 0..7u8, prop::collection::vec(few(), 0..3))
            .prop_map(|(set, capacity, pools)| Step::PutSet { set, capacity, pools }),
        3 => (0..2u8, 0..8u8, prop::collection::vec(few(), 0..3))
            .prop_map(|(set, instance, pools)| Step::UpgradeInstance { set, instance, pools }),
        2 => (0..2u8, 0..8u8).prop_map(|(set, instance)| Step::RemoveInstance { set, instance }),
        1 => (0..2u8).prop_map(Step::DeleteSet),
        1 => Just(Step::DeleteSubnet),
        1 => (0..3u8).prop_map(Step::PutSubnet),
        1 => few().prop_map(Step::PutPrefix),
        1 => few().prop_map(Step::DeletePrefix),
        1 => (few(), few()).prop_map(|(public_ip, prefix)| Step::PutPublicIpOf { public_ip, prefix }),
        1 => (few(), 0..6u8).prop_map(|(balancer, start)| Step::PutNatRule { balancer, start }),
        1 => few().prop_map(Step::MigratePool),
        3 => (0..2u8, few()).prop_map(|(service, balancer)| Step::PutService { service, balancer }),
        1 => (0..2u8).prop_map(Step::DeleteService),
        3 => (few(), 0..2u8, any::<bool>())
            .prop_map(|(endpoint, service, manual)| Step::PutEndpoint { endpoint, service, manual }),
        1 => few().prop_map(Step::DeleteEndpoint),
        2 => (0..2u8, prop::option::of(any::<bool>()))
            .prop_map(|(service, approve)| Step::Decide { service, approve }),
        4 => (0..40u8).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..40)
}

fn options() -> Options {
    let latency = LatencyProfile::instant().with("*", "*", Duration::from_secs(5)).with(
        "PUT",
        "*/virtualMachineScaleSets",
        Duration::from_secs(11),
    );
    Options { latency, budgets: None, ..Options::default() }
}

fn subnet() -> ResourceId {
    network_id("virtualNetworks/net/subnets/nodes")
}

fn pools(numbers: &[u8]) -> Vec<ResourceId> {
    let mut numbers = numbers.to_vec();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.iter().map(|n| network_id(&format!("loadBalancers/lb{n}/backendAddressPools/p"))).collect()
}

fn subnet_of(prefix: &str) -> Value {
    json!({ "properties": { "addressPrefix": prefix, "privateLinkServiceNetworkPolicies": "Disabled" } })
}

fn ip_prefix(n: &u8) -> ResourceId {
    network_id(&format!("publicIPPrefixes/x{n}"))
}

fn prefix_of(length: u8) -> Value {
    json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": { "prefixLength": length } })
}

fn service(n: &u8) -> ResourceId {
    network_id(&format!("privateLinkServices/v{n}"))
}

fn service_of(balancer: &ResourceId) -> Value {
    json!({ "location": "eastus", "properties": {
        "loadBalancerFrontendIpConfigurations": [{ "id": balancer.child("frontendIPConfigurations", "f0") }],
        "ipConfigurations": [{ "name": "c", "properties": { "subnet": { "id": subnet() } } }] } })
}

fn endpoint(n: &u8) -> ResourceId {
    network_id(&format!("privateEndpoints/e{n}"))
}

fn endpoint_of(service: &ResourceId, manual: bool) -> Value {
    let way = if manual { "manualPrivateLinkServiceConnections" } else { "privateLinkServiceConnections" };
    json!({ "location": "eastus", "properties": { "subnet": { "id": subnet() },
        way: [{ "name": "c", "properties": { "privateLinkServiceId": service } }] } })
}

async fn take(client: &Client, step: &Step) {
    let (pip, lb) = (
        |n: &u8| network_id(&format!("publicIPAddresses/p{n}")),
        |n: &u8| network_id(&format!("loadBalancers/lb{n}")),
    );
    let set = |n: &u8| compute_id(&format!("virtualMachineScaleSets/s{n}"));
    let reply = match step {
        Step::PutPublicIp(n) => client.put(&pip(n), public_ip()).await,
        Step::DeletePublicIp(n) => client.delete(&pip(n)).await,
        Step::PutBalancer { balancer, public_ip, ports } => {
            let ports: Vec<u16> = ports.iter().map(|port| 80 + u16::from(*port)).collect();
            client.put(&lb(balancer), load_balancer(&lb(balancer), &pip(public_ip), &ports)).await
        }
        Step::PutInternal { balancer, frontends } => {
            let frontends: Vec<Value> = frontends
                .iter()
                .enumerate()
                .map(|(at, address)| {
                    let mut properties = json!({ "subnet": { "id": subnet() } });
                    if let Some(address) = address {
                        properties["privateIPAllocationMethod"] = json!("Static");
                        properties["privateIPAddress"] = json!(format!("10.1.0.{address}"));
                    }
                    json!({ "name": format!("f{at}"), "properties": properties })
                })
                .collect();
            let body = json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {
                "frontendIPConfigurations": frontends, "backendAddressPools": [{ "name": "p" }],
            }});
            client.put(&lb(balancer), body).await
        }
        Step::DeleteBalancer(n) => client.delete(&lb(n)).await,
        Step::PutSet { set: n, capacity, pools: numbers } => {
            client.put(&set(n), scale_set(u64::from(*capacity), &subnet(), &pools(numbers))).await
        }
        Step::UpgradeInstance { set: n, instance, pools: numbers } => {
            let whole = scale_set(0, &subnet(), &pools(numbers));
            let profile = whole["properties"]["virtualMachineProfile"]["networkProfile"].clone();
            let id = set(n).child("virtualMachines", &instance.to_string());
            client.put(&id, json!({ "properties": { "networkProfileConfiguration": profile } })).await
        }
        Step::RemoveInstance { set: n, instance } => {
            client.delete(&set(n).child("virtualMachines", &instance.to_string())).await
        }
        Step::DeleteSet(n) => client.delete(&set(n)).await,
        Step::DeleteSubnet => client.delete(&subnet()).await,
        Step::PutSubnet(n) => {
            let prefix = ["10.1.0.0/27", "10.1.0.0/28", "10.2.0.0/24"][usize::from(*n)];
            client.put(&subnet(), subnet_of(prefix)).await
        }
        Step::PutPrefix(n) => client.put(&ip_prefix(n), prefix_of(31)).await,
        Step::DeletePrefix(n) => client.delete(&ip_prefix(n)).await,
        Step::PutPublicIpOf { public_ip: n, prefix } => {
            let mut body = public_ip();
            body["properties"]["publicIPPrefix"] = json!({ "id": ip_prefix(prefix) });
            client.put(&pip(n), body).await
        }
        Step::PutNatRule { balancer, start } => {
            let of = |collection: &str, name: &str| json!({ "id": lb(balancer).child(collection, name) });
            let start = 200 + u16::from(*start);
            let body = json!({ "properties": {
                "frontendIPConfiguration": of("frontendIPConfigurations", "f"),
                "backendAddressPool": of("backendAddressPools", "p"),
                "frontendPortRangeStart": start, "frontendPortRangeEnd": start + 4, "backendPort": 22 } });
            client.put(&lb(balancer).child("inboundNatRules", "ssh"), body).await
        }
        Step::MigratePool(n) => client.post(&lb(n), "migrateToIpBased", json!({ "pools": ["p"] })).await,
        Step::PutService { service: n, balancer } => client.put(&service(n), service_of(&lb(balancer))).await,
        Step::DeleteService(n) => client.delete(&service(n)).await,
        Step::PutEndpoint { endpoint: n, service: of, manual } => {
            client.put(&endpoint(n), endpoint_of(&service(of), *manual)).await
        }
        Step::DeleteEndpoint(n) => client.delete(&endpoint(n)).await,
        Step::Decide { service: n, approve } => {
            let shown = client.get(&service(n)).await;
            let first = &shown.body["properties"]["privateEndpointConnections"][0];
            let Some(id) = first["id"].as_str().and_then(|id| ResourceId::parse(id).ok()) else { return };
            match approve {
                None => client.delete(&id).await,
                Some(approve) => {
                    let status = if *approve { "Approved" } else { "Rejected" };
                    let state = json!({ "privateLinkServiceConnectionState": { "status": status } });
                    client.put(&id, json!({ "properties": state })).await
                }
            }
        }
        Step::Wait(seconds) => {
            tokio::time::sleep(Duration::from_secs(u64::from(*seconds))).await;
            return;
        }
    };
    assert!(reply.status < 500, "{step:?}: {} {}", reply.status, reply.body);
}

/// Checks one Azure: every id that a document shows exists, and every address has one owner.
fn check(azure: &Azure) {
    let mut owners: BTreeMap<(String, String), String> = BTreeMap::new();
    let mut own = |space: String, address: &Value, owner: &Value| {
        let (address, owner) = (address.as_str().unwrap().to_owned(), owner.as_str().unwrap().to_owned());
        if let Some(other) = owners.insert((space, address.clone()), owner.clone()) {
            panic!("{address} belongs to {other} and {owner}");
        }
    };
    for document in azure.documents() {
        ids_in(azure, &document);
        if let Some(address) = document["properties"].get("ipAddress") {
            own("public".into(), address, &document["id"]);
        }
    }
    let nics = azure
        .documents_of_type("Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces");
    let configurations =
        nics.iter().flat_map(|nic| nic["properties"]["ipConfigurations"].as_array().unwrap().clone());
    let frontends = azure.documents_of_type("Microsoft.Network/loadBalancers/frontendIPConfigurations");
    for holder in configurations.chain(frontends) {
        ids_in(azure, &holder);
        let Some(address) = holder["properties"].get("privateIPAddress") else { continue };
        let subnet = holder["properties"]["subnet"]["id"].as_str().unwrap();
        own(subnet.to_lowercase(), address, &holder["id"]);
        let shown = azure.document(&ResourceId::parse(subnet).unwrap()).unwrap();
        let users = shown["properties"]["ipConfigurations"].as_array().unwrap();
        assert!(users.iter().any(|user| user["id"] == holder["id"]), "the subnet knows who is in it");
        let net: ipnet::IpNet = shown["properties"]["addressPrefix"].as_str().unwrap().parse().unwrap();
        assert!(net.contains(&address.as_str().unwrap().parse::<std::net::IpAddr>().unwrap()));
    }
    // The interfaces that the service makes hold addresses as well, and each has an owner.
    for nic in azure.documents_of_type("Microsoft.Network/networkInterfaces") {
        ids_in(azure, &nic);
        for ip in nic["properties"]["ipConfigurations"].as_array().unwrap() {
            let subnet = ip["properties"]["subnet"]["id"].as_str().unwrap();
            let owner = json!(format!("{}/{}", nic["id"], ip["name"]));
            own(subnet.to_lowercase(), &ip["properties"]["privateIPAddress"], &owner);
        }
    }
    // A service and its endpoints agree on who is connected.
    for service in azure.documents_of_type("Microsoft.Network/privateLinkServices") {
        for connection in service["properties"]["privateEndpointConnections"].as_array().unwrap() {
            let id = connection["properties"]["privateEndpoint"]["id"].as_str().unwrap();
            let endpoint = azure.document(&ResourceId::parse(id).unwrap()).unwrap();
            let state = &connection["properties"]["privateLinkServiceConnectionState"];
            let ways = ["privateLinkServiceConnections", "manualPrivateLinkServiceConnections"];
            let theirs = ways.iter().flat_map(|way| endpoint["properties"][way].as_array().unwrap());
            let mut theirs = theirs.map(|way| &way["properties"]["privateLinkServiceConnectionState"]);
            assert!(theirs.any(|other| other == state), "{connection} and {endpoint} differ");
        }
    }
    // Ranges of public addresses keep to themselves.
    let ranges: Vec<ipnet::IpNet> = azure
        .documents_of_type("Microsoft.Network/publicIPPrefixes")
        .iter()
        .filter_map(|prefix| prefix["properties"]["ipPrefix"].as_str()?.parse().ok())
        .collect();
    for (at, range) in ranges.iter().enumerate() {
        assert!(!ranges.iter().skip(at + 1).any(|other| range.contains(other) || other.contains(range)));
    }
    // Membership is shown on both sides.
    for pool in azure.documents_of_type("Microsoft.Network/loadBalancers/backendAddressPools") {
        for member in pool["properties"]["backendIPConfigurations"].as_array().into_iter().flatten() {
            let id = ResourceId::parse(member["id"].as_str().unwrap()).unwrap();
            let joined = &azure.document(&id).unwrap()["properties"]["loadBalancerBackendAddressPools"];
            assert!(joined.as_array().unwrap().iter().any(|other| other["id"] == pool["id"]));
        }
    }
}

fn ids_in(azure: &Azure, value: &Value) {
    match value {
        Value::Object(members) => {
            for (member, value) in members {
                match value.as_str().filter(|_| member == "id").map(ResourceId::parse) {
                    // The disks of instances are named, but are not resources of this Azure.
                    Some(Ok(id)) if !id.as_str().contains("/disks/") => {
                        assert!(azure.document(&id).is_some(), "{id} dangles");
                    }
                    _ => ids_in(azure, value),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| ids_in(azure, item)),
        _ => {}
    }
}

async fn run(steps: &[Step], seed: u64) -> Client {
    let client = Client::with_group(Options { seed, ..options() }).await;
    client.network("10.1.0.0/27").await;
    client.create(&subnet(), subnet_of("10.1.0.0/27")).await;
    for step in steps {
        take(&client, step).await;
        check(&client.azure);
    }
    tokio::time::sleep(Duration::from_secs(3_600)).await;
    assert_eq!(client.azure.running_operations(), 0, "every operation ends");
    for document in client.azure.documents() {
        assert_eq!(document["properties"]["provisioningState"], "Succeeded", "{}", document["id"]);
    }
    check(&client.azure);
    client
}

fn in_paused_time<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
        .block_on(work)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_dangles_and_no_address_is_given_twice(steps in steps()) {
        in_paused_time(run(&steps, 1));
    }

    #[test]
    fn the_same_seed_and_input_give_the_same_journal_and_documents(steps in steps(), seed in 0..5u64) {
        let told = || in_paused_time(async {
            let client = run(&steps, seed).await;
            (serde_json::to_string(&client.azure.journal()).unwrap(), serde_json::to_string(&client.azure.documents()).unwrap())
        });
        prop_assert_eq!(told(), told());
    }
}

#[test]
fn another_seed_gives_other_identifiers() {
    let told = |seed| {
        in_paused_time(async move {
            let client = run(&[Step::PutPublicIp(0)], seed).await;
            client.azure.document(&network_id("publicIPAddresses/p0")).unwrap()
        })
    };
    let (one, two) = (told(1), told(2));
    assert_ne!(one["etag"], two["etag"]);
    assert_ne!(one["properties"]["resourceGuid"], two["properties"]["resourceGuid"]);
}
