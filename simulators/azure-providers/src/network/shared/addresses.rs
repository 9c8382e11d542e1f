//! Private addresses of subnets and public addresses of the region.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use azure_types::ResourceId;
use ipnet::IpNet;
use serde_json::Value;

use super::type_names::{PUBLIC_IP_ADDRESSES, PUBLIC_IP_PREFIXES};
use crate::network::shared::codes::{ADDRESS_FORMAT, PUBLIC_IP_COUNT_LIMIT_REACHED};
use azure_engine::document::{items, name, text};
use azure_engine::provider::AzureState;
use azure_engine::refusal::{Code, Refusal, Result};

/// Azure keeps the network address, three addresses after it and, for IPv4, the last one.
const RESERVED_AT_START: u128 = 4;

/// The state of an address in a subnet.
enum Vacancy {
    Free,
    OutsideSubnet,
    Reserved,
    TakenBy(ResourceId),
}

/// The prefixes of a stored subnet document. A prefix in both members, as Azure Service Operator and others send it,
/// counts once.
pub(crate) fn prefixes_of(subnet: &Value) -> Vec<IpNet> {
    let single = text(subnet, "properties/addressPrefix").into_iter();
    let many = items(subnet, "properties/addressPrefixes").iter().filter_map(Value::as_str);
    let mut prefixes: Vec<IpNet> = Vec::new();
    for prefix in single.chain(many).filter_map(|prefix| prefix.parse().ok()) {
        if !prefixes.contains(&prefix) {
            prefixes.push(prefix);
        }
    }
    prefixes
}

/// The prefixes of a subnet; empty when there is no such subnet.
pub(crate) fn subnet_prefixes(azure: &AzureState, subnet: &ResourceId) -> Vec<IpNet> {
    let found = azure.store.holder(subnet).and_then(|network| azure.find_child(network, subnet));
    found.map_or_else(Vec::new, |(_, subnet)| prefixes_of(subnet))
}

/// First and last address that a prefix gives out, as numbers.
fn usable(prefix: &IpNet) -> (u128, u128) {
    match prefix {
        IpNet::V4(net) => {
            let (first, last) =
                (u128::from(u32::from(net.network())), u128::from(u32::from(net.broadcast())));
            (first + RESERVED_AT_START, last.saturating_sub(1))
        }
        IpNet::V6(net) => (u128::from(net.network()) + RESERVED_AT_START, u128::from(net.broadcast())),
    }
}

