//! The clients of a Service: which packets must arrive, and which must not.

use std::net::IpAddr;

use azure_simulator::packet::Source;
use ipnet::IpNet;

use crate::rule::IpFamily;

/// Strangers on the internet, outside of every range that an entry names.
const STRANGERS: [&str; 4] = ["192.0.2.1", "198.51.100.20", "2a01:4f8::1", "2600:1f00::20"];

/// A client in the virtual network that is not a node, so that no load balancer chooses it.
const GUESTS: [&str; 2] = ["10.240.99.9", "fd00:10:240::99"];

/// An address of each service tag that entries use, by the published lists.
const TAGGED: [(&str, &str); 4] = [
    ("AzureFrontDoor.Backend", "147.243.0.5"),
    ("Storage.WestEurope", "20.38.108.9"),
    ("AzureCloud.WestEurope", "13.80.0.9"),
    ("AzureKeyVault.WestEurope", "13.69.64.73"),
];

/// The clients that may reach a Service.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clients {
    /// All clients on the internet.
    pub anyone: bool,
    /// All clients in the virtual network.
    pub network: bool,
    /// These addresses.
    pub ranges: Vec<IpNet>,
    /// Azure's service tags.
    pub tags: Vec<String>,
}

/// A packet's sender, and whether it must arrive.
#[derive(Debug, Clone)]
pub struct Client {
    /// The sender.
    pub source: Source,
    /// Whether the packet must arrive.
    pub arrives: bool,
}

impl Clients {
    /// Parses `anyone`, `network`, `nobody`, networks and service tags.
    ///
    /// # Errors
    /// A service tag without an address in this file.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut clients = Self::default();
        for word in words {
            match word {
                "anyone" => clients.anyone = true,
                "network" => clients.network = true,
                "nobody" => {}
                _ => match word.parse::<IpNet>() {
                    Ok(range) => clients.ranges.push(range),
                    Err(_) if TAGGED.iter().any(|(tag, _)| *tag == word) => {
                        clients.tags.push(word.to_owned());
                    }
                    Err(_) => return Err(format!("`{word}` is no network and no known service tag")),
                },
            }
        }
        Ok(clients)
    }

    fn is_named(&self, address: IpAddr) -> bool {
        self.ranges.iter().any(|range| range.contains(&address))
            || TAGGED.iter().any(|(tag, member)| {
                self.tags.iter().any(|mine| mine == tag) && member.parse() == Ok(address)
            })
    }

    /// Packets to an address of this family: inside, outside and at the borders of the allowed ranges.
    pub fn packets(&self, family: IpFamily, internal: bool, network: &str) -> Vec<Client> {
        let mut addresses: Vec<IpAddr> = Vec::new();
        for range in &self.ranges {
            addresses.extend([range.network(), range.broadcast()]);
            addresses
                .extend([step(range.network(), false), step(range.broadcast(), true)].into_iter().flatten());
        }
        addresses.extend(TAGGED.iter().filter_map(|(_, address)| address.parse::<IpAddr>().ok()));
        addresses.extend(STRANGERS.iter().chain(&GUESTS).filter_map(|text| text.parse::<IpAddr>().ok()));
        addresses.retain(|address| address.is_ipv4() == (family == IpFamily::V4) && is_usable(*address));
        addresses.sort();
        addresses.dedup();
        let mut clients = Vec::new();
        for address in addresses {
            let inside = is_inside(address);
            if inside != internal {
                continue;
            }
            let arrives = self.is_named(address) || if inside { self.network } else { self.anyone };
            let source =
                if inside { Source::virtual_network(network, address) } else { Source::internet(address) };
            clients.push(Client { source, arrives });
        }
        if internal && family == IpFamily::V4 {
            let stranger = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
            clients.push(Client { source: Source::internet(stranger), arrives: false });
        }
        clients
    }
}

/// The virtual network's ranges.
fn is_inside(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => v4.octets()[0] == 10 && (240..244).contains(&v4.octets()[1]),
        IpAddr::V6(v6) => v6.is_unique_local(),
    }
}

/// Whether a client can have this address.
fn is_usable(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let first = v4.octets()[0];
            // The first and last addresses of the virtual network's subnets belong to Azure.
            let azures = is_inside(address) && (v4.octets()[3] < 4 || v4.octets()[3] == 255);
            (is_inside(address) || !v4.is_private()) && first != 0 && first < 224 && first != 127 && !azures
        }
        IpAddr::V6(v6) => is_inside(address) || (v6.segments()[0] & 0xe000) == 0x2000,
    }
}

fn step(address: IpAddr, up: bool) -> Option<IpAddr> {
    let moved = |bits: u128| if up { bits.checked_add(1) } else { bits.checked_sub(1) };
    match address {
        IpAddr::V4(v4) => {
            let bits = u32::try_from(moved(u128::from(v4.to_bits()))?).ok()?;
            Some(IpAddr::V4(bits.into()))
        }
        IpAddr::V6(v6) => Some(IpAddr::V6(moved(v6.to_bits())?.into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_borders_of_a_range_are_tried_from_both_sides() {
        let clients = Clients::parse(["203.0.113.16/28"]).unwrap();
        let packets = clients.packets(IpFamily::V4, false, "network");
        let arrives = |address: &str| {
            let source = Source::internet(address.parse().unwrap());
            packets.iter().find(|client| client.source == source).unwrap().arrives
        };
        assert!(arrives("203.0.113.16") && arrives("203.0.113.31"));
        assert!(!arrives("203.0.113.15") && !arrives("203.0.113.32") && !arrives("192.0.2.1"));
        assert!(Clients::parse(["AzureNonsense"]).unwrap_err().contains("AzureNonsense"));
    }
}
