//! A machine's facts about itself: from the simulated Azure's metadata service, and from unusual documents.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use azure_simulator::imds::MetadataService;
use azure_simulator::serve::{Server, serve};
use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use imds::{Address, Error, Imds, MachineFacts};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const SUBSCRIPTION: &str = "5CA1AB1E-0000-4000-8000-000000000001";
const MINUTE: Duration = Duration::from_secs(60);
const ANYWHERE: &str = "127.0.0.1:0";

async fn listen(router: Router) -> Server {
    let address: SocketAddr = ANYWHERE.parse().unwrap();
    serve(address, router, None, CancellationToken::new()).await.unwrap()
}

fn shown(addresses: &[Address]) -> Vec<String> {
    addresses.iter().map(|one| format!("{} {}", one.kind.as_str(), one.address)).collect()
}

/// An Azure with a dual-stack network, and its metadata service.
struct World {
    azure: Azure,
    server: Server,
}

impl World {
    async fn new() -> Self {
        let azure = Azure::new(Options::default());
        let server = listen(MetadataService::new(azure.clone()).router()).await;
        let world = Self { azure, server };
        world.put(&ResourceId::group(SUBSCRIPTION, "MC_Group"), json!({}));
        world.put(
            &network("virtualNetworks", "net"),
            json!({"properties": {
                "addressSpace": {"addressPrefixes": ["10.0.0.0/8", "fd00::/48"]},
                "subnets": [{"name": "nodes", "properties": {"addressPrefixes": ["10.240.0.0/16", "fd00::/64"]}}],
            }}),
        );
        world
    }

    fn put(&self, id: &ResourceId, mut document: Value) -> Value {
        document["location"] = "EastUS".into();
        self.azure.put(id, document).unwrap()
    }

    fn text(&self, id: &ResourceId, pointer: &str) -> String {
        self.azure.document(id).unwrap().pointer(pointer).unwrap().as_str().unwrap().to_owned()
    }

    fn public_ip(&self, name: &str, version: &str) -> ResourceId {
        let id = network("publicIPAddresses", name);
        let properties = json!({"publicIPAllocationMethod": "Static", "publicIPAddressVersion": version});
        self.put(&id, json!({"sku": {"name": "Standard"}, "properties": properties}));
        id
    }

    /// A machine whose interface has an address of each family, with the members `more` for each.
    fn machine(&self, name: &str, more: [Value; 2]) -> ResourceId {
        let nic = network("networkInterfaces", &format!("{name}-nic"));
        let subnet = network("virtualNetworks", "net").child("subnets", "nodes");
        let configurations: Vec<Value> = ["IPv4", "IPv6"]
            .iter()
            .zip(more)
            .map(|(version, more)| {
                let mut properties = json!({"privateIPAddressVersion": version, "primary": *version == "IPv4",
                    "subnet": {"id": subnet}});
                properties.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
                json!({"name": version, "properties": properties})
            })
            .collect();
        self.put(&nic, json!({"properties": {"ipConfigurations": configurations}}));
        let id = compute("virtualMachines", name);
        self.put(
            &id,
            json!({"zones": ["2"], "tags": {"Platform_Interconnect_Group": "fast", "other": "tag"}, "properties": {
                "hardwareProfile": {"vmSize": "Standard_D2s_v5"},
                "storageProfile": storage(),
                "osProfile": {"computerName": name, "adminUsername": "x", "adminPassword": "hidden-Word-1"},
                "networkProfile": {"networkInterfaces": [{"id": nic}]},
            }}),
        );
        id
    }

    /// The addresses of the machine's interface, from the interface's document.
    fn private(&self, name: &str) -> [String; 2] {
        let nic = network("networkInterfaces", &format!("{name}-nic"));
        [0, 1].map(|n| {
            self.text(&nic, &format!("/properties/ipConfigurations/{n}/properties/privateIPAddress"))
        })
    }

    fn imds(&self, machine: &str) -> Imds {
        Imds::new(format!("{}/instances/{machine}", self.server.url()).parse().unwrap())
    }

    async fn describe(&self, machine: &str, node: &str) -> Result<MachineFacts, Error> {
        self.imds(machine).describe(node, MINUTE).await
    }
}

fn network(kind: &str, name: &str) -> ResourceId {
    ResourceId::group(SUBSCRIPTION, "MC_Group").resource("Microsoft.Network", kind, name)
}

fn compute(kind: &str, name: &str) -> ResourceId {
    ResourceId::group(SUBSCRIPTION, "MC_Group").resource("Microsoft.Compute", kind, name)
}

fn storage() -> Value {
    json!({"imageReference": {"publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest"}})
}

