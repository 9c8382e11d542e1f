//! Everything that the controller manager in use today requests of Azure gets an answer: each call,

//! with the versions of the public cloud and of Azure Stack.

use crate::common::{Client, compute_id, group_path, load_balancer, network_id, scale_set};
use azure_simulator::Options;
use serde_json::{Value, json};

const NETWORK: &str = "Microsoft.Network";
const COMPUTE: &str = "Microsoft.Compute";

/// One row: what is asked, below the resource group; `echo` sends back what a GET shows.
struct Row {
    method: &'static str,
    namespace: &'static str,
    path: &'static str,
    version: &'static str,
    stack: Option<&'static str>,
    body: Body,
    status: &'static [u16],
}

enum Body {
    None,
    Echo,
    /// The document as it was read, with its `etag` as `If-Match`.
    EchoIfMatch,
    Json(&'static str),
}

fn row(
    method: &'static str,
    path: &'static str,
    version: &'static str,
    body: Body,
    status: &'static [u16],
) -> Row {
    let namespace = if path.starts_with("virtualMachine")
        || path.starts_with("availabilitySets")
        || path.starts_with("disks")
    {
        COMPUTE
    } else {
        NETWORK
    };
    Row { method, namespace, path, version, stack: None, body, status }
}

impl Row {
    fn stack(mut self, version: &'static str) -> Self {
        self.stack = Some(version);
        self
    }
}

const N: &str = "2025-05-01";
const C: &str = "2025-04-01";
const OLD: &str = "2018-10-01";

fn table() -> Vec<Row> {
    use Body::{Echo, EchoIfMatch, Json, None};
    let write: &[u16] = &[200, 201];
    let gone: &[u16] = &[200, 202, 204];
    let ok: &[u16] = &[200];
    vec![
        row("GET", "loadBalancers/lb", N, None, ok).stack("2018-11-01"),
        row("GET", "loadBalancers", N, None, ok),
        row("PUT", "loadBalancers/lb", N, EchoIfMatch, write).stack("2018-11-01"),
        row("GET", "loadBalancers/lb/backendAddressPools", N, None, ok),
        row("GET", "loadBalancers/lb/backendAddressPools/p", N, None, ok),
        row("PUT", "loadBalancers/lb/backendAddressPools/p", N, Echo, write),
        row("PUT", "loadBalancers/lb/backendAddressPools/q", N, Json(r#"{"properties":{}}"#), write),
        row("DELETE", "loadBalancers/lb/backendAddressPools/q", N, None, gone),
        row("POST", "loadBalancers/spare/migrateToIpBased", N, Json(r#"{"pools":["p"]}"#), ok),
        row("GET", "publicIPAddresses/ip", N, None, ok).stack("2018-11-01"),
        row("GET", "publicIPAddresses", N, None, ok),
        row("PUT", "publicIPAddresses/ip", N, EchoIfMatch, write),
        row("GET", "publicIPPrefixes/prefix", N, None, ok),
        row("GET", "publicIPPrefixes", N, None, ok),
        row("PUT", "publicIPPrefixes/prefix", N, EchoIfMatch, write),
        row("DELETE", "publicIPPrefixes/prefix", N, None, gone),
        row("GET", "networkSecurityGroups/nsg", N, None, ok).stack("2018-11-01"),
        row("GET", "networkSecurityGroups", N, None, ok),
        row("PUT", "networkSecurityGroups/nsg", N, EchoIfMatch, write),
        row("GET", "routeTables/routes", N, None, ok).stack("2018-11-01"),
        row("GET", "routeTables", N, None, ok),
        row("PUT", "routeTables/routes", N, EchoIfMatch, write),
        row("DELETE", "routeTables/routes", N, None, gone),
        row("GET", "virtualNetworks/net/subnets/nodes", N, None, ok).stack("2018-11-01"),
        row("GET", "virtualNetworks/net/subnets", N, None, ok),
        row("PUT", "virtualNetworks/net/subnets/nodes", N, Echo, write),
        row("GET", "networkInterfaces/nic", N, None, ok).stack("2018-11-01"),
        row("PUT", "networkInterfaces/nic", N, Echo, write),
        row("GET", "privateLinkServices", N, None, ok).stack("2019-03-01"),
        row("GET", "privateLinkServices/pls", N, None, ok).stack("2019-03-01"),
        row("PUT", "privateLinkServices/pls", N, Echo, write),
        row("GET", "natGateways", N, None, ok),
        row("GET", "natGateways/nat", N, None, ok),
        row("PUT", "natGateways/nat", N, Echo, write),
        row("DELETE", "natGateways/nat", N, None, gone),
        row("GET", "virtualMachines/vm", C, None, ok).stack("2017-12-01"),
        row("GET", "virtualMachines", C, None, ok),
        row("PUT", "virtualMachines/vm", C, EchoIfMatch, write),
        row("PATCH", "virtualMachines/vm", C, Json("{}"), ok),
        row("GET", "virtualMachineScaleSets/set", C, None, ok).stack("2019-07-01"),
        row("GET", "virtualMachineScaleSets", C, None, ok),
        row("PUT", "virtualMachineScaleSets/set", C, EchoIfMatch, write),
        row("GET", "virtualMachineScaleSets/set/virtualMachines/0", C, None, ok).stack("2019-07-01"),
        row("GET", "virtualMachineScaleSets/set/virtualMachines", C, None, ok),
        row("GET", "virtualMachineScaleSets/set/virtualMachines?$expand=instanceView", C, None, ok),
        row("PUT", "virtualMachineScaleSets/set/virtualMachines/0", C, EchoIfMatch, &[200, 202]),
        row("GET", "virtualMachineScaleSets/set/networkInterfaces", OLD, None, ok),
        row("GET", "virtualMachineScaleSets/set/virtualMachines/0/networkInterfaces", OLD, None, ok),
        row("GET", "virtualMachineScaleSets/set/virtualMachines/0/networkInterfaces/nic", OLD, None, ok),
        row(
            "GET",
            "virtualMachineScaleSets/set/virtualMachines/0/networkInterfaces/nic/ipconfigurations/ipconfig/\
             publicipaddresses/outside",
            OLD,
            None,
            ok,
        ),
        row("GET", "availabilitySets", C, None, ok),
        row("GET", "availabilitySets/avset", C, None, ok).stack("2019-07-01"),
        row("GET", "disks/disk", "2025-01-02", None, ok).stack("2019-03-01"),
        row("GET", "disks", "2025-01-02", None, ok),
        row("DELETE", "disks/disk", "2025-01-02", None, gone),
        row("DELETE", "privateLinkServices/pls", N, None, gone),
        row("DELETE", "loadBalancers/spare", N, None, gone),
        row("DELETE", "virtualMachineScaleSets/set", C, None, gone),
    ]
}

/// Creates one resource and waits for it.
async fn create(client: &Client, namespace: &str, path: &str, version: &str, body: Value) {
    let url = format!("{}/providers/{namespace}/{path}?api-version={version}", group_path());
    let reply = client.send("PUT", &url, Some(body), &[]).await;
    assert!(matches!(reply.status, 200..=202), "{path}: {} {}", reply.status, reply.body);
}

async fn client_with_cluster() -> Client {
    let client = Client::with_group(Options { strict_api_versions: true, ..Options::default() }).await;
    let subnet = client.network("10.1.0.0/16").await;
    let ip = client.public_ip("ip").await;
    let lb = network_id("loadBalancers/lb");
    client.create(&lb, load_balancer(&lb, &ip, &[80])).await;
    let inner = json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {
        "frontendIPConfigurations": [{ "name": "f", "properties": { "subnet": { "id": subnet } } }],
        "backendAddressPools": [{ "name": "p" }],
    }});
    client.create(&network_id("loadBalancers/inner"), inner.clone()).await;
    client.create(&network_id("loadBalancers/spare"), inner).await;
    let empty = json!({ "location": "eastus" });
    create(
        &client,
        NETWORK,
        "publicIPPrefixes/prefix",
        N,
        json!({
            "location": "eastus", "sku": { "name": "Standard" }, "properties": { "prefixLength": 30 },
        }),
    )
    .await;
    create(&client, NETWORK, "networkSecurityGroups/nsg", N, empty.clone()).await;
    create(&client, NETWORK, "routeTables/routes", N, empty.clone()).await;
    let nat = json!({ "location": "eastus", "sku": { "name": "Standard" } });
    create(&client, NETWORK, "natGateways/nat", N, nat).await;
    let configuration = json!([{ "name": "ipconfig", "properties": { "subnet": { "id": subnet } } }]);
    create(
        &client,
        NETWORK,
        "networkInterfaces/nic",
        N,
        json!({
            "location": "eastus", "properties": { "ipConfigurations": configuration },
        }),
    )
    .await;
    let links = network_id("virtualNetworks/net/subnets/links");
    client
        .create(
            &links,
            json!({ "properties": {
                "addressPrefix": "10.2.0.0/24", "privateLinkServiceNetworkPolicies": "Disabled",
            }}),
        )
        .await;
    create(&client, NETWORK, "privateLinkServices/pls", N, json!({ "location": "eastus", "properties": {
        "loadBalancerFrontendIpConfigurations":
            [{ "id": network_id("loadBalancers/inner").child("frontendIPConfigurations", "f") }],
        "ipConfigurations": [{ "name": "ip", "properties": { "primary": true, "subnet": { "id": links } } }],
    }}))
    .await;
    let mut set = scale_set(2, &subnet, &[]);
    let ip = "/properties/virtualMachineProfile/networkProfile/networkInterfaceConfigurations/0/properties\
              /ipConfigurations/0/properties";
    set.pointer_mut(ip).unwrap()["publicIPAddressConfiguration"] = json!({ "name": "outside" });
    create(&client, COMPUTE, "virtualMachineScaleSets/set", C, set).await;
    create(
        &client,
        COMPUTE,
        "availabilitySets/avset",
        C,
        json!({
            "location": "eastus", "sku": { "name": "Aligned" },
            "properties": { "platformFaultDomainCount": 2, "platformUpdateDomainCount": 5 },
        }),
    )
    .await;
    create(&client, COMPUTE, "virtualMachines/vm", C, json!({ "location": "eastus", "properties": {
        "hardwareProfile": { "vmSize": "Standard_D2s_v3" },
        "storageProfile": { "imageReference":
            { "publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest" } },
        "osProfile": { "computerName": "vm", "adminUsername": "x", "adminPassword": "hidden-Word1" },
        "networkProfile": { "networkInterfaces": [{ "id": network_id("networkInterfaces/nic") }] },
    }}))
    .await;
    create(&client, COMPUTE, "disks/disk", "2025-01-02", json!({
        "location": "eastus", "properties": { "creationData": { "createOption": "Empty" }, "diskSizeGB": 8 },
    }))
    .await;
    client
}

#[tokio::test(start_paused = true)]
async fn every_operation_in_use_is_answered() {
    let client = client_with_cluster().await;
    for row in table() {
        for version in std::iter::once(row.version).chain(row.stack) {
            let ask = if row.path.contains('?') { '&' } else { '?' };
            // Some of these names go out in another case than Azure's own.
            let url = format!(
                "{}/providers/{}/{}{ask}api-version={version}",
                group_path(),
                row.namespace,
                row.path
            );
            let (mut body, mut headers) = (None, Vec::new());
            let mut etag = String::new();
            match row.body {
                Body::None => {}
                Body::Json(text) => body = Some(serde_json::from_str(text).unwrap()),
                Body::Echo | Body::EchoIfMatch => {
                    let read = client.send("GET", &url, None, &[]).await.expect(200).body;
                    if matches!(row.body, Body::EchoIfMatch) {
                        etag = read["etag"].as_str().unwrap_or_default().to_owned();
                    }
                    body = Some(read);
                }
            }
            if !etag.is_empty() {
                headers.push(("if-match", etag.as_str()));
            }
            let reply = client.send(row.method, &url, body, &headers).await;
            assert!(
                row.status.contains(&reply.status),
                "{} {} {version}: {} {}",
                row.method,
                row.path,
                reply.status,
                reply.body
            );
            assert!(reply.header("x-ms-request-id").is_some());
        }
    }
    let path = "/subscriptions/00000000-0000-0000-0000-000000000000/providers/Microsoft.Compute?api-version=2021-04-01";
    let provider = client.send("GET", path, None, &[]).await.expect(200).body;
    let types = provider["resourceTypes"].as_array().unwrap();
    let machines = types.iter().find(|kind| kind["resourceType"] == "virtualMachines").unwrap();
    assert_eq!(machines["zoneMappings"][0]["location"], "East US");
}

#[tokio::test(start_paused = true)]
async fn members_of_flexible_sets_are_found_by_filter() {
    let client = client_with_cluster().await;
    let set = compute_id("virtualMachineScaleSets/flex");
    let subnet = network_id("virtualNetworks/net/subnets/nodes");
    let mut body = scale_set(2, &subnet, &[]);
    body["properties"]["orchestrationMode"] = json!("Flexible");
    body["properties"]["virtualMachineProfile"]["storageProfile"] = json!({ "imageReference":
        { "publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest" } });
    body["properties"]["platformFaultDomainCount"] = json!(1);
    body["properties"]["virtualMachineProfile"]["networkProfile"]["networkApiVersion"] = json!("2020-11-01");
    create(&client, COMPUTE, "virtualMachineScaleSets/flex", C, body).await;
    let list = |more: &str| {
        format!(
            "{}/providers/Microsoft.Compute/virtualMachines?api-version={C}\
             &%24filter=%27virtualMachineScaleSet%2Fid%27+eq+%27{}%27{more}",
            group_path(),
            set.as_str().replace('/', "%2F")
        )
    };
    let models = client.send("GET", &list(""), None, &[]).await.expect(200).body;
    let views = client.send("GET", &list("&%24expand=instanceView"), None, &[]).await.expect(200).body;
    let (models, views) = (models["value"].as_array().unwrap(), views["value"].as_array().unwrap());
    assert_eq!((models.len(), views.len()), (2, 2));
    for (model, view) in models.iter().zip(views) {
        assert_eq!(model["name"], view["name"], "the two lists are joined by name");
        assert!(model["properties"].get("instanceView").is_none());
        assert!(view["properties"]["instanceView"]["statuses"].is_array());
        let nic = model["properties"]["networkProfile"]["networkInterfaces"][0]["id"].as_str().unwrap();
        let nic = azure_types::ResourceId::parse(nic).unwrap();
        let nic = client.get(&nic).await.expect(200).body;
        assert_eq!(nic["properties"]["virtualMachine"]["id"], model["id"]);
    }
    // As instances of the set they have its id in theirs: clients make one of the other.
    let path = format!("{}/virtualMachines?api-version={C}", set.as_str());
    let instances = client.send("GET", &path, None, &[]).await.expect(200).body;
    for (instance, model) in instances["value"].as_array().unwrap().iter().zip(models) {
        let id = set.child("virtualMachines", model["name"].as_str().unwrap());
        assert_eq!((instance["id"].as_str(), &instance["instanceId"]), (Some(id.as_str()), &model["name"]));
        assert_eq!(instance["type"], "Microsoft.Compute/virtualMachineScaleSets/virtualMachines");
        let read = client.get(&id).await.expect(200).body;
        assert_eq!((&read["id"], &read["type"]), (&instance["id"], &instance["type"]));
    }
}

/// What this Azure does not have answers as Azure does, and the journal says what was asked for.
#[tokio::test(start_paused = true)]
async fn what_is_unknown_is_said_to_be_unknown_and_stands_in_the_journal() {
    let client = Client::with_group(Options::default()).await;
    let ask = |path: &str| format!("{}/providers/{path}", group_path());
    for (method, path, code, kind) in [
        (
            "GET",
            "Microsoft.Network/serviceGateways?api-version=2025-05-01",
            "InvalidResourceType",
            "Microsoft.Network/serviceGateways",
        ),
        (
            "GET",
            "Microsoft.Network/serviceGateways/sg?api-version=2025-05-01",
            "InvalidResourceType",
            "Microsoft.Network/serviceGateways",
        ),
        (
            "PUT",
            "Microsoft.Network/serviceGateways/sg?api-version=2025-05-01",
            "InvalidResourceType",
            "Microsoft.Network/serviceGateways",
        ),
        (
            "GET",
            "Microsoft.DocumentDB/databaseAccounts/d?api-version=2024-11-15",
            "InvalidResourceNamespace",
            "Microsoft.DocumentDB/databaseAccounts",
        ),
    ] {
        let body = (method == "PUT").then(|| json!({ "location": "eastus" }));
        client.send(method, &ask(path), body, &[]).await.refused(404, code);
        let journal = serde_json::to_value(client.azure.journal()).unwrap();
        let last = journal["entries"].as_array().unwrap().last().unwrap().clone();
        assert_eq!(
            (last["code"].as_str(), last["resourceType"].as_str()),
            (Some(code), Some(kind)),
            "{last}"
        );
    }
}
