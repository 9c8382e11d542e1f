//! `network` of the instance document.

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::{Value, json};

use super::compute::Machine;
use azure_engine::document::reading::Documents;
use azure_engine::document::{items, stored_reference, text};

/// The network interfaces of a machine, the primary one first.
pub(super) fn interfaces(documents: &dyn Documents, machine: &Machine) -> Vec<Value> {
    let named = items(&machine.document, "properties/networkProfile/networkInterfaces");
    let mut found: Vec<Value> = named
        .iter()
        .filter_map(|nic| ResourceId::parse(text(nic, "id")?).ok())
        .filter_map(|id| documents.document(&id))
        .collect();
    let primary = |nic: &Value| nic.pointer("/properties/primary") == Some(&Value::Bool(true));
    found.sort_by_key(|nic| !primary(nic));
    found
}

/// The configurations of an interface, the primary one first.
pub(super) fn configurations(interface: &Value) -> Vec<&Value> {
    let mut found: Vec<&Value> = items(interface, "properties/ipConfigurations").iter().collect();
    found.sort_by_key(|ip| ip.pointer("/properties/primary") != Some(&Value::Bool(true)));
    found
}

pub(super) fn is_v6(configuration: &Value) -> bool {
    text(configuration, "properties/privateIPAddressVersion").is_some_and(|v| v.eq_ignore_ascii_case("IPv6"))
}

/// The whole `network`.
pub(super) fn document(documents: &dyn Documents, machine: &Machine) -> Value {
    let shown = interfaces(documents, machine);
    let shown: Vec<Value> = shown.iter().map(|interface| shown_interface(documents, interface)).collect();
    json!({ "interface": shown })
}

fn shown_interface(documents: &dyn Documents, interface: &Value) -> Value {
    let (mut v4, mut subnets, mut v6) = (Vec::new(), Vec::new(), Vec::new());
    for ip in configurations(interface) {
        let private = text(ip, "properties/privateIPAddress").unwrap_or_default();
        let public = public_address(documents, ip);
        let entry = json!({ "privateIpAddress": private, "publicIpAddress": public });
        if is_v6(ip) {
            v6.push(entry);
            continue;
        }
        v4.push(entry);
        for prefix in prefixes(documents, ip) {
            let subnet =
                json!({ "address": prefix.network().to_string(), "prefix": prefix.prefix_len().to_string() });
            if !subnets.contains(&subnet) {
                subnets.push(subnet);
            }
        }
    }
    let mac = text(interface, "properties/macAddress").unwrap_or_default().replace('-', "");
    json!({
        "ipv4": { "ipAddress": v4, "subnet": subnets },
        "ipv6": { "ipAddress": v6 },
        "macAddress": mac,
    })
}

/// The public address that a configuration holds itself; that of a balancer stands elsewhere.
fn public_address(documents: &dyn Documents, configuration: &Value) -> String {
    let id = stored_reference(configuration, "properties/publicIPAddress/id");
    let shown = id.and_then(|id| documents.document(&id));
    shown.and_then(|shown| text(&shown, "properties/ipAddress").map(str::to_owned)).unwrap_or_default()
}

fn prefixes(documents: &dyn Documents, configuration: &Value) -> Vec<IpNet> {
    let subnet = stored_reference(configuration, "properties/subnet/id");
    let Some(subnet) = subnet.and_then(|id| documents.document(&id)) else { return Vec::new() };
    let several = items(&subnet, "properties/addressPrefixes").iter().filter_map(Value::as_str);
    let one = text(&subnet, "properties/addressPrefix");
    let parsed = several.chain(one).filter_map(|prefix| prefix.parse().ok());
    let mut found: Vec<IpNet> = parsed.filter(|prefix| matches!(prefix, IpNet::V4(_))).collect();
    found.dedup();
    found
}
