//! The spread of flows over the members of a pool.

use std::net::IpAddr;

use super::balancer::Distribution;
use super::protocol::Protocol;

/// What identifies a flow.
#[derive(Debug, Clone, Copy)]
pub(super) struct FlowKey {
    pub source: IpAddr,
    pub source_port: u16,
    pub destination: IpAddr,
    pub port: u16,
    pub protocol: Protocol,
}

/// Chooses a member by its address: each flow goes to the member with the highest hash of both, so
/// that a member which comes or goes moves no flow but its own.
pub(super) fn choose(
    seed: u64,
    distribution: Distribution,
    flow: &FlowKey,
    members: impl Iterator<Item = (usize, Option<IpAddr>)>,
) -> Option<usize> {
    let mut hash = Hash(seed ^ 0xcbf2_9ce4_8422_2325);
    hash.address(flow.source);
    hash.address(flow.destination);
    if distribution != Distribution::SourceAndDestination {
        hash.byte(flow.protocol as u8);
    }
    if distribution == Distribution::FiveTuple {
        flow.source_port.to_be_bytes().into_iter().for_each(|byte| hash.byte(byte));
        flow.port.to_be_bytes().into_iter().for_each(|byte| hash.byte(byte));
    }
    members
        .map(|(index, address)| {
            let mut weight = Hash(hash.0);
            if let Some(address) = address {
                weight.address(address);
            }
            (weight.finish(), index)
        })
        .max()
        .map(|(_, index)| index)
}

/// FNV-1a with a closing mix: short keys spread well and the result is the same everywhere.
struct Hash(u64);

impl Hash {
    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(address) => address.octets().into_iter().for_each(|byte| self.byte(byte)),
            IpAddr::V6(address) => address.octets().into_iter().for_each(|byte| self.byte(byte)),
        }
    }

    fn finish(&self) -> u64 {
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(source_port: u16) -> FlowKey {
        FlowKey {
            source: [203, 0, 113, 7].into(),
            source_port,
            destination: [198, 18, 0, 1].into(),
            port: 80,
            protocol: Protocol::Tcp,
        }
    }

    fn member(index: usize) -> (usize, Option<IpAddr>) {
        (index, Some([10, 0, 0, index as u8].into()))
    }

    #[test]
    fn flows_spread_evenly_and_each_stays_where_it_is() {
        let mut counts = [0; 4];
        for port in 0..4000 {
            let chosen = choose(7, Distribution::FiveTuple, &flow(port), (0..4).map(member)).unwrap();
            assert_eq!(
                choose(7, Distribution::FiveTuple, &flow(port), (0..4).rev().map(member)),
                Some(chosen)
            );
            counts[chosen] += 1;
        }
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_member_that_goes_moves_only_its_own_flows() {
        for port in 0..500 {
            let before = choose(7, Distribution::FiveTuple, &flow(port), (0..4).map(member)).unwrap();
            let after = choose(7, Distribution::FiveTuple, &flow(port), (0..3).map(member)).unwrap();
            assert!(before == 3 || before == after);
        }
    }

    #[test]
    fn source_affinity_ignores_ports() {
        let chosen: std::collections::BTreeSet<_> = (0..200)
            .map(|port| choose(7, Distribution::SourceAndDestination, &flow(port), (0..4).map(member)))
            .collect();
        assert_eq!(chosen.len(), 1);
    }

    #[test]
    fn nobody_is_chosen_of_none() {
        assert_eq!(choose(7, Distribution::FiveTuple, &flow(1), std::iter::empty()), None);
    }
}
