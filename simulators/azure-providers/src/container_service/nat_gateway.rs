//! The NAT gateway of a cluster whose outbound type is `managedNATGateway` ("Create a managed or user-assigned NAT
//! gateway for your Azure Kubernetes Service (AKS) cluster"): in the node group, with addresses of its own, and on
//! every subnet of nodes.

use azure_engine::document::{at, into_object, items, stored_reference, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::Result;
use azure_engine::state::inner_request::PLATFORM;
use azure_types::ResourceId;
use serde_json::{Value, json};

use super::node_group::NodeGroup;

/// The outbound type with a managed gateway.
pub(super) const MANAGED: &str = "managedNATGateway";
/// Minutes after which an idle connection ends, by default.
pub(super) const USUAL_IDLE: i64 = 4;
/// Addresses that it may have ("Create a cluster with a managed NAT gateway").
pub(super) const MOST_ADDRESSES: i64 = 16;

/// The gateway's id. The name is our choice: no source shows what AKS calls it.
fn id(group: &NodeGroup) -> ResourceId {
    group.network_resource("natGateways", &format!("aks-agentpool-{}-natgateway", group.number))
}

/// Creates the gateway, reconciles it with the cluster's document, or deletes it.
///
/// # Errors
/// What the network refuses.
pub(super) fn lay_out(group: &NodeGroup, azure: &mut AzureState) -> Result<()> {
    let profile =
        azure.store.get(&group.cluster).and_then(|cluster| at(&cluster.body, "properties/networkProfile"));
    let profile = profile.cloned().unwrap_or_default();
    let gateway = id(group);
    if text(&profile, "outboundType") != Some(MANAGED) {
        return withdraw(group, azure);
    }
    let number = |path: &str| at(&profile, &format!("natGatewayProfile/{path}")).and_then(Value::as_u64);
    let count = number("managedOutboundIPProfile/count").unwrap_or_default();
    let mut addresses = Vec::new();
    for one in 0..count {
        addresses.push(json!({ "id": group.managed_address(azure, one)? }));
    }
    let idle = number("idleTimeoutInMinutes");
    let properties = json!({ "publicIpAddresses": addresses, "idleTimeoutInMinutes": idle });
    let stored = azure.store.get(&gateway).and_then(|record| record.body.get("properties"));
    let differs = |member: &str| stored.and_then(|stored| stored.get(member)) != properties.get(member);
    let changed = ["publicIpAddresses", "idleTimeoutInMinutes"].into_iter().any(differs);
    let document = json!({
        "location": group.location,
        "tags": group.tags(),
        "sku": { "name": "Standard" },
        "properties": properties,
    });
    match (stored.is_some(), changed) {
        (false, _) => azure.make(&gateway, into_object(document))?,
        (true, true) => azure.ask(PLATFORM, "PUT", &gateway, None, document).map(drop)?,
        (true, false) => {}
    }
    let subnets = group.node_subnets(azure);
    subnets.iter().try_for_each(|subnet| attach(azure, subnet, Some(&gateway)))
}

/// Takes the gateway off the subnets, then deletes it.
///
/// # Errors
/// What the network refuses.
pub(super) fn withdraw(group: &NodeGroup, azure: &mut AzureState) -> Result<()> {
    let gateway = id(group);
    let Some(shown) = azure.document(&gateway) else { return Ok(()) };
    let subnets: Vec<ResourceId> = items(&shown, "properties/subnets")
        .iter()
        .filter_map(|subnet| stored_reference(subnet, "id"))
        .collect();
    subnets.iter().try_for_each(|subnet| attach(azure, subnet, None))?;
    azure.ask(PLATFORM, "DELETE", &gateway, None, Value::Null).map(drop)
}

/// Puts a gateway on a subnet, or takes it off. Another owner's gateway stays.
fn attach(azure: &mut AzureState, subnet: &ResourceId, gateway: Option<&ResourceId>) -> Result<()> {
    let Some(mut document) = azure.document(subnet) else { return Ok(()) };
    let there = at(&document, "properties/natGateway").is_some();
    if there == gateway.is_some() {
        return Ok(());
    }
    match gateway {
        Some(gateway) => document["properties"]["natGateway"] = json!({ "id": gateway }),
        None => drop(
            document["properties"].as_object_mut().and_then(|properties| properties.remove("natGateway")),
        ),
    }
    azure.ask(PLATFORM, "PUT", subnet, None, document).map(drop)
}

/// The present outbound addresses of a cluster with such a gateway.
pub(super) fn effective_outbound(group: &NodeGroup, azure: &AzureState) -> Vec<Value> {
    let gateway = azure.store.get(&id(group));
    gateway.map_or(&[][..], |gateway| items(&gateway.body, "properties/publicIpAddresses")).to_vec()
}
