//! Validation of an AzureCluster, by itself and against its previous version.

use ipnet::IpNet;

use super::defaults::has_ipv6;
use super::immutable;
use super::types::{AzureClusterSpec, NetworkSpec};
use crate::common::{ExtendedLocation, ObjectReference};
use crate::context::Gates;
use crate::field_error::{Field, FieldErrors};
use crate::names;
use crate::network::{
    INTERNAL, LoadBalancer, MAX_OUTBOUND_IPS, PUBLIC, STANDARD, Subnet, SubnetView, check_address,
    check_cidrs, check_idle_timeout, check_peerings, check_subnets, roles,
};
use crate::text::text;

/// Names of a cluster's resources in Azure add up to 20 characters to the cluster's, and may have 64.
const MAX_NAME_LENGTH: usize = 44;

/// Validates the AzureCluster `name`; `old` is its previous version.
pub fn validate(
    name: &str,
    new: &AzureClusterSpec,
    old: Option<&AzureClusterSpec>,
    gates: Gates,
) -> FieldErrors {
    let changes = FieldErrors::of(|object| {
        if let Some(old) = old {
            immutable::check(name, new, old, &object.child("spec"));
        }
    });
    if !changes.is_empty() {
        return changes;
    }
    FieldErrors::of(|object| {
        check_name(name, &object.child("metadata.name"));
        let spec = object.child("spec");
        let field = spec.child("networkSpec");
        check_network(new, gates, &field);
        let network = new.network_spec.as_ref();
        let balancer = network.and_then(|network| network.api_server_lb.as_ref());
        check_private_dns(
            network.and_then(|network| network.private_dns_zone_name.as_deref()),
            network.and_then(|network| network.private_dns_zone_resource_group.as_deref()),
            balancer.is_some_and(LoadBalancer::is_internal) || new.control_plane_enabled == Some(false),
            &field,
        );
        let overrides = &new.cloud_provider_config_overrides;
        spec.child("cloudProviderConfigOverrides").invalid_if(
            old.is_some_and(|old| old.cloud_provider_config_overrides != *overrides),
            overrides,
            "cannot change cloudProviderConfigOverrides cluster creation",
        );
        check_extended_location(new.extended_location.as_ref(), gates, &spec);
        if let Some(bastion) = new.bastion_spec.as_ref().and_then(|bastion| bastion.azure_bastion.as_ref()) {
            spec.child("bastionSpec.azureBastion.sku").invalid_if(
                bastion.enable_tunneling == Some(true) && text(&bastion.sku) != STANDARD,
                &bastion.sku,
                "sku must be Standard if tunneling is enabled",
            );
        }
        check_identity(new.identity_ref.as_ref(), &spec.child("identityRef"));
    })
}

fn check_name(name: &str, field: &Field<'_>) {
    field.invalid_if(
        name.len() > MAX_NAME_LENGTH,
        name,
        format_args!(
            "Cluster Name longer than allowed length of {MAX_NAME_LENGTH} characters can be truncated"
        ),
    );
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let fits = name.len() >= 2
        && name.starts_with(is_end)
        && name.ends_with(is_end)
        && name.chars().all(|c| is_end(c) || c == '-');
    field.invalid_if(
        !fits,
        name,
        "Cluster Name doesn't match regex ^[a-z0-9][a-z0-9-]{0,42}[a-z0-9]$, can contain only lowercase alphanumeric characters and '-', must start/end with an alphanumeric character",
    );
}

/// The identity with which the cluster's resources are created.
fn check_identity(reference: Option<&ObjectReference>, field: &Field<'_>) {
    match reference {
        None => field.required("identityRef is required: name an AzureClusterIdentity"),
        Some(reference) => field.child("kind").one_of(Some(text(&reference.kind)), &["AzureClusterIdentity"]),
    }
}

/// Edge zones need their gate.
pub(crate) fn check_extended_location(location: Option<&ExtendedLocation>, gates: Gates, spec: &Field<'_>) {
    spec.child("extendedLocation").forbidden_if(
        location.is_some() && !gates.edge_zone,
        "can be set only if the EdgeZone feature flag is enabled: start the manager with --feature-gates=EdgeZone=true",
    );
}

/// The zone with the private name of the API server. `has_private_name` is whether there is such a name.
pub(crate) fn check_private_dns(
    zone: Option<&str>,
    group: Option<&str>,
    has_private_name: bool,
    network: &Field<'_>,
) {
    let (zone, group) = (zone.unwrap_or_default(), group.unwrap_or_default());
    if !zone.is_empty() {
        let field = network.child("privateDNSZoneName");
        let words = "PrivateDNSZoneName is available only if APIServerLB.Type is Internal";
        field.invalid_if(!has_private_name, zone, words);
        field.invalid_if(!names::is_dns_name(zone), zone, "PrivateDNSZoneName can only contain alphanumeric characters, '-' and '.', and must end with an alphanumeric character");
    }
    if !group.is_empty() {
        let field = network.child("privateDNSZoneResourceGroup");
        let words = "PrivateDNSZoneResourceGroup can only be set together with privateDNSZoneName";
        field.invalid_if(zone.is_empty(), group, words);
        field.invalid_if(!names::is_group_name(group), group, names::GROUP_NAME);
    }
}

