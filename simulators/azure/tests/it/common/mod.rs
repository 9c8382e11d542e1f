//! A bare client for one simulated Azure in the same process, and a few resources to work with.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::LazyLock;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use azure_contract::Contract;
use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use http::{HeaderMap, Request};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

pub const SUBSCRIPTION: &str = "00000000-0000-0000-0000-000000000000";
pub const GROUP: &str = "rg";
pub const NETWORK_VERSION: &str = "2025-05-01";
pub const COMPUTE_VERSION: &str = "2025-04-01";

pub struct Client {
    pub azure: Azure,
    router: Router,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_default()
    }

    pub fn message(&self) -> String {
        let error = &self.body["error"];
        format!("{} {}", error["message"].as_str().unwrap_or_default(), error["details"])
    }

    pub fn etag(&self) -> String {
        self.body["etag"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.body);
        self
    }

    #[track_caller]
    pub fn refused(self, status: u16, code: &str) -> Self {
        assert_eq!((self.status, self.code()), (status, code), "{}", self.body);
        self
    }
}

/// A status and a code, and what the message says.
pub type Refused = (u16, &'static str, &'static str);

/// Asserts that an answer is the expected refusal, or that it is a success where none is expected.
#[track_caller]
pub fn check(reply: Reply, expected: Option<Refused>, what: &impl std::fmt::Display) {
    match expected {
        None => assert!(reply.status < 300, "{what}: {}", reply.body),
        Some((status, code, words)) => {
            let message = reply.message();
            assert_eq!((reply.status, reply.code()), (status, code), "{what}: {message}");
            assert!(message.contains(words), "{what}: {message}");
        }
    }
}

pub fn group_path() -> String {
    format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}")
}

pub fn network_id(rest: &str) -> ResourceId {
    ResourceId::parse(&format!("{}/providers/Microsoft.Network/{rest}", group_path())).unwrap()
}

pub fn compute_id(rest: &str) -> ResourceId {
    ResourceId::parse(&format!("{}/providers/Microsoft.Compute/{rest}", group_path())).unwrap()
}

/// Azure's contract, where the environment names one.
static CONTRACT: LazyLock<Option<Contract>> = LazyLock::new(|| {
    let folder = std::path::PathBuf::from(std::env::var_os("CERULEAN_AZURE_CONTRACT")?);
    folder.is_dir().then(|| Contract::read(&folder).unwrap())
});

impl Client {
    pub fn new(options: Options) -> Self {
        Self::of(Azure::new(options))
    }

    pub fn of(azure: Azure) -> Self {
        Self { router: azure.router(), azure }
    }

    /// A client whose Azure has an empty group.
    pub async fn with_group(options: Options) -> Self {
        let client = Self::new(options);
        let path = format!("{}?api-version=2021-04-01", group_path());
        client.send("PUT", &path, Some(json!({ "location": "East US" })), &[]).await.expect(201);
        client
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Reply {
        self.try_send(method, path, body, headers).await.expect("an answer")
    }

    /// `None` when the connection breaks.
    pub async fn try_send(
        &self,
        method: &str,
        path: &str,
        body: Option<Value>,
        headers: &[(&str, &str)],
    ) -> Option<Reply> {
        let path = path.strip_prefix("http://azure.test").unwrap_or(path);
        let host = if path.starts_with("/_cerulean/") { "localhost" } else { "azure.test" };
        let mut request = Request::builder().method(method).uri(path).header("host", host);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Body::empty, |body| Body::from(body.to_string()));
        let response = self.router.clone().oneshot(request.body(body).unwrap()).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = body.collect().await.ok()?.to_bytes();
        let body = if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes).unwrap() };
        Some(Reply { status: parts.status.as_u16(), headers: parts.headers, body })
    }

    fn path(id: &ResourceId) -> String {
        let compute = id.namespace().unwrap_or_default().eq_ignore_ascii_case("Microsoft.Compute");
        let version = if compute { COMPUTE_VERSION } else { NETWORK_VERSION };
        format!("{id}?api-version={version}")
    }

    /// One GET.
    pub async fn glance(&self, id: &ResourceId) -> Reply {
        self.send("GET", &Self::path(id), None, &[]).await
    }

    /// The document, after a look at it in each version of Azure's contract: it has to keep each of them.
    pub async fn get(&self, id: &ResourceId) -> Reply {
        let reply = self.glance(id).await;
        if reply.status == 200 {
            self.check_versions(id).await;
        }
        reply
    }

    async fn check_versions(&self, id: &ResourceId) {
        let Some(contract) = &*CONTRACT else { return };
        for version in contract.versions(&id.resource_type()) {
            let reply = self.send("GET", &format!("{id}?api-version={version}"), None, &[]).await;
            assert!(reply.code() != "ContractViolated", "{}", reply.message());
        }
    }

    pub async fn put(&self, id: &ResourceId, body: Value) -> Reply {
        self.send("PUT", &Self::path(id), Some(body), &[]).await
    }

    pub async fn put_if(&self, id: &ResourceId, body: Value, etag: &str) -> Reply {
        self.send("PUT", &Self::path(id), Some(body), &[("if-match", etag)]).await
    }

    pub async fn delete(&self, id: &ResourceId) -> Reply {
        self.send("DELETE", &Self::path(id), None, &[]).await
    }

    pub async fn post(&self, id: &ResourceId, action: &str, body: Value) -> Reply {
        let path = format!("{id}/{action}?api-version={COMPUTE_VERSION}");
        self.send("POST", &path, Some(body), &[]).await
    }

    /// Follows the operation of an answer to its end; gives its last body.
    pub async fn wait(&self, reply: &Reply) -> Value {
        let url = reply
            .header("azure-asyncoperation")
            .or(reply.header("location"))
            .expect("an operation")
            .to_owned();
        loop {
            let poll = self.send("GET", &url, None, &[]).await;
            assert!(poll.status < 300, "{}", poll.body);
            let done = match poll.body["status"].as_str() {
                Some(status) => status != "InProgress",
                None => poll.status != 202,
            };
            if done {
                return poll.body;
            }
            let pause = poll.header("retry-after").map_or(1, |seconds| seconds.parse().unwrap());
            tokio::time::sleep(Duration::from_secs(pause)).await;
        }
    }

    /// PUT, then wait for success and read it back.
    pub async fn create(&self, id: &ResourceId, body: Value) -> Value {
        let reply = self.put(id, body).await;
        assert!(reply.status < 300, "{}: {}", reply.status, reply.body);
        assert_eq!(self.wait(&reply).await["status"], "Succeeded");
        self.get(id).await.expect(200).body
    }

    /// A virtual network `net` with the subnet `nodes`; gives the subnet's id.
    pub async fn network(&self, prefix: &str) -> ResourceId {
        let id = network_id("virtualNetworks/net");
        self.create(
            &id,
            json!({ "location": "eastus", "properties": {
                "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] },
                "subnets": [{ "name": "nodes", "properties": { "addressPrefix": prefix } }],
            }}),
        )
        .await;
        id.child("subnets", "nodes")
    }

    pub async fn public_ip(&self, name: &str) -> ResourceId {
        let id = network_id(&format!("publicIPAddresses/{name}"));
        self.create(&id, public_ip()).await;
        id
    }
}

