//! Validation of an AzureCluster, by itself and against its previous version.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::json;

use super::defaults::has_ipv6;
use super::immutable;
use super::types::{AzureClusterSpec, NetworkSpec};
use crate::common::{ExtendedLocation, ObjectReference};
use crate::context::Gates;
use crate::field_error::{FieldErrors, Path};
use crate::names;
use crate::network::{
    LoadBalancer, MAX_OUTBOUND_IPS, STANDARD, Subnet, SubnetView, check_cidrs, check_idle_timeout,
    check_peerings, check_subnets, roles,
};

/// Names of a cluster's resources in Azure add up to 20 characters to the cluster's, and may have 64.
const MAX_NAME_LENGTH: usize = 44;

/// Validates the AzureCluster `name`; `old` is its previous version.
pub fn validate(
    name: &str,
    new: &AzureClusterSpec,
    old: Option<&AzureClusterSpec>,
    gates: Gates,
) -> FieldErrors {
    let mut errors = FieldErrors::default();
    if let Some(old) = old {
        immutable::check(name, new, old, &mut errors);
        if !errors.is_empty() {
            return errors;
        }
    }
    check_name(name, &mut errors);
    let spec = Path::new("spec");
    let network = Path::new("spec.networkSpec");
    check_network(new, gates, &network, &mut errors);
    check_private_dns(
        new.network_spec.as_ref().and_then(|network| network.private_dns_zone_name.as_deref()),
        new.network_spec.as_ref().and_then(|network| network.private_dns_zone_resource_group.as_deref()),
        new.network_spec
            .as_ref()
            .and_then(|network| network.api_server_lb.as_ref())
            .is_some_and(LoadBalancer::is_internal)
            || new.control_plane_enabled == Some(false),
        &network,
        &mut errors,
    );
    if let Some(old) = old
        && old.cloud_provider_config_overrides != new.cloud_provider_config_overrides
    {
        errors.invalid(
            &spec.child("cloudProviderConfigOverrides"),
            json!(new.cloud_provider_config_overrides),
            "cannot change cloudProviderConfigOverrides cluster creation",
        );
    }
    check_extended_location(new.extended_location.as_ref(), gates, &spec, &mut errors);
    if let Some(bastion) = new.bastion_spec.as_ref().and_then(|bastion| bastion.azure_bastion.as_ref())
        && bastion.enable_tunneling == Some(true)
        && bastion.sku.as_deref() != Some("Standard")
    {
        errors.invalid(
            &spec.child("bastionSpec.azureBastion.sku"),
            json!(bastion.sku),
            "sku must be Standard if tunneling is enabled",
        );
    }
    check_identity(new.identity_ref.as_ref(), &spec.child("identityRef"), &mut errors);
    errors
}

fn check_name(name: &str, errors: &mut FieldErrors) {
    let path = Path::new("metadata.name");
    if name.len() > MAX_NAME_LENGTH {
        errors.invalid(
            &path,
            name,
            format_args!(
                "Cluster Name longer than allowed length of {MAX_NAME_LENGTH} characters can be truncated"
            ),
        );
    }
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = name.len() >= 2
        && name.starts_with(is_end)
        && name.ends_with(is_end)
        && name.chars().all(|c| is_end(c) || c == '-');
    if !fits {
        errors.invalid(
            &path,
            name,
            "Cluster Name doesn't match regex ^[a-z0-9][a-z0-9-]{0,42}[a-z0-9]$, can contain only lowercase alphanumeric characters and '-', must start/end with an alphanumeric character",
        );
    }
}

/// The identity with which the cluster's resources are created.
fn check_identity(reference: Option<&ObjectReference>, path: &Path, errors: &mut FieldErrors) {
    let Some(reference) = reference else {
        errors.required(path, "identityRef is required: name an AzureClusterIdentity");
        return;
    };
    let kind = reference.kind.as_deref().unwrap_or_default();
    if kind != "AzureClusterIdentity" {
        errors.not_supported(&path.child("kind"), kind, &["AzureClusterIdentity"]);
    }
}

/// Edge zones need their gate.
pub(crate) fn check_extended_location(
    location: Option<&ExtendedLocation>,
    gates: Gates,
    path: &Path,
    errors: &mut FieldErrors,
) {
    if location.is_some() && !gates.edge_zone {
        errors.forbidden(
            &path.child("extendedLocation"),
            "can be set only if the EdgeZone feature flag is enabled: start the manager with --feature-gates=EdgeZone=true",
        );
    }
}

