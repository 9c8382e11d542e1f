//! What is in force at a network interface: the routes of its subnet, and the security rules of its
//! subnet and of itself.

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::network::virtual_network::peering;
use azure_engine::document::{at, items, name, stored_reference, text};
use azure_engine::provider::{AzureState, Record};

/// Private ranges that Azure drops where no network has them (RFC 1918, RFC 6598).
const DROPPED: [&str; 4] = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10"];

/// The subnet that an interface is in, by its primary configuration.
fn subnet_of(interface: &Record) -> Option<ResourceId> {
    let all = items(&interface.body, "properties/ipConfigurations");
    let primary = all.iter().find(|one| at(one, "properties/primary") == Some(&Value::Bool(true)));
    stored_reference(primary.or(all.first())?, "properties/subnet/id")
}

/// Every route of the interface's subnet, with those that a user's route overrides as `Invalid`.
pub(crate) fn routes(azure: &AzureState, interface: &Record) -> Value {
    let found = subnet_of(interface).and_then(|id| Some((azure.store.holder(&id)?, id)));
    let Some((network, subnet)) = found else { return json!({ "value": [] }) };
    let table = azure
        .find_child(network, &subnet)
        .and_then(|(_, subnet)| stored_reference(subnet, "properties/routeTable/id"))
        .and_then(|table| azure.store.get(&table));
    let written: &[Value] = table.map_or(&[], |table| items(&table.body, "properties/routes"));
    let own_prefixes: Vec<&str> = items(&network.body, "properties/addressSpace/addressPrefixes")
        .iter()
        .filter_map(Value::as_str)
        .collect();
    let closed = table
        .and_then(|table| at(&table.body, "properties/disableBgpRoutePropagation"))
        .is_some_and(|value| value == &Value::Bool(true));
    let overridden =
        |prefix: &str| written.iter().any(|route| text(route, "properties/addressPrefix") == Some(prefix));
    let default = |prefix: &str, hop: &str| {
        json!({
            "source": "Default",
            "state": if overridden(prefix) { "Invalid" } else { "Active" },
            "addressPrefix": [prefix],
            "nextHopType": hop,
            "nextHopIpAddress": [],
            "disableBgpRoutePropagation": closed,
        })
    };
    let mut all: Vec<Value> = own_prefixes.iter().map(|prefix| default(prefix, "VnetLocal")).collect();
    for prefix in peering::connected_prefixes(azure, network) {
        all.push(default(&prefix, "VNetPeering"));
    }
    all.push(default("0.0.0.0/0", "Internet"));
    let free = DROPPED.into_iter().filter(|prefix| !own_prefixes.contains(prefix));
    all.extend(free.map(|prefix| default(prefix, "None")));
    all.extend(written.iter().map(|route| {
        let hop = text(route, "properties/nextHopIpAddress");
        json!({
            "name": name(route),
            "source": "User",
            "state": "Active",
            "addressPrefix": [text(route, "properties/addressPrefix")],
            "nextHopType": text(route, "properties/nextHopType"),
            "nextHopIpAddress": hop.into_iter().collect::<Vec<_>>(),
            "disableBgpRoutePropagation": closed,
        })
    }));
    json!({ "value": all })
}

/// The security groups that judge the interface's traffic, the subnet's first.
pub(crate) fn security_groups(azure: &AzureState, interface: &Record) -> Value {
    let subnet = subnet_of(interface);
    let of_subnet = subnet.as_ref().and_then(|id| {
        let (_, subnet) = azure.find_child(azure.store.holder(id)?, id)?;
        let group = stored_reference(subnet, "properties/networkSecurityGroup/id")?;
        Some((group, json!({ "subnet": { "id": id } })))
    });
    let own = stored_reference(&interface.body, "properties/networkSecurityGroup/id")
        .map(|group| (group, json!({ "networkInterface": { "id": interface.id } })));
    let all: Vec<Value> = of_subnet
        .into_iter()
        .chain(own)
        .filter_map(|(group, association)| {
            let record = azure.store.get(&group)?;
            let rules: Vec<Value> = ["securityRules", "defaultSecurityRules"]
                .into_iter()
                .flat_map(|collection| {
                    let rules = items(&record.body, &format!("properties/{collection}")).iter();
                    rules.map(move |rule| effective_rule(collection, rule))
                })
                .collect();
            Some(json!({
                "networkSecurityGroup": { "id": record.id },
                "association": association,
                "effectiveSecurityRules": rules,
            }))
        })
        .collect();
    json!({ "value": all })
}

fn effective_rule(collection: &str, rule: &Value) -> Value {
    let values = |single: &str, plural: &str| -> Vec<String> {
        let one = text(rule, &format!("properties/{single}")).into_iter();
        let many = items(rule, &format!("properties/{plural}")).iter().filter_map(Value::as_str);
        one.chain(many).map(str::to_owned).collect()
    };
    let ports = |side: &str| -> Vec<String> {
        let given = values(&format!("{side}PortRange"), &format!("{side}PortRanges"));
        let range = |port: String| match port.as_str() {
            "*" => "0-65535".to_owned(),
            _ if port.contains('-') => port,
            _ => format!("{port}-{port}"),
        };
        given.into_iter().map(range).collect()
    };
    let addresses = |side: &str| -> Vec<String> {
        let given = values(&format!("{side}AddressPrefix"), &format!("{side}AddressPrefixes"));
        given.into_iter().map(|prefix| if prefix == "*" { "0.0.0.0/0".into() } else { prefix }).collect()
    };
    let property = |member: &str| text(rule, &format!("properties/{member}")).unwrap_or_default();
    let mut shown = json!({
        "name": format!("{collection}/{}", name(rule)),
        "protocol": match property("protocol") { "*" => "All", other => other },
        "access": property("access"),
        "direction": property("direction"),
        "priority": at(rule, "properties/priority"),
    });
    for side in ["source", "destination"] {
        let (ports, addresses) = (ports(side), addresses(side));
        if let Some(shown) = shown.as_object_mut() {
            if let Some(first) = ports.first() {
                shown.insert(format!("{side}PortRange"), first.as_str().into());
            }
            if let Some(first) = addresses.first() {
                shown.insert(format!("{side}AddressPrefix"), first.as_str().into());
            }
            shown.insert(format!("{side}PortRanges"), ports.into());
            shown.insert(format!("{side}AddressPrefixes"), addresses.into());
        }
    }
    shown
}
