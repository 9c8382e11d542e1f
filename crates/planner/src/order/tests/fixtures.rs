//! The fixtures that all tests share.

use std::sync::Arc;

use azure_types::{
    LoadBalancer, LoadBalancingRule, NetworkInterface, Probe, PublicIpAddress, ResourceId, ScaleSet,
    ScaleSetInstance, SecurityGroup, Subnet, VirtualMachine,
};
use cloud_config::CloudConfig;
use k8s::{Node, Service};
use serde_json::{Value, json};

use crate::model::Cluster;
use crate::outcome::{Difference, Document, Refusal, Step};
use crate::service::ServiceIntent;

/// The cluster of all test cases.
pub(crate) fn cluster() -> Cluster {
    cluster_with(json!({}))
}

/// The cluster of all test cases with additional keys of azure.json.
pub(crate) fn cluster_with(extra: Value) -> Cluster {
    let mut config = json!({
        "subscriptionId": "subscription", "tenantId": "tenant", "resourceGroup": "rg", "location": "westus",
        "vnetName": "vnet", "subnetName": "subnet", "securityGroupName": "nsg", "vmType": "vmss",
        "loadBalancerSku": "standard", "useManagedIdentityExtension": true,
    });
    for (key, value) in extra.as_object().unwrap() {
        config[key] = value.clone();
    }
    Cluster {
        config: CloudConfig::parse(&config.to_string()).unwrap(),
        name: "testCluster".to_owned(),
        region_zones: ["1", "2", "3"].map(str::to_owned).to_vec(),
    }
}

/// A Service under construction.
#[derive(Debug, Clone)]
pub(crate) struct Svc(pub Service);

/// The Service `default/<name>` with the UID `<name>`.
pub(crate) fn svc(name: &str) -> Svc {
    Svc(serde_json::from_value(json!({
        "metadata": {"namespace": "default", "name": name, "uid": name},
        "spec": {"type": "LoadBalancer", "ipFamilies": ["IPv4"], "ports": []},
    }))
    .unwrap())
}

impl Svc {
    pub fn port(mut self, protocol: &str, port: i32) -> Self {
        let port = json!({"protocol": protocol, "port": port, "nodePort": port + 10000});
        self.0.spec.ports.push(serde_json::from_value(port).unwrap());
        self
    }

    pub fn tcp(self, port: i32) -> Self {
        self.port("TCP", port)
    }

    pub fn udp(self, port: i32) -> Self {
        self.port("UDP", port)
    }

    pub fn annotate(mut self, key: &str, value: &str) -> Self {
        let annotations = self.0.metadata.annotations.get_or_insert_default();
        annotations.insert(format!("service.beta.kubernetes.io/{key}"), value.to_owned());
        self
    }

    pub fn internal(self) -> Self {
        self.annotate("azure-load-balancer-internal", "true")
    }

    pub fn families(mut self, families: &[&str]) -> Self {
        self.0.spec.ip_families = families.iter().map(|family| (*family).to_owned()).collect();
        self
    }

    pub fn dual(self) -> Self {
        self.families(&["IPv4", "IPv6"])
    }

    pub fn local(mut self, health_check_port: i32) -> Self {
        self.0.spec.external_traffic_policy = "Local".to_owned();
        self.0.spec.health_check_node_port = health_check_port;
        self
    }

    pub fn ranges(mut self, ranges: &[&str]) -> Self {
        self.0.spec.load_balancer_source_ranges = ranges.iter().map(|range| (*range).to_owned()).collect();
        self
    }

    pub fn published(mut self, addresses: &[&str]) -> Self {
        self.0.status.load_balancer.ingress =
            addresses.iter().map(|ip| serde_json::from_value(json!({"ip": ip})).unwrap()).collect();
        self
    }

    pub fn deleting(mut self) -> Self {
        self.0.metadata.deletion_timestamp =
            Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
        self.0.metadata.finalizers = Some(vec![k8s::names::LOAD_BALANCER_FINALIZER.to_owned()]);
        self
    }

    pub fn change(mut self, change: impl FnOnce(&mut Service)) -> Self {
        change(&mut self.0);
        self
    }

    /// Sets a UID that differs from its name.
    pub fn uid(self, uid: &str) -> Self {
        self.change(|service| service.metadata.uid = Some(uid.to_owned()))
    }

    pub fn arc(&self) -> Arc<Service> {
        Arc::new(self.0.clone())
    }