/// The zone with the private name of the API server. `has_private_name` is whether there is such a name.
pub(crate) fn check_private_dns(
    zone: Option<&str>,
    group: Option<&str>,
    has_private_name: bool,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let (zone, group) = (zone.unwrap_or_default(), group.unwrap_or_default());
    if !zone.is_empty() {
        let path = path.child("privateDNSZoneName");
        if !has_private_name {
            errors.invalid(
                &path,
                zone,
                "PrivateDNSZoneName is available only if APIServerLB.Type is Internal",
            );
        }
        if !names::is_dns_name(zone) {
            errors.invalid(&path, zone, "PrivateDNSZoneName can only contain alphanumeric characters, '-' and '.', and must end with an alphanumeric character");
        }
    }
    if !group.is_empty() {
        let path = path.child("privateDNSZoneResourceGroup");
        if zone.is_empty() {
            errors.invalid(
                &path,
                group,
                "PrivateDNSZoneResourceGroup can only be set together with privateDNSZoneName",
            );
        }
        if !names::is_group_name(group) {
            errors.invalid(&path, group, names::GROUP_NAME);
        }
    }
}

fn check_network(spec: &AzureClusterSpec, gates: Gates, path: &Path, errors: &mut FieldErrors) {
    let default = NetworkSpec::default();
    let network = spec.network_spec.as_ref().unwrap_or(&default);
    let control_plane = spec.control_plane_enabled.unwrap_or(true);
    let vnet = network.vnet.as_ref();
    let vnet_path = path.child("vnet");
    if let Some(group) = vnet.and_then(|vnet| vnet.resource_group.as_deref())
        && !group.is_empty()
        && !names::is_group_name(group)
    {
        errors.invalid(&vnet_path.child("resourceGroup"), group, names::GROUP_NAME);
    }
    let ranges = check_cidrs(
        vnet.and_then(|vnet| vnet.cidr_blocks.as_deref()),
        &vnet_path.child("cidrBlocks"),
        errors,
    );
    check_peerings(vnet.and_then(|vnet| vnet.peerings.as_deref()), &vnet_path.child("peerings"), errors);

    let subnets = network.subnets.as_deref().unwrap_or_default();
    let needed: &[&str] = if control_plane { &[roles::CONTROL_PLANE, roles::NODE] } else { &[roles::NODE] };
    let views: Vec<SubnetView<'_>> = subnets.iter().map(SubnetView::from).collect();
    check_subnets(&views, &ranges, needed, &path.child("subnets"), errors);

    if control_plane {
        let in_control_plane = control_plane_ranges(subnets);
        check_api_server(
            network.api_server_lb.as_ref(),
            &in_control_plane,
            gates,
            &path.child("apiServerLB"),
            errors,
        );
    }
    for (member, balancer) in [
        ("nodeOutboundLB", &network.node_outbound_lb),
        ("controlPlaneOutboundLB", &network.control_plane_outbound_lb),
    ] {
        if let Some(count) = balancer.as_ref().and_then(|balancer| balancer.frontend_ips_count)
            && count < 0
        {
            errors.invalid(
                &path.child(member).child("frontendIPsCount"),
                count,
                "there cannot be fewer front end ips than none",
            );
        }
    }
    check_node_outbound(network, control_plane, path, errors);
    check_control_plane_outbound(network, path, errors);
}

/// The ranges of the subnet with the API server's machines.
fn control_plane_ranges(subnets: &[Subnet]) -> Vec<IpNet> {
    let of = |role: &str| subnets.iter().find(|subnet| subnet.role.as_deref() == Some(role));
    let subnet = of(roles::CONTROL_PLANE).or_else(|| of(roles::CLUSTER));
    subnet
        .into_iter()
        .flat_map(|subnet| subnet.cidr_blocks.iter().flatten())
        .filter_map(|range| range.parse().ok())
        .collect()
}

