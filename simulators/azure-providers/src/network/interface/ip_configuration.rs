//! IP configurations of network interfaces: an address in a subnet, and what it takes part in.

use std::collections::BTreeSet;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::Value;

use crate::network::load_balancer::frontend::public_ip_in_use;
use crate::network::shared::{
    addresses::{address_taken, free_address, static_address, subnet_prefixes},
    checks::bounded,
};
use azure_engine::document::{
    Object, enumeration, fill, items, known_members, reference, references, stored_reference, strip,
    take_properties, text,
};
use azure_engine::error::{Code, Refusal};
use azure_engine::provider::AzureState;
use azure_engine::reference::{Reference, Role};

const NO_SUBNET: Code = Code::ours(400, "SubnetIsRequired");

const MEMBERS: [&str; 14] = [
    "applicationGatewayBackendAddressPools",
    "applicationSecurityGroups",
    "loadBalancerBackendAddressPools",
    "loadBalancerInboundNatRules",
    "primary",
    "privateIPAddress",
    "privateIPAddressPrefixLength",
    "privateIPAddressVersion",
    "privateIPAllocationMethod",
    "privateLinkConnectionProperties",
    "provisioningState",
    "publicIPAddress",
    "subnet",
    "virtualNetworkTaps",
];

/// The length of the blocks of addresses that there are ("Assign private IP address prefixes to virtual machines").
const BLOCK: i64 = 28;

/// Lists of references that an IP configuration may hold; an empty one is left out.
const LISTS: [&str; 3] =
    ["applicationSecurityGroups", "loadBalancerBackendAddressPools", "loadBalancerInboundNatRules"];

/// A configuration that asks for a block of addresses takes it from the subnet of the first, if it names none
/// ("Network Interfaces - Create Or Update", the example with an address prefix).
pub(crate) fn take_subnet(child: &mut Object, first: Option<&Value>) {
    let properties = child.get_mut("properties").and_then(Value::as_object_mut);
    if let (Some(properties), Some(first)) = (properties, first)
        && properties.contains_key("privateIPAddressPrefixLength")
    {
        fill(properties, "subnet", first.clone());
    }
}

/// Checks one IP configuration of an interface and gives it its address. `promised` collects the
/// addresses of this write.
pub(crate) fn normalise(
    azure: &AzureState,
    interface: &ResourceId,
    old: Option<&Value>,
    mut child: Object,
    promised: &mut BTreeSet<IpAddr>,
) -> Result<Value, Refusal> {
    let id =
        interface.child("ipConfigurations", child.get("name").and_then(Value::as_str).unwrap_or_default());
    let mut properties = take_properties(&mut child);
    known_members(&mut properties, &MEMBERS, "NetworkInterfaceIPConfiguration")?;
    bounded(&mut properties, "privateIPAddressPrefixLength", BLOCK..=BLOCK, None, &id)?;
    strip(&mut properties, &["provisioningState", "privateLinkConnectionProperties", "virtualNetworkTaps"]);
    enumeration(&mut properties, "privateIPAllocationMethod", &["Dynamic", "Static"], true)?;
    enumeration(&mut properties, "privateIPAddressVersion", &["IPv4", "IPv6"], true)?;
    let Some(subnet) = reference(&mut properties, "subnet")? else {
        return Err(NO_SUBNET.details(format_args!("IP configuration {id} must reference a subnet.")));
    };
    for member in LISTS {
        if references(&mut properties, member)?.is_empty() {
            properties.remove(member);
        }
    }
    if let Some(public) = reference(&mut properties, "publicIPAddress")? {
        let user = azure.store.referrers(&public).find(|user| !user.from.is_within(interface));
        if let Some(user) = user {
            return Err(public_ip_in_use(&id, &public, &user.from));
        }
    }
    if subnet_prefixes(azure, &subnet).is_empty() {
        return Err(Refusal::invalid_reference(&subnet, &id));
    }
    if old.and_then(|old| stored_reference(old, "properties/subnet/id")).as_ref() != Some(&subnet) {
        crate::network::virtual_network::delegation::check_undelegated(azure, &subnet, &id)?;
    }
    let address = address(azure, interface, &id, &subnet, old, &properties, promised)?;
    if !promised.insert(address) {
        return Err(address_taken(&id, address, &id));
    }
    properties.insert("privateIPAddress".into(), address.to_string().into());
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}

/// The address of a configuration: the one it asks for, the one it has, or a free one.
fn address(
    azure: &AzureState,
    interface: &ResourceId,
    id: &ResourceId,
    subnet: &ResourceId,
    old: Option<&Value>,
    properties: &Object,
    promised: &BTreeSet<IpAddr>,
) -> Result<IpAddr, Refusal> {
    let given = properties.get("privateIPAddress").and_then(Value::as_str);
    if properties.get("privateIPAllocationMethod").and_then(Value::as_str) == Some("Static") {
        return static_address(azure, id, subnet, given, |owner| owner.is_within(interface));
    }
    let v6 = properties.get("privateIPAddressVersion").and_then(Value::as_str) == Some("IPv6");
    let held = old
        .filter(|old| stored_reference(old, "properties/subnet/id").as_ref() == Some(subnet))
        .and_then(|old| text(old, "properties/privateIPAddress")?.parse::<IpAddr>().ok())
        .filter(|held| held.is_ipv6() == v6 && !promised.contains(held));
    match held {
        Some(held) => Ok(held),
        None => free_address(azure, subnet, v6, promised),
    }
}

/// What a stored configuration points at.
pub(crate) fn references_of(interface: &ResourceId, child: &Value) -> Vec<Reference> {
    let id = interface.child("ipConfigurations", azure_engine::document::name(child));
    let subnet = stored_reference(child, "properties/subnet/id").map(|to| Reference {
        from: id.clone(),
        to,
        role: Role::Uses,
        address: text(child, "properties/privateIPAddress").and_then(|text| text.parse().ok()),
    });
    let public = stored_reference(child, "properties/publicIPAddress/id");
    let listed = LISTS
        .iter()
        .flat_map(|member| items(child, &format!("properties/{member}")))
        .filter_map(|item| stored_reference(item, "id"));
    subnet.into_iter().chain(public.into_iter().chain(listed).map(|to| Reference::uses(&id, to))).collect()
}