fn number(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(u32::from(address)),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn address(number: u128, v6: bool) -> IpAddr {
    if v6 {
        IpAddr::V6(Ipv6Addr::from(number))
    } else {
        IpAddr::V4(Ipv4Addr::from(u32::try_from(number).unwrap_or(u32::MAX)))
    }
}

/// The state of an address in a subnet.
fn vacancy(azure: &AzureState, subnet: &ResourceId, wanted: IpAddr) -> Vacancy {
    let prefixes = subnet_prefixes(azure, subnet);
    let Some(prefix) = prefixes.iter().find(|prefix| prefix.contains(&wanted)) else {
        return Vacancy::OutsideSubnet;
    };
    let (first, last) = usable(prefix);
    if !(first..=last).contains(&number(wanted)) {
        return Vacancy::Reserved;
    }
    match azure.store.addresses(subnet).and_then(|taken| taken.get(&wanted)) {
        Some(owner) => Vacancy::TakenBy(owner.clone()),
        None => Vacancy::Free,
    }
}

/// Whether an address of a subnet is free.
pub(crate) fn is_vacant(azure: &AzureState, subnet: &ResourceId, address: IpAddr) -> bool {
    matches!(vacancy(azure, subnet, address), Vacancy::Free)
}

/// The refusal of a requested address that another configuration has.
pub(crate) fn address_taken(id: &ResourceId, address: IpAddr, owner: &ResourceId) -> Refusal {
    Code::azures(400, "PrivateIPAddressIsAllocated").details(format_args!(
            "IP configuration {id} is using the private IP address {address} which is already allocated to resource \
             {owner}."
        ))
}

/// The requested address of a configuration with static allocation: in the subnet, not reserved, and free or its `own`
/// already.
pub(crate) fn static_address(
    azure: &AzureState,
    id: &ResourceId,
    subnet: &ResourceId,
    given: Option<&str>,
    own: impl Fn(&ResourceId) -> bool,
) -> Result<IpAddr> {
    let given = given.filter(|text| !text.is_empty()).ok_or_else(|| {
        Code::ours(400, "PrivateIPAddressNotProvided")
            .details(format_args!("IP configuration {id} with static allocation needs a privateIPAddress."))
    })?;
    let address: IpAddr = given.parse().map_err(|_| {
        ADDRESS_FORMAT
            .details(format_args!("The private IP address '{given}' of {id} is not a valid IP address."))
    })?;
    let prefixes = || joined(&subnet_prefixes(azure, subnet));
    match vacancy(azure, subnet, address) {
        Vacancy::Free => Ok(address),
        Vacancy::TakenBy(owner) if own(&owner) => Ok(address),
        Vacancy::TakenBy(owner) => Err(address_taken(id, address, &owner)),
        Vacancy::OutsideSubnet => Err(Code::azures(400, "PrivateIPAddressNotInSubnet").details(format_args!(
            "Private static IP address {address} of {id} does not belong to the range of subnet prefix {}.",
            prefixes()
        ))),
        Vacancy::Reserved => Err(Code::azures(400, "PrivateIPAddressInReservedRange").details(format_args!(
            "Private static IP address {address} of {id} falls within reserved IP range of subnet prefix {}.",
            prefixes()
        ))),
    }
}

/// The lowest free address of a subnet; `also_taken` are addresses promised in the same write.
pub(crate) fn free_address(
    azure: &AzureState,
    subnet: &ResourceId,
    v6: bool,
    also_taken: &BTreeSet<IpAddr>,
) -> Result<IpAddr> {
    check_addresses(azure, subnet, also_taken.len() + 1)?;
    let prefixes = subnet_prefixes(azure, subnet);
    let taken = azure.store.addresses(subnet);
    for prefix in prefixes.iter().filter(|prefix| matches!(prefix, IpNet::V6(_)) == v6) {
        let (first, last) = usable(prefix);
        let mut candidate = first;
        let mut used = taken
            .into_iter()
            .flat_map(|taken| taken.range(address(first, v6)..))
            .map(|(used, _)| *used)
            .peekable();
        while candidate <= last {
            let free = address(candidate, v6);
            // Both run upwards, so that one walk over the used addresses finds the first gap.
            if used.next_if_eq(&free).is_none() && !also_taken.contains(&free) {
                return Ok(free);
            }
            candidate += 1;
        }
    }
    Err(full(subnet, &prefixes, 1))
}

/// A free public address: where the search begins depends on the seed and the owner.
pub(crate) fn free_public_address(azure: &AzureState, owner: &ResourceId, v6: bool) -> Result<IpAddr> {
    let prefix = if v6 { IpNet::V6(azure.options.public_ipv6) } else { IpNet::V4(azure.options.public_ipv4) };
    let (first, last) = usable(&prefix);
    let size = last.saturating_sub(first) + 1;
    let start = u128::from(azure.seed.number("public address", owner.as_str(), 0)) % size;
    // No more resources hold an address than there are, so that many steps find a free one.
    let most = azure.store.count(PUBLIC_IP_ADDRESSES) as u128 + 1;
    let prefixes = public_prefixes(azure);
    let promised: u128 =
        prefixes.iter().map(|prefix| 1 << (prefix.max_prefix_len() - prefix.prefix_len()).min(64)).sum();
    for step in 0..(most + promised).min(size) {
        let candidate = address(first + (start + step) % size, v6);
        let free = !azure.store.public_address_taken(&candidate);
        if free && !prefixes.iter().any(|prefix| prefix.contains(&candidate)) {
            return Ok(candidate);
        }
    }
    Err(PUBLIC_IP_COUNT_LIMIT_REACHED.details(format_args!(
        "Cannot create more than {size} public IP addresses for this subscription in this region."
    )))
}

/// The ranges that are set aside for public IP prefixes.
fn public_prefixes(azure: &AzureState) -> Vec<IpNet> {
    azure
        .store
        .of_type(PUBLIC_IP_PREFIXES)
        .filter_map(|record| text(&record.body, "properties/ipPrefix")?.parse().ok())
        .collect()
}

/// A free range of public addresses: where the search begins depends on the seed and the owner.
pub(crate) fn free_public_prefix(
    azure: &AzureState,
    owner: &ResourceId,
    length: u8,
    v6: bool,
) -> Option<IpNet> {
    let space = if v6 { IpNet::V6(azure.options.public_ipv6) } else { IpNet::V4(azure.options.public_ipv4) };
    let size = 1_u128 << (space.max_prefix_len().checked_sub(length)?).min(64);
    let blocks = 1_u128 << length.checked_sub(space.prefix_len())?.min(64);
    let start = u128::from(azure.seed.number("public prefix", owner.as_str(), 0)) % blocks;
    let taken = public_prefixes(azure);
    // Each address and each range that is held spoils at most one block of its own size.
    let most = taken.len() as u128 + azure.store.count(PUBLIC_IP_ADDRESSES) as u128;
    (0..=(most * 16).min(blocks - 1)).find_map(|step| {
        let first = number(space.network()) + (start + step) % blocks * size;
        let candidate = IpNet::new(address(first, v6), length).ok()?;
        let clash = taken.iter().any(|other| other.contains(&candidate) || candidate.contains(other))
            || azure.store.public_address_within(&candidate.network(), &candidate.broadcast());
        (!clash).then_some(candidate)
    })
}

/// The holder of an address anywhere in a virtual network.
pub(crate) fn holder_in_network(
    azure: &AzureState,
    network: &ResourceId,
    address: IpAddr,
) -> Option<ResourceId> {
    let record = azure.store.get(network)?;
    items(&record.body, "properties/subnets").iter().find_map(|subnet| {
        let subnet = record.id.child("subnets", azure_engine::document::name(subnet));
        azure.store.addresses(&subnet)?.get(&address).cloned()
    })
}

/// Refuses when a subnet has not that many free addresses.
pub(crate) fn check_room(azure: &AzureState, subnet: &ResourceId, v6: bool, count: usize) -> Result<()> {
    let prefixes = subnet_prefixes(azure, subnet);
    let size: u128 = prefixes
        .iter()
        .filter(|prefix| matches!(prefix, IpNet::V6(_)) == v6)
        .map(usable)
        .fold(0, |sum, (first, last)| sum.saturating_add(last.saturating_add(1).saturating_sub(first)));
    let taken =
        azure.store.addresses(subnet).map_or(0, |taken| taken.keys().filter(|a| a.is_ipv6() == v6).count());
    check_addresses(azure, subnet, count)?;
    // The reference check reports an absent subnet.
    if prefixes.is_empty() || size.saturating_sub(taken as u128) >= count as u128 {
        return Ok(());
    }
    Err(full(subnet, &prefixes, count))
}

fn full(subnet: &ResourceId, prefixes: &[IpNet], wanted: usize) -> Refusal {
    let (name, prefixes) = (subnet.name(), joined(prefixes));
    Code::azures(400, "SubnetIsFull").details(format_args!(
        "Subnet {name} with address prefix {prefixes} does not have enough capacity for {wanted} IP addresses."
    ))
}

fn joined(prefixes: &[IpNet]) -> String {
    prefixes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Whether a virtual network may hold so many more addresses, in whichever of its subnets.
pub(crate) fn check_addresses(azure: &AzureState, subnet: &ResourceId, more: usize) -> Result<()> {
    let most = azure.limit("network.addressesPerVirtualNetwork");
    let Some(network) = subnet.parent().and_then(|network| azure.store.get(&network)) else { return Ok(()) };
    let subnets = items(&network.body, "properties/subnets").iter();
    let held: usize = subnets
        .filter_map(|subnet| azure.store.addresses(&network.id.child("subnets", name(subnet))))
        .map(BTreeMap::len)
        .sum();
    if (held + more) as u64 <= most {
        return Ok(());
    }
    let message = format!(
        "Cannot allocate {more} further private IP addresses in virtual network {}: it holds {held} and cannot hold more \
         than {most}.",
        network.id
    );
    Err(Code::ours(400, "VirtualNetworkPrivateIPAddressCountLimitReached").details(message))
}
