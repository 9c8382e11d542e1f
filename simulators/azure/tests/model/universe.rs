//! A small universe of resources of every type that refer to each other by chance, rightly or wrongly.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::common::{SUBSCRIPTION, scale_set};

/// The groups that resources lie in; the second is often absent.
pub const GROUPS: [&str; 2] = ["rg", "other"];

/// How many names each type has in each group.
const NAMES: u64 = 3;

/// A source of choices: SplitMix64, so that an act's salt decides everything about it.
pub struct Choices(pub u64);

impl Choices {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    /// True once in `n`.
    pub fn once_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// What a document or its `properties` may be.
type Body = fn(&mut Choices, &ResourceId) -> Value;

/// Child collections, with what a child's `properties` may be.
type Children = &'static [(&'static str, Body)];

/// A type of the universe.
pub struct Subject {
    pub namespace: &'static str,
    pub collection: &'static str,
    pub version: &'static str,
    pub body: Body,
    /// Child collections that clients write one by one, with what a child's `properties` may be.
    pub children: Children,
    pub actions: &'static [(&'static str, &'static str)],
}

const NETWORK: &str = "Microsoft.Network";
const COMPUTE: &str = "Microsoft.Compute";
const AUTHORIZATION: &str = "Microsoft.Authorization";
const N: &str = "2025-05-01";
const C: &str = "2025-04-01";
const D: &str = "2025-01-02";

