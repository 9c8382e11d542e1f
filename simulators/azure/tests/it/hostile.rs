//! Hostile input: whatever arrives gets an answer as Azure gives it, and never a panic or a 5xx.

use crate::common::{Client, compute_id, group_path, load_balancer, network_id, public_ip, scale_set};
use axum::Router;
use axum::body::Body;
use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

fn options() -> Options {
    Options { budgets: None, ..Options::default() }
}

async fn raw(
    router: &Router,
    method: &str,
    uri: &str,
    headers: &[(&str, &[u8])],
    body: Vec<u8>,
) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap();
    let status = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

const TENANT: &str = "72f988bf-0000-4000-8000-000000000001";
const READER: &str = "acdd72a7-3385-48ef-bd42-f606fba81ae7";

fn in_group(namespace: &str, kind: &str, name: &str) -> ResourceId {
    ResourceId::group(crate::common::SUBSCRIPTION, crate::common::GROUP).resource(namespace, kind, name)
}

fn ip() -> String {
    format!("{}?api-version=2025-05-01", network_id("publicIPAddresses/a"))
}

#[tokio::test(start_paused = true)]
async fn bodies_that_are_no_documents_are_refused() {
    let client = Client::with_group(options()).await;
    let router = client.azure.router();
    let content = "InvalidRequestContent";
    let deep = |open: &str, close: &str, depth: usize| {
        [open.repeat(depth), close.repeat(depth)].concat().into_bytes()
    };
    let mut long = b"{\"location\":\"".to_vec();
    long.resize(10 * 1024 * 1024, b'x');
    for (what, body, status, code) in [
        ("nothing", Vec::new(), 400, content),
        ("no JSON", b"location=eastus".to_vec(), 400, content),
        ("half a document", b"{\"location\":\"eastus\"".to_vec(), 400, content),
        ("two documents", b"{}{}".to_vec(), 400, content),
        ("no object", b"[1,2,3]".to_vec(), 400, content),
        ("null", b"null".to_vec(), 400, content),
        ("not UTF-8", b"{\"location\":\"\xff\xfe\"}".to_vec(), 400, content),
        ("UTF-16", b"{\0}\0".to_vec(), 400, content),
        ("half a surrogate pair", b"{\"location\":\"\\ud800\"}".to_vec(), 400, content),
        ("a number beyond numbers", b"{\"location\":1e999}".to_vec(), 400, content),
        ("deep arrays", deep("[", "]", 100_000), 400, content),
        ("deep objects", deep("{\"a\":", "}", 100_000), 400, content),
        (
            "deep properties",
            [&b"{\"location\":\"eastus\",\"properties\":"[..], &deep("{\"a\":", "}", 5_000)].concat(),
            400,
            content,
        ),
        ("10 MB", long, 413, "RequestContentTooLarge"),
        ("no location", b"{}".to_vec(), 400, "LocationRequired"),
        ("a number for a location", b"{\"location\":7}".to_vec(), 400, "LocationRequired"),
        ("a list of tags", b"{\"location\":\"eastus\",\"tags\":[]}".to_vec(), 400, content),
        ("a tag of a number", b"{\"location\":\"eastus\",\"tags\":{\"a\":1}}".to_vec(), 400, content),
    ] {
        for headers in [&[][..], &[("content-type", &b"application/json; charset=utf-8"[..])]] {
            let (got, answer) = raw(&router, "PUT", &ip(), headers, body.clone()).await;
            assert_eq!((got, answer["error"]["code"].as_str()), (status, Some(code)), "{what}: {answer}");
        }
    }
    let form = [("content-type", &b"application/x-www-form-urlencoded"[..])];
    let (status, answer) = raw(&router, "PUT", &ip(), &form, b"{}".to_vec()).await;
    assert_eq!((status, &answer["error"]["code"]), (415, &json!("UnsupportedMediaType")));
}

