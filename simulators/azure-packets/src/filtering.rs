//! Decisions of the security groups around an interface.

use std::net::IpAddr;

use azure_types::ResourceId;

use super::flow::Flow;
use super::machine::Interface;
use super::network::Network;
use super::security_group::{
    Access, Decision, Direction, PROBE_SOURCE, PROBE_SOURCE_V6, Prefix, Rule, SecurityGroup, Side, is_private,
};
use super::service_tag;

impl SecurityGroup {
    /// The first rule that matches.
    fn decide(
        &self,
        network: &Network,
        here: &Interface,
        flow: &Flow<'_>,
        direction: Direction,
    ) -> Option<&Rule> {
        self.rules.iter().filter(|rule| rule.inbound == (direction == Direction::Inbound)).find(|rule| {
            rule.protocol
                .as_ref()
                .is_none_or(|protocol| protocol.eq_ignore_ascii_case(flow.protocol.as_str()))
                && rule.destination.has_port(flow.port)
                && rule.source.has_port(flow.source_port)
                && rule.source.has(network, here, flow.source, flow.source_interface)
                && rule.destination.has(network, here, flow.destination, flow.destination_interface)
        })
    }
}

impl Network {
    /// The denial that a flow meets on its way in, if any.
    pub(super) fn denial(&self, here: &Interface, flow: &Flow<'_>) -> Option<Decision> {
        self.matching(here, flow, Direction::Inbound)
            .find(|(_, _, rule)| rule.access == Access::Deny)
            .map(|(attached_to, group, rule)| decision(attached_to, group, rule, Direction::Inbound))
    }

    /// The decisions of the security groups around an interface, in order: the subnet's first on the way in, the
    /// interface's first on the way out. Ends with the first denial. Empty if no group is attached.
    pub(super) fn decisions(&self, here: &Interface, flow: &Flow<'_>, direction: Direction) -> Vec<Decision> {
        let mut decisions = Vec::new();
        for (attached_to, group, rule) in self.matching(here, flow, direction) {
            decisions.push(decision(attached_to, group, rule, direction));
            if rule.access == Access::Deny {
                break;
            }
        }
        decisions
    }

    /// The deciding rule of each group around an interface, in the order of evaluation.
    fn matching<'a>(
        &'a self,
        here: &'a Interface,
        flow: &'a Flow<'_>,
        direction: Direction,
    ) -> impl Iterator<Item = (&'a ResourceId, &'a SecurityGroup, &'a Rule)> {
        let of_subnet = here.subnet.as_ref().zip(here.targets.subnet_group.as_deref());
        let of_interface = here.targets.interface_group.as_deref().map(|group| (&here.interface, group));
        let mut order = [of_subnet, of_interface];
        if direction == Direction::Outbound {
            order.reverse();
        }
        order.into_iter().flatten().filter_map(move |(attached_to, group)| {
            Some((attached_to, group, group.decide(self, here, flow, direction)?))
        })
    }

    /// What the tag `VirtualNetwork` stands for at an interface: its network, those connected to it,
    /// and the prefixes of user routes in its subnet, a default route among them.
    fn is_in_virtual_network(&self, here: &Interface, address: IpAddr) -> bool {
        let routes = here.targets.subnet.as_deref().map_or(&[] as &[_], |subnet| &subnet.routes);
        self.is_in_address_space(here.virtual_network(), address)
            || routes.iter().any(|route| route.is_users() && route.prefix.contains(&address))
    }

    /// Whether a tag of Azure's services has an address. Public IPs of this Azure are in its cloud.
    fn is_in_service_tag(&self, tag: &str, address: IpAddr) -> bool {
        let (base, region) = tag.split_once('.').map_or((tag, None), |(base, region)| (base, Some(region)));
        let ours = || {
            self.public_at(address)
                .is_some_and(|public| region.is_none_or(|region| region.eq_ignore_ascii_case(&public.region)))
        };
        (base == "azurecloud" && !self.service_tags.contains_key(tag) && ours())
            || service_tag::prefixes(&self.service_tags, tag).iter().any(|prefix| prefix.contains(&address))
    }
}

fn decision(attached_to: &ResourceId, group: &SecurityGroup, rule: &Rule, direction: Direction) -> Decision {
    Decision {
        group: group.id.clone(),
        attached_to: attached_to.clone(),
        rule: rule.name.clone(),
        priority: rule.priority,
        is_default: rule.is_default,
        access: rule.access,
        direction,
    }
}

impl Side {
    fn has(
        &self,
        network: &Network,
        here: &Interface,
        address: IpAddr,
        interface: Option<&Interface>,
    ) -> bool {
        self.prefixes.iter().any(|prefix| prefix.has(network, here, address))
            || interface.is_some_and(|interface| {
                self.application_groups.iter().any(|group| interface.application_groups.contains(group))
            })
    }
}

impl Prefix {
    fn has(&self, network: &Network, here: &Interface, address: IpAddr) -> bool {
        let is_probe_source = address == PROBE_SOURCE || address == PROBE_SOURCE_V6;
        match self {
            Self::Any => true,
            Self::Addresses(addresses) => addresses.contains(&address),
            Self::AzureLoadBalancer => is_probe_source,
            Self::VirtualNetwork => !is_probe_source && network.is_in_virtual_network(here, address),
            Self::Internet => {
                !is_probe_source
                    && !is_private(address)
                    && !network.is_in_address_space(here.virtual_network(), address)
            }
            Self::Tag(tag) => network.is_in_service_tag(tag, address),
        }
    }
}
