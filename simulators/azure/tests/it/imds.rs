//! The instance metadata service: one listener for many machines.

use std::net::SocketAddr;
use std::time::Duration;

use crate::common::{machine as machine_body, *};
use axum::body::Body;
use axum::extract::ConnectInfo;
use azure_simulator::entra::{Entra, EntraOptions};
use azure_simulator::imds::{EventPlan, EventType, MetadataAddresses, MetadataService};
use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];
const INSTANCE: &str = "/metadata/instance?api-version=2021-10-01";
const EVENTS: &str = "/metadata/scheduledevents?api-version=2020-07-01";

struct MetadataFixture {
    client: Client,
    router: axum::Router,
}

impl MetadataFixture {
    /// A scale set of three machines behind a public balancer.
    async fn new() -> Self {
        let client = Client::with_group(Options::default()).await;
        let subnet = client.network("10.1.0.0/16").await;
        let address = client.public_ip("front").await;
        let balancer = network_id("loadBalancers/lb");
        client.create(&balancer, load_balancer(&balancer, &address, &[80])).await;
        let mut set = scale_set(3, &subnet, &[balancer.child("backendAddressPools", "p")]);
        set["tags"] = json!({ "team": "blue", "a": "b" });
        set["identity"] = json!({ "type": "SystemAssigned" });
        client.create(&compute_id("virtualMachineScaleSets/pool"), set).await;
        let entra = EntraOptions::new(client.azure.options().tenant.clone(), client.azure.clock());
        let service = MetadataService::new(client.azure.clone()).with_tokens(Entra::new(entra).unwrap());
        Self { client, router: service.router() }
    }

    fn azure(&self) -> &Azure {
        &self.client.azure
    }

    async fn send(
        &self,
        method: &str,
        path: &str,
        from: &str,
        headers: &[(&str, &str)],
        body: Value,
    ) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        let mut request = request.body(body).unwrap();
        if let Ok(address) = from.parse() {
            request.extensions_mut().insert(ConnectInfo(SocketAddr::new(address, 40_000)));
        }
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(body.to_vec()).unwrap();
        Reply { status, headers, body: serde_json::from_str(&text).unwrap_or(Value::String(text)) }
    }

    async fn get(&self, path: &str) -> Reply {
        self.send("GET", path, "", &[("Metadata", "True")], Value::Null).await
    }
}

fn machine(number: u32) -> ResourceId {
    compute_id(&format!("virtualMachineScaleSets/pool/virtualMachines/{number}"))
}

fn of(number: u32, path: &str) -> String {
    format!("/instances/pool_{number}{path}")
}

#[tokio::test(start_paused = true)]
async fn a_machine_of_a_scale_set_learns_who_and_where_it_is() {
    let fixture = MetadataFixture::new().await;
    let shown = fixture.get(&of(1, INSTANCE)).await.expect(200).body;
    let compute = &shown["compute"];
    assert_eq!(compute["name"], "pool_1");
    assert_eq!(compute["resourceId"], machine(1).as_str());
    for (member, expected) in [
        ("vmScaleSetName", "pool"),
        ("vmSize", "Standard_D2s_v3"),
        ("location", "eastus"),
        ("zone", "2"),
        ("resourceGroupName", GROUP),
        ("subscriptionId", SUBSCRIPTION),
        ("osType", "Linux"),
        ("platformFaultDomain", "0"),
        ("provider", "Microsoft.Compute"),
        ("licenseType", ""),
    ] {
        assert_eq!(compute[member], expected, "{member}");
    }
    let tags = compute["tagsList"].as_array().unwrap();
    assert!(tags.contains(&json!({ "name": "team", "value": "blue" })) && tags.len() == 2);
    let document = fixture.azure().document(&machine(1)).unwrap();
    assert_eq!(compute["vmId"], document["properties"]["vmId"]);
    assert_eq!(compute["osProfile"]["computerName"], document["properties"]["osProfile"]["computerName"]);

    let nic = &shown["network"]["interface"][0];
    let stored = fixture.azure().document(&machine(1).child("networkInterfaces", "nic")).unwrap();
    let private = &stored["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"];
    assert_eq!(nic["ipv4"]["ipAddress"][0], json!({ "privateIpAddress": private, "publicIpAddress": "" }));
    assert_eq!(nic["ipv4"]["subnet"][0], json!({ "address": "10.1.0.0", "prefix": "16" }));
    let mac = nic["macAddress"].as_str().unwrap();
    assert!(mac.len() == 12 && mac.starts_with("000D3A"));

    // By id, spelled as it comes, and by host name.
    let host = compute["osProfile"]["computerName"].as_str().unwrap();
    for named in
        [machine(1).as_str().to_uppercase(), host.to_owned(), machine(1).as_str().replace('/', "%2F")]
    {
        let path = format!("/instances/{}{INSTANCE}", named.trim_start_matches('/'));
        assert_eq!(fixture.get(&path).await.expect(200).body["compute"]["name"], "pool_1", "{named}");
    }
    let absent = fixture.get(&of(9, INSTANCE)).await.expect(404);
    let text = absent.body["error"].as_str().unwrap();
    assert!(
        text.starts_with("No machine is called '") && text.ends_with("there are: pool_0, pool_1, pool_2"),
        "{text}"
    );
}

