//! Immutable members of an AzureCluster.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::defaults::{DEFAULT_ENVIRONMENT, has_ipv6};
use super::types::AzureClusterSpec;
use crate::field_error::Field;
use crate::immutable::{Fixed, Rule, at, check as check_rules};
use crate::network::{FrontendIp, LoadBalancer, Subnet, roles};
use crate::text::text;

/// The prefix of the owner tag, which the cluster's name follows; its value is `owned`.
const OWNERSHIP_TAG: &str = "sigs.k8s.io_cluster-api-provider-azure_cluster_";

/// With another name or in another place every resource would be created a second time, and the existing ones would be
/// deleted or abandoned.
const RULES: [Rule; 12] = [
    ("resourceGroup", Fixed::Always),
    ("subscriptionID", Fixed::Always),
    ("location", Fixed::Always),
    ("extendedLocation", Fixed::Always),
    ("networkSpec.vnet.name", Fixed::OnceSet),
    ("networkSpec.vnet.resourceGroup", Fixed::OnceSet),
    ("controlPlaneEndpoint.host", Fixed::OnceSet),
    ("controlPlaneEndpoint.port", Fixed::OnceSet),
    ("networkSpec.privateDNSZoneName", Fixed::Always),
    ("networkSpec.privateDNSZoneResourceGroup", Fixed::Always),
    ("networkSpec.privateDNSZone", Fixed::Always),
    ("networkSpec.controlPlaneOutboundLB", Fixed::Always),
];

/// Of the API server's load balancer.
const API_SERVER: [Rule; 5] = [
    ("networkSpec.apiServerLB.backendPool.name", Fixed::OnceSet),
    ("networkSpec.apiServerLB.name", Fixed::OnceSet),
    ("networkSpec.apiServerLB.sku", Fixed::OnceSet),
    ("networkSpec.apiServerLB.type", Fixed::OnceSet),
    ("networkSpec.apiServerLB.idleTimeoutInMinutes", Fixed::OnceSet),
];

/// Of the load balancer for the outbound traffic of workers with IPv6.
const NODE_OUTBOUND: [Rule; 5] = [
    ("networkSpec.nodeOutboundLB.id", Fixed::Always),
    ("networkSpec.nodeOutboundLB.name", Fixed::OnceSet),
    ("networkSpec.nodeOutboundLB.sku", Fixed::OnceSet),
    ("networkSpec.nodeOutboundLB.type", Fixed::OnceSet),
    ("networkSpec.nodeOutboundLB.idleTimeoutInMinutes", Fixed::OnceSet),
];

/// Of that load balancer in every cluster: it may be added and removed, but not replaced by another one under machines.
const NODE_OUTBOUND_NAMES: [Rule; 2] = [
    ("networkSpec.nodeOutboundLB.name", Fixed::NotReplaced),
    ("networkSpec.nodeOutboundLB.backendPool.name", Fixed::NotReplaced),
];

/// Of a subnet in the network that the cluster has created.
const SUBNET_RANGES: [Rule; 1] = [("cidrBlocks", Fixed::Always)];

/// Of every subnet.
const SUBNET: [Rule; 4] = [
    ("role", Fixed::OnceSet),
    ("routeTable.name", Fixed::OnceSet),
    ("natGateway.name", Fixed::OnceSet),
    ("securityGroup.name", Fixed::Always),
];

/// Of the API server's public address.
const ADDRESS: [Rule; 2] = [("name", Fixed::OnceSet), ("dnsName", Fixed::OnceSet)];

/// Compares the new spec with the old one.
pub(super) fn check(name: &str, new: &AzureClusterSpec, old: &AzureClusterSpec, spec: &Field<'_>) {
    let (new_value, old_value) = (json!(new), json!(old));
    check_rules(&RULES, &old_value, &new_value, spec);
    check_environment(new, old, spec);
    check_control_plane(new, old, spec);
    let bastion = "bastionSpec.azureBastion";
    let (before, now) = (at(&old_value, bastion), at(&new_value, bastion));
    let words = "azure bastion cannot be removed from a cluster, nor changed";
    spec.child(bastion).invalid_if(before.is_some() && before != now, now, words);
    check_zones(new, old, spec);
    check_subnets(name, new, old, &spec.child("networkSpec.subnets"));
    check_rules(&API_SERVER, &old_value, &new_value, spec);
    let frontends = spec.child("networkSpec.apiServerLB.frontendIPs");
    check_private_address(new, old, &frontends);
    check_public_addresses(new, old, &frontends);
    if has_ipv6(subnets_of(old)) {
        check_rules(&NODE_OUTBOUND, &old_value, &new_value, spec);
        check_frontends(&old_value, &new_value, spec);
    } else {
        check_rules(&NODE_OUTBOUND_NAMES, &old_value, &new_value, spec);
    }
}

fn subnets_of(spec: &AzureClusterSpec) -> Option<&[Subnet]> {
    spec.network_spec.as_ref()?.subnets.as_deref()
}

fn api_server_frontends(spec: &AzureClusterSpec) -> &[FrontendIp] {
    let balancer = spec.network_spec.as_ref().and_then(|network| network.api_server_lb.as_ref());
    balancer.and_then(|balancer| balancer.frontend_ips.as_deref()).unwrap_or_default()
}

