//! The entries of a backend pool: addresses that the pool holds itself, and settings for members that joined by network
//! interface.

use std::collections::HashSet;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{balancer::Balancer, pool_members::members};
use crate::network::shared::codes::ADDRESS_FORMAT;
use azure_engine::document::{name, stored_reference, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Result};
use azure_engine::store::reference::Role;
use azure_engine::types::member_table::Holds::{Derived, Names, Object, Text, Uses, Word};
use azure_engine::types::member_table::Member;

const NOT_OF_BASIC: Code = Code::ours(400, "IPBasedBackendPoolNotSupportedForBasicSku");
const ADDRESS_TWICE: Code = Code::ours(400, "DuplicateBackendAddress");
const NO_NETWORK: Code = Code::ours(400, "VirtualNetworkRequired");
const SEVERAL_NETWORKS: Code = Code::ours(400, "BackendAddressesInDifferentVirtualNetworks");
const WRONG_NAME: Code = Code::ours(400, "InvalidBackendAddressName");

/// An entry of a pool.
pub(super) static ENTRY: [Member; 5] = [
    Member::new("etag", Derived),
    Member::new("id", Derived),
    Member::new("name", Text),
    Member::new("properties", Object(&MEMBERS)).or_empty(),
    Member::new("type", Derived),
];

// A pool does not hold its network: only the network's subnets are in use.
static MEMBERS: [Member; 6] = [
    Member::new("adminState", Word(&["None", "Up", "Down"], false)),
    Member::new("inboundNatRulesPortMapping", Derived),
    Member::new("ipAddress", Text),
    Member::new("networkInterfaceIPConfiguration", Names("")),
    Member::new("subnet", Uses("virtualNetworks/subnets")).role(Role::Model),
    Member::new("virtualNetwork", Uses("virtualNetworks")).role(Role::Model),
];

/// The name of the entry that the service shows for a member by network interface.
pub(crate) fn generated_name(member: &ResourceId) -> String {
    let group = member.group_name().unwrap_or_default();
    let nic = member.parent();
    let interface = nic.as_ref().map(|nic| nic.name().to_owned()).unwrap_or_default();
    let instance = nic
        .and_then(|nic| nic.parent())
        .filter(|owner| owner.namespace().is_some())
        .map(|owner| format!("{}_", owner.name()))
        .unwrap_or_default();
    format!("{group}_{instance}{interface}{}", member.name())
}

/// Checks the entries that a client sent. Of entries that the service generated for members by network interface, only
/// the member's admin state is kept.
pub(super) fn checked(
    balancer: &Balancer<'_>,
    pool: &ResourceId,
    network: Option<&ResourceId>,
    given: &[Value],
) -> Result<Vec<Value>> {
    let most = balancer.azure.limit("network.addressesPerBackendPool");
    Code::ours(400, "BackendAddressPoolAddressCountLimitReached").details_when(
        given.len() as u64 > most,
        format_args!("Backend address pool {pool} cannot have more than {most} addresses."),
    )?;
    let (mut names, mut seen, mut kept) = (HashSet::new(), HashSet::new(), Vec::new());
    let mut networks: HashSet<String> = network.map(ResourceId::to_lower).into_iter().collect();
    for entry in given {
        let name = name(entry);
        Code::ours(400, "BackendAddressAdminStateNotSupported").details_when(
            balancer.sku != "Standard"
                && text(entry, "properties/adminState").is_some_and(|state| state != "None"),
            format_args!("Admin states in pool {pool} need a load balancer with sku Standard."),
        )?;
        let Some(address) = text(entry, "properties/ipAddress") else {
            kept.extend(of_member(balancer.azure, pool, entry));
            continue;
        };
        let refuse_when = |wrong: bool, code: Code, why: &str| {
            code.details_when(
                wrong,
                format_args!("Backend address '{name}' ({address}) of pool {pool} {why}."),
            )
        };
        refuse_when(balancer.sku == "Basic", NOT_OF_BASIC, "needs a load balancer with sku Standard")?;
        let parsed = address.parse::<IpAddr>().ok();
        refuse_when(parsed.is_none(), ADDRESS_FORMAT, "is not an IP address")?;
        refuse_when(!seen.insert(parsed), ADDRESS_TWICE, "stands in the pool twice")?;
        let own = stored_reference(entry, "properties/virtualNetwork/id")
            .or_else(|| stored_reference(entry, "properties/subnet/id")?.parent());
        refuse_when(own.is_none() && network.is_none(), NO_NETWORK, "needs a virtualNetwork or subnet")?;
        networks.extend(own.map(|own| own.to_lower()));
        refuse_when(networks.len() > 1, SEVERAL_NETWORKS, "is in another virtual network")?;
        let unique = !name.is_empty() && names.insert(name.to_ascii_lowercase());
        refuse_when(!unique, WRONG_NAME, "needs a name that is unique in the pool")?;
        let mut entry = entry.clone();
        if let Some(properties) = entry.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("networkInterfaceIPConfiguration");
        }
        kept.push(entry);
    }
    Ok(kept)
}

/// The settings of an entry without an address for a member by network interface: matched by id, or by the name that
/// the service gave the entry, as read-only members are left out by some clients.
fn of_member(azure: &AzureState, pool: &ResourceId, entry: &Value) -> Option<Value> {
    let state = text(entry, "properties/adminState").filter(|state| *state != "None")?;
    let id = text(entry, "properties/networkInterfaceIPConfiguration/id");
    let member = members(azure, pool).find(|member| match id {
        Some(id) => member.as_str().eq_ignore_ascii_case(id),
        None => generated_name(member).eq_ignore_ascii_case(name(entry)),
    })?;
    Some(json!({
        "name": generated_name(member),
        "properties": { "networkInterfaceIPConfiguration": { "id": member }, "adminState": state },
    }))
}