fn check_network(spec: &AzureClusterSpec, gates: Gates, field: &Field<'_>) {
    let network = spec.network_spec.clone().unwrap_or_default();
    let control_plane = spec.control_plane_enabled.unwrap_or(true);
    let vnet = network.vnet.clone().unwrap_or_default();
    let vnet_field = field.child("vnet");
    let group = text(&vnet.resource_group);
    let is_wrong = !group.is_empty() && !names::is_group_name(group);
    vnet_field.child("resourceGroup").invalid_if(is_wrong, group, names::GROUP_NAME);
    let ranges = check_cidrs(vnet.cidr_blocks.as_deref(), &vnet_field.child("cidrBlocks"));
    check_peerings(vnet.peerings.as_deref(), &vnet_field.child("peerings"));

    let subnets = network.subnets.as_deref().unwrap_or_default();
    let needed: &[&str] = if control_plane { &[roles::CONTROL_PLANE, roles::NODE] } else { &[roles::NODE] };
    let views: Vec<SubnetView<'_>> = subnets.iter().map(SubnetView::from).collect();
    check_subnets(&views, &ranges, needed, &field.child("subnets"));

    if control_plane {
        let balancer = network.api_server_lb.as_ref();
        check_api_server(balancer, &control_plane_ranges(subnets), gates, &field.child("apiServerLB"));
    }
    for (member, balancer) in [
        ("nodeOutboundLB", &network.node_outbound_lb),
        ("controlPlaneOutboundLB", &network.control_plane_outbound_lb),
    ] {
        if let Some(count) = balancer.as_ref().and_then(|balancer| balancer.frontend_ips_count) {
            let field = field.child(member).child("frontendIPsCount");
            field.invalid_if(count < 0, count, "there cannot be fewer front end ips than none");
        }
    }
    check_node_outbound(&network, control_plane, &field.child("nodeOutboundLB"));
    check_control_plane_outbound(&network, &field.child("controlPlaneOutboundLB"));
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

fn check_api_server(balancer: Option<&LoadBalancer>, ranges: &[IpNet], gates: Gates, field: &Field<'_>) {
    let Some(balancer) = balancer else {
        return field.required("a cluster with a control plane needs a load balancer for its API server");
    };
    check_sku_and_type(balancer.sku.as_deref(), balancer.kind.as_deref(), field);
    check_idle_timeout(balancer.idle_timeout_in_minutes, field);
    let name = text(&balancer.name);
    field.child("name").invalid_if(!names::is_resource_name(name), name, names::RESOURCE_NAME);
    let frontends = balancer.frontend_ips.as_deref().unwrap_or_default();
    let list = field.child("frontendIPs");
    if balancer.is_public() {
        let public = frontends.iter().filter(|frontend| frontend.public_ip.is_some()).count();
        field.child("frontendIPConfigs").invalid_if(
            public != 1 || balancer.frontend_ips_count.unwrap_or(1) != 1,
            frontends,
            "API Server Load balancer should have 1 Frontend IP configuration with a public IP",
        );
    } else if balancer.is_internal() {
        let private = frontends.iter().filter(|frontend| frontend.private_ip.is_some()).count();
        list.invalid_if(
            private != 1 || frontends.len() != 1,
            frontends,
            "API Server Load balancer of type Internal should have 1 Frontend IP configuration with a private IP",
        );
    }
    for (index, frontend) in frontends.iter().enumerate() {
        let field = list.index(index);
        field.child("publicIP").forbidden_if(
            balancer.is_internal() && frontend.public_ip.is_some(),
            "API Server Load Balancer of type Internal cannot have public IPs",
        );
        let field = field.child("privateIP");
        match text(&frontend.private_ip) {
            "" => {}
            _ if balancer.is_public() && !gates.api_server_ilb => field.forbidden(
                "API Server Load Balancer of type Public cannot have a private IP unless the gate APIServerILB is on",
            ),
            address => check_address(address, ranges, "Internal LB", "control plane subnet", &field),
        }
    }
}

/// The parts of an API server's load balancer that templates have, too.
pub(crate) fn check_sku_and_type(sku: Option<&str>, kind: Option<&str>, balancer: &Field<'_>) {
    balancer.child("sku").one_of(sku, &[STANDARD]);
    balancer.child("type").one_of(kind, &[PUBLIC, INTERNAL]);
}

/// Workers with IPv6 use a load balancer for outbound traffic.
fn check_node_outbound(network: &NetworkSpec, control_plane: bool, field: &Field<'_>) {
    if !has_ipv6(network.subnets.as_deref()) {
        return;
    }
    match &network.node_outbound_lb {
        Some(balancer) => check_outbound(balancer, field),
        None => field.required_if(
            control_plane && network.api_server_lb.as_ref().is_some_and(LoadBalancer::is_public),
            "Node outbound load balancer cannot be nil for public clusters",
        ),
    }
}

/// The control plane needs a load balancer for outbound traffic only if the API server's is internal.
fn check_control_plane_outbound(network: &NetworkSpec, field: &Field<'_>) {
    let Some(balancer) = &network.control_plane_outbound_lb else { return };
    // Without a control plane in this network there is no load balancer that this one could supplement.
    let Some(api_server) = &network.api_server_lb else { return };
    if api_server.is_internal() {
        check_outbound(balancer, field);
    } else {
        field.forbidden("Control plane outbound load balancer cannot be set for public clusters");
    }
}

fn check_outbound(balancer: &LoadBalancer, field: &Field<'_>) {
    check_idle_timeout(balancer.idle_timeout_in_minutes, field);
    if let Some(count) = balancer.frontend_ips_count {
        let words = format!("Max front end ips allowed is {MAX_OUTBOUND_IPS}");
        field.child("frontendIPsCount").invalid_if(count > MAX_OUTBOUND_IPS, count, words);
    }
}
