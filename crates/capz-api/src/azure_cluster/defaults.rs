//! Defaults of an AzureCluster. They are applied at every write, so they must leave their own results unchanged.

use super::preserved;
use super::subnet_defaults::{self, fill_ranges, is, is_ipv6};
use super::types::{AzureBastion, AzureClusterSpec, NetworkSpec};
use crate::context::Gates;
use crate::network::{FrontendIp, LoadBalancer, PUBLIC, PublicIp, STANDARD, Subnet, roles};
use crate::text::{fill, is_set, text};

pub(crate) const DEFAULT_ENVIRONMENT: &str = "AzurePublicCloud";
pub(crate) const DEFAULT_NETWORK_CIDR: &str = "10.0.0.0/8";
/// The last range of the network that Azure Bastion fits into.
pub(crate) const DEFAULT_BASTION_CIDR: &str = "10.255.255.224/27";
/// The name that Azure requires (Azure, "Azure Bastion configuration settings").
const BASTION_SUBNET: &str = "AzureBastionSubnet";
/// Azure's own default.
pub(crate) const IDLE_TIMEOUT_MINUTES: i32 = 4;
/// An address in the control plane's default range that Azure does not reserve.
const INTERNAL_ADDRESS: &str = "10.0.0.100";

/// Sets the defaults of the AzureCluster `name`; `old` is its previous version, whose defaults stay.
pub fn set_defaults(name: &str, spec: &mut AzureClusterSpec, old: Option<&AzureClusterSpec>, gates: Gates) {
    fill(&mut spec.azure_environment, DEFAULT_ENVIRONMENT);
    fill(&mut spec.resource_group, name);
    let group = spec.resource_group.clone().unwrap_or_default();
    let control_plane_enabled = spec.control_plane_enabled.unwrap_or(true);
    if let Some(bastion) = spec.bastion_spec.as_mut().and_then(|bastion| bastion.azure_bastion.as_mut()) {
        set_bastion(bastion, name);
    }
    let network = spec.network_spec.get_or_insert_default();
    set_network(network, name, &group);
    let known = old.and_then(|old| old.network_spec.as_ref()?.subnets.as_deref()).unwrap_or_default();
    subnet_defaults::set(network, known, name, control_plane_enabled);
    for rule in network.subnets.iter_mut().flatten().filter_map(|subnet| subnet.security_group.as_mut()) {
        for rule in rule.security_rules.iter_mut().flatten() {
            fill(&mut rule.direction, "Inbound");
        }
    }
    if control_plane_enabled {
        set_api_server(network.api_server_lb.get_or_insert_default(), name, gates);
    } else {
        network.api_server_lb = None;
    }
    let public = network.api_server_lb.as_ref().is_some_and(|balancer| !balancer.is_internal());
    if network.node_outbound_lb.is_none() && public && has_ipv6(network.subnets.as_deref()) {
        network.node_outbound_lb = Some(LoadBalancer::default());
    }
    if let Some(balancer) = &mut network.node_outbound_lb {
        set_outbound(balancer, name, &format!("pip-{name}-node-outbound"), None);
    }
    if control_plane_enabled && let Some(balancer) = &mut network.control_plane_outbound_lb {
        let balancer_name = format!("{name}-outbound-lb");
        let pool = format!("{balancer_name}-outboundBackendPool");
        set_outbound(balancer, &balancer_name, &format!("pip-{name}-controlplane-outbound"), Some(pool));
    }
    if let Some(old) = old {
        preserved::keep(spec, old);
    }
}

/// Whether a subnet of workers has an IPv6 range: such subnets have no NAT gateway.
pub(crate) fn has_ipv6(subnets: Option<&[Subnet]>) -> bool {
    subnets.into_iter().flatten().any(|subnet| {
        (is(subnet, roles::NODE) || is(subnet, roles::CLUSTER)) && is_ipv6(subnet.cidr_blocks.as_ref())
    })
}

