//! Load balancers, out of their documents.

use std::collections::HashMap;

use serde_json::Value;

use super::inbound_nat;
use crate::balancer::{AdminState, Frontend, LoadBalancer, Member, OutboundRule, Pool, Probe, Rule};
use crate::json::{address_at, id_at, id_of, ids_at, is_updating, items, text_at};
use crate::network::Network;

impl LoadBalancer {
    /// `network` must hold public addresses, subnets and interfaces already.
    pub fn read(document: &Value, network: &Network) -> Option<Self> {
        let sku = text_at(document, "/sku/name").unwrap_or("Basic");
        let pools: Vec<Pool> = items(document, "/properties/backendAddressPools")
            .filter_map(|pool| Pool::read(pool, network))
            .collect();
        Some(Self {
            id: id_of(document)?,
            updating: is_updating(document),
            standard: !sku.eq_ignore_ascii_case("Basic"),
            frontends: items(document, "/properties/frontendIPConfigurations")
                .filter_map(|frontend| Frontend::read(frontend, network))
                .collect(),
            rules: items(document, "/properties/loadBalancingRules").filter_map(Rule::read).collect(),
            nat_rules: inbound_nat::read(document, &pools, network),
            probes: items(document, "/properties/probes").filter_map(Probe::read).collect(),
            pools,
            outbound: items(document, "/properties/outboundRules")
                .filter_map(|rule| {
                    Some(OutboundRule {
                        id: id_of(rule)?,
                        pool: id_at(rule, "/properties/backendAddressPool/id")?,
                        frontends: ids_at(rule, "/properties/frontendIPConfigurations"),
                        protocol: text_at(rule, "/properties/protocol").unwrap_or("All").to_owned(),
                        ports: rule
                            .pointer("/properties/allocatedOutboundPorts")
                            .and_then(Value::as_u64)
                            .and_then(|ports| ports.try_into().ok())
                            .unwrap_or_default(),
                    })
                })
                .collect(),
        })
    }
}

impl Frontend {
    fn read(document: &Value, network: &Network) -> Option<Self> {
        let public_address = id_at(document, "/properties/publicIPAddress/id");
        let address = match &public_address {
            Some(id) => {
                network.public_addresses.iter().find(|known| known.id == *id).and_then(|known| known.address)
            }
            None => address_at(document, "/properties/privateIPAddress"),
        };
        let subnet = id_at(document, "/properties/subnet/id");
        let virtual_network = subnet
            .and_then(|subnet| network.subnets.get(&subnet))
            .map(|subnet| subnet.virtual_network.clone());
        let public_prefix = id_at(document, "/properties/publicIPPrefix/id")
            .and_then(|prefix| network.public_prefixes.get(&prefix).copied());
        Some(Self { id: id_of(document)?, address, public_address, public_prefix, virtual_network })
    }
}

impl Pool {
    fn read(document: &Value, network: &Network) -> Option<Self> {
        let id = id_of(document)?;
        let pool_network = id_at(document, "/properties/virtualNetwork/id");
        let mut members: Vec<Member> = network
            .interfaces
            .iter()
            .enumerate()
            .filter(|(_, interface)| interface.pools.contains(&id))
            .map(|(index, interface)| Member {
                interface: Some(index),
                address: interface.address,
                by_interface: true,
                admin_state: AdminState::None,
            })
            .collect();
        let by_interface: HashMap<usize, usize> =
            members.iter().enumerate().filter_map(|(at, member)| Some((member.interface?, at))).collect();
        for entry in items(document, "/properties/loadBalancerBackendAddresses") {
            let admin_state = match text_at(entry, "/properties/adminState") {
                Some("Up") => AdminState::Up,
                Some("Down") => AdminState::Down,
                _ => AdminState::None,
            };
            let of_interface = id_at(entry, "/properties/networkInterfaceIPConfiguration/id");
            let address = address_at(entry, "/properties/ipAddress");
            let here = id_at(entry, "/properties/virtualNetwork/id").or_else(|| {
                let subnet = id_at(entry, "/properties/subnet/id")?;
                network.subnets.get(&subnet).map(|subnet| subnet.virtual_network.clone())
            });
            let here = here.or_else(|| pool_network.clone());
            let index = of_interface
                .and_then(|configuration| network.interface_of(&configuration))
                .or_else(|| network.interface_at(address?, here.as_ref()));
            // Azure shows members that joined by their interface as entries too: one member, once.
            match index.and_then(|index| by_interface.get(&index)).and_then(|at| members.get_mut(*at)) {
                Some(member) => member.admin_state = admin_state,
                None if address.is_some() => {
                    members.push(Member { interface: index, address, by_interface: false, admin_state });
                }
                None => {}
            }
        }
        Some(Self { id, members })
    }
}
