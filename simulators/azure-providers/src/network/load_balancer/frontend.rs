//! Frontends of load balancers: their public IP, or their private address in a subnet.

use std::collections::BTreeSet;
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::Value;

use super::balancer::Balancer;
use crate::network::shared::codes::ZONES_CHANGED;
use crate::network::shared::{
    addresses::{address_taken, free_address, static_address, subnet_prefixes},
    children::old_child,
    zones::check_zones,
};
use azure_engine::document::{Object, name, stored_reference, take_properties, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};
use azure_engine::store::reference::is_of;
use azure_engine::types::member_table::Holds::{Derived, Text, Users, Uses, Word};
use azure_engine::types::member_table::Member;

const FRONTEND_OF_SERVICE: Code =
    Code::ours(400, "LoadBalancerFrontendIPConfigurationInUseByPrivateLinkService");
const FRONTEND_IN_USE: Code = Code::ours(400, "FrontendIPConfigurationInUse");

pub(super) static MEMBERS: [Member; 12] = [
    Member::new("inboundNatPools", Users("inboundNatPools")),
    Member::new("inboundNatRules", Users("inboundNatRules")),
    Member::new("loadBalancingRules", Users("loadBalancingRules")),
    Member::new("outboundRules", Users("outboundRules")),
    Member::new("privateIPAddress", Text),
    Member::new("privateIPAddressVersion", Word(&["IPv4", "IPv6"], false)),
    Member::new("privateIPAllocationMethod", Word(&["Dynamic", "Static"], true)),
    Member::new("provisioningState", Derived),
    Member::new("publicIPAddress", Uses("publicIPAddresses")),
    Member::new("publicIPPrefix", Uses("publicIPPrefixes")),
    Member::new("subnet", Uses("virtualNetworks/subnets")).addressed(),
    Member::new("zones", Derived),
];

/// Checks one frontend and gives it its private address. `promised` collects addresses of this write.
pub(super) fn check(
    balancer: &Balancer<'_>,
    child: &mut Object,
    promised: &mut BTreeSet<IpAddr>,
) -> Result<()> {
    let azure = balancer.azure;
    let mut properties = take_properties(child);
    let label = child.get("name").and_then(Value::as_str).unwrap_or_default();
    let id = balancer.child("frontendIPConfigurations", label);
    let old = old_child(balancer.old, &id);
    let pointer = |member: &str| properties.get(member).and_then(|pointer| stored_reference(pointer, "id"));
    let (public, prefix, subnet) = (pointer("publicIPAddress"), pointer("publicIPPrefix"), pointer("subnet"));
    match (&public, &prefix, &subnet) {
        (Some(public), None, None) => {
            check_public_ip(balancer, &id, public)?;
            properties.remove("privateIPAddress");
        }
        (None, Some(prefix), None) => check_prefix(balancer, &id, prefix)?,
        (None, None, Some(subnet)) => {
            if subnet_prefixes(azure, subnet).is_empty() {
                return Err(Refusal::invalid_reference(subnet, &id));
            }
            check_subnet_of_basic(balancer, &id, subnet)?;
            if old.and_then(|old| stored_reference(old, "properties/subnet/id")).as_ref() != Some(subnet) {
                crate::network::virtual_network::delegation::check_undelegated(azure, subnet, &id)?;
            }
            let address = private_address(azure, &id, subnet, old, &properties, promised)?;
            if !promised.insert(address) {
                return Err(address_taken(&id, address, &id));
            }
            properties.insert("privateIPAddress".into(), address.to_string().into());
            let version = if address.is_ipv6() { "IPv6" } else { "IPv4" };
            properties.insert("privateIPAddressVersion".into(), version.into());
        }
        (Some(_), None, Some(_)) => {
            return Err(Code::azures(400, "FrontendIPConfigHasBothSubnetAndPublicIP").details(format_args!(
                "Frontend IP Configuration {id} must not reference both a Subnet and a Public IP Address."
            )));
        }
        _ => {
            return Err(Code::ours(400, "InvalidFrontendIPConfiguration").details(format_args!(
                "Frontend {id} must reference exactly one of publicIPAddress, publicIPPrefix and subnet."
            )));
        }
    }
    zones(balancer, &id, subnet.is_some(), child)?;
    if let Some(old) = old {
        let none = Value::Array(Vec::new());
        ZONES_CHANGED.details_when(
            old.get("zones").unwrap_or(&none) != child.get("zones").unwrap_or(&none),
            format_args!(
                "Resource {id} has an existing availability zone constraint, which cannot be changed."
            ),
        )?;
    }
    child.insert("properties".into(), Value::Object(properties));
    Ok(())
}