/// NODE-001, NODE-037, NODE-045, NODE-047
#[tokio::test]
async fn a_machine_with_addresses_of_its_own_is_described() {
    let world = World::new().await;
    let [v4, v6] = [("v4", "IPv4"), ("v6", "IPv6")].map(|(name, version)| world.public_ip(name, version));
    world.machine("vm1", [&v4, &v6].map(|id| json!({"publicIPAddress": {"id": id}})));
    let facts = world.describe("vm1", "vm1").await.unwrap();
    let id = format!(
        "/subscriptions/{}/resourceGroups/mc_group/providers/Microsoft.Compute/virtualMachines/vm1",
        SUBSCRIPTION.to_lowercase()
    );
    let [private_v4, private_v6] = world.private("vm1");
    let public = |id| world.text(id, "/properties/ipAddress");
    assert_eq!(
        shown(&facts.addresses),
        [
            "Hostname vm1".to_owned(),
            format!("InternalIP {private_v4}"),
            format!("ExternalIP {}", public(&v4)),
            format!("InternalIP {private_v6}"),
            format!("ExternalIP {}", public(&v6)),
        ]
    );
    assert_eq!(
        (facts.resource_id, facts.size.as_str(), facts.zone.as_str(), facts.region.as_str()),
        (id, "Standard_D2s_v5", "eastus-2", "eastus")
    );
    assert_eq!((facts.interconnect_group.as_str(), facts.sub_fault_domain.as_str()), ("fast", ""));
}

/// NODE-002
#[tokio::test]
async fn a_machine_of_a_scale_set_has_the_id_of_the_instance() {
    let world = World::new().await;
    let subnet = network("virtualNetworks", "net").child("subnets", "nodes");
    let configuration = json!({"name": "ip", "properties": {"primary": true, "subnet": {"id": subnet}}});
    let interface =
        json!({"name": "nic", "properties": {"primary": true, "ipConfigurations": [configuration]}});
    world.put(
        &compute("virtualMachineScaleSets", "vmss1"),
        json!({"sku": {"name": "Standard_D4s_v5", "capacity": 1}, "properties": {
            "upgradePolicy": {"mode": "Manual"},
            "virtualMachineProfile": {
                "osProfile": {"computerNamePrefix": "vmss1", "adminUsername": "x", "adminPassword": "hidden-Word-1"},
                "storageProfile": storage(),
                "networkProfile": {"networkInterfaceConfigurations": [interface]},
            },
        }}),
    );
    let facts = world.describe("vmss1_0", "vmss1000000").await.unwrap();
    let end = "/resourceGroups/mc_group/providers/Microsoft.Compute/virtualMachineScaleSets/vmss1/virtualMachines/0";
    assert!(facts.resource_id.ends_with(end), "{}", facts.resource_id);
    assert_eq!((facts.size.as_str(), facts.zone.as_str()), ("Standard_D4s_v5", "0"), "a fault domain");
    assert_eq!(shown(&facts.addresses)[0], "Hostname vmss1000000");
    assert_eq!(facts.addresses.len(), 2);
}

/// NODE-038
#[tokio::test]
async fn the_public_addresses_of_a_balancer_are_those_of_the_machines_behind_it() {
    let world = World::new().await;
    let balancer = network("loadBalancers", "lb");
    let versions = ["IPv4", "IPv6"];
    let public = versions.map(|version| world.public_ip(&format!("front-{version}"), version));
    let part = |kind: &str, version: &str| json!({"id": balancer.child(kind, version)});
    let frontends: Vec<Value> = (versions.iter().zip(&public))
        .map(|(version, id)| json!({"name": version, "properties": {"publicIPAddress": {"id": id}}}))
        .collect();
    let rules = versions.map(|version| {
        json!({"name": version, "properties": {
            "frontendIPConfiguration": part("frontendIPConfigurations", version),
            "backendAddressPool": part("backendAddressPools", version),
            "protocol": "Tcp", "frontendPort": 80, "backendPort": 80}})
    });
    world.put(
        &balancer,
        json!({"sku": {"name": "Standard"}, "properties": {
            "frontendIPConfigurations": frontends,
            "backendAddressPools": versions.map(|version| json!({"name": version})),
            "loadBalancingRules": rules,
        }}),
    );
    let pools = versions
        .map(|version| json!({"loadBalancerBackendAddressPools": [part("backendAddressPools", version)]}));
    world.machine("vm1", pools);
    world.machine("alone", [json!({}), json!({})]);
    let [private_v4, private_v6] = world.private("vm1");
    let [public_v4, public_v6] = public.each_ref().map(|id| world.text(id, "/properties/ipAddress"));
    assert_eq!(
        shown(&world.describe("vm1", "vm1").await.unwrap().addresses),
        [
            "Hostname vm1".to_owned(),
            format!("InternalIP {private_v4}"),
            format!("ExternalIP {public_v4}"),
            format!("InternalIP {private_v6}"),
            format!("ExternalIP {public_v6}"),
        ]
    );
    let [private_v4, private_v6] = world.private("alone");
    assert_eq!(
        shown(&world.describe("alone", "alone").await.unwrap().addresses),
        ["Hostname alone".to_owned(), format!("InternalIP {private_v4}"), format!("InternalIP {private_v6}")]
    );
}