pub fn public_ip() -> Value {
    json!({
        "location": "eastus",
        "sku": { "name": "Standard" },
        "properties": { "publicIPAllocationMethod": "Static" },
    })
}

/// A load balancer with one public frontend `f`, one pool `p`, one probe `h` and the given rules.
pub fn load_balancer(id: &ResourceId, public_ip: &ResourceId, ports: &[u16]) -> Value {
    let rules: Vec<Value> = ports
        .iter()
        .map(|port| {
            json!({ "name": format!("tcp-{port}"), "properties": {
                "frontendIPConfiguration": { "id": id.child("frontendIPConfigurations", "f") },
                "backendAddressPool": { "id": id.child("backendAddressPools", "p") },
                "probe": { "id": id.child("probes", "h") },
                "protocol": "tcp", "frontendPort": port, "backendPort": port,
            }})
        })
        .collect();
    json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {
        "frontendIPConfigurations": [{ "name": "f", "properties": { "publicIPAddress": { "id": public_ip } } }],
        "backendAddressPools": [{ "name": "p" }],
        "probes": [{ "name": "h", "properties": { "protocol": "Tcp", "port": 10256 } }],
        "loadBalancingRules": rules,
    }})
}

/// A machine with one network interface.
pub fn machine(nic: &ResourceId) -> Value {
    json!({ "location": "eastus", "properties": {
        "hardwareProfile": { "vmSize": "Standard_D2s_v3" },
        "storageProfile": { "imageReference": { "publisher": "Canonical", "offer": "ubuntu-24_04-lts",
            "sku": "server", "version": "latest" } },
        "osProfile": { "computerName": nic.name(), "adminUsername": "x", "adminPassword": "hidden-Word-1" },
        "networkProfile": { "networkInterfaces": [{ "id": nic }] },
    }})
}

/// A scale set of that many machines in a subnet, in the given pools.
pub fn scale_set(capacity: u64, subnet: &ResourceId, pools: &[ResourceId]) -> Value {
    let pools: Vec<Value> = pools.iter().map(|pool| json!({ "id": pool })).collect();
    json!({ "location": "eastus", "zones": ["1", "2", "3"], "sku": { "name": "Standard_D2s_v3", "capacity": capacity },
        "properties": { "virtualMachineProfile": {
            "osProfile": { "computerNamePrefix": "node", "adminUsername": "x", "adminPassword": "hidden-word" },
            "networkProfile": { "networkInterfaceConfigurations": [{ "name": "nic", "properties": {
                "primary": true,
                "ipConfigurations": [{ "name": "ipconfig", "properties": {
                    "primary": true, "subnet": { "id": subnet }, "loadBalancerBackendAddressPools": pools,
                }}],
            }}]},
        }},
    })
}
