//! The resource provider `Microsoft.Network`.

mod application_security_group;
mod bastion_host;
mod interface;
mod load_balancer;
mod locations;
mod nat_gateway;
mod private_link;
mod public_ip;
mod route_table;
mod security_group;
mod shared;
mod tables;
mod virtual_network;

pub(crate) use load_balancer::pool_membership::check as check_memberships;
pub(crate) use private_link::service_connections;
pub(crate) use shared::addresses::{check_room, free_address, free_public_address, subnet_prefixes};
pub(crate) use shared::protocol::protocol;
pub(crate) use virtual_network::delegation::check_undelegated;

use azure_engine::provider::Provider;

pub(crate) fn provider() -> Provider {
    Provider {
        calls: vec![locations::answer],
        policies: &tables::budgets::POLICIES,
        limits: tables::limits::LIMITS,
        unlimited: tables::limits::UNLIMITED,
        names: tables::names::NAMES,
        since: &tables::versions::SINCE,
        joins: &tables::joins::JOINS,
        latencies: tables::latencies::LATENCIES,
        ..Provider::new(
            "Microsoft.Network",
            vec![
                &virtual_network::VirtualNetworks,
                &security_group::SecurityGroups,
                &public_ip::PublicIpAddresses,
                &load_balancer::LoadBalancers,
                &route_table::RouteTables,
                &nat_gateway::NatGateways,
                &interface::NetworkInterfaces,
                &application_security_group::ApplicationSecurityGroups,
                &public_ip::prefix::PublicIpPrefixes,
                &private_link::service::PrivateLinkServices,
                &private_link::endpoint::PrivateEndpoints,
                &bastion_host::BASTION_HOSTS,
            ],
        )
    }
}
