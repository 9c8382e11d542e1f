//! The documents that refer to backend pools: the model of a scale set, one of its instances, a network interface.

use azure_types::{
    InterfaceConfiguration, InterfaceConfigurations, InterfaceIpConfiguration, IpConfiguration,
    NetworkInterface, ResourceId, ScaleSetIpConfiguration, SubResource,
};

use super::backend_pool::PoolMembership;
use crate::model::Family;
use crate::model::balancer::without_suffix;
use crate::outcome::{Change, Member};

/// A document that refers to pools by the IP configurations of one network interface.
pub(crate) trait Holder {
    type Configuration: IpConfiguration;

    /// The IP configurations of the interface that receives traffic.
    fn configurations(&self) -> &[Self::Configuration];

    /// The same, mutable.
    fn configurations_mut(&mut self) -> &mut [Self::Configuration];

    /// The configuration among these that is the member of a family's pools.
    fn member_of(configurations: &[Self::Configuration], family: Family) -> Option<usize>;
}

fn is_of(configuration: &impl IpConfiguration, family: Family) -> bool {
    configuration.is_ipv6() == (family == Family::V6)
}

/// The model or an instance of a scale set. The interface is the only or the primary one; its configuration is, for
/// IPv4, the only or the primary one, and for IPv6 the first of that family.
impl Holder for InterfaceConfigurations {
    type Configuration = ScaleSetIpConfiguration;

    fn configurations(&self) -> &[ScaleSetIpConfiguration] {
        let interfaces = self.network_interface_configurations.as_deref().unwrap_or_default();
        let primary = match interfaces {
            [only] => Some(only),
            several => several.iter().find(|interface| is_primary(interface)),
        };
        primary.and_then(|one| one.properties.as_ref()?.ip_configurations.as_deref()).unwrap_or_default()
    }

    fn configurations_mut(&mut self) -> &mut [ScaleSetIpConfiguration] {
        let interfaces = self.network_interface_configurations.as_deref_mut().unwrap_or_default();
        let primary = match interfaces {
            [only] => Some(only),
            several => several.iter_mut().find(|interface| is_primary(interface)),
        };
        primary.and_then(|one| one.properties.as_mut()?.ip_configurations.as_deref_mut()).unwrap_or_default()
    }

    fn member_of(configurations: &[ScaleSetIpConfiguration], family: Family) -> Option<usize> {
        match family {
            Family::V6 => configurations.iter().position(|one| is_of(one, family)),
            Family::V4 if configurations.len() == 1 => Some(0),
            Family::V4 => configurations.iter().position(IpConfiguration::is_primary),
        }
    }
}

fn is_primary(interface: &InterfaceConfiguration) -> bool {
    interface.properties.as_ref().is_some_and(|properties| properties.primary == Some(true))
}

/// An interface of a virtual machine: its first configuration of the family that has an address.
impl Holder for NetworkInterface {
    type Configuration = InterfaceIpConfiguration;

    fn configurations(&self) -> &[InterfaceIpConfiguration] {
        let properties = self.properties.as_ref();
        properties.and_then(|properties| properties.ip_configurations.as_deref()).unwrap_or_default()
    }

    fn configurations_mut(&mut self) -> &mut [InterfaceIpConfiguration] {
        let properties = self.properties.as_mut();
        properties.and_then(|properties| properties.ip_configurations.as_deref_mut()).unwrap_or_default()
    }

    fn member_of(configurations: &[InterfaceIpConfiguration], family: Family) -> Option<usize> {
        let has_address = |one: &InterfaceIpConfiguration| {
            let address = one.properties.as_ref().and_then(|p| p.private_ip_address.as_deref());
            address.is_some_and(|address| !address.is_empty())
        };
        configurations.iter().position(|one| is_of(one, family) && has_address(one))
    }
}

/// The name of the load balancer of a pool, without the suffix, so that the external and the internal one of a cluster
/// compare equal.
fn balancer_of(pool: &ResourceId) -> &str {
    without_suffix(pool.as_str().rsplit('/').nth(2).unwrap_or_default())
}

/// A pool among these that belongs to another load balancer than `pool`: the load balancer that has a machine keeps it.
fn pool_elsewhere<'a>(pools: &'a [SubResource], pool: &ResourceId) -> Option<&'a ResourceId> {
    let balancer = balancer_of(pool);
    pools.iter().filter_map(|one| one.id.as_ref()).find(|id| !balancer_of(id).eq_ignore_ascii_case(balancer))
}

/// The state of a machine with regard to a pool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// It is a member.
    Member,
    /// It is not a member, and can become one.
    Free,
    /// It has no address of the pool's family.
    NoAddress,
    /// It is a member of the pools of another load balancer.
    Elsewhere(ResourceId),
}

/// The state of a machine with regard to a pool.
pub(crate) fn place_of<H: Holder>(holder: &H, membership: &PoolMembership) -> Place {
    let configurations = holder.configurations();
    let member = H::member_of(configurations, membership.family).and_then(|index| configurations.get(index));
    let Some(pools) = member.map(IpConfiguration::pools) else { return Place::NoAddress };
    if pools.iter().any(|pool| pool.id.as_ref() == Some(&membership.pool)) {
        return Place::Member;
    }
    let other = pool_elsewhere(pools, &membership.pool).and_then(ResourceId::parent);
    other.map_or(Place::Free, Place::Elsewhere)
}

/// The desired membership of a machine in a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wish {
    Join,
    Leave,
}

/// The holder with the desired memberships, and the changes; `None` without a change. A holder that is a member of
/// another load balancer's pools joins none. A holder that leaves a pool leaves it with every configuration.
pub(crate) fn changed<H: Holder + Clone>(
    holder: &H,
    memberships: &[PoolMembership],
    member: impl Fn() -> Member,
    wish: impl Fn(&PoolMembership) -> Option<Wish>,
) -> Option<(H, Vec<Change>)> {
    // Nearly all machines are up to date: only the others are copied.
    let mut document: Option<H> = None;
    let mut changes = Vec::new();
    for membership in memberships {
        let is_member = |one: &SubResource| one.id.as_ref() == Some(&membership.pool);
        let configurations = document.as_ref().unwrap_or(holder).configurations();
        let joins = match wish(membership) {
            None => continue,
            Some(Wish::Join) => {
                let index = H::member_of(configurations, membership.family);
                let Some((index, joining)) =
                    index.and_then(|index| Some((index, configurations.get(index)?)))
                else {
                    continue;
                };
                let pools = joining.pools();
                if pools.iter().any(is_member) || pool_elsewhere(pools, &membership.pool).is_some() {
                    continue;
                }
                let document = document.get_or_insert_with(|| holder.clone());
                if let Some(joining) = document.configurations_mut().get_mut(index) {
                    joining.pools_mut().push(SubResource::to(membership.pool.clone()));
                }
                true
            }
            Some(Wish::Leave) => {
                if !configurations.iter().any(|one| one.pools().iter().any(is_member)) {
                    continue;
                }
                let document = document.get_or_insert_with(|| holder.clone());
                for one in document.configurations_mut() {
                    if one.pools().iter().any(is_member) {
                        one.pools_mut().retain(|pool| !is_member(pool));
                    }
                }
                false
            }
        };
        let balancer = membership.pool.parent();
        // One or two changes each, for thousands of machines at a time.
        changes.reserve_exact(1);
        changes.push(Change::Membership {
            member: member(),
            joins,
            pool: membership.pool.name().to_owned(),
            load_balancer: balancer.as_ref().map(ResourceId::name).unwrap_or_default().to_owned(),
        });
    }
    document.map(|document| (document, changes))
}