fn private_address(
    azure: &AzureState,
    id: &ResourceId,
    subnet: &ResourceId,
    old: Option<&Value>,
    properties: &Object,
    promised: &BTreeSet<IpAddr>,
) -> Result<IpAddr> {
    let given = properties.get("privateIPAddress").and_then(Value::as_str);
    if properties.get("privateIPAllocationMethod").and_then(Value::as_str) == Some("Static") {
        // An address may move from one frontend of the balancer to another in one write.
        let balancer = id.parent();
        return static_address(azure, id, subnet, given, |owner| {
            balancer.as_ref().is_some_and(|balancer| owner.is_within(balancer))
        });
    }
    let kept = old
        .filter(|old| stored_reference(old, "properties/subnet/id").as_ref() == Some(subnet))
        .and_then(|old| text(old, "properties/privateIPAddress"))
        .and_then(|address| address.parse().ok());
    match kept {
        Some(address) => Ok(address),
        None => {
            let v6 = properties.get("privateIPAddressVersion").and_then(Value::as_str) == Some("IPv6");
            free_address(azure, subnet, v6, promised)
        }
    }
}

/// Refuses sku Basic in a subnet with a NAT gateway.
fn check_subnet_of_basic(balancer: &Balancer<'_>, id: &ResourceId, subnet: &ResourceId) -> Result<()> {
    let network = balancer.azure.store.holder(subnet);
    let gateway = network
        .and_then(|network| balancer.azure.find_child(network, subnet))
        .and_then(|(_, subnet)| stored_reference(subnet, "properties/natGateway/id"));
    if balancer.sku != "Basic" || gateway.is_none() {
        return Ok(());
    }
    Err(Code::azures(400, "SubnetWithNatGatewayAndBasicSkuResourceNotAllowed").details(format_args!(
            "NAT Gateway cannot be deployed on subnet containing Basic SKU Public IP addresses or Basic SKU Load Balancer. \
             Frontend {id}, subnet {subnet}."
        )))
}

/// An internal frontend has zones of its own; a public one has those of its public IP.
fn zones(balancer: &Balancer<'_>, id: &ResourceId, internal: bool, child: &mut Object) -> Result<()> {
    check_zones(balancer.azure, id, child)?;
    if !child.contains_key("zones") {
        return Ok(());
    }
    Code::azures(400, "LoadBalancerFrontendIPConfigCannotHaveZoneWhenReferencingPublicIPAddress")
        .details_when(
            !internal,
            format_args!(
                "Frontend {id} cannot have zones, since it references a public IP address or prefix."
            ),
        )?;
    Code::ours(400, "AvailabilityZonesNotSupportedForBasicSku").details_when(
        balancer.sku == "Basic",
        format_args!("Frontend {id} cannot have zones, since its load balancer has sku Basic."),
    )
}

fn check_public_ip(balancer: &Balancer<'_>, id: &ResourceId, public: &ResourceId) -> Result<()> {
    let (azure, sku) = (balancer.azure, balancer.sku);
    let Some(record) = azure.store.get(public) else { return Err(Refusal::invalid_reference(public, id)) };
    let theirs = text(&record.body, "sku/name").unwrap_or("Basic");
    Code::azures(400, "PublicIPAndLBSkuDoNotMatch").details_when(
        theirs != sku,
        format_args!(
            "{sku} sku load balancer {} cannot reference {theirs} sku publicIP {}.",
            balancer.id, record.id
        ),
    )?;
    match azure.store.referrers(public).find(|user| !user.from.is_within(balancer.id)) {
        None => Ok(()),
        Some(user) => Err(public_ip_in_use(id, public, &user.from)),
    }
}

