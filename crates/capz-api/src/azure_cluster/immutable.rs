//! Immutable members of an AzureCluster.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::defaults::{DEFAULT_ENVIRONMENT, has_ipv6};
use super::types::AzureClusterSpec;
use crate::field_error::{FieldErrors, Path};
use crate::immutable::{Fixed, Rule, at, check as check_rules, check_member};
use crate::network::{FrontendIp, LoadBalancer, Subnet, roles};

/// The prefix of the owner tag, which the cluster's name follows; its value is `owned`.
const OWNERSHIP_TAG: &str = "sigs.k8s.io_cluster-api-provider-azure_cluster_";

/// With another name or in another place every resource would be created a second time, and the existing ones would be
/// deleted or abandoned.
const RULES: [Rule; 12] = [
    ("spec.resourceGroup", Fixed::Always),
    ("spec.subscriptionID", Fixed::Always),
    ("spec.location", Fixed::Always),
    ("spec.extendedLocation", Fixed::Always),
    ("spec.networkSpec.vnet.name", Fixed::OnceSet),
    ("spec.networkSpec.vnet.resourceGroup", Fixed::OnceSet),
    ("spec.controlPlaneEndpoint.host", Fixed::OnceSet),
    ("spec.controlPlaneEndpoint.port", Fixed::OnceSet),
    ("spec.networkSpec.privateDNSZoneName", Fixed::Always),
    ("spec.networkSpec.privateDNSZoneResourceGroup", Fixed::Always),
    ("spec.networkSpec.privateDNSZone", Fixed::Always),
    ("spec.networkSpec.controlPlaneOutboundLB", Fixed::Always),
];

/// Of the API server's load balancer.
const API_SERVER: [Rule; 5] = [
    ("spec.networkSpec.apiServerLB.backendPool.name", Fixed::OnceSet),
    ("spec.networkSpec.apiServerLB.name", Fixed::OnceSet),
    ("spec.networkSpec.apiServerLB.sku", Fixed::OnceSet),
    ("spec.networkSpec.apiServerLB.type", Fixed::OnceSet),
    ("spec.networkSpec.apiServerLB.idleTimeoutInMinutes", Fixed::OnceSet),
];

/// Of the load balancer for the outbound traffic of workers with IPv6.
const NODE_OUTBOUND: [Rule; 5] = [
    ("spec.networkSpec.nodeOutboundLB.id", Fixed::Always),
    ("spec.networkSpec.nodeOutboundLB.name", Fixed::OnceSet),
    ("spec.networkSpec.nodeOutboundLB.sku", Fixed::OnceSet),
    ("spec.networkSpec.nodeOutboundLB.type", Fixed::OnceSet),
    ("spec.networkSpec.nodeOutboundLB.idleTimeoutInMinutes", Fixed::OnceSet),
];

/// Of that load balancer in every cluster: it may be added and removed, but not replaced by another one under machines.
const NODE_OUTBOUND_NAMES: [Rule; 2] = [
    ("spec.networkSpec.nodeOutboundLB.name", Fixed::NotReplaced),
    ("spec.networkSpec.nodeOutboundLB.backendPool.name", Fixed::NotReplaced),
];

/// Compares the new spec with the old one.
pub(super) fn check(name: &str, new: &AzureClusterSpec, old: &AzureClusterSpec, errors: &mut FieldErrors) {
    let (new_value, old_value) = (json!({ "spec": new }), json!({ "spec": old }));
    check_rules(&RULES, &old_value, &new_value, errors);
    check_environment(new, old, errors);
    check_control_plane(new, old, errors);
    if let Some(bastion) = at(&old_value, "spec.bastionSpec.azureBastion")
        && Some(bastion) != at(&new_value, "spec.bastionSpec.azureBastion")
    {
        errors.invalid(
            &Path::new("spec.bastionSpec.azureBastion"),
            at(&new_value, "spec.bastionSpec.azureBastion").cloned().unwrap_or_default(),
            "azure bastion cannot be removed from a cluster, nor changed",
        );
    }
    check_zones(new, old, errors);
    check_subnets(name, new, old, errors);
    check_rules(&API_SERVER, &old_value, &new_value, errors);
    check_private_address(new, old, errors);
    check_public_addresses(new, old, errors);
    if has_ipv6(old.network_spec.as_ref().and_then(|network| network.subnets.as_deref())) {
        check_rules(&NODE_OUTBOUND, &old_value, &new_value, errors);
        check_frontends(&old_value, &new_value, errors);
    } else {
        check_rules(&NODE_OUTBOUND_NAMES, &old_value, &new_value, errors);
    }
}

