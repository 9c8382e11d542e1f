//! The NICs of scale set instances: read-only views, made from the instance's network configuration.

use serde_json::{Value, json};

use crate::compute::scale_set::instance_address::{address, ip_configuration_id};
use crate::compute::scale_set::instance_public_ip;
use crate::compute::tables::codes::NOT_FOUND;
use azure_engine::document::{at, items, name};
use azure_engine::error::Refusal;
use azure_engine::provider::{AzureState, Record};

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
    let first = items(nic, "properties/ipConfigurations").first() == Some(ip);
    let mut properties = json!({
        "provisioningState": azure.state_name(record),
        "privateIPAllocationMethod": "Dynamic",
        "primary": given("primary").unwrap_or(Value::Bool(first)),
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

/// Reads `networkInterfaces[/{nic}[/ipConfigurations[/{cfg}[/publicIPAddresses]]]]`.
pub(crate) fn view(azure: &AzureState, record: &Record, below: &[&str]) -> Option<Result<Value, Refusal>> {
    let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
    let (first, rest) = below.split_first()?;
    if !is(first, "networkInterfaces") {
        return None;
    }
    let list = |value: Vec<Value>| Some(Ok(json!({ "value": value })));
    let Some((wanted, rest)) = rest.split_first() else { return list(all(azure, record)) };
    let missing =
        |what: &str| Some(Err(NOT_FOUND.details(format_args!("Resource {}/{what} not found.", record.id))));
    let Some(nic) = configurations(record).iter().find(|nic| is(name(nic), wanted)) else {
        return missing(&format!("networkInterfaces/{wanted}"));
    };
    let Some((collection, rest)) = rest.split_first() else { return Some(Ok(interface(azure, record, nic))) };
    if !is(collection, "ipConfigurations") {
        return None;
    }
    let ips = items(nic, "properties/ipConfigurations");
    let Some((wanted, rest)) = rest.split_first() else {
        return list(ips.iter().map(|ip| ip_configuration(azure, record, nic, ip)).collect());
    };
    let Some(ip) = ips.iter().find(|ip| is(name(ip), wanted)) else {
        return missing(&format!("networkInterfaces/{}/ipConfigurations/{wanted}", name(nic)));
    };
    match rest {
        [] => Some(Ok(ip_configuration(azure, record, nic, ip))),
        [word] if is(word, "publicIPAddresses") => {
            list(instance_public_ip::document(azure, record, nic, ip).into_iter().collect())
        }
        [word, wanted] if is(word, "publicIPAddresses") => {
            match instance_public_ip::document(azure, record, nic, ip).filter(|one| is(name(one), wanted)) {
                Some(found) => Some(Ok(found)),
                None => missing(&format!("publicIPAddresses/{wanted}")),
            }
        }
        _ => None,
    }
}
