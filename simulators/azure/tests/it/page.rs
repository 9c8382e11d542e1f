//! The page and its endpoints over a simulated Azure, built the way a cluster builds it.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use azure_simulator::packet::{Packet, ProbeAnswers, Protocol, Source, flows, trace};
use azure_simulator::page::{self, AzurePage};
use azure_simulator::view::{ServiceView, Topology};
use azure_simulator::{Azure, Documents, Options, PowerState};
use azure_types::ResourceId;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// Machines answer every probe but those to this address.
#[derive(Clone)]
struct AllBut(&'static str);

impl ProbeAnswers for AllBut {
    fn answers(&self, _: &ResourceId, address: IpAddr, _: &str, _: u16, _: Option<&str>) -> bool {
        address.to_string() != self.0
    }
}

fn group(azure: &Azure) -> ResourceId {
    ResourceId::group(&azure.options().subscription, "rg")
}

fn network(azure: &Azure, kind: &str, name: &str) -> ResourceId {
    group(azure).resource("Microsoft.Network", kind, name)
}

fn scale_set(azure: &Azure) -> ResourceId {
    group(azure).resource("Microsoft.Compute", "virtualMachineScaleSets", "pool")
}

/// Three instances behind a public address with TCP 80. Answers the address.
fn cluster() -> (Azure, IpAddr) {
    let azure = Azure::new(Options::default());
    let put = |id: &ResourceId, document: Value| {
        azure.put(id, document.clone()).unwrap_or_else(|refusal| panic!("{id}: {refusal:?} {document}"))
    };
    let nsg = network(&azure, "networkSecurityGroups", "nsg");
    put(
        &nsg,
        json!({ "properties": { "securityRules": [{ "name": "allow-web", "properties": {
            "priority": 500, "direction": "Inbound", "access": "Allow", "protocol": "Tcp",
            "sourceAddressPrefix": "Internet", "sourcePortRange": "*",
            "destinationAddressPrefix": "*", "destinationPortRange": "80" } }] } }),
    );
    let vnet = network(&azure, "virtualNetworks", "vnet");
    put(
        &vnet,
        json!({ "properties": { "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] }, "subnets": [{ "name": "nodes",
            "properties": { "addressPrefix": "10.0.0.0/16", "networkSecurityGroup": { "id": nsg } } }] } }),
    );
    let pip = network(&azure, "publicIPAddresses", "kubernetes-a1");
    let public = put(
        &pip,
        json!({ "sku": { "name": "Standard" }, "tags": { "k8s-azure-service": "default/web,default/again" },
                "properties": { "publicIPAllocationMethod": "Static" } }),
    );
    let lb = network(&azure, "loadBalancers", "kubernetes");
    let child = |kind: &str, name: &str| json!({ "id": lb.child(kind, name) });
    put(
        &lb,
        json!({ "sku": { "name": "Standard" }, "properties": {
            "frontendIPConfigurations": [{ "name": "a1", "properties": { "publicIPAddress": { "id": pip } } }],
            "backendAddressPools": [{ "name": "kubernetes" }],
            "probes": [{ "name": "a1-TCP-80", "properties":
                { "protocol": "Http", "port": 32000, "requestPath": "/healthz", "intervalInSeconds": 5 } }],
            "loadBalancingRules": [{ "name": "a1-TCP-80", "properties": {
                "protocol": "Tcp", "frontendPort": 80, "backendPort": 80, "enableFloatingIP": true,
                "frontendIPConfiguration": child("frontendIPConfigurations", "a1"),
                "backendAddressPool": child("backendAddressPools", "kubernetes"),
                "probe": child("probes", "a1-TCP-80") } }],
        } }),
    );
    put(
        &scale_set(&azure),
        json!({ "sku": { "name": "Standard_D2s_v3", "tier": "Standard", "capacity": 3 }, "properties": {
            "orchestrationMode": "Uniform", "upgradePolicy": { "mode": "Automatic" }, "virtualMachineProfile": {
                "osProfile": { "computerNamePrefix": "node" },
                "networkProfile": { "networkInterfaceConfigurations": [{ "name": "nic", "properties": {
                    "primary": true, "ipConfigurations": [{ "name": "ipconfig", "properties": {
                        "primary": true, "subnet": { "id": vnet.child("subnets", "nodes") },
                        "loadBalancerBackendAddressPools": [child("backendAddressPools", "kubernetes")] } }] } }] },
            } } }),
    );
    let address = public["properties"]["ipAddress"].as_str().expect("a static address").parse().unwrap();
    (azure, address)
}

