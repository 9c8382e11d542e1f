//! The NICs of scale set instances: read-only views, made from the instance's network configuration.

use serde_json::{Value, json};

use crate::compute::scale_set::instance_address::{address, ip_configuration_id};
use crate::compute::scale_set::instance_public_ip;
use crate::compute::tables::codes::NOT_FOUND;
use azure_engine::document::{at, items, name};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::Handled;

/// All NICs of an instance.
pub(crate) fn all(azure: &AzureState, record: &Record) -> Vec<Value> {
    configurations(record).iter().map(|nic| interface(azure, record, nic)).collect()
}

fn configurations(record: &Record) -> &[Value] {
    items(&record.body, "properties/networkProfileConfiguration/networkInterfaceConfigurations")
}

fn etag(azure: &AzureState, record: &Record) -> Value {
    format!("W/\"{}\"", azure.seed.guid("nic etag", record.id.as_str(), record.version)).into()
}

fn interface(azure: &AzureState, record: &Record, nic: &Value) -> Value {
    let id = record.id.child("networkInterfaces", name(nic));
    let ips: Vec<Value> = items(nic, "properties/ipConfigurations")
        .iter()
        .map(|ip| ip_configuration(azure, record, nic, ip))
        .collect();
    let given = |member: &str| at(nic, &format!("properties/{member}")).cloned();
    let mut properties = json!({
        "provisioningState": azure.state_name(record),
        "resourceGuid": azure.seed.guid("nic", id.as_str(), 0),
        "ipConfigurations": ips,
        "dnsSettings": { "dnsServers": [], "appliedDnsServers": [] },
        "macAddress": azure.seed.mac_address(id.as_str()),
        "enableAcceleratedNetworking": given("enableAcceleratedNetworking"),
        "enableIPForwarding": given("enableIPForwarding"),
        "primary": given("primary").unwrap_or(Value::Bool(false)),
        "virtualMachine": { "id": record.id },
    });
    if let Some(group) = given("networkSecurityGroup") {
        properties["networkSecurityGroup"] = group;
    }
    json!({ "name": name(nic), "id": id, "etag": etag(azure, record), "properties": properties })
}

fn ip_configuration(azure: &AzureState, record: &Record, nic: &Value, ip: &Value) -> Value {
    let given = |member: &str| at(ip, &format!("properties/{member}")).cloned();
    // One is primary: the first, where none is marked.
    let all = items(nic, "properties/ipConfigurations");
    let is_marked = |one: &Value| at(one, "properties/primary") == Some(&Value::Bool(true));
    let is_primary = is_marked(ip) || (all.first() == Some(ip) && !all.iter().any(is_marked));
    let mut properties = json!({
        "provisioningState": azure.state_name(record),
        "privateIPAllocationMethod": "Dynamic",
        "primary": is_primary,
        "privateIPAddressVersion": given("privateIPAddressVersion"),
    });
    if let Some(address) = address(record, nic, ip) {
        properties["privateIPAddress"] = address.into();
    }
    if let Some(public) = instance_public_ip::document(azure, record, nic, ip) {
        properties["publicIPAddress"] = json!({ "id": public["id"] });
    }
    for member in ["subnet", "loadBalancerBackendAddressPools"] {
        if let Some(value) = given(member) {
            properties[member] = value;
        }
    }
    json!({
        "name": name(ip),
        "id": ip_configuration_id(&record.id, nic, ip),
        "etag": etag(azure, record),
        "properties": properties,
    })
}

/// Reads `networkInterfaces[/{nic}[/ipConfigurations[/{cfg}[/publicIPAddresses[/{address}]]]]]`.
pub(crate) fn view(azure: &AzureState, record: &Record, below: &[&str]) -> Handled<Value> {
    const COLLECTIONS: [&str; 3] = ["networkInterfaces", "ipConfigurations", "publicIPAddresses"];
    let collections = below.iter().step_by(2).zip(COLLECTIONS);
    let known = collections.into_iter().all(|(given, known)| given.eq_ignore_ascii_case(known));
    if below.is_empty() || below.len() > 6 || !known {
        return None;
    }
    let wanted = |level: usize, one: &Value| {
        below.get(2 * level + 1).is_none_or(|wanted| name(one).eq_ignore_ascii_case(wanted))
    };
    let nics = configurations(record).iter().filter(|nic| wanted(0, nic));
    let ips = |nic| items(nic, "properties/ipConfigurations").iter().filter(|ip| wanted(1, ip));
    let pairs = nics.clone().flat_map(|nic| ips(nic).map(move |ip| (nic, ip)));
    let mut found: Vec<Value> = match below.len() {
        1 | 2 => nics.map(|nic| interface(azure, record, nic)).collect(),
        3 | 4 => pairs.map(|(nic, ip)| ip_configuration(azure, record, nic, ip)).collect(),
        _ => pairs
            .filter_map(|(nic, ip)| instance_public_ip::document(azure, record, nic, ip))
            .filter(|public| wanted(2, public))
            .collect(),
    };
    let missing = || NOT_FOUND.details(format_args!("Resource {}/{} not found.", record.id, below.join("/")));
    Some(match below.len() % 2 {
        0 => found.pop().ok_or_else(missing),
        _ => Ok(json!({ "value": found })),
    })
}