/// A control plane does not leave its network: its load balancer would be deleted with its address. An unset member
/// means that it is there.
fn check_control_plane(new: &AzureClusterSpec, old: &AzureClusterSpec, errors: &mut FieldErrors) {
    let of = |spec: &AzureClusterSpec| spec.control_plane_enabled.unwrap_or(true);
    if of(new) != of(old) {
        errors.invalid(&Path::new("spec.controlPlaneEnabled"), of(new), "field is immutable");
    }
}

/// An unset environment means the public cloud.
fn check_environment(new: &AzureClusterSpec, old: &AzureClusterSpec, errors: &mut FieldErrors) {
    let of = |spec: &AzureClusterSpec| {
        let environment = spec.azure_environment.clone().unwrap_or_default();
        if environment.is_empty() { DEFAULT_ENVIRONMENT.to_owned() } else { environment }
    };
    if of(new) != of(old) {
        errors.invalid(&Path::new("spec.azureEnvironment"), of(new), "field is immutable");
    }
}

type BalancerOf = fn(&AzureClusterSpec) -> Option<&LoadBalancer>;

const BALANCERS: [(&str, BalancerOf); 3] = [
    ("apiServerLB", |spec| spec.network_spec.as_ref()?.api_server_lb.as_ref()),
    ("nodeOutboundLB", |spec| spec.network_spec.as_ref()?.node_outbound_lb.as_ref()),
    ("controlPlaneOutboundLB", |spec| spec.network_spec.as_ref()?.control_plane_outbound_lb.as_ref()),
];

/// Azure fixes the zones of a frontend; their order is irrelevant.
fn check_zones(new: &AzureClusterSpec, old: &AzureClusterSpec, errors: &mut FieldErrors) {
    for (member, balancer_of) in BALANCERS {
        let (Some(old), Some(new)) = (balancer_of(old), balancer_of(new)) else { continue };
        let zones = |balancer: &LoadBalancer| -> Value {
            let sorted: BTreeSet<&String> = balancer.availability_zones.iter().flatten().collect();
            json!(sorted)
        };
        let path = Path::new(&format!("spec.networkSpec.{member}.availabilityZones"));
        let (old, new) = (zones(old), zones(new));
        check_member(
            &path,
            Fixed::Always,
            (!crate::immutable::is_empty(&old)).then_some(&old),
            (!crate::immutable::is_empty(&new)).then_some(&new),
            errors,
        );
    }
}

