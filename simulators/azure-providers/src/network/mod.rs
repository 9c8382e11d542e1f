//! The resource provider `Microsoft.Network`.

mod address_allocation;
mod application_security_group;
mod backend_address;
mod backend_pool;
mod balancer;
mod budgets;
mod checks;
mod children;
mod effective_network;
mod frontend;
mod inbound_nat_pool;
mod inbound_nat_rule;
mod ip_configuration;
mod limits;
mod load_balancer;
mod load_balancing_rule;
mod location_calls;
mod members;
mod nat_gateway;
mod network_interface;
mod outbound_rule;
mod pool_members;
mod pool_membership;
mod private_endpoint;
mod private_endpoint_connection;
mod private_link_interface;
mod private_link_service;
mod private_link_target;
mod probe;
mod protocol;
mod public_ip;
mod public_ip_prefix;
mod resource_guid;
mod route_table;
mod rule_conflict;
mod security_group;
mod security_rule;
mod sku;
mod subnet;
mod subnet_availability;
mod subnet_delegation;
mod type_names;
mod usage;
mod versions;
mod virtual_network;
mod virtual_network_peering;

pub(crate) use address_allocation::{check_room, free_address, free_public_address, subnet_prefixes};
pub(crate) use pool_membership::check as check_memberships;
pub(crate) use subnet_delegation::check_undelegated;

use azure_engine::provider::Provider;

pub(crate) fn provider() -> Provider {
    Provider {
        calls: vec![location_calls::answer],
        policies: &budgets::POLICIES,
        limits: limits::LIMITS,
        unlimited: limits::UNLIMITED,
        names: limits::NAMES,
        members: members::MEMBERS,
        since: &versions::SINCE,
        ..Provider::new(
            "Microsoft.Network",
            vec![
                &virtual_network::VirtualNetworks,
                &security_group::SecurityGroups,
                &public_ip::PublicIpAddresses,
                &load_balancer::LoadBalancers,
                &route_table::RouteTables,
                &nat_gateway::NatGateways,
                &network_interface::NetworkInterfaces,
                &application_security_group::ApplicationSecurityGroups,
                &public_ip_prefix::PublicIpPrefixes,
                &private_link_service::PrivateLinkServices,
                &private_endpoint::PrivateEndpoints,
            ],
        )
    }
}
