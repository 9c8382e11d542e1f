//! Public addresses of scale set instances: they come with the instance's IP configuration and are
//! shown below it alone.

use std::net::IpAddr;

use serde_json::{Value, json};

use crate::compute::machine::network_profile;
use crate::compute::scale_set::instance_address::ip_configuration_id;
use azure_engine::document::{at, name};
use azure_engine::provider::{AzureState, Record};

/// The public address in an IP configuration.
fn configuration(ip: &Value) -> Option<&Value> {
    at(ip, "properties/publicIPAddressConfiguration")
}

/// The address that an instance holds.
pub(crate) fn address(record: &Record) -> Option<IpAddr> {
    record.hidden.get("publicAddress")?.as_str()?.parse().ok()
}

/// Gives an instance a public address if one of its configurations has one, or takes it back. The first such
/// configuration gets it: Azure has one for each instance.
pub(crate) fn allocate(azure: &mut AzureState, id: &azure_types::ResourceId) {
    let Some(record) = azure.store.get(id) else { return };
    let profile = at(&record.body, "properties/networkProfileConfiguration");
    let wanted = profile.is_some_and(|profile| {
        network_profile::ip_configurations(profile).any(|(_, ip)| configuration(ip).is_some())
    });
    let address = match (wanted, address(record)) {
        (true, None) => crate::network::free_public_address(azure, id, false).ok(),
        (false, Some(_)) => None,
        _ => return,
    };
    if let Some(record) = azure.store.get_mut(id) {
        match address {
            Some(address) => record.hidden.insert("publicAddress".into(), address.to_string().into()),
            None => record.hidden.remove("publicAddress"),
        };
    }
}

/// The public address of one IP configuration, as a document.
pub(crate) fn document(azure: &AzureState, record: &Record, nic: &Value, ip: &Value) -> Option<Value> {
    let given = configuration(ip)?;
    let owner = ip_configuration_id(&record.id, nic, ip);
    let id = owner.child("publicIPAddresses", name(given));
    let idle = at(given, "properties/idleTimeoutInMinutes").cloned().unwrap_or_else(|| json!(15));
    Some(json!({
        "name": name(given),
        "id": id,
        "etag": format!("W/\"{}\"", azure.seed.guid("nic etag", record.id.as_str(), record.version)),
        "properties": {
            "provisioningState": azure.state_name(record),
            "resourceGuid": azure.seed.guid("public ip", id.as_str(), record.incarnation),
            "ipAddress": address(record).map(|address| address.to_string()),
            "publicIPAddressVersion": "IPv4",
            "publicIPAllocationMethod": "Dynamic",
            "idleTimeoutInMinutes": idle,
            "ipTags": [],
            "ipConfiguration": { "id": owner },
        },
    }))
}

/// All public addresses of an instance.
pub(crate) fn all(azure: &AzureState, record: &Record) -> Vec<Value> {
    at(&record.body, "properties/networkProfileConfiguration")
        .into_iter()
        .flat_map(network_profile::ip_configurations)
        .filter_map(|(nic, ip)| document(azure, record, nic, ip))
        .collect()
}