#[tokio::test(start_paused = true)]
async fn strange_paths_queries_methods_and_headers_are_refused() {
    let client = Client::with_group(options()).await;
    let router = client.azure.router();
    let (group, network) = (group_path(), format!("{}/providers/Microsoft.Network", group_path()));
    let v = "?api-version=2025-05-01";
    let long = "n".repeat(300);
    let deep = "/a/b".repeat(2_000);
    for (method, uri, status) in [
        ("GET", format!("/{v}"), 404),
        ("GET", format!("/subscriptions/..{v}"), 400),
        ("GET", format!("{group}/../..{v}"), 400),
        ("GET", format!("{network}/publicIPAddresses/%2e%2e{v}"), 400),
        ("GET", format!("{network}/publicIPAddresses/%2e%2e%2f%2e%2e%2fetc{v}"), 400),
        ("GET", format!("{network}/publicIPAddresses/a%00b{v}"), 400),
        ("GET", format!("{network}/publicIPAddresses/%ff%fe{v}"), 400),
        ("GET", format!("{network}/publicIPAddresses/%{v}"), 400),
        ("GET", format!("{network}/publicIPAddresses/a%3Cscript%3E{v}"), 400),
        ("GET", format!("{network}/publicIPAddresses/{long}{v}"), 400),
        ("GET", format!("{network}//publicIPAddresses/a{v}"), 400),
        ("GET", format!("{network}/publicIPAddresses/a{deep}{v}"), 404),
        ("GET", format!("{network}/noSuchThings/a{v}"), 404),
        ("GET", format!("{group}/providers/No.Such/things/a{v}"), 404),
        ("GET", format!("{group}/providers/Microsoft.Network{v}"), 404),
        ("GET", format!("/subscriptions/77777777-0000-0000-0000-000000000000{v}"), 404),
        ("GET", format!("/subscriptions/no%20guid/resourceGroups{v}"), 404),
        ("PUT", format!("{network}/publicIPAddresses{v}"), 405),
        ("POST", format!("{network}/publicIPAddresses{v}"), 405),
        ("DELETE", format!("{network}/publicIPAddresses{v}"), 405),
        ("TRACE", ip(), 405),
        ("BREW", ip(), 405),
        ("GET", format!("{network}/publicIPAddresses"), 400),
        ("GET", format!("{network}/publicIPAddresses?api-version="), 400),
        ("GET", format!("{network}/publicIPAddresses?api-version=%ff"), 400),
        ("GET", format!("{network}/publicIPAddresses?api-version=2025-05-01%0d%0aX-Evil:1"), 400),
        ("GET", format!("{network}/publicIPAddresses?api-version=99999999999999999999"), 400),
        ("GET", format!("{network}/publicIPAddresses{v}&$skiptoken=%25%25"), 400),
        ("GET", format!("{network}/publicIPAddresses{v}&$skiptoken=AAAA"), 400),
        (
            "GET",
            format!(
                "/subscriptions/{}/providers/Microsoft.Network/locations/x/operations/..{v}",
                crate::common::SUBSCRIPTION
            ),
            400,
        ),
        (
            "GET",
            format!(
                "/subscriptions/{}/providers/Microsoft.Network/locations/x/operations/y{v}",
                crate::common::SUBSCRIPTION
            ),
            404,
        ),
        ("GET", format!("/subscriptions/{}/operationresults/%E2%98%83{v}", crate::common::SUBSCRIPTION), 404),
    ] {
        let (got, answer) = raw(&router, method, &uri, &[], b"{}".to_vec()).await;
        assert_eq!(got, status, "{method} {uri}: {answer}");
        assert!(
            answer["error"]["code"].is_string() && answer["error"]["message"].is_string(),
            "{uri}: {answer}"
        );
    }
    let id = client.public_ip("a").await;
    let huge = "x".repeat(60_000).into_bytes();
    for (name, value, status) in [
        ("if-match", &b"garbage"[..], 412),
        ("if-match", b"\"\"\"", 412),
        ("if-match", b"W/\"\xff\"", 200),
        ("if-match", &huge, 412),
        ("if-none-match", b"*", 412),
        ("authorization", b"Bearer ....", 200),
        ("authorization", b"Bearer \xff", 200),
        ("authorization", &huge, 200),
        ("x-ms-client-request-id", b"\xff\xfe", 200),
        ("x-ms-correlation-request-id", &huge, 200),
        ("host", b"", 200),
        ("host", b"a b<c>", 200),
        ("accept", b"text/plain", 200),
        ("content-length", b"99999999999999999999", 200),
    ] {
        let body = public_ip().to_string().into_bytes();
        let (got, answer) = raw(&router, "PUT", &format!("{id}{v}"), &[(name, value)], body).await;
        assert_eq!(
            got,
            status,
            "{name}: {} {answer}",
            String::from_utf8_lossy(&value[..value.len().min(20)])
        );
    }
}

