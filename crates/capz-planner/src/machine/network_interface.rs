//! Network interfaces of a machine, and the backend pools that the first one is in.

use azure_types::ResourceId;
use capz_api::machine::NetworkInterface;
use serde_json::json;

use super::inbound_nat_rule;
use super::scope::MachineScope;
use crate::cluster::{control_plane_outbound_pool_name, internal_pool_name, pool_name};
use crate::goal::{Goal, GoalError};
use crate::machine_inputs::MachineInputs;
use crate::observed::{Observation, ObservedResources};
use crate::scope::reference;
use crate::service;
use crate::sku::capability;

pub(super) fn goals(
    scope: &MachineScope<'_>,
    inputs: &MachineInputs,
    observed: &ObservedResources,
) -> Result<Vec<Goal>, GoalError> {
    let declared = scope.spec.network_interfaces.as_deref().unwrap_or_default();
    if declared.is_empty() {
        return Err(GoalError::NotNow("the machine has no network interface".to_owned()));
    }
    scope
        .interfaces()
        .into_iter()
        .zip(declared)
        .enumerate()
        .map(|(index, (id, interface))| {
            // The size's capabilities count when the interface is created: Azure does not change it while the machine
            // runs.
            let is_there = matches!(observed.get(&id), Observation::Present(_));
            let default = || (!is_there).then(|| inputs.size.can(capability::ACCELERATED_NETWORKING));
            goal(scope, id, interface, index == 0, interface.accelerated_networking.or_else(default))
        })
        .collect()
}

fn goal(
    scope: &MachineScope<'_>,
    id: ResourceId,
    interface: &NetworkInterface,
    first: bool,
    accelerated: Option<bool>,
) -> Result<Goal, GoalError> {
    let cluster = &scope.cluster;
    let name = id.name();
    let subnet_name = interface.subnet_name.as_deref().unwrap_or_default();
    if subnet_name.is_empty() {
        return Err(GoalError::NotNow(format!("the network interface {name} has no subnet")));
    }
    let subnet = reference(&cluster.subnet(subnet_name));
    let mut primary = json!({
        "primary": true,
        "privateIPAllocationMethod": "Dynamic",
        "subnet": subnet,
    });
    if first {
        let (pools, rule) = membership(scope, subnet_name);
        primary["loadBalancerBackendAddressPools"] = pools.iter().map(reference).collect();
        primary["loadBalancerInboundNatRules"] = json!(rule.map(|rule| [reference(&rule)]));
        let public = scope.public_ip().filter(|_| !scope.is_control_plane());
        primary["publicIPAddress"] = json!(public.as_ref().map(reference));
    }
    let mut configurations = vec![json!({ "name": "pipConfig", "properties": primary })];
    for index in 1..interface.private_ip_configs.unwrap_or(1) {
        configurations.push(json!({
            "name": format!("{name}-{index}"),
            "properties": { "primary": false, "privateIPAllocationMethod": "Dynamic", "subnet": subnet },
        }));
    }
    if cluster.has_ipv6() {
        configurations.push(json!({
            "name": "ipConfigv6",
            "properties": { "primary": false, "privateIPAddressVersion": "IPv6", "subnet": subnet },
        }));
    }
    let dns = scope.spec.dns_servers.as_deref().filter(|servers| first && !servers.is_empty());
    let document = json!({
        "location": cluster.location(),
        "extendedLocation": cluster.extended_location(),
        "tags": scope.tags(None, name),
        "properties": {
            "enableAcceleratedNetworking": accelerated,
            "enableIPForwarding": scope.spec.enable_ip_forwarding.unwrap_or_default(),
            "dnsSettings": dns.map(|servers| json!({ "dnsServers": servers })),
            "ipConfigurations": configurations,
        },
    });
    Ok(Goal::new(id, &service::INTERFACES, document))
}

/// The backend pools and the inbound NAT rule of the first interface.
fn membership(scope: &MachineScope<'_>, subnet: &str) -> (Vec<ResourceId>, Option<ResourceId>) {
    let cluster = &scope.cluster;
    let pool = |balancer: Option<&str>, pool: &str| cluster.pool(balancer.unwrap_or_default(), pool);
    if !scope.is_control_plane() {
        let goes_out_itself = cluster.way_out(subnet).is_some() || scope.public_ip().is_some();
        let outbound = cluster.node_outbound_balancer().filter(|_| !goes_out_itself);
        return (outbound.map(|it| pool(it.name.as_deref(), &pool_name(it))).into_iter().collect(), None);
    }
    let Some(api_server) = cluster.api_server_balancer() else { return (Vec::new(), None) };
    let name = api_server.name.as_deref();
    let mut pools = vec![pool(name, &pool_name(api_server))];
    if api_server.is_internal() {
        if let Some(outbound) = cluster.control_plane_outbound_balancer() {
            pools.push(pool(outbound.name.as_deref(), &control_plane_outbound_pool_name(*cluster)));
        }
        return (pools, None);
    }
    if cluster.has_internal_twin() {
        let twin = format!("{}-internal", name.unwrap_or_default());
        pools.push(pool(Some(&twin), &internal_pool_name(api_server)));
    }
    (pools, inbound_nat_rule::id(scope))
}
