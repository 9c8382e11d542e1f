//! The network interfaces that the service creates for private endpoints and private link services: they hold the
//! addresses in the subnet, and only the service writes them.

use std::collections::BTreeSet;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::network::interface::NetworkInterfaces;
use crate::network::shared::addresses::{address_taken, free_address, static_address};
use azure_engine::document::{Object, items, name, stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::Result;

/// One IP configuration that the owner wants on its interface.
pub(crate) struct ChosenConfiguration {
    pub(crate) name: String,
    pub(crate) subnet: ResourceId,
    /// The address, where the owner chose it.
    pub(crate) address: Option<IpAddr>,
    pub(crate) primary: bool,
    /// What it connects to behind the endpoint: group and member, and their names.
    pub(crate) group: Option<(String, String, Vec<String>)>,
}

/// The id of the interface of an endpoint or service: named by a GUID, unless its owner chose a name.
pub(crate) fn id(azure: &AzureState, owner: &Record, chosen: Option<&str>) -> ResourceId {
    let generated = || {
        let guid = azure.seed.guid("nic", owner.id.as_str(), owner.incarnation);
        format!("{}.nic.{guid}", owner.id.name())
    };
    let name = chosen.filter(|name| !name.is_empty()).map_or_else(generated, str::to_owned);
    let group = owner.id.group_name().unwrap_or_default();
    ResourceId::group(owner.id.subscription_id(), group).resource(
        "Microsoft.Network",
        "networkInterfaces",
        &name,
    )
}

/// The interface that has a chosen name already.
pub(crate) fn existing(azure: &AzureState, owner: &ResourceId, name: &str) -> Option<ResourceId> {
    let group = ResourceId::group(owner.subscription_id(), owner.group_name().unwrap_or_default());
    let id = group.resource("Microsoft.Network", "networkInterfaces", name);
    azure.store.get(&id).filter(|_| !name.is_empty()).map(|record| record.id.clone())
}

/// The address that an interface's configuration holds in a subnet.
pub(crate) fn address_of(
    azure: &AzureState,
    interface: Option<&ResourceId>,
    configuration: &str,
    subnet: &ResourceId,
) -> Option<IpAddr> {
    items(&azure.store.get(interface?)?.body, "properties/ipConfigurations")
        .iter()
        .find(|item| name(item).eq_ignore_ascii_case(configuration))
        .filter(|item| stored_reference(item, "properties/subnet/id").as_ref() == Some(subnet))
        .and_then(|item| text(item, "properties/privateIPAddress")?.parse().ok())
}

/// All addresses of an interface.
pub(crate) fn addresses(azure: &AzureState, interface: &ResourceId) -> Vec<String> {
    let record = azure.store.get(interface);
    record
        .map_or(&[] as &[Value], |record| items(&record.body, "properties/ipConfigurations"))
        .iter()
        .filter_map(|item| text(item, "properties/privateIPAddress").map(str::to_owned))
        .collect()
}

/// Checks an address that the owner chose: it must be free, or the interface's already, and not be used by another
/// configuration of the write; `promised` collects those.
pub(crate) fn check_static(
    azure: &AzureState,
    owner: &ResourceId,
    interface: Option<&ResourceId>,
    subnet: &ResourceId,
    properties: &Object,
    promised: &mut BTreeSet<IpAddr>,
) -> Result<()> {
    let given = properties.get("privateIPAddress").and_then(Value::as_str);
    let address = static_address(azure, owner, subnet, given, |holder| {
        interface.is_some_and(|interface| holder.is_within(interface))
    })?;
    if promised.insert(address) { Ok(()) } else { Err(address_taken(owner, address, owner)) }
}

/// Creates the interface, or brings it up to date; addresses that it has stay.
pub(crate) fn keep(
    azure: &mut AzureState,
    owner: &ResourceId,
    member: &str,
    interface: &ResourceId,
    wanted: Vec<ChosenConfiguration>,
) {
    let mut promised: BTreeSet<IpAddr> = wanted.iter().filter_map(|wanted| wanted.address).collect();
    let mut configurations = Vec::with_capacity(wanted.len());
    for wanted in wanted {
        let kept = address_of(azure, Some(interface), &wanted.name, &wanted.subnet);
        let address = wanted.address.or(kept.filter(|kept| !promised.contains(kept)));
        // Free addresses were checked with the write.
        let Some(address) = address.or_else(|| free_address(azure, &wanted.subnet, false, &promised).ok())
        else {
            continue;
        };
        promised.insert(address);
        let mut properties = json!({
            "privateIPAddress": address.to_string(),
            "privateIPAllocationMethod": if wanted.address.is_some() { "Static" } else { "Dynamic" },
            "subnet": { "id": wanted.subnet },
            "primary": wanted.primary,
            "privateIPAddressVersion": "IPv4",
        });
        if let Some((group, required, fqdns)) = wanted.group {
            properties["privateLinkConnectionProperties"] =
                json!({ "groupId": group, "requiredMemberName": required, "fqdns": fqdns });
        }
        configurations.push(json!({ "name": wanted.name, "properties": properties }));
    }
    let now = azure.now();
    let location = azure.location(owner);
    let old = azure.store.get(interface);
    let body = json!({
        "location": location,
        "properties": {
            "ipConfigurations": configurations,
            "dnsSettings": { "dnsServers": [] },
            "disableTcpStateTracking": false,
            "enableAcceleratedNetworking": false,
            "enableIPForwarding": false,
            "nicType": "Standard",
            "auxiliaryMode": "None",
            "auxiliarySku": "None",
            member: { "id": owner },
        },
    });
    if old.is_some_and(|old| old.body == body) {
        return;
    }
    let mut record = Record::new(&NetworkInterfaces, interface, body, now);
    if let Some(old) = old {
        (record.hidden, record.version, record.created) = (old.hidden.clone(), old.version + 1, old.created);
    }
    azure.insert(record);
}