    pub fn intent(&self, cluster: &Cluster) -> Arc<ServiceIntent> {
        Arc::new(ServiceIntent::from_service(cluster, &self.0).unwrap())
    }

    pub fn refusal(&self) -> Refusal {
        ServiceIntent::from_service(&cluster(), &self.0).unwrap_err()
    }
}

/// The node that is instance `number` of scale set `set`.
pub(crate) fn node(set: &str, number: u32) -> Node {
    let name = format!("{set}{number:06}");
    let id = format!("azure://{}/virtualMachines/{number}", scale_set_id(set));
    serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {"providerID": id},
        "status": {"addresses": [
            {"type": "InternalIP", "address": format!("10.0.1.{}", number + 10)},
            {"type": "InternalIP", "address": format!("fd00:1::{}", number + 10)},
        ]},
    }))
    .unwrap()
}

pub(crate) fn labelled(mut node: Node, key: &str, value: &str) -> Node {
    node.metadata.labels.get_or_insert_default().insert(key.to_owned(), value.to_owned());
    node
}

pub(crate) fn nodes(list: impl IntoIterator<Item = Node>) -> Vec<Arc<Node>> {
    list.into_iter().map(Arc::new).collect()
}

pub(crate) fn scale_set_id(name: &str) -> ResourceId {
    ResourceId::group("subscription", "rg").resource("Microsoft.Compute", "virtualMachineScaleSets", name)
}

/// The interfaces of a model or instance: one interface with an address of each family.
pub(crate) fn interfaces(pools_v4: &[&ResourceId], pools_v6: &[&ResourceId]) -> Value {
    let list = |pools: &[&ResourceId]| pools.iter().map(|id| json!({"id": id})).collect::<Vec<_>>();
    json!({"networkInterfaceConfigurations": [{"name": "nic", "unknown": 1, "properties": {
        "primary": true,
        "ipConfigurations": [
            {"name": "v4", "properties": {"primary": true, "loadBalancerBackendAddressPools": list(pools_v4)}},
            {"name": "v6", "properties": {"privateIPAddressVersion": "IPv6", "loadBalancerBackendAddressPools": list(pools_v6)}},
        ],
    }}]})
}

/// A uniform scale set with this many running instances, none of them in a pool.
pub(crate) fn scale_set(name: &str, size: u32) -> (Arc<ScaleSet>, Vec<Arc<ScaleSetInstance>>) {
    let id = scale_set_id(name);
    let model: ScaleSet = serde_json::from_value(json!({
        "id": id, "name": name, "location": "westus", "etag": "s0",
        "properties": {"provisioningState": "Succeeded", "orchestrationMode": "Uniform", "virtualMachineProfile": {
            "osProfile": {"computerNamePrefix": name}, "networkProfile": interfaces(&[], &[]),
        }},
    }))
    .unwrap();
    (Arc::new(model), (0..size).map(|number| Arc::new(instance(name, number))).collect())
}

/// A flexible scale set; its machines are virtual machines of their own.
pub(crate) fn flexible_set(name: &str) -> Arc<ScaleSet> {
    let (mut set, _) = scale_set(name, 0);
    Arc::make_mut(&mut set).properties.as_mut().unwrap().orchestration_mode = Some("Flexible".into());
    set
}

pub(crate) fn machine_id(name: &str) -> ResourceId {
    ResourceId::group("subscription", "rg").resource("Microsoft.Compute", "virtualMachines", name)
}

/// A virtual machine, of a flexible scale set if one is named.
pub(crate) fn virtual_machine(name: &str, set: Option<&str>) -> Arc<VirtualMachine> {
    let mut document = json!({"id": machine_id(name), "name": name, "properties": {}});
    if let Some(set) = set {
        document["properties"]["virtualMachineScaleSet"] = json!({"id": scale_set_id(set)});
    }
    Arc::new(serde_json::from_value(document).unwrap())
}

/// The node of a virtual machine with this name.
pub(crate) fn machine_node(name: &str) -> Node {
    let mut node = node("any", 0);
    node.metadata.name = Some(name.to_owned());
    node.spec.provider_id = format!("azure://{}", machine_id(name));
    node
}

