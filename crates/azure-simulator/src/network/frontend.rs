//! Frontends of load balancers: their public IP, or their private address in a subnet
//! (`spec/arm-wire.md`, 9.1).

use std::collections::BTreeSet;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::Value;

use super::address_allocation::{Vacancy, free_address, subnet_prefixes, vacancy};
use crate::engine::document::{
    Object, enumeration, known_members, reference, stored_reference, strip, take_properties, text,
};
use crate::engine::error::Refusal;
use crate::engine::kind::{Reference, Role};
use crate::engine::world::World;

const MEMBERS: [&str; 13] = [
    "gatewayLoadBalancer",
    "inboundNatPools",
    "inboundNatRules",
    "loadBalancingRules",
    "outboundRules",
    "privateIPAddress",
    "privateIPAddressVersion",
    "privateIPAllocationMethod",
    "provisioningState",
    "publicIPAddress",
    "publicIPPrefix",
    "subnet",
    "zones",
];

/// Checks one frontend and gives it its private address. `promised` collects addresses of this write.
pub(super) fn normalise(
    world: &World,
    balancer: &ResourceId,
    sku: &str,
    old: Option<&Value>,
    mut child: Object,
    promised: &mut BTreeSet<IpAddr>,
) -> Result<Value, Refusal> {
    let mut properties = take_properties(&mut child);
    known_members(&mut properties, &MEMBERS, "FrontendIPConfiguration")?;
    strip(
        &mut properties,
        &[
            "provisioningState",
            "inboundNatPools",
            "inboundNatRules",
            "loadBalancingRules",
            "outboundRules",
            "zones",
        ],
    );
    let name = child.get("name").and_then(Value::as_str).unwrap_or_default();
    let id = balancer.child("frontendIPConfigurations", name);
    enumeration(&mut properties, "privateIPAllocationMethod", &["Dynamic", "Static"], true)?;
    enumeration(&mut properties, "privateIPAddressVersion", &["IPv4", "IPv6"], false)?;
    let public = reference(&mut properties, "publicIPAddress")?;
    let prefix = reference(&mut properties, "publicIPPrefix")?;
    let subnet = reference(&mut properties, "subnet")?;
    match (&public, &prefix, &subnet) {
        (Some(public), None, None) => {
            check_public_ip(world, balancer, sku, &id, public)?;
            properties.remove("privateIPAddress");
        }
        (None, Some(_), None) => {}
        (None, None, Some(subnet)) => {
            if subnet_prefixes(world, subnet).is_empty() {
                return Err(Refusal::invalid_reference(subnet, &id));
            }
            let address = private_address(world, &id, subnet, old, &properties, promised)?;
            if !promised.insert(address) {
                return Err(taken(&id, address, &id));
            }
            properties.insert("privateIPAddress".into(), address.to_string().into());
            let version = if address.is_ipv6() { "IPv6" } else { "IPv4" };
            properties.insert("privateIPAddressVersion".into(), version.into());
        }
        _ => {
            return Err(Refusal::network(
                400,
                "InvalidFrontendIPConfiguration",
                format!(
                    "Frontend {id} must reference exactly one of publicIPAddress, publicIPPrefix and subnet."
                ),
            ));
        }
    }
    if let Some(old) = old {
        let none = Value::Array(Vec::new());
        if old.get("zones").unwrap_or(&none) != child.get("zones").unwrap_or(&none) {
            return Err(Refusal::network(
                400,
                "ResourceAvailabilityZonesCannotBeModified",
                format!(
                    "Resource {id} has an existing availability zone constraint, which cannot be changed."
                ),
            ));
        }
    }
    child.insert("properties".into(), Value::Object(properties));
    Ok(Value::Object(child))
}

fn taken(id: &ResourceId, address: IpAddr, owner: &ResourceId) -> Refusal {
    Refusal::network(
        400,
        "PrivateIPAddressIsAllocated",
        format!(
            "IP configuration {id} is using the private IP address {address} which is already allocated to resource \
             {owner}."
        ),
    )
}

