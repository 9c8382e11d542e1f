//! Backend pools: NIC membership, which the NIC side owns, and IP addresses, which the pool owns
//! (`spec/arm-wire.md`, 9.2).

use std::collections::HashSet;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::engine::document::{
    Object, into_object, items, known_members, reference, stored_reference, strip, take_properties, text,
};
use crate::engine::error::Refusal;
use crate::engine::kind::{Reference, Role};
use crate::engine::world::{World, is_of};

const MEMBERS: [&str; 13] = [
    "backendIPConfigurations",
    "drainPeriodInSeconds",
    "inboundNatRules",
    "loadBalancerBackendAddresses",
    "loadBalancingRules",
    "location",
    "outboundRule",
    "outboundRules",
    "provisioningState",
    "resourceGuid",
    "syncMode",
    "tunnelInterfaces",
    "virtualNetwork",
];

/// Checks a pool. `old` keeps its addresses where the write does not mention them.
pub(super) fn normalise(
    world: &World,
    balancer: &ResourceId,
    old: Option<&Value>,
    mut child: Object,
) -> Result<Value, Refusal> {
    let mut properties = take_properties(&mut child);
    known_members(&mut properties, &MEMBERS, "BackendAddressPool")?;
    let id =
        balancer.child("backendAddressPools", child.get("name").and_then(Value::as_str).unwrap_or_default());
    strip(
        &mut properties,
        &[
            "backendIPConfigurations",
            "inboundNatRules",
            "loadBalancingRules",
            "outboundRule",
            "outboundRules",
            "provisioningState",
            "resourceGuid",
        ],
    );
    let network = reference(&mut properties, "virtualNetwork")?;
    let addresses = match properties.remove("loadBalancerBackendAddresses") {
        Some(Value::Array(given)) => addresses(&id, network.is_some(), given)?,
        Some(_) => {
            return Err(Refusal::bad_format("Member 'loadBalancerBackendAddresses' must be an array."));
        }
        None => {
            old.map_or_else(Vec::new, |old| items(old, "properties/loadBalancerBackendAddresses").to_vec())
        }
    };
    if !addresses.is_empty() && members(world, &id).next().is_some() {
        return Err(Refusal::network(
            400,
            "BackendAddressPoolMixedMembership",
            format!(
                "Backend address pool {id} has members by network interface and cannot hold IP addresses as well."
            ),
        ));
    }
    properties.insert("loadBalancerBackendAddresses".into(), addresses.into());
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}

/// Checks the addresses that a pool holds itself; entries that the service generated for members by
/// NIC (they carry no address of their own) are dropped.
fn addresses(pool: &ResourceId, pool_network: bool, given: Vec<Value>) -> Result<Vec<Value>, Refusal> {
    let (mut names, mut seen, mut kept) = (HashSet::new(), HashSet::new(), Vec::new());
    for entry in given {
        let mut entry = into_object(entry);
        entry.retain(|member, _| matches!(member.as_str(), "name" | "properties"));
        let mut properties = take_properties(&mut entry);
        strip(&mut properties, &["networkInterfaceIPConfiguration", "inboundNatRulesPortMapping"]);
        let Some(address) = properties.get("ipAddress").and_then(Value::as_str).map(str::to_owned) else {
            continue;
        };
        let name = entry.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let bad = |code: &str, why: &str| {
            Err(Refusal::network(
                400,
                code,
                format!("Backend address '{name}' ({address}) of pool {pool} {why}."),
            ))
        };
        let Ok(parsed) = address.parse::<IpAddr>() else {
            return bad("InvalidIPAddressFormat", "is not an IP address");
        };
        if name.is_empty() || !names.insert(name.to_ascii_lowercase()) {
            return bad("InvalidBackendAddressName", "needs a name that is unique in the pool");
        }
        if !seen.insert(parsed) {
            return bad("DuplicateBackendAddress", "stands in the pool twice");
        }
        let network = reference(&mut properties, "virtualNetwork")?;
        let subnet = reference(&mut properties, "subnet")?;
        if network.is_none() && subnet.is_none() && !pool_network {
            return bad("VirtualNetworkRequired", "needs a virtualNetwork or subnet");
        }
        entry.insert("properties".into(), Value::Object(properties));
        kept.push(Value::Object(entry));
    }
    Ok(kept)
}

/// The IP configurations that are in a pool by their own choice.
fn members<'a>(world: &'a World, pool: &ResourceId) -> impl Iterator<Item = &'a ResourceId> {
    world
        .store
        .referrers(pool)
        .filter(|referrer| referrer.role == Role::Uses && is_of(&referrer.from, "/ipconfigurations/"))
        .map(|referrer| &referrer.from)
}

/// What a stored pool points at.
pub(super) fn references(id: &ResourceId, pool: &Value) -> Vec<Reference> {
    let own = stored_reference(pool, "properties/virtualNetwork/id");
    let theirs = items(pool, "properties/loadBalancerBackendAddresses").iter().flat_map(|entry| {
        ["virtualNetwork", "subnet"]
            .iter()
            .filter_map(|m| stored_reference(entry, &format!("properties/{m}/id")))
    });
    let mut all: Vec<ResourceId> = own.into_iter().chain(theirs).collect();
    all.sort();
    all.dedup();
    // A network is not held by a pool that names it: only its subnets are.
    all.into_iter().map(|to| Reference { from: id.clone(), to, role: Role::Model, address: None }).collect()
}

/// Adds the entries that the service shows for members by NIC.
pub(super) fn present(world: &World, id: &ResourceId, properties: &mut Object) {
    let generated = members(world, id).map(|member| {
        let group = member.group_name().unwrap_or_default();
        let interface = member.parent().map(|nic| nic.name().to_owned()).unwrap_or_default();
        let instance =
            member.parent().and_then(|nic| nic.parent()).map(|vm| vm.name().to_owned()).unwrap_or_default();
        json!({
            "name": format!("{group}_{instance}_{interface}{}", member.name()),
            "properties": { "networkInterfaceIPConfiguration": { "id": member } },
        })
    });
    let generated: Vec<Value> = generated.collect();
    if let Some(Value::Array(entries)) = properties.get_mut("loadBalancerBackendAddresses") {
        entries.extend(generated);
    }
}

/// The scale set that an id belongs to, if it belongs to one.
pub(super) fn scale_set_of(id: &ResourceId) -> Option<ResourceId> {
    let mut next = Some(id.clone());
    while let Some(id) = next {
        if is_of(&id, "/virtualmachinescalesets/") {
            return Some(id);
        }
        next = id.parent().filter(|parent| parent.namespace().is_some());
    }
    None
}

/// The scale set that uses a pool, if one does.
pub(super) fn scale_set_using(world: &World, pool: &ResourceId) -> Option<ResourceId> {
    world.store.referrers(pool).find_map(|referrer| scale_set_of(&referrer.from))
}

/// The names of the pools in a list, lower case.
pub(super) fn names(pools: &[Value]) -> HashSet<String> {
    pools.iter().filter_map(|pool| text(pool, "name")).map(str::to_ascii_lowercase).collect()
}
