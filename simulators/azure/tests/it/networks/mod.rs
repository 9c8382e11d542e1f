//! Small networks, as documents, for the packet oracle.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use azure_simulator::Documents;
use azure_simulator::packet::{
    AlwaysHealthy, Network, Packet, ProbeAnswers, Protocol, Refusal, Source, Verdict, trace,
};
use azure_types::ResourceId;
use serde_json::{Value, json};

pub const PUBLIC: &str = "198.18.0.4";
pub const INTERNAL: &str = "10.0.0.100";
pub const CLIENT: &str = "203.0.113.7";

/// Documents by id.
#[derive(Default, Clone)]
pub struct DocumentSet(pub BTreeMap<ResourceId, Value>);

impl Documents for DocumentSet {
    fn document(&self, id: &ResourceId) -> Option<Value> {
        self.0.get(id).cloned()
    }

    fn of_type(&self, resource_type: &str) -> Vec<Value> {
        let is = |id: &ResourceId| id.resource_type().eq_ignore_ascii_case(resource_type);
        self.0.iter().filter(|(id, _)| is(id)).map(|(_, document)| document.clone()).collect()
    }

    fn at_once(&self, read: &mut dyn FnMut(&dyn Documents)) {
        read(self);
    }
}

pub fn group() -> ResourceId {
    ResourceId::group("s", "rg")
}

pub fn network(kind: &str, name: &str) -> ResourceId {
    group().resource("Microsoft.Network", kind, name)
}

pub fn lb() -> ResourceId {
    network("loadBalancers", "kubernetes")
}

pub fn scale_set() -> ResourceId {
    group().resource("Microsoft.Compute", "virtualMachineScaleSets", "pool")
}

pub fn reference(id: &ResourceId) -> Value {
    json!({ "id": id })
}

impl DocumentSet {
    pub fn put(&mut self, id: &ResourceId, mut document: Value) -> &mut Self {
        document["id"] = json!(id);
        document["name"] = json!(id.name());
        self.0.insert(id.clone(), document);
        self
    }

    pub fn change(&mut self, id: &ResourceId, pointer: &str, value: Value) -> &mut Self {
        let document = self.0.get_mut(id).expect("the document exists");
        let (parent, name) = pointer.rsplit_once('/').unwrap();
        document.pointer_mut(parent).expect(pointer)[name] = value;
        self
    }

    /// A security rule in the group of the subnet.
    pub fn rule(&mut self, name: &str, priority: u32, access: &str, properties: Value) -> &mut Self {
        let mut rule = json!({ "name": name, "properties": {
            "priority": priority, "direction": "Inbound", "access": access, "protocol": "*",
            "sourceAddressPrefix": "*", "sourcePortRange": "*",
            "destinationAddressPrefix": "*", "destinationPortRange": "*",
        }});
        for (member, value) in properties.as_object().unwrap() {
            rule["properties"][member] = value.clone();
        }
        let document = self.0.get_mut(&network("networkSecurityGroups", "nsg")).unwrap();
        document["properties"]["securityRules"].as_array_mut().unwrap().push(rule);
        self
    }
}

pub fn instance(number: usize) -> ResourceId {
    scale_set().child("virtualMachines", &number.to_string())
}

/// The load balancing rule number `at` of the only balancer.
pub fn rule_member(at: usize, member: &str) -> String {
    format!("/properties/loadBalancingRules/{at}/properties/{member}")
}

