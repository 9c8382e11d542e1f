//! IP configurations of network interfaces: an address in a subnet, and memberships of pools, rules and groups.

use std::collections::BTreeSet;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::Value;

use crate::network::load_balancer::frontend::public_ip_in_use;
use crate::network::shared::{
    addresses::{address_taken, free_address, static_address, subnet_prefixes},
    children::old_child,
};
use azure_engine::document::{Object, fill, stored_reference, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::types::member_table::Holds::{Anything, Derived, Flag, Number, Text, Uses, UsesAll, Word};
use azure_engine::types::member_table::Member;

pub(super) static MEMBERS: [Member; 14] = [
    Member::new("applicationGatewayBackendAddressPools", Anything),
    Member::new("applicationSecurityGroups", UsesAll("applicationSecurityGroups")).none_if_empty(),
    Member::new("loadBalancerBackendAddressPools", UsesAll("loadBalancers/backendAddressPools"))
        .none_if_empty(),
    Member::new("loadBalancerInboundNatRules", UsesAll("loadBalancers/inboundNatRules")).none_if_empty(),
    Member::new("primary", Flag),
    Member::new("privateIPAddress", Text),
    Member::new("privateIPAddressPrefixLength", Number(BLOCK, BLOCK)),
    Member::new("privateIPAddressVersion", Word(&["IPv4", "IPv6"], true)),
    Member::new("privateIPAllocationMethod", Word(&["Dynamic", "Static"], true)),
    Member::new("privateLinkConnectionProperties", Derived),
    Member::new("provisioningState", Derived),
    Member::new("publicIPAddress", Uses("publicIPAddresses")),
    Member::new("subnet", Uses("virtualNetworks/subnets")).addressed(),
    Member::new("virtualNetworkTaps", Derived),
];

/// The length of the blocks of addresses that can be assigned ("Assign private IP address prefixes to virtual
/// machines").
const BLOCK: i64 = 28;

/// Checks one IP configuration of an interface and gives it its address. `first` is the subnet of the first
/// configuration: a configuration with a block of addresses and no subnet takes it ("Network Interfaces - Create Or
/// Update", the example with an address prefix); `promised` collects the addresses of this write.
pub(super) fn check(
    azure: &AzureState,
    interface: &ResourceId,
    old: Option<&Record>,
    (id, properties): (&ResourceId, &mut Object),
    first: Option<&Value>,
    promised: &mut BTreeSet<IpAddr>,
) -> Result<()> {
    if let Some(first) = first.filter(|_| properties.contains_key("privateIPAddressPrefixLength")) {
        fill(properties, "subnet", first.clone());
    }
    let pointer = |member: &str| properties.get(member).and_then(|pointer| stored_reference(pointer, "id"));
    let subnet = pointer("subnet").ok_or_else(|| {
        Code::ours(400, "SubnetIsRequired")
            .details(format_args!("IP configuration {id} must reference a subnet."))
    })?;
    if let Some(public) = pointer("publicIPAddress") {
        let user = azure.store.referrers(&public).find(|user| !user.from.is_within(interface));
        if let Some(user) = user {
            return Err(public_ip_in_use(id, &public, &user.from));
        }
    }
    if subnet_prefixes(azure, &subnet).is_empty() {
        return Err(Refusal::invalid_reference(&subnet, id));
    }
    let old = old_child(old, id);
    if old.and_then(|old| stored_reference(old, "properties/subnet/id")).as_ref() != Some(&subnet) {
        crate::network::virtual_network::delegation::check_undelegated(azure, &subnet, id)?;
    }
    let address = address(azure, interface, id, &subnet, old, properties, promised)?;
    if !promised.insert(address) {
        return Err(address_taken(id, address, id));
    }
    properties.insert("privateIPAddress".into(), address.to_string().into());
    Ok(())
}

/// The address of a configuration: the requested one, the one it has, or a free one.
fn address(
    azure: &AzureState,
    interface: &ResourceId,
    id: &ResourceId,
    subnet: &ResourceId,
    old: Option<&Value>,
    properties: &Object,
    promised: &BTreeSet<IpAddr>,
) -> Result<IpAddr> {
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