#[tokio::test(start_paused = true)]
async fn parts_are_read_by_path_and_members_come_with_their_version() {
    let fixture = MetadataFixture::new().await;
    let text = |path: &str| of(0, &format!("/metadata/instance/{path}?api-version=2021-10-01&format=text"));
    for (path, expected) in [
        ("compute/name", "pool_0"),
        ("Compute/TagsList", "0/\n1/"),
        ("network", "interface/"),
        ("network/interface/0", "ipv4/\nipv6/\nmacAddress"),
    ] {
        let reply = fixture.get(&text(path)).await.expect(200);
        assert_eq!(reply.body, expected, "{path}");
        assert!(reply.header("content-type").unwrap().starts_with("text/plain"));
    }
    let part =
        fixture.get(&of(0, "/metadata/instance/compute/osProfile?api-version=2021-10-01")).await.expect(200);
    assert!(part.body["computerName"].is_string());
    fixture.get(&text("compute/nothing")).await.expect(404);
    fixture.get(&text("network/interface/7")).await.expect(404);
    fixture.get(&of(0, "/metadata/instance/compute/name?api-version=2021-10-01")).await.expect(400);
    fixture.get(&of(0, &format!("{INSTANCE}&format=xml"))).await.expect(400);

    let old = fixture.get(&of(0, "/metadata/instance?api-version=2017-04-02")).await.expect(200).body;
    assert!(old["compute"].get("zone").is_none() && old["compute"]["vmSize"].is_string());
    let later = fixture.get(&of(0, "/metadata/instance?api-version=2020-07-15")).await.expect(200).body;
    assert!(later["compute"]["osProfile"].get("disablePasswordAuthentication").is_none());
}

#[tokio::test(start_paused = true)]
async fn requests_that_are_not_from_a_machine_itself_are_refused() {
    let fixture = MetadataFixture::new().await;
    let path = of(0, INSTANCE);
    let ours = ("Metadata", "true");
    for (headers, status) in [
        (vec![], 400),
        (vec![("Metadata", "false")], 400),
        (vec![ours, ("X-Forwarded-For", "10.0.0.1")], 400),
        (vec![("metadata", "TRUE")], 200),
    ] {
        let reply = fixture.send("GET", &path, "", &headers, Value::Null).await;
        assert_eq!(reply.status, status, "{headers:?}: {}", reply.body);
    }
    for path in ["/metadata/instance", "/metadata/instance?api-version=2016-01-01"] {
        let reply = fixture.get(&of(0, path)).await.expect(400);
        assert_eq!(reply.body["newest-versions"].as_array().unwrap().len(), 3);
    }
    let versions = fixture.get("/metadata/versions").await.expect(200);
    assert!(versions.body["apiVersions"].as_array().unwrap().contains(&json!("2021-10-01")));
    fixture.send("PUT", &path, "", &[ours], Value::Null).await.expect(405);
    for path in
        ["/metadata/attested/document?api-version=2020-09-01", "/else", "/instances/%zz/metadata/instance"]
    {
        fixture.get(path).await.expect(404);
    }
}

