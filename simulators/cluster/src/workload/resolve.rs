//! Name resolution as seen by the client: names of public addresses everywhere, records of private zones in linked
//! networks.

use std::collections::BTreeMap;
use std::net::IpAddr;

use azure_simulator::Azure;
use azure_simulator::packet::Source;
use serde_json::Value;

const PUBLIC_ADDRESSES: &str = "Microsoft.Network/publicIPAddresses";
const PRIVATE_RECORDS: [(&str, &str, &str); 2] = [
    ("Microsoft.Network/privateDnsZones/A", "aRecords", "ipv4Address"),
    ("Microsoft.Network/privateDnsZones/AAAA", "aaaaRecords", "ipv6Address"),
];
const LINKS: &str = "Microsoft.Network/privateDnsZones/virtualNetworkLinks";

/// The address of a host as seen from `from`; `hosts` is the `/etc/hosts` of its machine.
///
/// # Errors
/// The name does not resolve.
pub(super) fn resolve(
    azure: &Azure,
    from: &Source,
    hosts: &BTreeMap<String, IpAddr>,
    host: &str,
) -> Result<IpAddr, String> {
    if let Ok(address) = host.parse() {
        return Ok(address);
    }
    if let Some(address) = hosts.get(host) {
        return Ok(*address);
    }
    let found = private(azure, from, host).or_else(|| public(azure, host));
    found.ok_or_else(|| format!("no such host: {host}"))
}

fn public(azure: &Azure, host: &str) -> Option<IpAddr> {
    azure.documents_of_type(PUBLIC_ADDRESSES).iter().find_map(|one| {
        let name = one.pointer("/properties/dnsSettings/fqdn")?.as_str()?;
        name.eq_ignore_ascii_case(host)
            .then(|| one.pointer("/properties/ipAddress")?.as_str()?.parse().ok())?
    })
}

fn private(azure: &Azure, from: &Source, host: &str) -> Option<IpAddr> {
    let network = network_of(azure, from)?;
    PRIVATE_RECORDS.iter().find_map(|(kind, records, address)| {
        azure.documents_of_type(kind).iter().find_map(|record| {
            let id = record["id"].as_str()?;
            let (zone, name) =
                id.rsplit_once('/').and_then(|(rest, name)| Some((rest.rsplit_once('/')?.0, name)))?;
            let zone_name = zone.rsplit('/').next()?;
            if !format!("{name}.{zone_name}").eq_ignore_ascii_case(host) || !is_linked(azure, zone, &network)
            {
                return None;
            }
            record["properties"][records][0][address].as_str()?.parse().ok()
        })
    })
}

fn is_linked(azure: &Azure, zone: &str, network: &str) -> bool {
    let links = azure.documents_of_type(LINKS);
    links.iter().any(|link| {
        let of = link["id"].as_str().unwrap_or_default().to_lowercase();
        let to = link.pointer("/properties/virtualNetwork/id").and_then(Value::as_str).unwrap_or_default();
        of.starts_with(&format!("{}/", zone.to_lowercase())) && to.eq_ignore_ascii_case(network)
    })
}

/// The id of the network of a source.
fn network_of(azure: &Azure, from: &Source) -> Option<String> {
    let wanted = match from {
        Source::VirtualNetwork { network, .. } => {
            let all = azure.documents_of_type("Microsoft.Network/virtualNetworks");
            let is = |one: &&Value| {
                [&one["id"], &one["name"]]
                    .iter()
                    .any(|id| id.as_str().is_some_and(|id| id.eq_ignore_ascii_case(network)))
            };
            return Some(all.iter().find(is)?["id"].as_str()?.to_owned());
        }
        Source::Node { node } => node,
        _ => return None,
    };
    let kinds = ["Microsoft.Compute/virtualMachines", crate::instance::INSTANCES];
    let machines = kinds.iter().flat_map(|kind| azure.documents_of_type(kind));
    let mut named = machines
        .filter(|one| crate::instance::host_name(one).is_some_and(|name| name.eq_ignore_ascii_case(wanted)));
    let machine = named.next()?;
    let interface = machine.pointer("/properties/networkProfile/networkInterfaces/0/id")?.as_str()?;
    let interface = azure.document(&interface.parse().ok()?)?;
    let subnet = interface.pointer("/properties/ipConfigurations/0/properties/subnet/id")?.as_str()?;
    subnet.split_once("/subnets/").map(|(network, _)| network.to_owned())
}