fn check_api_server(
    balancer: Option<&LoadBalancer>,
    ranges: &[IpNet],
    gates: Gates,
    path: &Path,
    errors: &mut FieldErrors,
) {
    let Some(balancer) = balancer else {
        errors.required(path, "a cluster with a control plane needs a load balancer for its API server");
        return;
    };
    check_sku_and_type(balancer.sku.as_deref(), balancer.kind.as_deref(), path, errors);
    check_idle_timeout(balancer.idle_timeout_in_minutes, path, errors);
    let name = balancer.name.as_deref().unwrap_or_default();
    if !names::is_resource_name(name) {
        errors.invalid(&path.child("name"), name, names::RESOURCE_NAME);
    }
    let frontends = balancer.frontend_ips.as_deref().unwrap_or_default();
    let list = path.child("frontendIPs");
    if balancer.is_public() {
        let public = frontends.iter().filter(|frontend| frontend.public_ip.is_some()).count();
        if public != 1 || balancer.frontend_ips_count.unwrap_or(1) != 1 {
            errors.invalid(
                &path.child("frontendIPConfigs"),
                json!(frontends),
                "API Server Load balancer should have 1 Frontend IP configuration with a public IP",
            );
        }
    } else if balancer.is_internal() {
        let private = frontends.iter().filter(|frontend| frontend.private_ip.is_some()).count();
        if private != 1 || frontends.len() != 1 {
            errors.invalid(
                &list,
                json!(frontends),
                "API Server Load balancer of type Internal should have 1 Frontend IP configuration with a private IP",
            );
        }
    }
    for (index, frontend) in frontends.iter().enumerate() {
        let path = list.index(index);
        if balancer.is_internal() && frontend.public_ip.is_some() {
            errors.forbidden(
                &path.child("publicIP"),
                "API Server Load Balancer of type Internal cannot have public IPs",
            );
        }
        let Some(address) = frontend.private_ip.as_deref().filter(|address| !address.is_empty()) else {
            continue;
        };
        let path = path.child("privateIP");
        if balancer.is_public() && !gates.api_server_ilb {
            errors.forbidden(
                &path,
                "API Server Load Balancer of type Public cannot have a private IP unless the gate APIServerILB is on",
            );
            continue;
        }
        check_private_address(address, ranges, &path, errors);
    }
}

fn check_private_address(address: &str, ranges: &[IpNet], path: &Path, errors: &mut FieldErrors) {
    match address.parse::<IpAddr>() {
        Err(_) => errors.invalid(path, address, "Internal LB IP address isn't a valid IPv4 or IPv6 address"),
        Ok(ip) if !ranges.iter().any(|range| range.contains(&ip)) => {
            let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
            errors.invalid(
                path,
                address,
                format_args!(
                    "Internal LB IP address needs to be in control plane subnet range ({})",
                    ranges.join(", ")
                ),
            );
        }
        Ok(_) => {}
    }
}

/// The parts of an API server's load balancer that templates have, too.
pub(crate) fn check_sku_and_type(
    sku: Option<&str>,
    kind: Option<&str>,
    path: &Path,
    errors: &mut FieldErrors,
) {
    if sku != Some(STANDARD) {
        errors.not_supported(&path.child("sku"), json!(sku), &[STANDARD]);
    }
    if !matches!(kind, Some("Public" | "Internal")) {
        errors.not_supported(&path.child("type"), json!(kind), &["Public", "Internal"]);
    }
}

/// Workers with IPv6 use a load balancer for outbound traffic.
fn check_node_outbound(network: &NetworkSpec, control_plane: bool, path: &Path, errors: &mut FieldErrors) {
    if !has_ipv6(network.subnets.as_deref()) {
        return;
    }
    let path = path.child("nodeOutboundLB");
    let Some(balancer) = &network.node_outbound_lb else {
        let public = network.api_server_lb.as_ref().is_some_and(LoadBalancer::is_public);
        if control_plane && public {
            errors.required(&path, "Node outbound load balancer cannot be nil for public clusters");
        }
        return;
    };
    check_outbound(balancer, &path, errors);
}

/// The control plane needs a load balancer for outbound traffic only if the API server's is internal.
fn check_control_plane_outbound(network: &NetworkSpec, path: &Path, errors: &mut FieldErrors) {
    let path = path.child("controlPlaneOutboundLB");
    let Some(balancer) = &network.control_plane_outbound_lb else { return };
    // Without a control plane in this network there is no load balancer that this one could supplement.
    let Some(api_server) = &network.api_server_lb else { return };
    if api_server.is_internal() {
        check_outbound(balancer, &path, errors);
    } else {
        errors.forbidden(&path, "Control plane outbound load balancer cannot be set for public clusters");
    }
}

fn check_outbound(balancer: &LoadBalancer, path: &Path, errors: &mut FieldErrors) {
    check_idle_timeout(balancer.idle_timeout_in_minutes, path, errors);
    if let Some(count) = balancer.frontend_ips_count
        && count > MAX_OUTBOUND_IPS
    {
        errors.invalid(
            &path.child("frontendIPsCount"),
            count,
            format_args!("Max front end ips allowed is {MAX_OUTBOUND_IPS}"),
        );
    }
}
