//! Frontends of load balancers: their public IP, or their private address in a subnet
//! (`spec/arm-wire.md`, 9.1).

use std::collections::BTreeSet;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::Value;

use super::address_allocation::{address_taken, free_address, static_address, subnet_prefixes};
use crate::engine::document::{
    Object, enumeration, known_members, reference, stored_reference, strip, take_properties, text,
};
use crate::engine::error::Refusal;
use crate::engine::kind::{Reference, Role};
use crate::engine::world::{World, is_of};

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
                return Err(address_taken(&id, address, &id));
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

fn private_address(
    world: &World,
    id: &ResourceId,
    subnet: &ResourceId,
    old: Option<&Value>,
    properties: &Object,
    promised: &BTreeSet<IpAddr>,
) -> Result<IpAddr, Refusal> {
    let given = properties.get("privateIPAddress").and_then(Value::as_str);
    if properties.get("privateIPAllocationMethod").and_then(Value::as_str) == Some("Static") {
        return static_address(world, id, subnet, given, |owner| owner == id);
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

/// Refuses to let a frontend go that something outside its balancer uses.
pub(super) fn check_unused(world: &World, balancer: &ResourceId, id: &ResourceId) -> Result<(), Refusal> {
    let Some(user) = world.store.referrers(id).find(|user| !user.from.is_within(balancer)) else {
        return Ok(());
    };
    let (code, what) = if is_of(&user.from, "/privatelinkservices/") {
        ("LoadBalancerFrontendIPConfigurationInUseByPrivateLinkService", "private link service")
    } else if is_of(&user.from, "/frontendipconfigurations/") {
        ("GatewayLoadBalancerFrontendIPConfigurationInUse", "the chained frontend IP configuration")
    } else if is_of(&user.from, "/backendaddresspools/") {
        (
            "NotAllowedToDeleteLoadBalancerWithFrontendIpConfigurationInUseByGlobalLB",
            "the global load balancer's backend address pool",
        )
    } else {
        ("FrontendIPConfigurationInUse", "resource")
    };
    Err(Refusal::network(
        400,
        code,
        format!(
            "Frontend IP configuration {id} of load balancer {balancer} cannot be removed since it is in use by {what} {}.",
            user.from
        ),
    ))
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
