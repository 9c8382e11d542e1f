//! Parsing a document and writing it again loses nothing, whatever Azure adds at any level.

use azure_types::{
    LoadBalancer, NetworkInterface, PrivateLinkService, PublicIpAddress, ResourceProvider, RouteTable,
    ScaleSet, ScaleSetInstance, SecurityGroup, Subnet, VirtualMachine, VirtualNetwork,
};
use proptest::prelude::*;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value, json};

const ID: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/things/t";

/// A document with every member that the type names, at every level, except for `backendIPConfigurations`, which Azure
/// derives from the interfaces.
fn load_balancer() -> Value {
    let reference = json!({"id": ID});
    json!({
        "id": ID, "name": "n", "etag": "W/\"1\"", "location": "westus", "tags": {"a": "b"},
        "sku": {"name": "Standard", "tier": "Regional"}, "extendedLocation": {"name": "z", "type": "EdgeZone"},
        "properties": {
            "provisioningState": "Succeeded",
            "frontendIPConfigurations": [{"id": ID, "name": "f", "etag": "e", "zones": ["1"], "properties": {
                "provisioningState": "Succeeded", "privateIPAddress": "10.0.0.4", "privateIPAllocationMethod": "Dynamic",
                "privateIPAddressVersion": "IPv4", "subnet": {"id": ID, "name": "s"}, "publicIPAddress": reference,
                "loadBalancingRules": [reference], "inboundNatRules": [reference], "inboundNatPools": [reference],
                "outboundRules": [reference]}}],
            "backendAddressPools": [{"id": ID, "name": "p", "etag": "e", "properties": {
                "provisioningState": "Succeeded",
                "loadBalancerBackendAddresses": [{"name": "a", "properties": {
                    "ipAddress": "10.0.0.5", "adminState": "Down", "networkInterfaceIPConfiguration": reference,
                    "virtualNetwork": reference}}],
                "virtualNetwork": reference,
                "loadBalancingRules": [reference], "outboundRules": [reference]}}],
            "loadBalancingRules": [{"id": ID, "name": "r", "etag": "e", "properties": {
                "provisioningState": "Succeeded", "frontendIPConfiguration": reference, "backendAddressPool": reference,
                "probe": reference, "protocol": "Tcp", "frontendPort": 80, "backendPort": 80, "enableFloatingIP": true,
                "enableTcpReset": true, "disableOutboundSnat": false, "idleTimeoutInMinutes": 4,
                "loadDistribution": "Default"}}],
            "probes": [{"id": ID, "name": "q", "etag": "e", "properties": {
                "provisioningState": "Succeeded", "protocol": "Http", "port": 80, "requestPath": "/",
                "intervalInSeconds": 5, "probeThreshold": 2, "numberOfProbes": 1, "loadBalancingRules": [reference]}}],
            "inboundNatRules": [{"id": ID, "name": "i", "properties": {
                "frontendIPConfiguration": reference, "protocol": "Tcp", "frontendPort": 22}}],
            "inboundNatPools": [{"id": ID, "name": "j", "properties": {
                "frontendIPConfiguration": reference, "protocol": "Tcp", "frontendPortRangeStart": 50,
                "frontendPortRangeEnd": 100}}],
            "outboundRules": [{"id": ID, "name": "o", "properties": {
                "frontendIPConfigurations": [reference], "backendAddressPool": reference}}],
        },
    })
}

fn public_ip() -> Value {
    json!({
        "id": ID, "name": "n", "etag": "e", "location": "westus", "tags": {"a": "b"}, "sku": {"name": "Standard"},
        "zones": ["1", "2"], "extendedLocation": {"name": "z", "type": "EdgeZone"},
        "properties": {
            "provisioningState": "Succeeded", "publicIPAllocationMethod": "Static", "publicIPAddressVersion": "IPv4",
            "ipAddress": "20.0.0.1", "ipConfiguration": {"id": ID}, "ipTags": [{"ipTagType": "a", "tag": "b"}],
            "publicIPPrefix": {"id": ID}, "dnsSettings": {"domainNameLabel": "x", "fqdn": "x.y"}},
    })
}

fn security_group() -> Value {
    json!({
        "id": ID, "name": "n", "etag": "e", "location": "westus", "tags": {},
        "properties": {"provisioningState": "Succeeded", "securityRules": [{"id": ID, "name": "r", "etag": "e",
            "properties": {
                "provisioningState": "Succeeded", "description": "d", "protocol": "*", "access": "Allow",
                "direction": "Inbound", "priority": 500, "sourcePortRange": "*", "sourcePortRanges": [],
                "destinationPortRange": "80", "destinationPortRanges": [], "sourceAddressPrefix": "Internet",
                "sourceAddressPrefixes": [], "destinationAddressPrefix": "20.0.0.1", "destinationAddressPrefixes": [],
                "sourceApplicationSecurityGroups": [{"id": ID}], "destinationApplicationSecurityGroups": [{"id": ID}]}}]},
    })
}

