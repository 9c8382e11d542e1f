//! Which addresses of a virtual network are free.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::network::shared::addresses::{free_address, holder_in_network, is_vacant, subnet_prefixes};
use crate::network::shared::codes::ADDRESS_FORMAT;
use azure_engine::document::{items, name};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Handled, Result};

/// How many free addresses are proposed instead of a taken one.
const MAX_PROPOSALS: usize = 5;

pub(crate) fn answer(
    azure: &AzureState,
    record: &Record,
    below: &[&str],
    query: &BTreeMap<String, String>,
) -> Handled<Value> {
    let is = |word: &str, expected: &str| word.eq_ignore_ascii_case(expected);
    match below {
        [word] if is(word, "CheckIPAddressAvailability") => {
            Some(check(azure, record, query.get("ipaddress").map_or("", String::as_str)))
        }
        _ => None,
    }
}

fn subnets(network: &Record) -> impl Iterator<Item = ResourceId> {
    items(&network.body, "properties/subnets").iter().map(|subnet| network.id.child("subnets", name(subnet)))
}

fn check(azure: &AzureState, network: &Record, given: &str) -> Result<Value> {
    let Ok(address) = given.parse::<IpAddr>() else {
        return Err(
            ADDRESS_FORMAT.details(format_args!("The IP address '{given}' is not a valid IP address."))
        );
    };
    let inside =
        |subnet: &ResourceId| subnet_prefixes(azure, subnet).iter().any(|prefix| prefix.contains(&address));
    let Some(subnet) = subnets(network).find(inside) else {
        return Err(Code::ours(400, "PrivateIPAddressNotInAnySubnet").details(format_args!(
            "Private static IP address {address} does not belong to the range of any subnet in {}.",
            network.id
        )));
    };
    let mut promised = BTreeSet::new();
    if is_vacant(azure, &subnet, address) {
        return Ok(json!({ "available": true, "availableIPAddresses": [], "isPlatformReserved": false }));
    }
    while promised.len() < MAX_PROPOSALS {
        let Ok(free) = free_address(azure, &subnet, address.is_ipv6(), &promised) else { break };
        promised.insert(free);
    }
    let reserved = holder_in_network(azure, &network.id, address).is_none();
    let free: Vec<String> = promised.iter().map(ToString::to_string).collect();
    Ok(json!({ "available": false, "availableIPAddresses": free, "isPlatformReserved": reserved }))
}
