//! The contents of Azure once a cluster is at rest, as requests that create it again.

use std::net::IpAddr;

use azure_simulator::Azure;
use serde_json::{Value, json};

/// Types in the order in which they can be created. Other types are created with these.
const ORDER: [&str; 18] = [
    "Microsoft.Resources/resourceGroups",
    "Microsoft.Network/publicIPAddresses",
    "Microsoft.Network/networkSecurityGroups",
    "Microsoft.Network/routeTables",
    "Microsoft.Network/natGateways",
    "Microsoft.Network/virtualNetworks",
    "Microsoft.Network/bastionHosts",
    "Microsoft.Network/loadBalancers",
    "Microsoft.Network/loadBalancers/inboundNatRules",
    "Microsoft.Network/privateDnsZones",
    "Microsoft.Network/privateDnsZones/virtualNetworkLinks",
    "Microsoft.Network/privateDnsZones/A",
    "Microsoft.Network/networkInterfaces",
    "Microsoft.Compute/virtualMachines",
    "Microsoft.Compute/virtualMachineScaleSets",
    "Microsoft.ContainerService/managedClusters",
    "Microsoft.ContainerService/managedClusters/agentPools",
    "Microsoft.ContainerService/managedClusters/maintenanceConfigurations",
];
/// The tag with the hash of a pool's bootstrap data.
const DATA_HASH: &str = "capz-custom-data-hash";
/// The hash of the placeholder for the data.
const HASH_OF_WORD: &str = "9576b9be4b4e9534ac5bf5c359a512c8c99e7759c89a2d5b49f24dd6aa60dc9e";
const NAT_RULES: &str = "Microsoft.Network/loadBalancers/inboundNatRules";

/// Members that Azure writes, in any resource.
const WRITTEN_BY_AZURE: [&str; 26] = [
    "azurePortalFQDN",
    "backendIPConfigurations",
    "currentKubernetesVersion",
    "currentOrchestratorVersion",
    "defaultSecurityRules",
    "eTag",
    "effectiveOutboundIPs",
    "etag",
    "fqdn",
    "hostedWorkloads",
    "identityProfile",
    "instanceView",
    "ipAddress",
    "ipConfiguration",
    "LastOwnershipUpdateTime",
    "loadBalancerBackendAddresses",
    "macAddress",
    "nodeImageVersion",
    "provisioningState",
    "resourceGuid",
    "tapConfigurations",
    "timeCreated",
    "uniqueId",
    "virtualMachine",
    "vmId",
    "vnetEncryptionSupported",
];
/// Members with back references, below a type's own.
const BACK: [(&str, &[&str]); 6] = [
    ("Microsoft.Network/publicIPAddresses", &["natGateway"]),
    ("Microsoft.Network/networkSecurityGroups", &["networkInterfaces", "subnets"]),
    ("Microsoft.Network/routeTables", &["subnets"]),
    ("Microsoft.Network/natGateways", &["subnets"]),
    ("Microsoft.Network/virtualNetworks", &["ipConfigurations"]),
    ("Microsoft.Network/loadBalancers", &["inboundNatRules", "loadBalancingRules", "outboundRules"]),
];