fn virtual_network() -> Value {
    json!({"id": ID, "name": "n", "etag": "e", "location": "l", "properties": {
        "provisioningState": "Succeeded", "subnets": [subnet()]}})
}

fn subnet() -> Value {
    json!({"id": ID, "name": "s", "etag": "e", "properties": {
        "provisioningState": "Succeeded", "addressPrefix": "10.0.0.0/24", "addressPrefixes": ["10.0.0.0/24"],
        "networkSecurityGroup": {"id": ID}, "routeTable": {"id": ID},
        "privateLinkServiceNetworkPolicies": "Disabled"}})
}

fn private_link_service() -> Value {
    json!({
        "id": ID, "name": "n", "etag": "e", "location": "westus", "tags": {"a": "b"},
        "extendedLocation": {"name": "z", "type": "EdgeZone"},
        "properties": {
            "provisioningState": "Succeeded", "loadBalancerFrontendIpConfigurations": [{"id": ID}],
            "ipConfigurations": [{"id": ID, "name": "c", "etag": "e", "properties": {
                "provisioningState": "Succeeded", "primary": true, "privateIPAddress": "10.0.0.4",
                "privateIPAddressVersion": "IPv4", "privateIPAllocationMethod": "Static", "subnet": {"id": ID}}}],
            "privateEndpointConnections": [{"id": ID, "name": "p", "properties": {"linkIdentifier": "1"}}],
            "enableProxyProtocol": true, "fqdns": ["a.example"], "visibility": {"subscriptions": ["*"]},
            "autoApproval": {"subscriptions": ["s"]}},
    })
}

fn interfaces() -> Value {
    json!({"networkInterfaceConfigurations": [{"name": "nic", "properties": {"primary": true, "ipConfigurations": [
        {"name": "ip", "properties": {"primary": true, "privateIPAddressVersion": "IPv4", "subnet": {"id": ID},
            "loadBalancerBackendAddressPools": [{"id": ID}]}}]}}]})
}

fn scale_set() -> Value {
    json!({
        "id": ID, "name": "n", "etag": "\"1\"", "location": "l", "sku": {"name": "Standard_D2", "capacity": 3},
        "zones": ["1"], "extendedLocation": {"name": "z", "type": "EdgeZone"},
        "properties": {"provisioningState": "Succeeded", "orchestrationMode": "Uniform", "virtualMachineProfile": {
            "osProfile": {"computerNamePrefix": "pool"},
            "storageProfile": {"imageReference": {"id": "i", "publisher": "p", "offer": "o", "sku": "s", "version": "1"}},
            "networkProfile": interfaces()}},
    })
}

fn instance() -> Value {
    json!({
        "id": ID, "name": "n_0", "etag": "\"1\"", "location": "l", "instanceId": "0", "sku": {"name": "Standard_D2"},
        "zones": ["1"],
        "properties": {"provisioningState": "Succeeded", "latestModelApplied": true,
            "osProfile": {"computerName": "pool000000"}, "hardwareProfile": {"vmSize": "Standard_D2"},
            "networkProfile": {"networkInterfaces": [{"id": ID, "properties": {"primary": true}}]},
            "networkProfileConfiguration": interfaces(),
            "instanceView": {"statuses": [{"code": "PowerState/running"}], "platformFaultDomain": 1}},
    })
}

fn network_interface() -> Value {
    json!({"id": ID, "name": "nic", "etag": "e", "location": "l", "properties": {
        "provisioningState": "Succeeded", "primary": true, "virtualMachine": {"id": ID}, "ipConfigurations": [
            {"id": ID, "name": "ip", "properties": {"primary": true, "privateIPAddress": "10.0.0.5",
                "privateIPAddressVersion": "IPv4", "subnet": {"id": ID}, "publicIPAddress": {"id": ID},
                "loadBalancerBackendAddressPools": [{"id": ID}]}}]}})
}

fn virtual_machine() -> Value {
    json!({"id": ID, "name": "vm", "etag": "e", "location": "l", "tags": {"a": "b"}, "zones": ["1"], "properties": {
        "provisioningState": "Succeeded", "availabilitySet": {"id": ID}, "virtualMachineScaleSet": {"id": ID},
        "osProfile": {"computerName": "vm"}, "hardwareProfile": {"vmSize": "Standard_D2"},
        "networkProfile": {"networkInterfaces": [{"id": ID, "properties": {"primary": true}}]},
        "instanceView": {"statuses": [{"code": "PowerState/running"}], "platformFaultDomain": 1}}})
}