/// Every place of a document, as a JSON pointer.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(members) => members.iter().for_each(|(name, value)| {
            places(value, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), found);
        }),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(index, value)| places(value, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

#[tokio::test(start_paused = true)]
async fn members_of_the_wrong_type_never_break_it() {
    let client = Client::with_group(options()).await;
    let subnet = client.network("10.1.0.0/16").await;
    let address = client.public_ip("first").await;
    let (balancer, set) = (network_id("loadBalancers/lb"), compute_id("virtualMachineScaleSets/s"));
    let network = network_id("virtualNetworks/net");
    client.create(&balancer, load_balancer(&balancer, &address, &[80, 443])).await;
    client.create(&set, scale_set(2, &subnet, &[balancer.child("backendAddressPools", "p")])).await;
    let global = json!({ "location": "global" });
    for (id, body) in [
        (network_id("privateDnsZones/kept.example.org"), global.clone()),
        (network_id("dnsZones/kept.example.org"), global),
        (compute_id("galleries/kept"), json!({ "location": "eastus" })),
        (
            in_group("Microsoft.ContainerService", "managedClusters", "kept"),
            json!({ "location": "eastus", "identity": { "type": "SystemAssigned" }, "properties": {
                "dnsPrefix": "k", "agentPoolProfiles": [{ "name": "system", "mode": "System", "count": 1 }] } }),
        ),
    ] {
        client.put(&id, body).await;
        assert!(client.azure.document(&id).is_some(), "{id}");
    }
    let documents = [
        (balancer.clone(), load_balancer(&balancer, &address, &[80, 443])),
        (set.clone(), scale_set(2, &subnet, &[balancer.child("backendAddressPools", "p")])),
        (network.clone(), client.get(&network).await.body),
        (network_id("publicIPAddresses/second"), public_ip()),
        (
            in_group("Microsoft.ContainerService", "managedClusters", "c"),
            json!({
                "location": "eastus", "identity": { "type": "SystemAssigned" }, "sku": { "name": "Base", "tier": "Free" },
                "properties": {
                    "dnsPrefix": "c", "kubernetesVersion": "1.31", "disableLocalAccounts": false,
                    "agentPoolProfiles": [{
                        "name": "system", "mode": "System", "count": 1, "vmSize": "Standard_D2s_v3",
                        "kubeletDiskType": "OS", "nodeTaints": ["a=b:NoSchedule"], "nodeLabels": { "a": "b" },
                        "upgradeSettings": { "maxSurge": "1" }, "vnetSubnetID": subnet,
                    }],
                    "networkProfile": {
                        "networkPlugin": "azure", "outboundType": "managedNATGateway", "podCidr": "10.244.0.0/16",
                        "natGatewayProfile": { "managedOutboundIPProfile": { "count": 1 }, "idleTimeoutInMinutes": 4 },
                    },
                    "apiServerAccessProfile": { "enablePrivateCluster": true, "privateDNSZone": "system" },
                    "podIdentityProfile": { "enabled": false },
                },
            }),
        ),
        (
            in_group("Microsoft.ContainerService", "managedClusters", "kept").child("agentPools", "user"),
            json!({ "properties": {
                "count": 1, "minCount": 1, "maxCount": 2, "enableAutoScaling": true, "vmSize": "Standard_D2s_v3",
                "scaleSetPriority": "Spot", "securityProfile": { "sshAccess": "LocalUser" },
            } }),
        ),
        (
            in_group("Microsoft.KeyVault", "vaults", "kept1"),
            json!({ "location": "eastus", "properties": {
                "tenantId": TENANT, "sku": { "family": "A", "name": "standard" },
                "accessPolicies": [{ "tenantId": TENANT, "objectId": TENANT, "permissions": { "secrets": ["get"] } }],
                "networkAcls": { "defaultAction": "Deny", "ipRules": [{ "value": "192.0.2.1" }],
                    "virtualNetworkRules": [{ "id": subnet }] },
            } }),
        ),
        (network_id("privateDnsZones/kept.example.org"), json!({ "location": "global", "properties": {} })),
        (
            network_id("privateDnsZones/kept.example.org").child("A", "a"),
            json!({ "properties": { "ttl": 300, "aRecords": [{ "ipv4Address": "10.0.0.1" }], "metadata": { "a": "b" } } }),
        ),
        (
            network_id("privateDnsZones/kept.example.org").child("virtualNetworkLinks", "l"),
            json!({ "location": "global", "properties": { "virtualNetwork": { "id": network }, "registrationEnabled": false } }),
        ),
        (
            network_id("dnsZones/kept.example.org").child("SRV", "s"),
            json!({ "properties": { "TTL": 300, "SRVRecords": [{ "priority": 1, "weight": 1, "port": 1, "target": "t" }] } }),
        ),
        (
            in_group("Microsoft.ContainerRegistry", "registries", "registry1"),
            json!({ "location": "eastus", "sku": { "name": "Premium" }, "properties": {
                "adminUserEnabled": true, "networkRuleSet": { "defaultAction": "Deny", "ipRules": [{ "value": "192.0.2.1" }] },
                "policies": { "retentionPolicy": { "days": 7, "status": "enabled" } },
            } }),
        ),
        (
            set.resource("Microsoft.Authorization", "roleAssignments", TENANT),
            json!({ "properties": {
                "roleDefinitionId": format!("/providers/Microsoft.Authorization/roleDefinitions/{READER}"),
                "principalId": TENANT, "principalType": "User", "condition": "a", "conditionVersion": "2.0",
            } }),
        ),
        (
            address.resource("Microsoft.Authorization", "locks", "l"),
            json!({ "properties": { "level": "CanNotDelete", "notes": "n", "owners": [{ "applicationId": "a" }] } }),
        ),
        (
            compute_id("galleries/kept").child("images", "i"),
            json!({ "location": "eastus", "properties": { "osType": "Linux",
                "identifier": { "publisher": "p", "offer": "o", "sku": "s" }, "recommended": { "vCPUs": { "min": 1 } } } }),
        ),
        (
            in_group("Microsoft.Storage", "storageAccounts", "acct1"),
            json!({
                "location": "eastus", "kind": "StorageV2", "sku": { "name": "Standard_LRS", "tier": "Standard" },
                "properties": {
                    "accessTier": "Hot", "isHnsEnabled": false, "allowSharedKeyAccess": true,
                    "keyPolicy": { "keyExpirationPeriodInDays": 20 },
                    "networkAcls": { "bypass": "AzureServices", "ipRules": [{ "value": "192.0.2.1", "action": "Allow" }] },
                    "encryption": { "keySource": "Microsoft.Storage", "services": { "blob": { "enabled": true } } },
                },
            }),
        ),
    ];
    let strange = [
        Value::Null,
        json!(true),
        json!(-1),
        json!(u64::MAX),
        json!(1.5e300),
        json!(""),
        json!("\u{0}\u{202e}../%00"),
        json!("x".repeat(5_000)),
        json!([]),
        json!({}),
        json!([null, 7, "x", {}, []]),
        json!({ "id": 7 }),
        json!([{ "id": "/" }]),
        json!({ "id": "/subscriptions/x/resourceGroups/y/providers/z" }),
    ];
    let mut tried = 0;
    for (id, document) in &documents {
        let mut pointers = Vec::new();
        places(document, "", &mut pointers);
        for pointer in &pointers {
            for value in &strange {
                let mut broken = document.clone();
                *broken.pointer_mut(pointer).unwrap() = value.clone();
                let reply = client.put(id, broken.clone()).await;
                assert!(
                    reply.status < 500,
                    "{id} with {value} at {pointer}: {} {}",
                    reply.status,
                    reply.body
                );
                if pointer.matches('/').count() == 1 {
                    let reply = client
                        .send("PATCH", &format!("{id}?api-version=2025-04-01"), Some(broken), &[])
                        .await;
                    assert!(reply.status < 500, "PATCH {id} with {value} at {pointer}: {}", reply.body);
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 1_000, "{tried}");
    // Whatever was accepted can be read, and saved and taken up again.
    for document in client.azure.documents() {
        let id = document["id"].as_str().unwrap();
        let reply = client.send("GET", &format!("{id}?api-version=2025-04-01"), None, &[]).await;
        assert_eq!(reply.status, 200, "{id}: {}", reply.body);
    }
    Azure::new(options()).restore(client.azure.save().unwrap()).unwrap();
}

#[tokio::test(start_paused = true)]
async fn every_type_refuses_what_it_cannot_read() {
    let client = Client::with_group(options()).await;
    let providers =
        format!("/subscriptions/{}/providers?api-version=2021-04-01", crate::common::SUBSCRIPTION);
    let providers = client.send("GET", &providers, None, &[]).await.expect(200).body;
    let mut types = 0;
    for provider in providers["value"].as_array().unwrap() {
        let namespace = provider["namespace"].as_str().unwrap();
        for kind in provider["resourceTypes"].as_array().unwrap() {
            let mut path = format!("{}/providers/{namespace}", group_path());
            for segment in kind["resourceType"].as_str().unwrap().split('/') {
                path = format!("{path}/{segment}/thing");
            }
            for properties in
                [json!(null), json!("x"), json!([]), json!({ "a": { "b": [1, null] } }), json!({ "": {} })]
            {
                let body = json!({ "location": "eastus", "sku": [], "zones": {}, "identity": 7, "properties": properties });
                for method in ["PUT", "PATCH", "POST", "DELETE", "GET"] {
                    let uri = format!("{path}?api-version=2025-04-01&$expand=%00&$filter='&$top=-1");
                    let reply = client.send(method, &uri, Some(body.clone()), &[]).await;
                    // 501: a type that is named, but not simulated.
                    let answered = reply.status < 500 || reply.status == 501;
                    assert!(answered, "{method} {path}: {} {}", reply.status, reply.body);
                }
            }
            types += 1;
        }
    }
    assert!(types > 8, "{types}");
}

#[tokio::test(start_paused = true)]
async fn the_control_api_refuses_nonsense() {
    let client = Client::with_group(options()).await;
    let router = client.azure.router();
    let json = [("content-type", &b"application/json"[..])];
    for path in [
        "budgets",
        "limits",
        "latency",
        "operations",
        "faults",
        "state/snapshot",
        "scale",
        "power",
        "remove-instance",
    ] {
        for method in ["PUT", "POST"] {
            for body in
                [&b""[..], b"{", b"[[]]", b"{\"id\":5}", b"\"x\"", b"7", b"\xff", b"{\"latency\":{\"a\":1}}"]
            {
                let (status, _) =
                    raw(&router, method, &format!("/_cerulean/{path}"), &json, body.to_vec()).await;
                assert!(
                    (400..500).contains(&status),
                    "{method} {path} {}: {status}",
                    String::from_utf8_lossy(body)
                );
            }
        }
    }
}