#[tokio::test(start_paused = true)]
async fn the_source_address_tells_machines_apart() {
    let fixture = MetadataFixture::new().await;
    let name = async |from: &str| {
        let reply = fixture.send("GET", INSTANCE, from, &[("Metadata", "true")], Value::Null).await;
        (reply.status, reply.body["compute"]["name"].as_str().map(str::to_owned))
    };
    let nic = fixture.azure().document(&machine(2).child("networkInterfaces", "nic")).unwrap();
    let own = nic["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"].as_str().unwrap();
    assert_eq!(name(own).await, (200, Some("pool_2".into())));
    assert_eq!(name("127.0.0.9").await, (404, None));
    let unknown = fixture.send("GET", INSTANCE, "127.0.0.9", &[("Metadata", "true")], Value::Null).await;
    let text = unknown.body["error"].as_str().unwrap();
    for words in
        ["the caller 127.0.0.9", "/instances/NAME/metadata/", "PUT /_cerulean/metadata-addresses", "pool_0"]
    {
        assert!(text.contains(words), "{words}: {text}");
    }
    let table = json!({ "addresses": { "127.0.0.9": machine(1), (own): machine(1) }, "default": machine(0) });
    let control = "/_cerulean/metadata-addresses";
    fixture.client.send("PUT", control, Some(table.clone()), &JSON).await.expect(204);
    assert_eq!(fixture.client.send("GET", control, None, &[]).await.body, table);
    for (from, expected) in [
        ("127.0.0.9", "pool_1"),
        (own, "pool_1"),
        ("::ffff:127.0.0.9", "pool_1"),
        ("127.0.0.8", "pool_0"),
        ("", "pool_0"),
    ] {
        assert_eq!(name(from).await, (200, Some(expected.into())), "{from}");
    }
    fixture.azure().set_metadata_addresses(MetadataAddresses::default());
    fixture.azure().scale(&compute_id("virtualMachineScaleSets/pool"), 1).unwrap();
    assert_eq!(name("127.0.0.9").await, (200, Some("pool_0".into())));
}