fn route_table() -> Value {
    json!({
        "id": ID, "name": "n", "etag": "e", "location": "l", "tags": {"a": "b"},
        "properties": {"provisioningState": "Succeeded", "routes": [{"id": ID, "name": "r", "etag": "e",
            "properties": {"provisioningState": "Succeeded", "addressPrefix": "10.244.3.0/24",
                "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.0.1.10"}}]},
    })
}

fn resource_provider() -> Value {
    json!({"namespace": "Microsoft.Compute", "resourceTypes": [
        {"resourceType": "virtualMachines", "zoneMappings": [{"location": "East US", "zones": ["3", "1"]}]}]})
}

/// Any JSON but `null`, which Resource Manager does not send for absent members.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,8}".prop_map(Value::from)
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Adds `extra` under a name that no type has to every object of `document`, and drops members by `dropped`.
fn disturb(document: &mut Value, extra: &Value, dropped: &mut impl Iterator<Item = bool>) {
    match document {
        Value::Object(members) => {
            let names: Vec<String> = members.keys().cloned().collect();
            for name in names {
                if dropped.next() == Some(true) {
                    members.remove(&name);
                }
            }
            for member in members.values_mut() {
                disturb(member, extra, dropped);
            }
            // `tags` contains only texts.
            if !members.values().all(Value::is_string) || members.contains_key("id") {
                members.insert("xUnknown".to_owned(), extra.clone());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| disturb(item, extra, dropped)),
        _ => {}
    }
}

fn survives<T: Serialize + DeserializeOwned>(document: &Value) {
    let read: T = serde_json::from_value(document.clone()).expect("the type reads its own documents");
    assert_eq!(&serde_json::to_value(&read).expect("and writes them"), document);
}

proptest! {
    #[test]
    fn unknown_members_survive_at_every_level(extra in anything(), seed in prop::collection::vec(prop::bool::weighted(0.1), 64)) {
        let disturbed = |mut document: Value| {
            disturb(&mut document, &extra, &mut seed.iter().copied().cycle());
            document
        };
        survives::<LoadBalancer>(&disturbed(load_balancer()));
        survives::<PrivateLinkService>(&disturbed(private_link_service()));
        survives::<PublicIpAddress>(&disturbed(public_ip()));
        survives::<SecurityGroup>(&disturbed(security_group()));
        survives::<VirtualNetwork>(&disturbed(virtual_network()));
        survives::<Subnet>(&disturbed(subnet()));
        survives::<ScaleSet>(&disturbed(scale_set()));
        survives::<ScaleSetInstance>(&disturbed(instance()));
        survives::<NetworkInterface>(&disturbed(network_interface()));
        survives::<VirtualMachine>(&disturbed(virtual_machine()));
        survives::<RouteTable>(&disturbed(route_table()));
        survives::<ResourceProvider>(&disturbed(resource_provider()));
    }
}

#[test]
fn every_named_member_is_read_as_such_and_not_as_unknown() {
    let balancer: LoadBalancer = serde_json::from_value(load_balancer()).unwrap();
    assert!(balancer.rest.is_empty());
    let properties = balancer.properties.unwrap();
    assert!(properties.rest.is_empty(), "{:?}", properties.rest);
    let rule = &properties.load_balancing_rules.unwrap()[0];
    assert!(rule.properties.as_ref().unwrap().rest.is_empty());
    let frontend = &properties.frontend_ip_configurations.unwrap()[0];
    assert!(frontend.properties.as_ref().unwrap().rest.is_empty());
    let machine: VirtualMachine = serde_json::from_value(virtual_machine()).unwrap();
    assert!(machine.rest.is_empty() && machine.properties.unwrap().rest.is_empty());
    let table: RouteTable = serde_json::from_value(route_table()).unwrap();
    let properties = table.properties.unwrap();
    let route = &properties.routes.unwrap()[0];
    assert!(table.rest.is_empty() && properties.rest.is_empty() && route.rest.is_empty());
    assert!(route.properties.as_ref().unwrap().rest.is_empty());
    let link: PrivateLinkService = serde_json::from_value(private_link_service()).unwrap();
    let properties = link.properties.unwrap();
    assert!(link.rest.is_empty() && properties.rest.is_empty(), "{:?}", properties.rest);
    let configuration = &properties.ip_configurations.unwrap()[0];
    assert!(configuration.properties.as_ref().unwrap().rest.is_empty());
    let instance: ScaleSetInstance = serde_json::from_value(instance()).unwrap();
    assert!(instance.rest.is_empty() && instance.properties.unwrap().rest.is_empty());
}