/// Three scale set nodes 10.0.0.4 to .6 behind a public frontend (TCP 80, probed; UDP 53, not) and an
/// internal one (TCP 80), floating IP everywhere, as a cluster has it. The security group lets the
/// internet reach TCP 80 and UDP 53 of the public address.
pub fn cluster() -> DocumentSet {
    let mut documents = DocumentSet::default();
    let vnet = network("virtualNetworks", "vnet");
    let subnet = vnet.child("subnets", "nodes");
    let nsg = network("networkSecurityGroups", "nsg");
    documents.put(
        &vnet,
        json!({ "properties": {
            "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] },
            "subnets": [{ "id": subnet, "name": "nodes",
                "properties": { "addressPrefix": "10.0.0.0/16", "networkSecurityGroup": reference(&nsg) } }],
        }}),
    );
    documents.put(&nsg, json!({ "properties": { "securityRules": [], "defaultSecurityRules": [] } }));
    documents.rule(
        "allow-services",
        500,
        "Allow",
        json!({ "sourceAddressPrefix": "Internet", "destinationAddressPrefix": PUBLIC,
                "destinationPortRange": null, "destinationPortRanges": ["80", "53"] }),
    );
    let pip = network("publicIPAddresses", "kubernetes-a1");
    let pool = lb().child("backendAddressPools", "kubernetes");
    let (public, internal) =
        (lb().child("frontendIPConfigurations", "a1"), lb().child("frontendIPConfigurations", "b2"));
    documents.put(
        &pip,
        json!({ "sku": { "name": "Standard" },
                "properties": { "ipAddress": PUBLIC, "ipConfiguration": reference(&public) } }),
    );
    let probe = lb().child("probes", "a1-TCP-80");
    let rule = |name: &str, frontend: &ResourceId, protocol: &str, port: u16, probed: bool| {
        let mut rule = json!({ "id": lb().child("loadBalancingRules", name), "name": name, "properties": {
            "protocol": protocol, "frontendPort": port, "backendPort": port, "enableFloatingIP": true,
            "loadDistribution": "Default", "frontendIPConfiguration": reference(frontend),
            "backendAddressPool": reference(&pool), "backendAddressPools": [reference(&pool)],
            "disableOutboundSnat": false,
        }});
        if probed {
            rule["properties"]["probe"] = reference(&probe);
        }
        rule
    };
    documents.put(
        &lb(),
        json!({ "sku": { "name": "Standard" }, "properties": {
            "frontendIPConfigurations": [
                { "id": public, "name": "a1", "properties": { "publicIPAddress": reference(&pip) } },
                { "id": internal, "name": "b2",
                  "properties": { "privateIPAddress": INTERNAL, "subnet": reference(&subnet) } },
            ],
            "backendAddressPools": [{ "id": pool, "name": "kubernetes",
                "properties": { "loadBalancerBackendAddresses": [] } }],
            "probes": [{ "id": probe, "name": "a1-TCP-80", "properties": { "protocol": "Tcp", "port": 30080 } }],
            "loadBalancingRules": [
                rule("a1-TCP-80", &public, "Tcp", 80, true),
                rule("a1-UDP-53", &public, "Udp", 53, false),
                rule("b2-TCP-80", &internal, "Tcp", 80, true),
            ],
            "inboundNatRules": [], "outboundRules": [],
        }}),
    );
    for number in 0..3 {
        let nic = instance(number).child("networkInterfaces", "nic");
        let configuration = json!({ "name": "ipconfig", "properties": {
            "primary": true, "subnet": reference(&subnet), "loadBalancerBackendAddressPools": [reference(&pool)] }});
        documents.put(
            &instance(number),
            json!({ "properties": {
                "osProfile": { "computerName": format!("node{number}") },
                "instanceView": { "statuses": [
                    { "code": "ProvisioningState/succeeded" }, { "code": "PowerState/running" } ] },
                "networkProfileConfiguration": { "networkInterfaceConfigurations": [
                    { "name": "nic", "properties": { "ipConfigurations": [configuration] } } ] },
            }}),
        );
        documents.put(
            &nic,
            json!({ "properties": { "ipConfigurations": [{
                "id": nic.child("ipConfigurations", "ipconfig"), "name": "ipconfig", "properties": {
                    "privateIPAddress": format!("10.0.0.{}", 4 + number), "subnet": reference(&subnet),
                } }] }}),
        );
    }
    documents
}

pub fn tcp(to: &str, port: u16) -> Packet {
    Packet::new(Source::internet(CLIENT.parse().unwrap()), to.parse().unwrap(), port, Protocol::Tcp)
}

