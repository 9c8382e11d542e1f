//! Resources that are created and deleted under ever new names: a long-running simulator must not keep data about them.

use anyhow::ensure;
use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};

use super::parallel::in_parallel;
use crate::http_client::{self, HttpClient};

pub(super) const NETWORK: &str = "api-version=2025-05-01";
pub(super) const COMPUTE: &str = "api-version=2025-04-01";

const RESOURCES: &str = "api-version=2021-04-01";
const IDENTITY: &str = "api-version=2023-01-31";

/// The number of requests of one life: a group with seven resources is created, read, changed, refused and deleted.
const LIFE: usize = 20;

/// The percentages of requests after which memory is measured.
const LOOKS: [usize; 3] = [10, 50, 100];

/// Sends this number of requests, and returns what `look` reports after some of them: (requests, report).
///
/// # Errors
/// A request gets an unexpected answer.
pub async fn run(
    client: &HttpClient,
    base: &str,
    requests: usize,
    clients: usize,
    look: impl Fn() -> anyhow::Result<u64>,
) -> anyhow::Result<Vec<(usize, u64)>> {
    let (mut done, mut memory) = (0, Vec::new());
    for share in LOOKS {
        let lives = requests * share / 100 / LIFE;
        let (client, base) = (client.clone(), base.to_owned());
        let live = move |_, number| {
            let (client, base) = (client.clone(), base.clone());
            async move { Life::new(&client, &base, number).run().await }
        };
        in_parallel(done..lives, clients, live).await?;
        done = lives;
        memory.push((lives * LIFE, look()?));
    }
    Ok(memory)
}

struct Life<'a> {
    client: &'a HttpClient,
    base: &'a str,
    number: usize,
    group: String,
}

impl<'a> Life<'a> {
    fn new(client: &'a HttpClient, base: &'a str, number: usize) -> Self {
        let group =
            format!("/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/life-{number}");
        Self { client, base, number, group }
    }

    fn id(&self, kind: &str) -> String {
        format!("{}/providers/{kind}-{}", self.group, self.number)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        version: &str,
        body: Option<Value>,
        wanted: u16,
    ) -> anyhow::Result<()> {
        let url = format!("{}{path}?{version}", self.base);
        let text = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
        let (status, answer) = http_client::send(self.client, method.clone(), &url, text).await?;
        let text = String::from_utf8_lossy(&answer);
        ensure!(status / 100 == wanted / 100, "{method} {path} answers {status} instead of {wanted}: {text}");
        Ok(())
    }

    async fn run(&self) -> anyhow::Result<()> {
        let ip = self.id("Microsoft.Network/publicIPAddresses/ip");
        let net = self.id("Microsoft.Network/virtualNetworks/net");
        let nic = self.id("Microsoft.Network/networkInterfaces/nic");
        let balancer = self.id("Microsoft.Network/loadBalancers/lb");
        let disk = self.id("Microsoft.Compute/disks/disk");
        let identity = self.id("Microsoft.ManagedIdentity/userAssignedIdentities/identity");
        let located = |properties: Value| json!({"location": "westeurope", "properties": properties});
        let interface = |subnet: &str| {
            located(json!({"ipConfigurations": [{"name": "ip", "properties": {"subnet": {"id": subnet}}}]}))
        };
        let front = located(json!({"frontendIPConfigurations":
            [{"name": "front", "properties": {"publicIPAddress": {"id": ip}}}]}));
        let front = with(front, "sku", json!({"name": "Standard"}));
        let network = located(json!({"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
            "subnets": [{"name": "nodes", "properties": {"addressPrefix": "10.0.0.0/24"}}]}));
        let new_disk = located(json!({"creationData": {"createOption": "Empty"}, "diskSizeGB": 4}));
        let tags = json!({"tags": {"life": self.number.to_string()}});
        let more_tags = json!({"operation": "Merge", "properties": tags.clone()});
        let tags_of_net = format!("{net}/providers/Microsoft.Resources/tags/default");
        let operation = "/subscriptions/00000000-0000-0000-0000-000000000000/providers/Microsoft.Compute/locations\
             /westeurope/operations/00000000-0000-0000-0000-000000000000";
        let subnet = |name: &str| format!("{net}/subnets/{name}");
        let plain = json!({"location": "westeurope"});
        let requests: [(Method, &str, &str, Option<Value>, u16); LIFE] = [
            (Method::PUT, &self.group, RESOURCES, Some(plain.clone()), 201),
            (Method::PUT, &ip, NETWORK, Some(address(self.number)), 201),
            (Method::PUT, &net, NETWORK, Some(network), 201),
            (Method::PUT, &nic, NETWORK, Some(interface(&subnet("nodes"))), 201),
            (Method::PUT, &nic, NETWORK, Some(interface(&subnet("none"))), 400),
            (Method::PUT, &balancer, NETWORK, Some(front), 201),
            (Method::PUT, &disk, COMPUTE_DISKS, Some(new_disk), 202),
            (Method::GET, operation, COMPUTE, None, 200),
            (Method::PUT, &identity, IDENTITY, Some(plain), 201),
            (Method::GET, &balancer, NETWORK, None, 200),
            (Method::GET, &nic, NETWORK, None, 200),
            (Method::GET, &format!("{ip}-absent"), NETWORK, None, 404),
            (Method::PATCH, &ip, NETWORK, Some(tags.clone()), 200),
            (Method::PATCH, &disk, COMPUTE_DISKS, Some(tags), 202),
            (Method::PATCH, &tags_of_net, RESOURCES, Some(more_tags), 200),
            (Method::GET, &format!("{}/resources", self.group), RESOURCES, None, 200),
            (Method::DELETE, &balancer, NETWORK, None, 202),
            (Method::DELETE, &nic, NETWORK, None, 202),
            (Method::DELETE, &disk, COMPUTE_DISKS, None, 202),
            (Method::DELETE, &self.group, RESOURCES, None, 202),
        ];
        for (method, path, version, body, wanted) in requests {
            self.send(method, path, version, body, wanted).await?;
        }
        Ok(())
    }
}

const COMPUTE_DISKS: &str = "api-version=2024-03-02";

fn with(mut document: Value, member: &str, value: Value) -> Value {
    if let Some(object) = document.as_object_mut() {
        object.insert(member.to_owned(), value);
    }
    document
}

pub(super) fn address(number: usize) -> Value {
    json!({"location": "westeurope", "sku": {"name": "Standard"}, "tags": {"asked": number.to_string()},
        "properties": {"publicIPAllocationMethod": "Static"}})
}