fn router(azure: &Azure, probes: AllBut) -> Router {
    page::router(Arc::new(AzurePage::new(azure.clone(), probes)))
}

async fn get(router: &Router, path: &str) -> (StatusCode, Vec<u8>) {
    let response = router.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status();
    (status, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

async fn get_json(router: &Router, path: &str) -> Value {
    let (status, body) = get(router, path).await;
    assert_eq!(status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
async fn a_packet_reaches_the_simulated_scale_set_and_no_instance_that_is_off() {
    let (azure, address) = cluster();
    let packet = Packet::new(Source::internet([203, 0, 113, 7].into()), address, 80, Protocol::Tcp);
    let verdict = trace(&azure, &AllBut(""), &packet);
    assert!(verdict.arrives, "{verdict}");
    assert!(verdict.node().unwrap().starts_with("node"), "{verdict}");
    for number in 0..3 {
        let instance = scale_set(&azure).child("virtualMachines", &number.to_string());
        let state = if number == 1 { PowerState::Stopped } else { PowerState::Deallocated };
        azure.set_power_state(&instance, state).unwrap();
    }
    let verdict = trace(&azure, &AllBut(""), &packet);
    assert!(!verdict.arrives, "{verdict}");
    let sentence = verdict.sentence();
    assert!(
        sentence.contains("machine is stopped") && sentence.contains("machine is deallocated"),
        "{sentence}"
    );
}

#[tokio::test]
async fn the_topology_leads_from_address_to_nodes() {
    let (azure, address) = cluster();
    let topology = get_json(&router(&azure, AllBut("10.0.0.5")), "/_cerulean/topology").await;
    let shown = &topology["addresses"][0];
    assert_eq!(shown["address"], address.to_string());
    assert_eq!(shown["services"], json!(["default/web", "default/again"]));
    assert_eq!((&shown["load_balancer"], &shown["updating"]), (&json!("kubernetes"), &json!(false)));
    let rule = &shown["rules"][0];
    assert_eq!((&rule["port"], &rule["probe"]), (&json!(80), &json!("HTTP 32000 /healthz")));
    assert_eq!((&rule["taking"], &rule["total"]), (&json!(2), &json!(3)));
    assert_eq!(rule["members"][0]["why"], "does not answer the probe", "what is wrong comes first");
    assert_eq!(topology["nodes"].as_array().unwrap().len(), 3);
    assert_eq!(topology["nodes"][0]["scale_set"], "pool");
    let nsg = &topology["security_groups"][0];
    assert_eq!(nsg["guards"], json!(["subnet nodes"]));
    let priorities: Vec<u64> =
        nsg["rules"].as_array().unwrap().iter().map(|rule| rule["priority"].as_u64().unwrap()).collect();
    assert_eq!(priorities, [500, 65000, 65001, 65500, 65000, 65001, 65500], "inbound, then outbound");
}

#[tokio::test]
async fn a_rule_that_denies_the_internet_is_named() {
    let (azure, _) = cluster();
    let rule = async || {
        get_json(&router(&azure, AllBut("")), "/_cerulean/topology").await["addresses"][0]["rules"][0].clone()
    };
    assert_eq!(rule().await["denied"], Value::Null);
    let nsg = network(&azure, "networkSecurityGroups", "nsg");
    azure
        .edit(&nsg, |document| {
            document["properties"]["securityRules"][0]["properties"]["access"] = "Deny".into();
        })
        .unwrap();
    let rule = rule().await;
    assert_eq!(rule["denied"], "203.0.113.7 is denied by security rule allow-web");
    assert_eq!(rule["taking"], 3, "probes alone do not show it");
}

#[tokio::test]
async fn services_that_wait_are_shown_and_name_the_addresses_of_others() {
    let (azure, address) = cluster();
    let pip = network(&azure, "publicIPAddresses", "kubernetes-a1");
    azure.edit(&pip, |document| document["tags"] = json!({})).unwrap();
    let service = |name: &str, addresses: &[IpAddr]| ServiceView {
        name: format!("default/{name}"),
        base: format!("a{name}"),
        addresses: addresses.to_vec(),
    };
    let topology = Topology::read(&azure, &AllBut(""));
    let topology = topology.with_services(vec![service("waits", &[]), service("web", &[address])]);
    assert_eq!(topology.addresses[0].services, ["default/web"]);
    assert_eq!(topology.services[0].name, "default/waits");
}

#[tokio::test]
async fn the_journal_and_its_counts_are_shown() {
    let (azure, _) = cluster();
    let id = network(&azure, "publicIPAddresses", "kubernetes-a1");
    let ask = Request::get(format!("{id}?api-version=2024-05-01"))
        .header("authorization", "Bearer anything")
        .body(Body::empty())
        .unwrap();
    assert_eq!(azure.router().oneshot(ask).await.unwrap().status(), StatusCode::OK);
    let topology = get_json(&router(&azure, AllBut("")), "/_cerulean/topology").await;
    assert_eq!(topology["counts"]["requests"], 1);
    assert_eq!(topology["journal"][0]["method"], "GET");
}

#[tokio::test]
async fn every_resource_is_listed_and_shown_without_a_request_in_the_journal() {
    let (azure, _) = cluster();
    let router = azure.router();
    let listed = get_json(&router, "/_cerulean/resources").await;
    let types: std::collections::BTreeSet<&str> =
        listed.as_array().unwrap().iter().map(|one| one["type"].as_str().unwrap()).collect();
    assert!(types.contains("Microsoft.Network/loadBalancers"), "{types:?}");
    assert!(types.contains("Microsoft.Compute/virtualMachineScaleSets/virtualMachines"), "{types:?}");
    let named = listed.as_array().unwrap().iter().find(|one| one["services"].is_array()).unwrap();
    assert!(named["id"].as_str().unwrap().ends_with("/publicIPAddresses/kubernetes-a1"), "{named}");
    assert_eq!(named["services"], json!(["default/web", "default/again"]));
    let lb = network(&azure, "loadBalancers", "kubernetes");
    let shown = get_json(&router, &format!("/_cerulean/resource?id={lb}")).await;
    assert_eq!(shown, azure.document(&lb).unwrap());
    let (status, _) = get(&router, &format!("/_cerulean/resource?name={lb}")).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "the parameter is id");
    let (status, _) = get(&router, &format!("/_cerulean/resource?id={lb}-absent")).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert_eq!(azure.journal().counts.requests, 0);
}

#[tokio::test]
async fn packets_are_sent_by_query_and_by_body() {
    let (azure, address) = cluster();
    let router = router(&azure, AllBut(""));
    let verdict = get_json(&router, &format!("/_cerulean/packet?to={address}&port=80")).await;
    assert_eq!(verdict["arrives"], true);
    assert_eq!(verdict["packet"]["from"]["internet"]["address"], "203.0.113.7");
    let udp =
        get_json(&router, &format!("/_cerulean/packet?to={address}&port=80&protocol=UDP&from=192.0.2.1"))
            .await;
    assert_eq!((&udp["arrives"], &udp["refusal"]["reason"]), (&json!(false), &json!("no_rule")));
    let from_node = get_json(&router, "/_cerulean/packet?to=10.0.0.5&port=22&node=10.0.0.4").await;
    assert_eq!(from_node["arrives"], true, "{from_node}");
    let inside = get_json(&router, "/_cerulean/packet?to=10.0.0.5&port=22&network=vnet&from=10.0.0.99").await;
    assert_eq!(inside["packet"]["from"]["virtual_network"]["network"], "vnet");

    let packet = json!({ "from": { "internet": { "address": "192.0.2.1" } }, "to": address, "port": 80, "protocol": "tcp" });
    let post = |body: String| {
        Request::post("/_cerulean/packet")
            .header("content-type", "application/json")
            .body(Body::from(body))
            .unwrap()
    };
    let answer = router.clone().oneshot(post(packet.to_string())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let answer = router.clone().oneshot(post("{".to_owned())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);

    let mut misspelt = packet.clone();
    misspelt["sourcePort"] = json!(5);
    // The member is source_port.
    let answer = router.clone().oneshot(post(misspelt.to_string())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "the member is source_port");

    for (query, word) in [
        ("port=80", "to is missing"),
        ("to=10.0.0.4", "port is missing"),
        ("to=here&port=80", "to `here`"),
        ("to=10.0.0.4&port=0", "port `0`"),
        ("to=10.0.0.4&port=70000", "port `70000`"),
        ("to=10.0.0.4&port=80&protocol=icmp", "protocol `icmp`"),
        ("to=10.0.0.4&port=80&from=me", "from `me`"),
        ("to=10.0.0.4&port=80&pod=me", "pod `me`"),
        ("to=10.0.0.4&port=80&network=vnet", "from is missing"),
        (
            "to=10.0.0.4&port=80&protocl=udp",
            "there is no parameter `protocl` (given as `udp`); there are to, port",
        ),
        ("to=10.0.0.4&port=80&sourcePort=5", "no parameter `sourcePort`"),
        ("to=10.0.0.4&port=80&node=a&from=1.2.3.4", "node, from are all given: a packet has one sender"),
    ] {
        let (status, body) = get(&router, &format!("/_cerulean/packet?{query}")).await;
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status, StatusCode::BAD_REQUEST, "{query}");
        assert!(body["error"]["message"].as_str().unwrap().contains(word), "{query}: {body}");
    }
}

#[tokio::test]
async fn many_flows_are_sent_by_body() {
    let (azure, address) = cluster();
    let router = router(&azure, AllBut(""));
    let ask = async |plan: Value| {
        let request = Request::post("/_cerulean/flows").header("content-type", "application/json");
        let answer =
            router.clone().oneshot(request.body(Body::from(plan.to_string())).unwrap()).await.unwrap();
        let status = answer.status();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let change = json!({ "silence": { "node": "node000000" } });
    let (status, report) = ask(json!({ "to": address, "port": 80, "flows": 100, "changes": [change] })).await;
    assert_eq!((status, &report["flows"]), (StatusCode::OK, &json!(100)), "{report}");
    assert_eq!(report["change"]["kept"], report["established"], "{report}");
    assert!(report["sentence"].as_str().unwrap().starts_with("Of 100 TCP flows"));
    let (status, refused) = ask(json!({ "to": address, "port": "http" })).await;
    assert_eq!((status, &refused["error"]["code"]), (StatusCode::BAD_REQUEST, &json!("InvalidPacket")));
}

#[tokio::test]
async fn the_page_needs_nothing_from_outside() {
    let (azure, _) = cluster();
    let router = router(&azure, AllBut(""));
    let response =
        router.clone().oneshot(Request::get("/_cerulean/").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(
        response.headers()["content-security-policy"].to_str().unwrap().starts_with("default-src 'none'")
    );
    let html = String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap();
    for outside in ["src=\"http", "href=\"http", "@import", "url(http"] {
        assert!(!html.contains(outside), "{outside}");
    }
    for endpoint in [
        "/_cerulean/topology",
        "/_cerulean/packet?",
        "/_cerulean/flows",
        "/_cerulean/resources",
        "/_cerulean/resource?",
        "/_cerulean/events",
    ] {
        assert!(html.contains(endpoint), "{endpoint}");
    }
    let (status, _) = get(&router, "/").await;
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
}

#[tokio::test(start_paused = true)]
async fn readers_hear_of_changes_and_of_bursts_once() {
    let (azure, _) = cluster();
    let request = Request::get("/_cerulean/events").body(Body::empty()).unwrap();
    let response = router(&azure, AllBut("")).oneshot(request).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut body = response.into_body();
    let mut next = async || {
        let frame = tokio::time::timeout(Duration::from_secs(5), body.frame()).await.ok()?;
        let data = frame.unwrap().unwrap().into_data().unwrap();
        Some(String::from_utf8(data.to_vec()).unwrap())
    };
    assert!(next().await.unwrap().starts_with("event: changed\n"), "the state at the start");
    for number in 0..3 {
        let spare = network(&azure, "publicIPAddresses", &format!("spare{number}"));
        let document =
            json!({ "sku": { "name": "Standard" }, "properties": { "publicIPAllocationMethod": "Static" } });
        azure.put(&spare, document).unwrap();
    }
    assert!(next().await.unwrap().starts_with("event: changed\n"), "a burst");
    assert_eq!(next().await, None, "and then quiet");
}

#[tokio::test(start_paused = true)]
async fn the_page_follows_after_the_journal_was_emptied() {
    let (azure, _) = cluster();
    let page = router(&azure, AllBut(""));
    let id = network(&azure, "publicIPAddresses", "kubernetes-a1");
    let ask = async |count: usize| {
        for _ in 0..count {
            let request =
                Request::get(format!("{id}?api-version=2024-05-01")).header("authorization", "Bearer a");
            azure.router().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
        }
    };
    ask(20).await;
    let mut changed = azure.subscribe();
    changed.mark_unchanged();
    let forget = Request::delete("/_cerulean/journal").body(Body::empty()).unwrap();
    assert_eq!(azure.router().oneshot(forget).await.unwrap().status(), StatusCode::NO_CONTENT);
    assert!(changed.has_changed().unwrap(), "the page is notified");
    let journal =
        async || get_json(&page, "/_cerulean/topology").await["journal"].as_array().unwrap().clone();
    assert!(journal().await.is_empty());
    ask(310).await;
    let shown = journal().await;
    assert_eq!((shown.len(), &shown[299]["sequence"]), (300, &json!(330)), "the last ones, and no more");
}

#[test]
fn documents_of_one_moment_do_not_change_while_they_are_read() {
    let (azure, _) = cluster();
    let kind = "Microsoft.Network/publicIPAddresses";
    let (told, writes) = std::sync::mpsc::channel();
    let other = azure.clone();
    let mut writer = None;
    azure.at_once(&mut |documents| {
        let before = documents.of_type(kind).len();
        let (other, told) = (other.clone(), told.clone());
        writer = Some(std::thread::spawn(move || {
            told.send("begins").unwrap();
            let spare = network(&other, "publicIPAddresses", "spare");
            let properties = json!({ "publicIPAllocationMethod": "Static" });
            other.put(&spare, json!({ "sku": { "name": "Standard" }, "properties": properties })).unwrap();
            told.send("has written").unwrap();
        }));
        assert_eq!(writes.recv(), Ok("begins"));
        assert!(writes.recv_timeout(Duration::from_millis(50)).is_err(), "it waits");
        assert_eq!(documents.of_type(kind).len(), before);
    });
    writer.unwrap().join().unwrap();
    assert_eq!(azure.documents_of_type(kind).len(), 2);
}

/// Documents that may be read at one moment alone.
struct Guarded {
    azure: Azure,
    moments: std::cell::Cell<u32>,
}

impl Documents for Guarded {
    fn document(&self, id: &ResourceId) -> Option<Value> {
        panic!("{id} is read outside of the moment")
    }

    fn of_type(&self, resource_type: &str) -> Vec<Value> {
        panic!("{resource_type} is read outside of the moment")
    }

    fn at_once(&self, read: &mut dyn FnMut(&dyn Documents)) {
        self.moments.set(self.moments.get() + 1);
        self.azure.at_once(read);
    }
}

#[test]
fn the_oracle_and_the_page_read_one_moment() {
    let (azure, address) = cluster();
    let documents = Guarded { azure, moments: Default::default() };
    let packet = Packet::new(Source::internet([203, 0, 113, 7].into()), address, 80, Protocol::Tcp);
    assert!(trace(&documents, &AllBut(""), &packet).arrives);
    let plan =
        json!({ "to": address, "port": 80, "flows": 10, "changes": [{ "drain": { "node": "node000000" } }] });
    assert_eq!(flows(&documents, &AllBut(""), &serde_json::from_value(plan).unwrap()).established, 10);
    assert_eq!(Topology::read(&documents, &AllBut("")).nodes.len(), 3);
    assert_eq!(documents.moments.get(), 3);
}