fn private_address(
    world: &World,
    id: &ResourceId,
    subnet: &ResourceId,
    old: Option<&Value>,
    properties: &Object,
    promised: &BTreeSet<IpAddr>,
) -> Result<IpAddr, Refusal> {
    let given = properties.get("privateIPAddress").and_then(Value::as_str).filter(|text| !text.is_empty());
    if properties.get("privateIPAllocationMethod").and_then(Value::as_str) == Some("Static") {
        let Some(given) = given else {
            return Err(Refusal::network(
                400,
                "PrivateIPAddressNotProvided",
                format!("Frontend {id} with static allocation needs a privateIPAddress."),
            ));
        };
        let address: IpAddr = given.parse().map_err(|_| {
            Refusal::network(
                400,
                "InvalidIPAddressFormat",
                format!("The private IP address '{given}' of {id} is not a valid IP address."),
            )
        })?;
        let prefixes =
            || subnet_prefixes(world, subnet).iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        return match vacancy(world, subnet, address) {
            Vacancy::Free => Ok(address),
            Vacancy::TakenBy(owner) if owner == *id => Ok(address),
            Vacancy::TakenBy(owner) => Err(taken(id, address, &owner)),
            Vacancy::OutsideSubnet => Err(Refusal::network(
                400,
                "PrivateIPAddressNotInSubnet",
                format!(
                    "Private static IP address {address} of {id} does not belong to the range of subnet prefix {}.",
                    prefixes()
                ),
            )),
            Vacancy::Reserved => Err(Refusal::network(
                400,
                "PrivateIPAddressInReservedRange",
                format!(
                    "Private static IP address {address} of {id} falls within reserved IP range of subnet prefix {}.",
                    prefixes()
                ),
            )),
        };
    }
    let kept = old
        .filter(|old| stored_reference(old, "properties/subnet/id").as_ref() == Some(subnet))
        .and_then(|old| text(old, "properties/privateIPAddress"))
        .and_then(|address| address.parse().ok());
    match kept {
        Some(address) => Ok(address),
        None => {
            let v6 = properties.get("privateIPAddressVersion").and_then(Value::as_str) == Some("IPv6");
            free_address(world, subnet, v6, promised)
        }
    }
}

fn check_public_ip(
    world: &World,
    balancer: &ResourceId,
    sku: &str,
    id: &ResourceId,
    public: &ResourceId,
) -> Result<(), Refusal> {
    let Some(record) = world.store.get(public) else { return Err(Refusal::invalid_reference(public, id)) };
    let theirs = text(&record.body, "sku/name").unwrap_or("Basic");
    if theirs != sku && sku != "Gateway" {
        return Err(Refusal::network(
            400,
            "PublicIPAndLBSkuDoNotMatch",
            format!(
                "{sku} sku load balancer {balancer} cannot reference {theirs} sku publicIP {}.",
                record.id
            ),
        ));
    }
    match world.store.referrers(public).find(|user| !user.from.is_within(balancer)) {
        None => Ok(()),
        Some(user) => Err(public_ip_in_use(id, public, &user.from)),
    }
}

/// One public IP serves one configuration.
pub(super) fn public_ip_in_use(id: &ResourceId, public: &ResourceId, user: &ResourceId) -> Refusal {
    Refusal::network(
        400,
        "PublicIPAddressInUse",
        format!(
            "Resource {id} is referencing public IP address {public} that is already allocated to resource {user}."
        ),
    )
}

/// What a stored frontend points at.
pub(super) fn references(id: &ResourceId, frontend: &Value) -> Vec<Reference> {
    let public =
        stored_reference(frontend, "properties/publicIPAddress/id").map(|to| Reference::uses(id, to));
    let prefix = stored_reference(frontend, "properties/publicIPPrefix/id").map(|to| Reference::uses(id, to));
    let subnet = stored_reference(frontend, "properties/subnet/id").map(|to| Reference {
        from: id.clone(),
        to,
        role: Role::Uses,
        address: text(frontend, "properties/privateIPAddress").and_then(|address| address.parse().ok()),
    });
    public.into_iter().chain(prefix).chain(subnet).collect()
}
