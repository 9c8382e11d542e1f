//! The entries of a backend pool: addresses that the pool holds itself, and what was said about members
//! that joined by network interface.

use std::collections::HashSet;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::{Value, json};

use super::{balancer::Balancer, pool_members::members};
use crate::network::shared::codes::ADDRESS_FORMAT;
use azure_engine::document::{
    Object, enumeration, into_object, known_members, reference, strip, take_properties, text,
};
use azure_engine::error::{Code, Refusal};
use azure_engine::provider::AzureState;

const NOT_OF_BASIC: Code = Code::ours(400, "IPBasedBackendPoolNotSupportedForBasicSku");
const ADDRESS_TWICE: Code = Code::ours(400, "DuplicateBackendAddress");
const NO_NETWORK: Code = Code::ours(400, "VirtualNetworkRequired");
const SEVERAL_NETWORKS: Code = Code::ours(400, "BackendAddressesInDifferentVirtualNetworks");
const WRONG_NAME: Code = Code::ours(400, "InvalidBackendAddressName");
const NO_ADMIN_STATE: Code = Code::ours(400, "BackendAddressAdminStateNotSupported");
const TOO_MANY_ADDRESSES: Code = Code::ours(400, "BackendAddressPoolAddressCountLimitReached");

const MEMBERS: [&str; 6] = [
    "adminState",
    "inboundNatRulesPortMapping",
    "ipAddress",
    "networkInterfaceIPConfiguration",
    "subnet",
    "virtualNetwork",
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

/// Checks the entries that a client sent. Those that the service generated for members by network
/// interface are kept only for what they say of the member: its admin state.
pub(crate) fn normalise(
    balancer: &Balancer<'_>,
    pool: &ResourceId,
    network: Option<&ResourceId>,
    given: Vec<Value>,
) -> Result<Vec<Value>, Refusal> {
    let most = balancer.azure.limit("network.addressesPerBackendPool");
    TOO_MANY_ADDRESSES.details_when(
        given.len() as u64 > most,
        format_args!("Backend address pool {pool} cannot have more than {most} addresses."),
    )?;
    let (mut names, mut seen, mut kept) = (HashSet::new(), HashSet::new(), Vec::new());
    let mut networks: HashSet<String> = network.map(ResourceId::to_lower).into_iter().collect();
    for entry in given {
        let mut entry = into_object(entry);
        entry.retain(|member, _| matches!(member.as_str(), "name" | "properties"));
        let mut properties = take_properties(&mut entry);
        known_members(&mut properties, &MEMBERS, "LoadBalancerBackendAddress")?;
        strip(&mut properties, &["inboundNatRulesPortMapping"]);
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        admin_state(balancer, pool, &mut properties)?;
        let address = properties.get("ipAddress").and_then(Value::as_str).map(str::to_owned);
        let shown = address.clone().unwrap_or_default();
        let bad = |code: Code, why: &str| {
            Err(code.details(format_args!("Backend address '{name}' ({shown}) of pool {pool} {why}.")))
        };
        let Some(address) = address else {
            kept.extend(of_member(balancer.azure, pool, &name, &properties));
            continue;
        };
        strip(&mut properties, &["networkInterfaceIPConfiguration"]);
        if balancer.sku == "Basic" {
            return bad(NOT_OF_BASIC, "needs a load balancer with sku Standard");
        }
        let Ok(parsed) = address.parse::<IpAddr>() else {
            return bad(ADDRESS_FORMAT, "is not an IP address");
        };
        if !seen.insert(parsed) {
            return bad(ADDRESS_TWICE, "stands in the pool twice");
        }
        let own = reference(&mut properties, "virtualNetwork")?;
        let subnet = reference(&mut properties, "subnet")?;
        let of_subnet = subnet.as_ref().and_then(ResourceId::parent);
        match own.or(of_subnet) {
            Some(own) => _ = networks.insert(own.to_lower()),
            None if network.is_none() => {
                return bad(NO_NETWORK, "needs a virtualNetwork or subnet");
            }
            None => {}
        }
        if networks.len() > 1 {
            return bad(SEVERAL_NETWORKS, "is in another virtual network");
        }
        if name.is_empty() || !names.insert(name.to_ascii_lowercase()) {
            return bad(WRONG_NAME, "needs a name that is unique in the pool");
        }
        entry.insert("properties".into(), Value::Object(properties));
        kept.push(Value::Object(entry));
    }
    Ok(kept)
}

fn admin_state(balancer: &Balancer<'_>, pool: &ResourceId, properties: &mut Object) -> Result<(), Refusal> {
    enumeration(properties, "adminState", &["None", "Up", "Down"], false)?;
    let set = properties.get("adminState").is_some_and(|state| state != "None");
    NO_ADMIN_STATE.details_when(
        set && balancer.sku != "Standard",
        format_args!("Admin states in pool {pool} need a load balancer with sku Standard."),
    )?;
    Ok(())
}

/// What an entry without an address says of a member by network interface: named by id, or by the name
/// that the service gave the entry, as read-only members are left out by some clients.
fn of_member(azure: &AzureState, pool: &ResourceId, name: &str, properties: &Object) -> Option<Value> {
    let state = properties.get("adminState").filter(|state| *state != "None")?;
    let id = properties.get("networkInterfaceIPConfiguration").and_then(|reference| text(reference, "id"));
    let member = members(azure, pool).find(|member| match id {
        Some(id) => member.as_str().eq_ignore_ascii_case(id),
        None => generated_name(member).eq_ignore_ascii_case(name),
    })?;
    Some(json!({
        "name": generated_name(member),
        "properties": { "networkInterfaceIPConfiguration": { "id": member }, "adminState": state },
    }))
}