/// A prefix serves one balancer's frontend, for outbound traffic.
fn check_prefix(balancer: &Balancer<'_>, id: &ResourceId, prefix: &ResourceId) -> Result<()> {
    Code::ours(400, "PublicIPPrefixAndLBSkuDoNotMatch").details_when(
        balancer.sku != "Standard",
        format_args!(
            "{} sku load balancer {} cannot reference public IP prefix {prefix}.",
            balancer.sku, balancer.id
        ),
    )?;
    let mut users = balancer.azure.store.referrers(prefix);
    let user =
        users.find(|user| !user.from.is_within(balancer.id) && !is_of(&user.from, "/publicipaddresses/"));
    match user {
        None => Ok(()),
        Some(user) => Err(prefix_in_use(id, prefix, &user.from)),
    }
}

/// One prefix serves one configuration, or gives public IPs their addresses.
pub(crate) fn prefix_in_use(id: &ResourceId, prefix: &ResourceId, user: &ResourceId) -> Refusal {
    Code::ours(400, "PublicIPPrefixInUse").details(format_args!(
        "Resource {id} is referencing public IP prefix {prefix} that is already allocated to resource {user}."
    ))
}

/// Whether a frontend has a private address.
pub(crate) fn is_internal(frontend: &Value) -> bool {
    frontend.get("properties").is_some_and(|properties| properties.get("subnet").is_some())
}

/// The frontends of one balancer are all public or all internal, and each has a public IP of its own.
pub(crate) fn check_together(balancer: &Balancer<'_>, frontends: &[Value]) -> Result<()> {
    let internal = frontends.iter().filter(|frontend| is_internal(frontend)).count();
    Code::ours(400, "LoadBalancerFrontendIPConfigurationsMustBeAllPublicOrAllInternal").details_when(
        internal > 0 && internal < frontends.len(),
        format_args!("Load balancer {} cannot have both public and internal frontends.", balancer.id),
    )?;
    let mut seen: std::collections::HashMap<String, ResourceId> = std::collections::HashMap::new();
    for item in frontends {
        let me = balancer.id.child("frontendIPConfigurations", name(item));
        for member in ["publicIPAddress", "publicIPPrefix"] {
            let Some(public) = stored_reference(item, &format!("properties/{member}/id")) else { continue };
            let Some(other) = seen.insert(public.to_lower(), me.clone()) else { continue };
            return Err(match member {
                "publicIPAddress" => public_ip_in_use(&me, &public, &other),
                _ => prefix_in_use(&me, &public, &other),
            });
        }
    }
    Ok(())
}

/// One public IP serves one configuration.
pub(crate) fn public_ip_in_use(id: &ResourceId, public: &ResourceId, user: &ResourceId) -> Refusal {
    Code::azures(400, "PublicIPAddressInUse").details(format_args!(
            "Resource {id} is referencing public IP address {public} that is already allocated to resource {user}."
        ))
}

/// Refuses to remove a frontend that something outside its balancer uses.
pub(crate) fn check_unused(azure: &AzureState, balancer: &ResourceId, id: &ResourceId) -> Result<()> {
    let Some(user) = azure.store.referrers(id).find(|user| !user.from.is_within(balancer)) else {
        return Ok(());
    };
    let (code, what) = if is_of(&user.from, "/privatelinkservices/") {
        (FRONTEND_OF_SERVICE, "private link service")
    } else {
        (FRONTEND_IN_USE, "resource")
    };
    Err(code.details(format_args!(
            "Frontend IP configuration {id} of load balancer {balancer} cannot be removed since it is in use by {what} {}.",
            user.from
        )))
}