/// The only network interface of a virtual machine: an address of each family, in no pool.
pub(crate) fn network_interface(machine: &str) -> NetworkInterface {
    let name = format!("{machine}-nic");
    let id = cluster().network_group("rg").resource("Microsoft.Network", "networkInterfaces", &name);
    serde_json::from_value(json!({
        "id": id, "name": name, "location": "westus", "etag": "n0", "unknown": 1,
        "properties": {
            "provisioningState": "Succeeded", "primary": true, "virtualMachine": {"id": machine_id(machine)},
            "macAddress": "00-0D-3A-00-00-01",
            "ipConfigurations": [
                {"name": "v4", "properties": {"primary": true, "privateIPAddress": "10.0.1.10", "unknown": 2,
                    "loadBalancerBackendAddressPools": []}},
                {"name": "v6", "properties": {"privateIPAddress": "fd00:1::10", "privateIPAddressVersion": "IPv6",
                    "loadBalancerBackendAddressPools": []}},
            ],
        },
    }))
    .unwrap()
}

pub(crate) fn instance(set: &str, number: u32) -> ScaleSetInstance {
    serde_json::from_value(json!({
        "id": scale_set_id(set).child("virtualMachines", &number.to_string()), "location": "westus",
        "instanceId": number.to_string(), "etag": "i0", "sku": {"name": "Standard_D4s_v5"}, "zones": ["1"],
        "properties": {
            "provisioningState": "Succeeded",
            "osProfile": {"computerName": format!("{set}{number:06}")},
            "networkProfileConfiguration": interfaces(&[], &[]),
            "instanceView": {"statuses": [{"code": "PowerState/running"}], "platformFaultDomain": 3},
        },
    }))
    .unwrap()
}

pub(crate) fn subnet(cluster: &Cluster, name: &str, prefixes: &[&str]) -> Arc<Subnet> {
    let document = json!({
        "id": cluster.subnet_id(name), "name": name, "properties": {"addressPrefixes": prefixes},
    });
    Arc::new(serde_json::from_value(document).unwrap())
}

/// A public IP in the cluster's group.
pub(crate) fn public_ip(
    cluster: &Cluster,
    name: &str,
    address: Option<&str>,
    tags: Value,
) -> PublicIpAddress {
    let mut document = json!({
        "id": cluster.public_ip_id("rg", name), "name": name, "location": "westus", "etag": "p0", "tags": tags,
        "sku": {"name": "Standard"}, "zones": ["1", "2", "3"],
        "properties": {"publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4", "ipTags": []},
    });
    if let Some(address) = address {
        document["properties"]["ipAddress"] = json!(address);
        if address.contains(':') {
            document["properties"]["publicIPAddressVersion"] = json!("IPv6");
        }
    }
    serde_json::from_value(document).unwrap()
}

pub(crate) fn security_group(rules: Value) -> SecurityGroup {
    serde_json::from_value(json!({
        "id": cluster().security_group_id(), "name": "nsg", "location": "westus", "etag": "n0",
        "properties": {"securityRules": rules, "subnets": [{"id": cluster().subnet_id("subnet")}]},
    }))
    .unwrap()
}

pub(crate) fn load_balancer_of(step: &Step) -> &LoadBalancer {
    match &step.document {
        Some(Document::LoadBalancer(document)) => document,
        other => panic!("no load balancer: {other:?}"),
    }
}

pub(crate) fn public_ip_of(step: &Step) -> &PublicIpAddress {
    match &step.document {
        Some(Document::PublicIp(document)) => document,
        other => panic!("no public IP: {other:?}"),
    }
}

pub(crate) fn rules(load_balancer: &LoadBalancer) -> &[LoadBalancingRule] {
    load_balancer.properties.as_ref().unwrap().load_balancing_rules.as_deref().unwrap_or_default()
}

pub(crate) fn probes(load_balancer: &LoadBalancer) -> &[Probe] {
    load_balancer.properties.as_ref().unwrap().probes.as_deref().unwrap_or_default()
}

pub(crate) fn rule_names(load_balancer: &LoadBalancer) -> Vec<&str> {
    rules(load_balancer).iter().filter_map(|rule| rule.name.as_deref()).collect()
}

pub(crate) fn probe_names(load_balancer: &LoadBalancer) -> Vec<&str> {
    probes(load_balancer).iter().filter_map(|probe| probe.name.as_deref()).collect()
}

pub(crate) fn frontend_names(load_balancer: &LoadBalancer) -> Vec<&str> {
    let frontends = &load_balancer.properties.as_ref().unwrap().frontend_ip_configurations;
    frontends.iter().flatten().map(crate::resources::load_balancer::frontend::name_of).collect()
}

/// A member whose value differs from the desired one.
pub(crate) fn difference(member: &'static str, from: &str, to: &str) -> Difference {
    Difference { member, from: from.to_owned(), to: to.to_owned() }
}