/// Subnets are matched by their names.
fn check_subnets(name: &str, new: &AzureClusterSpec, old: &AzureClusterSpec, errors: &mut FieldErrors) {
    let tags = old.network_spec.as_ref().and_then(|network| network.vnet.as_ref()?.tags.as_ref());
    let owner = format!("{OWNERSHIP_TAG}{name}");
    let managed = tags.and_then(|tags| tags.get(&owner)).is_some_and(|value| value == "owned");
    let subnets_of = |spec: &'_ AzureClusterSpec| -> Vec<Subnet> {
        spec.network_spec.as_ref().and_then(|network| network.subnets.clone()).unwrap_or_default()
    };
    let before = subnets_of(old);
    for (index, subnet) in subnets_of(new).iter().enumerate() {
        let Some(before) = before.iter().find(|before| before.name == subnet.name) else { continue };
        let path = Path::new("spec.networkSpec.subnets").index(index);
        let (before, now) = (json!(before), json!(subnet));
        let mut check = |member: &str, fixed: Fixed| {
            check_member(&path.child(member), fixed, at(&before, member), at(&now, member), errors);
        };
        if managed {
            check("cidrBlocks", Fixed::Always);
        }
        check("role", Fixed::OnceSet);
        check("routeTable.name", Fixed::OnceSet);
        check("natGateway.name", Fixed::OnceSet);
        check("securityGroup.name", Fixed::Always);
    }
    // Subnets of workers may be added and removed (CAPZ-073). The control plane has one, and its machines do not move.
    let now = subnets_of(new);
    for subnet in before.iter().filter(|before| holds_control_plane(before)) {
        if now.iter().all(|now| now.name != subnet.name) {
            let (name, role) = (subnet.name.as_deref(), subnet.role.as_deref());
            let (name, role) = (name.unwrap_or_default(), role.unwrap_or_default());
            errors.forbidden(
                &Path::new("spec.networkSpec.subnets"),
                format_args!(
                    "subnet {name} holds the control plane (role {role}) and can be neither removed nor renamed: add it again"
                ),
            );
        }
    }
}

fn holds_control_plane(subnet: &Subnet) -> bool {
    [roles::CONTROL_PLANE, roles::CLUSTER].map(Some).contains(&subnet.role.as_deref())
}

/// The private address of the API server cannot move.
fn check_private_address(new: &AzureClusterSpec, old: &AzureClusterSpec, errors: &mut FieldErrors) {
    let address_of = |spec: &AzureClusterSpec| -> Option<String> {
        let frontends = spec.network_spec.as_ref()?.api_server_lb.as_ref()?.frontend_ips.as_ref()?;
        frontends
            .iter()
            .find_map(|frontend| frontend.private_ip.clone())
            .filter(|address| !address.is_empty())
    };
    if let Some(before) = address_of(old) {
        let now = address_of(new);
        if now.as_ref() != Some(&before) {
            errors.forbidden(
                &Path::new("spec.networkSpec.apiServerLB.frontendIPs[0].privateIP"),
                format_args!("API Server load balancer private IP should not be modified after AzureCluster creation: it is {before}"),
            );
        }
    }
}

/// The public address of the API server belongs to the cluster: a frontend that has one keeps its name, the address and
/// the DNS name.
fn check_public_addresses(new: &AzureClusterSpec, old: &AzureClusterSpec, errors: &mut FieldErrors) {
    let frontends_of = |spec: &'_ AzureClusterSpec| -> Vec<FrontendIp> {
        let balancer = spec.network_spec.as_ref().and_then(|network| network.api_server_lb.as_ref());
        balancer.and_then(|balancer| balancer.frontend_ips.clone()).unwrap_or_default()
    };
    let now = frontends_of(new);
    let list = Path::new("spec.networkSpec.apiServerLB.frontendIPs");
    for before in frontends_of(old) {
        let Some(address) = before.public_ip else { continue };
        let Some(index) = now.iter().position(|now| now.name == before.name) else {
            errors.forbidden(
                &list,
                format_args!(
                    "frontend {} is where the API server answers, and can be neither removed nor renamed: add it again",
                    before.name.unwrap_or_default()
                ),
            );
            continue;
        };
        let (before, now) = (json!(address), json!(now.get(index).and_then(|now| now.public_ip.as_ref())));
        for member in ["name", "dnsName"] {
            let path = list.index(index).child("publicIP").child(member);
            check_member(&path, Fixed::OnceSet, at(&before, member), at(&now, member), errors);
        }
    }
}

/// Frontends change only with their number.
fn check_frontends(old: &Value, new: &Value, errors: &mut FieldErrors) {
    let count = "spec.networkSpec.nodeOutboundLB.frontendIPsCount";
    let frontends = "spec.networkSpec.nodeOutboundLB.frontendIPs";
    if at(old, count) == at(new, count) {
        check_member(&Path::new(frontends), Fixed::OnceSet, at(old, frontends), at(new, frontends), errors);
    }
}