pub const SUBJECTS: [Subject; 30] = [
    network("virtualNetworks", virtual_network, &[("subnets", subnet)]),
    network("networkSecurityGroups", security_group, &[("securityRules", security_rule)]),
    network("applicationSecurityGroups", plain, &[]),
    network("routeTables", route_table, &[("routes", route)]),
    network("publicIPAddresses", public_ip, &[]),
    network("publicIPPrefixes", public_ip_prefix, &[]),
    network("natGateways", nat_gateway, &[]),
    network("loadBalancers", load_balancer, &[("backendAddressPools", pool), ("inboundNatRules", nat_rule)]),
    network("networkInterfaces", network_interface, &[]),
    network("privateLinkServices", private_link_service, &[]),
    network("privateEndpoints", private_endpoint, &[]),
    compute("availabilitySets", C, availability_set, &[]),
    compute("disks", D, disk, &[]),
    compute("snapshots", D, snapshot, &[]),
    compute(
        "virtualMachines",
        C,
        machine,
        &[("start", ""), ("deallocate", ""), ("powerOff", ""), ("restart", ""), ("redeploy", "")],
    ),
    compute(
        "virtualMachineScaleSets",
        C,
        set,
        &[
            ("deallocate", ""),
            ("start", r#"{"instanceIds":["0"]}"#),
            ("manualupgrade", r#"{"instanceIds":["*"]}"#),
            ("delete", r#"{"instanceIds":["1"]}"#),
        ],
    ),
    Subject {
        namespace: "Microsoft.ManagedIdentity",
        collection: "userAssignedIdentities",
        version: "2024-11-30",
        body: plain,
        children: &[],
        actions: &[],
    },
    Subject {
        namespace: "Microsoft.Storage",
        collection: "storageAccounts",
        version: "2025-01-01",
        body: storage_account,
        children: &[],
        actions: &[("listKeys", ""), ("regenerateKey", r#"{"keyName":"key1"}"#)],
    },
    Subject {
        namespace: "Microsoft.ContainerService",
        collection: "managedClusters",
        version: "2025-08-01",
        body: cluster,
        children: &[("agentPools", agent_pool)],
        actions: &[
            ("stop", ""),
            ("start", ""),
            ("rotateClusterCertificates", ""),
            ("listClusterUserCredential", ""),
        ],
    },
    Subject {
        namespace: "Microsoft.KeyVault",
        collection: "vaults",
        version: "2023-07-01",
        body: vault,
        children: &[("secrets", secret)],
        actions: &[],
    },
    zones(
        "privateDnsZones",
        "2020-06-01",
        &[("A", addresses), ("CNAME", alias), ("virtualNetworkLinks", link)],
    ),
    zones("dnsZones", "2018-05-01", &[("A", addresses), ("CNAME", alias)]),
    Subject {
        namespace: "Microsoft.ContainerRegistry",
        collection: "registries",
        version: "2023-07-01",
        body: registry,
        children: &[],
        actions: &[("listCredentials", ""), ("regenerateCredential", r#"{"name":"password"}"#)],
    },
    compute("proximityPlacementGroups", C, plain, &[]),
    Subject {
        namespace: COMPUTE,
        collection: "galleries",
        version: "2024-03-03",
        body: plain,
        children: &[("images", gallery_image)],
        actions: &[],
    },
    compute("hostGroups", C, host_group, &[]),
    network("ddosProtectionPlans", plain, &[]),
    network("ipGroups", ip_group, &[]),
    extension("roleAssignments", "2022-04-01", role_assignment),
    extension("locks", "2020-05-01", lock),
];

const fn zones(collection: &'static str, version: &'static str, children: Children) -> Subject {
    Subject { namespace: NETWORK, collection, version, body: zone, children, actions: &[] }
}

/// What lies on other resources.
const fn extension(collection: &'static str, version: &'static str, body: Body) -> Subject {
    Subject { namespace: AUTHORIZATION, collection, version, body, children: &[], actions: &[] }
}

const fn network(collection: &'static str, body: Body, children: Children) -> Subject {
    Subject { namespace: NETWORK, collection, version: N, body, children, actions: &[] }
}

const fn compute(
    collection: &'static str,
    version: &'static str,
    body: Body,
    actions: &'static [(&'static str, &'static str)],
) -> Subject {
    Subject { namespace: COMPUTE, collection, version, body, children: &[], actions }
}

impl Subject {
    /// One of the few resources of this type.
    pub fn id(&self, choices: &mut Choices) -> ResourceId {
        let group = if choices.once_in(12) { GROUPS[1] } else { GROUPS[0] };
        // The first name comes up most often, so that what refers to others finds them.
        let number = if choices.once_in(3) { choices.below(NAMES) } else { 0 };
        let name = match self.collection {
            "privateDnsZones" | "dnsZones" => {
                format!("{}{number}.example.org", self.collection.to_lowercase())
            }
            "registries" => format!("registry{number}"),
            "roleAssignments" => format!("00000000-0000-4000-8000-00000000000{number}"),
            _ => format!("{}{number}", self.collection.get(..3).unwrap_or("x")),
        };
        if self.namespace == AUTHORIZATION {
            let scope =
                choices.pick(&["virtualNetworks", "managedClusters", "vaults", "registries", "disks"]);
            return some(choices, scope).resource(self.namespace, self.collection, &name);
        }
        ResourceId::group(SUBSCRIPTION, group).resource(self.namespace, self.collection, &name)
    }
}

/// The id of a random resource of a type: it may exist or not.
fn some(choices: &mut Choices, collection: &str) -> ResourceId {
    let of_another_type = choices.once_in(40);
    let subject = SUBJECTS
        .iter()
        .find(|subject| subject.collection == collection && !of_another_type)
        .unwrap_or(&SUBJECTS[0]);
    subject.id(choices)
}

fn cluster(choices: &mut Choices, id: &ResourceId) -> Value {
    let count = 1 + choices.below(2);
    let mut pool = agent_pool(choices, id);
    pool["name"] = json!("system");
    pool["mode"] = json!(choices.pick(&["System", "System", "System", "User"]));
    pool["count"] = json!(count);
    let outbound = choices.pick(&["loadBalancer", "loadBalancer", "managedNATGateway", "none"]);
    let mut properties = json!({
        "dnsPrefix": "c",
        "agentPoolProfiles": [pool],
        "networkProfile": {
            "networkPlugin": choices.pick(&["azure", "azure", "kubenet", "pigeons"]),
            "outboundType": outbound,
        },
    });
    if choices.once_in(4) {
        properties["apiServerAccessProfile"] = json!({ "enablePrivateCluster": true });
    }
    let mut body = with(properties, choices);
    body["identity"] = json!({ "type": "SystemAssigned" });
    body
}

fn agent_pool(choices: &mut Choices, _id: &ResourceId) -> Value {
    let mut properties = json!({
        "count": choices.below(3),
        "vmSize": choices.pick(&["Standard_D2s_v3", "Standard_D4s_v5"]),
        "mode": choices.pick(&["User", "User", "System"]),
    });
    if choices.once_in(3) {
        properties["vnetSubnetID"] = some_subnet(choices)["id"].clone();
    }
    if choices.once_in(6) {
        properties["kubeletDiskType"] = json!("Temporary");
    }
    properties
}

fn vault(choices: &mut Choices, _id: &ResourceId) -> Value {
    let mut properties = json!({
        "tenantId": "72f988bf-0000-4000-8000-000000000001",
        "sku": { "family": "A", "name": choices.pick(&["standard", "premium", "paper"]) },
        "accessPolicies": [],
    });
    if choices.once_in(3) {
        properties["createMode"] = json!("recover");
    }
    if choices.once_in(3) {
        let subnet = some_subnet(choices);
        properties["networkAcls"] = json!({ "defaultAction": "Deny", "virtualNetworkRules": [subnet] });
    }
    with(properties, choices)
}

fn secret(choices: &mut Choices, _id: &ResourceId) -> Value {
    json!({ "value": choices.below(9).to_string() })
}

fn zone(_choices: &mut Choices, _id: &ResourceId) -> Value {
    json!({ "location": "global" })
}

fn addresses(choices: &mut Choices, id: &ResourceId) -> Value {
    let host = choices.below(300);
    record_set(id, json!([{ "ipv4Address": format!("10.1.0.{host}") }]), "ARecords")
}

fn alias(choices: &mut Choices, id: &ResourceId) -> Value {
    let name = choices.pick(&["example.com", "not a name"]);
    record_set(id, json!({ "cname": name }), "CNAMERecord")
}

/// Private zones spell members of records otherwise than public ones.
fn record_set(id: &ResourceId, records: Value, member: &str) -> Value {
    let private = id.resource_type().ends_with("privateDnsZones");
    let (time, member) = match private {
        true => ("ttl", format!("{}{}", member[..1].to_lowercase(), &member[1..]).replace("cNAME", "cname")),
        false => ("TTL", member.to_owned()),
    };
    json!({ time: 300, member: records })
}

fn link(choices: &mut Choices, _id: &ResourceId) -> Value {
    let network = reference(choices, "virtualNetworks");
    json!({
        "location": "global",
        "properties": { "virtualNetwork": network, "registrationEnabled": choices.once_in(4) },
    })
}

fn registry(choices: &mut Choices, _id: &ResourceId) -> Value {
    let mut body = with(json!({ "adminUserEnabled": choices.once_in(2) }), choices);
    body["sku"] = json!({ "name": choices.pick(&["Basic", "Standard", "Premium", "Royal"]) });
    body
}

fn gallery_image(choices: &mut Choices, _id: &ResourceId) -> Value {
    let system = choices.pick(&["Linux", "Windows", "Plan 9"]);
    json!({
        "location": "eastus",
        "properties": { "osType": system, "identifier": { "publisher": "p", "offer": "o", "sku": "s" } },
    })
}

fn host_group(choices: &mut Choices, _id: &ResourceId) -> Value {
    with(json!({ "platformFaultDomainCount": 1 + choices.below(4) }), choices)
}

fn ip_group(choices: &mut Choices, _id: &ResourceId) -> Value {
    with(json!({ "ipAddresses": [choices.pick(&["10.0.0.0/8", "10.0.0.1-10.0.0.9", "somewhere"])] }), choices)
}

fn role_assignment(choices: &mut Choices, id: &ResourceId) -> Value {
    let role =
        choices.pick(&["acdd72a7-3385-48ef-bd42-f606fba81ae7", "00000000-0000-0000-0000-00000000beef"]);
    let role =
        ResourceId::subscription(id.subscription_id()).resource(AUTHORIZATION, "roleDefinitions", role);
    json!({ "properties": {
        "roleDefinitionId": role,
        "principalId": format!("10000000-0000-4000-8000-00000000000{}", choices.below(4)),
        "principalType": "ServicePrincipal",
    } })
}

fn lock(choices: &mut Choices, _id: &ResourceId) -> Value {
    json!({ "properties": { "level": choices.pick(&["CanNotDelete", "ReadOnly", "Ajar", "Ajar", "Ajar", "Ajar"]) } })
}

fn storage_account(choices: &mut Choices, _id: &ResourceId) -> Value {
    let kind = choices.pick(&["StorageV2", "StorageV2", "Storage", "FileStorage", "None"]);
    let sku = choices.pick(&["Standard_LRS", "Standard_RAGRS", "Premium_LRS"]);
    let subnet = some(choices, "virtualNetworks").child("subnets", "s0");
    let rules = if choices.once_in(3) { json!([{ "id": subnet }]) } else { json!([]) };
    json!({
        "location": "eastus", "kind": kind, "sku": { "name": sku },
        "properties": { "networkAcls": { "defaultAction": "Deny", "virtualNetworkRules": rules } },
    })
}

fn reference(choices: &mut Choices, collection: &str) -> Value {
    json!({ "id": some(choices, collection) })
}

fn some_subnet(choices: &mut Choices) -> Value {
    let name = choices.pick(&["a", "a", "a", "b", "c"]);
    json!({ "id": some(choices, "virtualNetworks").child("subnets", name) })
}

fn some_pools(choices: &mut Choices) -> Value {
    let count = choices.below(3);
    let pools: Vec<Value> = (0..count)
        .map(|_| {
            let name = choices.pick(&["p", "q"]);
            json!({ "id": some(choices, "loadBalancers").child("backendAddressPools", name) })
        })
        .collect();
    json!(pools)
}

fn location(choices: &mut Choices) -> &'static str {
    if choices.once_in(30) { "westus" } else { "East US" }
}

fn plain(choices: &mut Choices, _id: &ResourceId) -> Value {
    json!({ "location": location(choices) })
}

fn with(properties: Value, choices: &mut Choices) -> Value {
    json!({ "location": location(choices), "properties": properties })
}

fn subnet(choices: &mut Choices, _id: &ResourceId) -> Value {
    let third = choices.below(4);
    let size = choices.pick(&[24, 24, 28, 29]);
    let mut properties = json!({ "addressPrefix": format!("10.1.{third}.0/{size}") });
    if choices.once_in(3) {
        properties["networkSecurityGroup"] = reference(choices, "networkSecurityGroups");
    }
    if choices.once_in(4) {
        properties["routeTable"] = reference(choices, "routeTables");
    }
    if choices.once_in(4) {
        properties["natGateway"] = reference(choices, "natGateways");
    }
    if choices.once_in(2) {
        properties["privateLinkServiceNetworkPolicies"] = json!("Disabled");
    }
    properties
}

fn virtual_network(choices: &mut Choices, id: &ResourceId) -> Value {
    let count = choices.below(4);
    let subnets: Vec<Value> = ["a", "b", "c"]
        .iter()
        .take(count as usize)
        .map(|name| json!({ "name": name, "properties": subnet(choices, id) }))
        .collect();
    let space = choices.pick(&["10.1.0.0/16", "10.1.0.0/16", "10.1.0.0/22", "nonsense"]);
    let mut properties = json!({ "addressSpace": { "addressPrefixes": [space] }, "subnets": subnets });
    if choices.once_in(8) {
        properties["ddosProtectionPlan"] = reference(choices, "ddosProtectionPlans");
    }
    with(properties, choices)
}

fn security_rule(choices: &mut Choices, _id: &ResourceId) -> Value {
    let mut rule = json!({
        "protocol": choices.pick(&["Tcp", "Udp", "*", "Carrier pigeon"]),
        "sourcePortRange": "*",
        "destinationPortRange": choices.pick(&["80", "443", "1000-2000", "70000"]),
        "sourceAddressPrefix": choices.pick(&["*", "Internet", "10.0.0.0/8"]),
        "destinationAddressPrefix": "*",
        "access": choices.pick(&["Allow", "Deny"]),
        "priority": 98 + choices.below(8),
        "direction": choices.pick(&["Inbound", "Outbound"]),
    });
    if choices.once_in(5) {
        if let Some(rule) = rule.as_object_mut() {
            rule.remove("destinationAddressPrefix");
        }
        rule["destinationApplicationSecurityGroups"] =
            json!([reference(choices, "applicationSecurityGroups")]);
    }
    rule
}

fn security_group(choices: &mut Choices, id: &ResourceId) -> Value {
    let count = choices.below(3);
    let rules: Vec<Value> = (0..count)
        .map(|n| json!({ "name": format!("r{n}"), "properties": security_rule(choices, id) }))
        .collect();
    with(json!({ "securityRules": rules }), choices)
}

fn route(choices: &mut Choices, _id: &ResourceId) -> Value {
    let third = choices.below(4);
    json!({ "addressPrefix": format!("10.244.{third}.0/24"), "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.1.0.4" })
}

fn route_table(choices: &mut Choices, id: &ResourceId) -> Value {
    let count = choices.below(3);
    let routes: Vec<Value> =
        (0..count).map(|n| json!({ "name": format!("r{n}"), "properties": route(choices, id) })).collect();
    with(json!({ "routes": routes }), choices)
}

fn public_ip(choices: &mut Choices, _id: &ResourceId) -> Value {
    let mut properties =
        json!({ "publicIPAllocationMethod": choices.pick(&["Static", "Static", "Static", "Dynamic"]) });
    if choices.once_in(4) {
        properties["publicIPPrefix"] = reference(choices, "publicIPPrefixes");
    }
    if choices.once_in(5) {
        properties["dnsSettings"] = json!({ "domainNameLabel": choices.pick(&["alpha", "beta"]) });
    }
    let mut body = with(properties, choices);
    body["sku"] = json!({ "name": "Standard" });
    body
}

fn public_ip_prefix(choices: &mut Choices, _id: &ResourceId) -> Value {
    let mut body = with(json!({ "prefixLength": choices.pick(&[28, 30, 31]) }), choices);
    body["sku"] = json!({ "name": "Standard" });
    body
}

fn nat_gateway(choices: &mut Choices, _id: &ResourceId) -> Value {
    let mut properties = json!({});
    if choices.once_in(2) {
        properties["publicIpAddresses"] = json!([reference(choices, "publicIPAddresses")]);
    }
    if choices.once_in(4) {
        properties["publicIpPrefixes"] = json!([reference(choices, "publicIPPrefixes")]);
    }
    let mut body = with(properties, choices);
    body["sku"] = json!({ "name": "Standard" });
    body
}

fn pool(choices: &mut Choices, _id: &ResourceId) -> Value {
    if choices.once_in(2) {
        return json!({});
    }
    let host = 4 + choices.below(6);
    let network = reference(choices, "virtualNetworks");
    json!({ "loadBalancerBackendAddresses": [{ "name": format!("a{host}"), "properties": {
        "ipAddress": format!("10.1.0.{host}"), "virtualNetwork": network,
    }}]})
}

fn nat_rule(choices: &mut Choices, id: &ResourceId) -> Value {
    json!({
        "frontendIPConfiguration": { "id": id.child("frontendIPConfigurations", choices.pick(&["f0", "f1"])) },
        "protocol": "Tcp", "frontendPort": 5000 + choices.below(3), "backendPort": 22,
    })
}

fn load_balancer(choices: &mut Choices, id: &ResourceId) -> Value {
    let inside = choices.once_in(2);
    let frontends: Vec<Value> = (0..1 + choices.below(2))
        .map(|n| {
            let mut properties = json!({});
            if inside {
                properties["subnet"] = some_subnet(choices);
                if choices.once_in(2) {
                    properties["privateIPAllocationMethod"] = json!("Static");
                    properties["privateIPAddress"] = json!(format!("10.1.0.{}", choices.below(12)));
                }
            } else {
                properties["publicIPAddress"] = reference(choices, "publicIPAddresses");
            }
            json!({ "name": format!("f{n}"), "properties": properties })
        })
        .collect();
    let rules: Vec<Value> = (0..choices.below(4))
        .map(|n| {
            json!({ "name": format!("rule{n}"), "properties": {
                "frontendIPConfiguration": { "id": id.child("frontendIPConfigurations", choices.pick(&["f0", "f0", "f1"])) },
                "backendAddressPool": { "id": id.child("backendAddressPools", choices.pick(&["p", "q"])) },
                "probe": { "id": id.child("probes", "h") },
                "protocol": choices.pick(&["Tcp", "Udp"]),
                "frontendPort": 80 + choices.below(4), "backendPort": 80 + choices.below(4),
            }})
        })
        .collect();
    let mut body = with(
        json!({
            "frontendIPConfigurations": frontends,
            "backendAddressPools": [{ "name": "p" }, { "name": "q" }],
            "probes": [{ "name": "h", "properties": { "protocol": "Tcp", "port": 10256 } }],
            "loadBalancingRules": rules,
        }),
        choices,
    );
    body["sku"] = json!({ "name": "Standard" });
    body
}

fn ip_configuration(choices: &mut Choices, primary: bool, name: &str) -> Value {
    let mut properties = json!({ "subnet": some_subnet(choices), "primary": primary });
    if choices.once_in(3) {
        properties["loadBalancerBackendAddressPools"] = some_pools(choices);
    }
    if choices.once_in(4) {
        properties["publicIPAddress"] = reference(choices, "publicIPAddresses");
    }
    if choices.once_in(5) {
        properties["privateIPAllocationMethod"] = json!("Static");
        properties["privateIPAddress"] = json!(format!("10.1.0.{}", choices.below(12)));
    }
    if choices.once_in(5) {
        properties["applicationSecurityGroups"] = json!([reference(choices, "applicationSecurityGroups")]);
    }
    json!({ "name": name, "properties": properties })
}

fn network_interface(choices: &mut Choices, _id: &ResourceId) -> Value {
    let mut configurations = vec![ip_configuration(choices, true, "one")];
    if choices.once_in(3) {
        configurations.push(ip_configuration(choices, choices.0.is_multiple_of(7), "two"));
    }
    let mut properties = json!({ "ipConfigurations": configurations });
    if choices.once_in(3) {
        properties["networkSecurityGroup"] = reference(choices, "networkSecurityGroups");
    }
    with(properties, choices)
}

fn private_link_service(choices: &mut Choices, _id: &ResourceId) -> Value {
    let frontend = some(choices, "loadBalancers").child("frontendIPConfigurations", "f0");
    let subnet = some_subnet(choices);
    with(
        json!({
            "loadBalancerFrontendIpConfigurations": [{ "id": frontend }],
            "ipConfigurations": [{ "name": "ip", "properties": { "primary": true, "subnet": subnet } }],
        }),
        choices,
    )
}

fn private_endpoint(choices: &mut Choices, _id: &ResourceId) -> Value {
    let (subnet, service) = (some_subnet(choices), some(choices, "privateLinkServices"));
    with(
        json!({
            "subnet": subnet,
            "privateLinkServiceConnections": [{ "name": "c", "properties": { "privateLinkServiceId": service } }],
        }),
        choices,
    )
}

fn availability_set(choices: &mut Choices, _id: &ResourceId) -> Value {
    let mut body = with(
        json!({ "platformFaultDomainCount": choices.pick(&[2, 2, 9]), "platformUpdateDomainCount": 5 }),
        choices,
    );
    body["sku"] = json!({ "name": "Aligned" });
    body
}

fn disk(choices: &mut Choices, _id: &ResourceId) -> Value {
    let creation = match choices.below(4) {
        0 => json!({ "createOption": "Copy", "sourceResourceId": some(choices, "snapshots") }),
        _ => json!({ "createOption": "Empty" }),
    };
    let mut body = with(json!({ "creationData": creation, "diskSizeGB": 4 << choices.below(4) }), choices);
    body["sku"] = json!({ "name": choices.pick(&["Standard_LRS", "Premium_LRS", "PremiumV2_LRS"]) });
    body
}

fn snapshot(choices: &mut Choices, _id: &ResourceId) -> Value {
    let source = some(choices, "disks");
    with(
        json!({ "creationData": { "createOption": "Copy", "sourceResourceId": source }, "incremental": true }),
        choices,
    )
}

fn machine(choices: &mut Choices, _id: &ResourceId) -> Value {
    let disks: Vec<Value> = (0..choices.below(3))
        .map(|n| {
            let lun = if choices.once_in(8) { 0 } else { n };
            json!({ "lun": lun, "createOption": "Attach", "managedDisk": { "id": some(choices, "disks") } })
        })
        .collect();
    let nic = reference(choices, "networkInterfaces");
    let mut properties = json!({
        "hardwareProfile": { "vmSize": choices.pick(&["Standard_D2s_v3", "Standard_D4s_v5"]) },
        "storageProfile": {
            "imageReference": { "publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest" },
            "dataDisks": disks,
        },
        "osProfile": { "computerName": "machine", "adminUsername": "x", "adminPassword": "hidden-Word1" },
        "networkProfile": { "networkInterfaces": [nic] },
    });
    if choices.once_in(4) {
        properties["availabilitySet"] = reference(choices, "availabilitySets");
    }
    if choices.once_in(6) {
        properties["proximityPlacementGroup"] = reference(choices, "proximityPlacementGroups");
    }
    with(properties, choices)
}

fn set(choices: &mut Choices, _id: &ResourceId) -> Value {
    let subnet = some_subnet(choices);
    let subnet = ResourceId::parse(subnet["id"].as_str().unwrap_or_default()).unwrap();
    let pools: Vec<ResourceId> = some_pools(choices)
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|pool| ResourceId::parse(pool["id"].as_str()?).ok())
        .collect();
    let mut body = scale_set(choices.below(5), &subnet, &pools);
    body["properties"]["upgradePolicy"] = json!({ "mode": choices.pick(&["Manual", "Automatic"]) });
    if choices.once_in(2) {
        body["properties"]["orchestrationMode"] = json!("Flexible");
        body["properties"]["virtualMachineProfile"]["storageProfile"] = json!({ "imageReference":
        { "publisher": "Canonical", "offer": "ubuntu-24_04-lts", "sku": "server", "version": "latest" } });
        body["properties"]["platformFaultDomainCount"] = json!(1);
        body["properties"]["virtualMachineProfile"]["networkProfile"]["networkApiVersion"] =
            json!("2020-11-01");
    }
    body
}