fn set_network(network: &mut NetworkSpec, name: &str, group: &str) {
    let vnet = network.vnet.get_or_insert_default();
    fill(&mut vnet.resource_group, group);
    fill(&mut vnet.name, format!("{name}-vnet"));
    fill_ranges(&mut vnet.cidr_blocks, DEFAULT_NETWORK_CIDR);
    for peering in vnet.peerings.iter_mut().flatten() {
        fill(&mut peering.resource_group, group);
    }
}

fn set_bastion(bastion: &mut AzureBastion, name: &str) {
    fill(&mut bastion.name, format!("{name}-azure-bastion"));
    let subnet = bastion.subnet.get_or_insert_default();
    fill(&mut subnet.name, BASTION_SUBNET);
    fill_ranges(&mut subnet.cidr_blocks, DEFAULT_BASTION_CIDR);
    fill(&mut subnet.role, roles::BASTION);
    fill(&mut bastion.public_ip.get_or_insert_default().name, format!("{name}-azure-bastion-pip"));
}

fn set_api_server(balancer: &mut LoadBalancer, name: &str, gates: Gates) {
    fill(&mut balancer.kind, PUBLIC);
    fill(&mut balancer.sku, STANDARD);
    balancer.idle_timeout_in_minutes.get_or_insert(IDLE_TIMEOUT_MINUTES);
    if balancer.kind.as_deref() == Some(PUBLIC) {
        fill(&mut balancer.name, format!("{name}-public-lb"));
        let frontends = balancer.frontend_ips.get_or_insert_default();
        let frontend = format!("{}-frontEnd", text(&balancer.name));
        if frontends.is_empty() {
            frontends.push(public_frontend(&frontend, format!("pip-{name}-apiserver")));
        }
        if gates.api_server_ilb && !frontends.iter().any(|frontend| is_set(&frontend.private_ip)) {
            frontends.push(private_frontend(format!("{frontend}-internal-ip")));
        }
    } else if balancer.is_internal() {
        fill(&mut balancer.name, format!("{name}-internal-lb"));
        let frontends = balancer.frontend_ips.get_or_insert_default();
        if frontends.is_empty() {
            frontends.push(private_frontend(format!("{}-frontEnd", text(&balancer.name))));
        }
    }
    let pool = format!("{}-backendPool", text(&balancer.name));
    fill(&mut balancer.backend_pool.get_or_insert_default().name, pool);
}

/// Defaults of a load balancer for outbound traffic: its frontends are derived from their number.
fn set_outbound(balancer: &mut LoadBalancer, name: &str, address: &str, pool: Option<String>) {
    balancer.kind = Some(PUBLIC.to_owned());
    balancer.sku = Some(STANDARD.to_owned());
    balancer.idle_timeout_in_minutes.get_or_insert(IDLE_TIMEOUT_MINUTES);
    fill(&mut balancer.name, name);
    let name = balancer.name.clone().unwrap_or_default();
    let count = *balancer.frontend_ips_count.get_or_insert(1);
    let frontend = format!("{name}-frontEnd");
    balancer.frontend_ips = match count {
        ..=0 => None,
        1 => Some(vec![public_frontend(&frontend, address.to_owned())]),
        // An excessive number is refused; the frontends need not be created first.
        count => Some(
            (1..=count.min(1_000))
                .map(|number| public_frontend(&format!("{frontend}-{number}"), format!("{address}-{number}")))
                .collect(),
        ),
    };
    let pool = pool.unwrap_or_else(|| format!("{name}-outboundBackendPool"));
    fill(&mut balancer.backend_pool.get_or_insert_default().name, pool);
}

fn public_frontend(name: &str, address: String) -> FrontendIp {
    FrontendIp {
        name: Some(name.to_owned()),
        public_ip: Some(PublicIp { name: Some(address), ..PublicIp::default() }),
        ..FrontendIp::default()
    }
}

fn private_frontend(name: String) -> FrontendIp {
    FrontendIp { name: Some(name), private_ip: Some(INTERNAL_ADDRESS.to_owned()), ..FrontendIp::default() }
}