/// A service with configured answers, which counts requests.
#[derive(Clone, Default)]
struct Scripted(Arc<Mutex<Answers>>);

#[derive(Default)]
struct Answers {
    instance: (u16, Value),
    load_balancer: (u16, Value),
    asked: Vec<String>,
}

impl Scripted {
    async fn start(instance: Value) -> (Self, Imds, Server) {
        let scripted = Self::default();
        scripted.instance(200, instance);
        scripted.load_balancer(404, json!({"error": "No load balancer metadata is found."}));
        let answers = scripted.clone();
        let router = Router::new().fallback(move |uri: Uri| async move { answers.answer(&uri) });
        let server = listen(router).await;
        let imds = Imds::new(server.url().parse().unwrap());
        (scripted, imds, server)
    }

    fn answer(&self, uri: &Uri) -> Response {
        let mut answers = self.0.lock();
        answers.asked.push(uri.path().to_owned());
        let is_instance = uri.path() == "/metadata/instance";
        let (status, body) = if is_instance { &answers.instance } else { &answers.load_balancer };
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        (StatusCode::from_u16(*status).unwrap(), body).into_response()
    }

    fn instance(&self, status: u16, body: Value) {
        self.0.lock().instance = (status, body);
    }

    fn load_balancer(&self, status: u16, body: Value) {
        self.0.lock().load_balancer = (status, body);
    }

    fn asked(&self) -> usize {
        self.0.lock().asked.len()
    }
}

/// A document of a machine, with one change.
fn document(pointer: &str, value: Value) -> Value {
    let mut document = json!({
        "compute": {"name": "vm1", "location": "eastus", "zone": "1", "vmSize": "Standard_D2s_v5",
            "resourceId": "/subscriptions/s/resourceGroups/rg/providers/Microsoft.Compute/virtualMachines/vm1",
            "subscriptionId": "s", "resourceGroupName": "rg", "tagsList": []},
        "network": {"interface": [{
            "ipv4": {"ipAddress": [{"privateIpAddress": "10.0.0.4", "publicIpAddress": ""}]},
            "ipv6": {"ipAddress": []}}]},
    });
    if !pointer.is_empty() {
        *document.pointer_mut(pointer).unwrap() = value;
    }
    document
}

/// F6: the addresses of other interfaces are known, apart from the node's own.
#[tokio::test]
async fn the_addresses_of_other_interfaces_are_known() {
    let address = |private: &str, public: &str| json!({"ipv4": {"ipAddress": [{"privateIpAddress": private, "publicIpAddress": public}]}, "ipv6": {"ipAddress": []}});
    let interfaces = json!([address("10.0.0.4", ""), address("10.1.0.4", "198.51.100.4")]);
    let (_scripted, imds, _server) = Scripted::start(document("/network/interface", interfaces)).await;
    let facts = imds.describe("vm1", MINUTE).await.unwrap();
    assert_eq!(shown(&facts.addresses), ["Hostname vm1", "InternalIP 10.0.0.4"]);
    assert_eq!(shown(&facts.others), ["InternalIP 10.1.0.4", "ExternalIP 198.51.100.4"]);
}