/// A control plane does not leave its network: its load balancer would be deleted with its address. An unset member
/// means that it is there.
fn check_control_plane(new: &AzureClusterSpec, old: &AzureClusterSpec, spec: &Field<'_>) {
    let of = |spec: &AzureClusterSpec| spec.control_plane_enabled.unwrap_or(true);
    spec.child("controlPlaneEnabled").invalid_if(of(new) != of(old), of(new), "field is immutable");
}

/// An unset environment means the public cloud.
fn check_environment(new: &AzureClusterSpec, old: &AzureClusterSpec, spec: &Field<'_>) {
    let of = |spec: &AzureClusterSpec| match text(&spec.azure_environment) {
        "" => DEFAULT_ENVIRONMENT.to_owned(),
        environment => environment.to_owned(),
    };
    spec.child("azureEnvironment").invalid_if(of(new) != of(old), of(new), "field is immutable");
}

type BalancerOf = fn(&AzureClusterSpec) -> Option<&LoadBalancer>;

const BALANCERS: [(&str, BalancerOf); 3] = [
    ("apiServerLB", |spec| spec.network_spec.as_ref()?.api_server_lb.as_ref()),
    ("nodeOutboundLB", |spec| spec.network_spec.as_ref()?.node_outbound_lb.as_ref()),
    ("controlPlaneOutboundLB", |spec| spec.network_spec.as_ref()?.control_plane_outbound_lb.as_ref()),
];

/// Azure fixes the zones of a frontend; their order is irrelevant.
fn check_zones(new: &AzureClusterSpec, old: &AzureClusterSpec, spec: &Field<'_>) {
    for (member, balancer_of) in BALANCERS {
        let (Some(old), Some(new)) = (balancer_of(old), balancer_of(new)) else { continue };
        let zones = |balancer: &LoadBalancer| {
            let sorted: BTreeSet<&String> = balancer.availability_zones.iter().flatten().collect();
            json!({ "availabilityZones": sorted })
        };
        let field = spec.child("networkSpec").child(member);
        check_rules(&[("availabilityZones", Fixed::Always)], &zones(old), &zones(new), &field);
    }
}

/// Subnets are matched by their names.
fn check_subnets(name: &str, new: &AzureClusterSpec, old: &AzureClusterSpec, list: &Field<'_>) {
    let tags = old.network_spec.as_ref().and_then(|network| network.vnet.as_ref()?.tags.as_ref());
    let owner = format!("{OWNERSHIP_TAG}{name}");
    let managed = tags.and_then(|tags| tags.get(&owner)).is_some_and(|value| value == "owned");
    let (before, now) = (subnets_of(old).unwrap_or_default(), subnets_of(new).unwrap_or_default());
    for (index, subnet) in now.iter().enumerate() {
        let Some(before) = before.iter().find(|before| before.name == subnet.name) else { continue };
        let (before, now, field) = (json!(before), json!(subnet), list.index(index));
        if managed {
            check_rules(&SUBNET_RANGES, &before, &now, &field);
        }
        check_rules(&SUBNET, &before, &now, &field);
    }
    // Subnets of workers may be added and removed (CAPZ-073). The control plane has one, and its machines do not move.
    for subnet in before.iter().filter(|before| holds_control_plane(before)) {
        let (name, role) = (text(&subnet.name), text(&subnet.role));
        list.forbidden_if(
            now.iter().all(|now| now.name != subnet.name),
            format_args!(
                "subnet {name} holds the control plane (role {role}) and can be neither removed nor renamed: add it again"
            ),
        );
    }
}

fn holds_control_plane(subnet: &Subnet) -> bool {
    [roles::CONTROL_PLANE, roles::CLUSTER].map(Some).contains(&subnet.role.as_deref())
}

/// The private address of the API server cannot move.
fn check_private_address(new: &AzureClusterSpec, old: &AzureClusterSpec, frontends: &Field<'_>) {
    let address_of = |spec| {
        let address = api_server_frontends(spec).iter().find_map(|frontend| frontend.private_ip.clone());
        address.filter(|address| !address.is_empty())
    };
    let Some(before) = address_of(old) else { return };
    frontends.index(0).child("privateIP").forbidden_if(
        address_of(new).as_ref() != Some(&before),
        format_args!("API Server load balancer private IP should not be modified after AzureCluster creation: it is {before}"),
    );
}

/// The public address of the API server belongs to the cluster: a frontend that has one keeps its name, the address and
/// the DNS name.
fn check_public_addresses(new: &AzureClusterSpec, old: &AzureClusterSpec, frontends: &Field<'_>) {
    let now = api_server_frontends(new);
    for before in api_server_frontends(old) {
        let Some(address) = &before.public_ip else { continue };
        match now.iter().enumerate().find(|(_, now)| now.name == before.name) {
            Some((index, now)) => {
                let field = frontends.index(index).child("publicIP");
                check_rules(&ADDRESS, &json!(address), &json!(now.public_ip), &field);
            }
            None => frontends.forbidden(format_args!(
                "frontend {} is where the API server answers, and can be neither removed nor renamed: add it again",
                text(&before.name)
            )),
        }
    }
}

/// Frontends change only with their number.
fn check_frontends(old: &Value, new: &Value, spec: &Field<'_>) {
    let count = "networkSpec.nodeOutboundLB.frontendIPsCount";
    if at(old, count) == at(new, count) {
        check_rules(&[("networkSpec.nodeOutboundLB.frontendIPs", Fixed::OnceSet)], old, new, spec);
    }
}