pub fn from_node(node: &str, to: &str, port: u16) -> Packet {
    Packet { from: Source::node(node), ..tcp(to, port) }
}

pub fn send(documents: &DocumentSet, packet: &Packet) -> Verdict {
    trace(documents, &AlwaysHealthy, packet)
}

pub fn refusal(verdict: &Verdict) -> &Refusal {
    assert!(!verdict.arrives, "{verdict}");
    verdict.refusal.as_ref().unwrap_or_else(|| panic!("{verdict}"))
}

/// Where 64 flows of one client go.
pub fn nodes_reached(
    documents: &DocumentSet,
    probes: &dyn ProbeAnswers,
    packet: &Packet,
) -> BTreeSet<String> {
    let network = Network::read(documents);
    (0..64)
        .filter_map(|port| {
            let verdict = network.trace(probes, &packet.clone().with_source_port(50_000 + port));
            verdict.node().map(str::to_owned)
        })
        .collect()
}

/// Answers from chosen machines alone.
pub struct Only(pub &'static [&'static str]);

impl ProbeAnswers for Only {
    fn answers(
        &self,
        _: &ResourceId,
        address: IpAddr,
        protocol: &str,
        port: u16,
        path: Option<&str>,
    ) -> bool {
        assert_eq!((protocol, port, path), ("Tcp", 30080, None), "what the probe's document says");
        self.0.contains(&address.to_string().as_str())
    }
}

/// An ordinary machine with an interface in a subnet.
pub fn machine(documents: &mut DocumentSet, name: &str, address: &str, subnet: &ResourceId) -> ResourceId {
    let machine = group().resource("Microsoft.Compute", "virtualMachines", name);
    let nic = network("networkInterfaces", &format!("{name}-nic"));
    documents.put(&machine, json!({ "properties": {} }));
    documents.put(
        &nic,
        json!({ "properties": { "virtualMachine": reference(&machine), "ipConfigurations": [{
            "id": nic.child("ipConfigurations", "c"), "name": "c", "properties": {
                "privateIPAddress": address, "subnet": reference(subnet) } }] } }),
    );
    nic
}

/// A virtual network with one subnet `s` that has all of it.
pub fn virtual_network(documents: &mut DocumentSet, name: &str, prefix: &str) -> ResourceId {
    let id = network("virtualNetworks", name);
    let subnet = id.child("subnets", "s");
    documents.put(
        &id,
        json!({ "properties": { "addressSpace": { "addressPrefixes": [prefix] }, "virtualNetworkPeerings": [],
            "subnets": [{ "id": subnet, "name": "s", "properties": { "addressPrefix": prefix } }] } }),
    );
    subnet
}

/// Connects two networks.
pub fn peer(documents: &mut DocumentSet, one: &ResourceId, other: &ResourceId) {
    for (here, there) in [(one, other), (other, one)] {
        let peering = json!({ "name": there.name(), "properties":
            { "peeringState": "Connected", "remoteVirtualNetwork": reference(there) } });
        documents.change(here, "/properties/virtualNetworkPeerings", json!([peering]));
    }
}

/// Gives the subnet of the cluster's nodes a route table.
pub fn routes(documents: &mut DocumentSet, routes: &[(&str, &str, &str, Option<&str>)]) {
    let table = network("routeTables", "table");
    let routes: Vec<Value> = routes
        .iter()
        .map(|(name, prefix, kind, hop)| {
            json!({ "name": name, "properties": {
                "addressPrefix": prefix, "nextHopType": kind, "nextHopIpAddress": hop } })
        })
        .collect();
    documents.put(&table, json!({ "properties": { "routes": routes } }));
    let vnet = network("virtualNetworks", "vnet");
    documents.change(&vnet, "/properties/subnets/0/properties/routeTable", reference(&table));
}

/// Lets the interfaces of all nodes of the cluster forward packets.
pub fn forward(documents: &mut DocumentSet) {
    for number in 0..3 {
        let nic = instance(number).child("networkInterfaces", "nic");
        documents.change(&nic, "/properties/enableIPForwarding", json!(true));
    }
}