#[tokio::test(start_paused = true)]
async fn a_machine_knows_the_balancer_in_front_of_it() {
    let fixture = MetadataFixture::new().await;
    let path = "/metadata/loadbalancer?api-version=2020-10-01";
    let shown = fixture.get(&of(0, path)).await.expect(200).body["loadbalancer"].clone();
    let front = fixture.azure().document(&network_id("publicIPAddresses/front")).unwrap();
    let front = &front["properties"]["ipAddress"];
    let nic = fixture.azure().document(&machine(0).child("networkInterfaces", "nic")).unwrap();
    let private = &nic["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"];
    assert_eq!(
        shown["publicIpAddresses"],
        json!([{ "frontendIpAddress": front, "privateIpAddress": private }])
    );
    assert_eq!(
        shown["inboundRules"],
        json!([{
            "frontendIpAddress": front, "protocol": "tcp", "frontendPort": 80, "backendIpAddress": private,
            "backendPort": 80,
        }])
    );
    assert_eq!(shown["outboundRules"], json!([]));
    fixture.get(&of(0, "/metadata/loadbalancer?api-version=2020-09-01")).await.expect(400);
    let set = compute_id("virtualMachineScaleSets/alone");
    let subnets = fixture.azure().documents_of_type("Microsoft.Network/virtualNetworks/subnets");
    let subnet = ResourceId::parse(subnets[0]["id"].as_str().unwrap()).unwrap();
    fixture.client.create(&set, scale_set(1, &subnet, &[])).await;
    fixture.get(&format!("/instances/alone_0{path}")).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn events_are_announced_approved_and_over() {
    let fixture = MetadataFixture::new().await;
    let events = async |number: u32| fixture.get(&of(number, EVENTS)).await.expect(200).body;
    assert_eq!(events(0).await, json!({ "DocumentIncarnation": 1, "Events": [] }));
    let plan = json!({ "eventType": "Reboot", "machines": [machine(0)], "durationSeconds": 9, "description": "why" });
    let planned =
        fixture.client.send("POST", "/_cerulean/scheduled-events", Some(plan), &JSON).await.expect(201);
    let id = planned.body["eventId"].clone();
    // Those beside it hear of it, too.
    let shown = events(1).await;
    assert_eq!(shown["DocumentIncarnation"], 2);
    let event = &shown["Events"][0];
    assert_eq!((&event["EventId"], &event["Resources"]), (&id, &json!(["pool_0"])));
    assert_eq!((&event["EventStatus"], &event["EventSource"]), (&json!("Scheduled"), &json!("Platform")));
    assert_eq!((&event["DurationInSeconds"], &event["Description"]), (&json!(9), &json!("why")));
    assert!(event["NotBefore"].as_str().unwrap().ends_with(" GMT"));
    assert_eq!(events(2).await["DocumentIncarnation"], 2);

    let header = [("Metadata", "true")];
    let approve = |id: Value| json!({ "StartRequests": [{ "EventId": id }] });
    fixture.send("POST", &of(0, EVENTS), "", &header, approve(json!("none"))).await.expect(400);
    fixture.send("POST", &of(0, EVENTS), "", &header, json!([1])).await.expect(400);
    fixture.send("POST", &of(0, EVENTS), "", &header, approve(id)).await.expect(200);
    let started = events(0).await;
    assert_eq!(
        (&started["Events"][0]["EventStatus"], &started["Events"][0]["NotBefore"]),
        (&json!("Started"), &json!(""))
    );
    assert_eq!(started["DocumentIncarnation"], 3);
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(events(0).await, json!({ "DocumentIncarnation": 4, "Events": [] }));

    // Without approval an eviction comes when its time has come.
    let plan = EventPlan {
        event_type: EventType::Preempt,
        machines: vec![machine(2)],
        in_seconds: None,
        duration_seconds: None,
        description: String::new(),
        by_user: false,
    };
    fixture.azure().plan_event(plan).unwrap();
    tokio::time::sleep(Duration::from_secs(29)).await;
    let power = async || {
        let reply = fixture
            .client
            .send("GET", &format!("{}/instanceView?api-version={COMPUTE_VERSION}", machine(2)), None, &[])
            .await;
        reply.body["statuses"][1]["code"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(power().await, "PowerState/running");
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(power().await, "PowerState/deallocated");
    let absent = json!({ "eventType": "Freeze", "machines": [machine(77)] });
    fixture.client.send("POST", "/_cerulean/scheduled-events", Some(absent), &JSON).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn a_restart_by_a_user_shows_as_an_event_and_events_are_saved() {
    let fixture = MetadataFixture::new().await;
    fixture.azure().set_latency(azure_simulator::typical_latency());
    fixture.client.post(&machine(1), "restart", Value::Null).await.expect(202);
    let shown = fixture.get(&of(0, EVENTS)).await.expect(200).body;
    let event = &shown["Events"][0];
    assert_eq!((&event["EventType"], &event["EventStatus"]), (&json!("Reboot"), &json!("Started")));
    assert_eq!((&event["EventSource"], &event["Resources"]), (&json!("User"), &json!(["pool_1"])));
    let plan = json!({ "eventType": "Freeze", "machines": [machine(0)], "inSeconds": 3_600 });
    fixture.client.send("POST", "/_cerulean/scheduled-events", Some(plan), &JSON).await.expect(201);
    let saved = fixture.azure().save().unwrap();
    let other = Azure::new(Options::default());
    other.restore(saved).unwrap();
    let router = MetadataService::new(other).router();
    let request = Request::get(of(0, EVENTS)).header("metadata", "true").body(Body::empty()).unwrap();
    let body = router.oneshot(request).await.unwrap().into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["Events"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_machine_gets_tokens_of_the_identities_of_its_set() {
    let fixture = MetadataFixture::new().await;
    let set = compute_id("virtualMachineScaleSets/pool");
    let own = fixture.azure().document(&set).unwrap()["identity"].clone();
    let assigned = ResourceId::group(SUBSCRIPTION, GROUP).resource(
        "Microsoft.ManagedIdentity",
        "userAssignedIdentities",
        "worker",
    );
    let worker = fixture.azure().put(&assigned, json!({})).unwrap()["properties"].clone();
    let path = "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fmanagement.azure.com%2F";
    let ask = async |choice: &str| fixture.get(&of(0, &format!("{path}{choice}"))).await;
    let by_client = format!("&client_id={}", worker["clientId"].as_str().unwrap());
    // It exists, but is not this machine's.
    ask(&by_client).await.expect(400);
    let oid = |reply: &Reply| {
        use base64::Engine as _;
        let token = reply.body["access_token"].as_str().unwrap();
        let claims =
            base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(token.split('.').nth(1).unwrap());
        serde_json::from_slice::<Value>(&claims.unwrap()).unwrap()["oid"].clone()
    };
    assert_eq!(oid(&ask("").await.expect(200)), own["principalId"]);
    let patch = json!({ "identity": {
        "type": "SystemAssigned, UserAssigned", "userAssignedIdentities": { (assigned.as_str()): {} },
    }});
    let path = format!("{set}?api-version={COMPUTE_VERSION}");
    let reply = fixture.client.send("PATCH", &path, Some(patch), &[]).await.expect(200);
    fixture.client.wait(&reply).await;
    let by_object = format!("&object_id={}", worker["principalId"].as_str().unwrap());
    let by_id = format!("&msi_res_id={assigned}");
    for choice in [by_client, by_object, by_id] {
        assert_eq!(oid(&ask(&choice).await.expect(200)), worker["principalId"], "{choice}");
    }
    assert_eq!(oid(&ask("").await.expect(200)), own["principalId"]);
}

#[tokio::test(start_paused = true)]
async fn a_single_machine_is_known_by_its_interface_and_has_its_own_public_address() {
    let fixture = MetadataFixture::new().await;
    let client = &fixture.client;
    let subnets = fixture.azure().documents_of_type("Microsoft.Network/virtualNetworks/subnets");
    let address = client.public_ip("own").await;
    let nic = network_id("networkInterfaces/vm-nic");
    let interface = json!({ "location": "eastus", "properties": { "ipConfigurations": [{ "name": "ip", "properties": {
        "subnet": { "id": subnets[0]["id"] }, "publicIPAddress": { "id": address },
    }}]}});
    client.put(&nic, interface).await.expect(201);
    let vm = compute_id("virtualMachines/Solo");
    let mut body = machine_body(&nic);
    body["tags"] = json!({ "a": "b" });
    client.create(&vm, body).await;
    let nic = fixture.azure().document(&nic).unwrap();
    let private =
        nic["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"].as_str().unwrap();
    let public = fixture.azure().document(&address).unwrap()["properties"]["ipAddress"].clone();
    let shown =
        fixture.send("GET", INSTANCE, private, &[("Metadata", "true")], Value::Null).await.expect(200).body;
    let compute = &shown["compute"];
    assert_eq!((&compute["name"], &compute["resourceId"]), (&json!("Solo"), &json!(vm)));
    assert_eq!((&compute["vmScaleSetName"], &compute["tags"]), (&json!(""), &json!("a:b")));
    assert!(!compute["vmId"].as_str().unwrap().is_empty() && !compute["vmSize"].as_str().unwrap().is_empty());
    let addresses = &shown["network"]["interface"][0]["ipv4"]["ipAddress"];
    assert_eq!(addresses, &json!([{ "privateIpAddress": private, "publicIpAddress": public }]));
    // It hears of its own events alone.
    client
        .send(
            "POST",
            "/_cerulean/scheduled-events",
            Some(json!({ "eventType": "Terminate", "machines": [vm] })),
            &JSON,
        )
        .await
        .expect(201);
    let heard =
        async |path: &str| fixture.get(path).await.expect(200).body["Events"].as_array().unwrap().len();
    assert_eq!((heard(&format!("/instances/solo{EVENTS}")).await, heard(&of(0, EVENTS)).await), (1, 0));
    tokio::time::sleep(Duration::from_secs(301)).await;
    client.get(&vm).await.expect(404);
}