/// NODE-006, NODE-039, NODE-040, NODE-041, NODE-044, NODE-048
#[tokio::test]
async fn a_document_from_which_the_machine_cannot_be_told_is_an_error_and_not_kept() {
    let (scripted, imds, _server) = Scripted::start(Value::Null).await;
    let empty = json!([{"ipv4": {"ipAddress": [{"privateIpAddress": "", "publicIpAddress": ""}]}}]);
    for (body, words) in [
        (json!({"network": {"interface": []}}), "failure of getting instance metadata"),
        (document("/network", Value::Null), "failure of getting instance metadata"),
        (document("/compute", Value::Null), "failure of getting instance metadata"),
        (json!({}), "failure of getting compute information from instance metadata"),
        (document("/compute/location", json!("")), "`compute.location` is empty"),
        (document("/compute/zone", json!("a")), "failed to parse zone ID \"a\": "),
        (document("/network/interface", json!([])), "no interface is found for the instance"),
        (document("/network/interface", empty), "get empty IP addresses from instance metadata service"),
        (document("/compute/resourceId", json!("")), "get empty ResoureceID from instance metadata service"),
        (
            document("/compute/vmSize", json!("")),
            "failure of getting compute information from instance metadata",
        ),
    ] {
        scripted.instance(200, body);
        let error = imds.describe("vm1", MINUTE).await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(error.len() > words.len(), "and what follows from it: {error}");
        scripted.instance(200, document("", Value::Null));
        // Had it been cached, it would be young enough.
        let facts = imds.describe("vm1", MINUTE).await.unwrap();
        assert_eq!(shown(&facts.addresses), ["Hostname vm1", "InternalIP 10.0.0.4"], "{words}");
        scripted.instance(503, Value::Null);
        assert!(imds.describe("vm1", Duration::ZERO).await.is_err());
    }
}

/// NODE-008, NODE-123
#[tokio::test]
async fn what_the_service_refuses_and_what_is_no_answer_is_an_error() {
    let (scripted, imds, server) = Scripted::start(Value::Null).await;
    scripted.instance(503, "not yet,\n try again".into());
    let error = imds.describe("vm1", MINUTE).await.unwrap_err().to_string();
    let expected = "failure of getting instance metadata with response \"503 Service Unavailable\": ";
    assert!(error.starts_with(expected) && error.ends_with(": not yet, try again"), "{error}");
    scripted.instance(200, "<html>".into());
    let error = imds.describe("vm1", MINUTE).await.unwrap_err().to_string();
    assert!(error.starts_with("failure of getting instance metadata: http://127.0.0.1:"), "{error}");

    let closed = tokio::net::TcpListener::bind(ANYWHERE).await.unwrap().local_addr().unwrap();
    let nobody = Imds::new(format!("http://{closed}").parse().unwrap());
    let error = nobody.describe("vm1", MINUTE).await.unwrap_err().to_string();
    let expected =
        format!("no answer from the instance metadata service at http://{closed}/metadata/instance?");
    assert!(error.starts_with(&expected), "{error}");
    drop(server);
}

/// NODE-214
#[tokio::test]
async fn a_document_is_shared_for_as_long_as_it_is_young_enough() {
    let (scripted, imds, _server) = Scripted::start(document("", Value::Null)).await;
    let asked = async |node: &str| {
        let before = scripted.asked();
        imds.describe(node, MINUTE).await.unwrap();
        scripted.asked() - before
    };
    assert_eq!((asked("vm1").await, asked("vm1").await), (2, 0), "the machine and its balancer, once");
    let (one, other) = tokio::join!(imds.describe("a", Duration::ZERO), imds.describe("b", MINUTE));
    assert_eq!(shown(&one.unwrap().addresses)[0], "Hostname a");
    assert_eq!(shown(&other.unwrap().addresses)[0], "Hostname b");
    tokio::time::pause();
    tokio::time::advance(MINUTE + Duration::from_secs(1)).await;
    tokio::time::resume();
    assert_eq!(asked("vm1").await, 2);
    scripted
        .instance(200, document("/network/interface/0/ipv4/ipAddress/0/publicIpAddress", json!("20.0.0.1")));
    let before = scripted.asked();
    let facts = imds.describe("vm1", Duration::ZERO).await.unwrap();
    assert_eq!(shown(&facts.addresses)[2], "ExternalIP 20.0.0.1");
    assert_eq!(scripted.asked() - before, 1, "the balancer has nothing to say");
}

/// NODE-215
#[tokio::test]
async fn a_balancers_address_stays_while_nobody_can_tell_and_goes_with_the_balancer() {
    let (scripted, imds, _server) = Scripted::start(document("", Value::Null)).await;
    let pair = json!({"frontendIpAddress": "20.0.0.1", "privateIpAddress": "10.0.0.4"});
    scripted.load_balancer(200, json!({"loadbalancer": {"publicIpAddresses": [pair]}}));
    let external = async || {
        let facts = imds.describe("vm1", Duration::ZERO).await.unwrap();
        shown(&facts.addresses).get(2).cloned()
    };
    let there = Some("ExternalIP 20.0.0.1".to_owned());
    assert_eq!(external().await, there);
    for status in [429, 500, 400] {
        scripted.load_balancer(status, Value::Null);
        assert_eq!(external().await, there, "{status}");
    }
    scripted.load_balancer(404, Value::Null);
    assert_eq!(external().await, None);
    scripted.load_balancer(500, Value::Null);
    assert_eq!(external().await, None, "a failing service does not delay a node");
}