/// A request for each resource of the cluster, in an order in which they can be created.
pub fn lines(azure: &Azure) -> Vec<Value> {
    let documents = azure.documents();
    let mut lines: Vec<((usize, Option<IpAddr>), Value)> = Vec::new();
    for document in &documents {
        let resource_type = text(&document["type"]);
        let Some(rank) = ORDER.iter().position(|one| one.eq_ignore_ascii_case(resource_type)) else {
            continue;
        };
        let comes_with_others =
            comes_with_a_set(document, &documents) || comes_with_a_managed_cluster(document, &documents);
        if is_shared(document) || comes_with_others {
            continue;
        }
        let mut body = document.clone();
        let rules = body["properties"].as_object_mut().and_then(|it| it.remove("inboundNatRules"));
        for rule in rules.as_ref().and_then(Value::as_array).into_iter().flatten() {
            let mut of_rule = json!({ "properties": rule["properties"] });
            strip(&mut of_rule, &[]);
            of_rule["properties"].as_object_mut().map(|it| it.remove("backendIPConfiguration"));
            let rank = ORDER.iter().position(|one| *one == NAT_RULES).unwrap_or_default();
            lines.push(((rank, None), json!({ "put": rule["id"], "body": of_rule })));
        }
        let back =
            BACK.iter().find(|(of, _)| of.eq_ignore_ascii_case(resource_type)).map_or(&[][..], |it| it.1);
        strip(&mut body, back);
        for member in ["id", "name", "type", "managedBy"] {
            body.as_object_mut().map(|it| it.remove(member));
        }
        if let Some(hash) = body.pointer_mut("/tags").and_then(|tags| tags.get_mut(DATA_HASH)) {
            *hash = HASH_OF_WORD.into();
        }
        let mut line = json!({ "put": document["id"], "body": body });
        let instances = flexible_instances(document, &documents);
        if !instances.is_empty() {
            line["instances"] = instances.into();
        }
        let drawn = drawn(document, &documents);
        if !drawn.is_empty() {
            line["drawn"] = drawn.into();
        }
        lines.push(((rank, address(document)), line));
    }
    lines.sort_by_key(|(order, _)| *order);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// The private address of an interface. Azure assigns the next free one: interfaces that are created in this order get
/// the same addresses again.
fn address(document: &Value) -> Option<IpAddr> {
    let place = "/properties/ipConfigurations/0/properties/privateIPAddress";
    document.pointer(place).and_then(Value::as_str)?.parse().ok()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Whether the document existed before the cluster.
fn is_shared(document: &Value) -> bool {
    text(&document["id"]).split('/').nth(4) == Some("capz-ci")
}

/// The group of a managed cluster's machines, and everything in it.
fn comes_with_a_managed_cluster(document: &Value, all: &[Value]) -> bool {
    let Some(group) = text(&document["id"]).split('/').nth(4) else { return false };
    all.iter().any(|one| text(&one["properties"]["nodeResourceGroup"]).eq_ignore_ascii_case(group))
}

/// Machines of a set, and their interfaces, which are created with the set.
fn comes_with_a_set(document: &Value, all: &[Value]) -> bool {
    let properties = &document["properties"];
    if properties["virtualMachineScaleSet"].is_object() {
        return true;
    }
    let machine = text(&properties["virtualMachine"]["id"]);
    all.iter().any(|one| {
        text(&one["id"]).eq_ignore_ascii_case(machine)
            && one["properties"]["virtualMachineScaleSet"].is_object()
    })
}

/// The names that Azure generated for the machines of a flexible set.
fn flexible_instances(set: &Value, all: &[Value]) -> Vec<Value> {
    let of_set = |one: &&Value| {
        text(&one["properties"]["virtualMachineScaleSet"]["id"]).eq_ignore_ascii_case(text(&set["id"]))
    };
    all.iter().filter(of_set).map(|one| one["name"].clone()).collect()
}

/// Names that Azure draws for a managed cluster, which objects repeat: its hosts and its issuer, or the scale set of a pool.
fn drawn(document: &Value, all: &[Value]) -> Vec<Value> {
    let properties = &document["properties"];
    let of_cluster =
        [&properties["fqdn"], &properties["privateFQDN"], &properties["oidcIssuerProfile"]["issuerURL"]];
    let is = |resource_type: &str| text(&document["type"]).eq_ignore_ascii_case(resource_type);
    if is("Microsoft.ContainerService/managedClusters") {
        return of_cluster.into_iter().filter(|name| name.is_string()).cloned().collect();
    }
    if !is("Microsoft.ContainerService/managedClusters/agentPools") {
        return Vec::new();
    }
    let sets = all.iter().filter(|one| one["tags"]["aks-managed-poolName"] == document["name"]);
    let sets = sets.filter(|one| text(&one["type"]).ends_with("/virtualMachineScaleSets"));
    sets.map(|one| one["name"].clone()).collect()
}

/// Removes what Azure adds: members that it writes, back references, and IDs of parts of a document.
fn strip(value: &mut Value, back: &[&str]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| strip(item, back)),
        Value::Object(members) => {
            let is_child = members.contains_key("name") && members.contains_key("properties");
            if let Some(disk) = members.get_mut("managedDisk").and_then(Value::as_object_mut) {
                // Disks are created with their machine.
                disk.remove("id");
            }
            members.retain(|member, value| {
                let of_child = is_child && ["id", "type"].contains(&member.as_str());
                let is_back = back.contains(&member.as_str()) && refers(value);
                let is_empty = value.as_array().is_some_and(Vec::is_empty);
                !WRITTEN_BY_AZURE.contains(&member.as_str()) && !of_child && !is_back && !is_empty
            });
            members.values_mut().for_each(|value| strip(value, back));
        }
        _ => {}
    }
}

/// Whether a value is a reference, or a list of references.
fn refers(value: &Value) -> bool {
    let is_reference = |value: &Value| {
        value.as_object().is_some_and(|members| members.len() == 1 && members.contains_key("id"))
    };
    is_reference(value) || value.as_array().is_some_and(|items| items.iter().all(is_reference))
}
