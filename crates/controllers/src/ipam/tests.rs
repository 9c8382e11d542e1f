//! Blocks and their holders: tables of the known cases, and a property over any order of events.

use std::collections::BTreeMap;

use cloud::MaskSizes;
use ipnet::IpNet;
use proptest::prelude::*;

use super::cidr_set::{CidrSet, check_mask};
use super::ledger::{Ledger, NoRanges, Twin};

fn net(text: &str) -> IpNet {
    text.parse().unwrap()
}

fn masks(v4: u8, v6: u8) -> MaskSizes {
    MaskSizes { v4, v6 }
}

/// The blocks of a mask in a range, by number.
fn blocks(cluster: &str, mask: u8) -> Vec<IpNet> {
    net(cluster).subnets(mask).unwrap().collect()
}

/// A range in which only these blocks of a mask are free.
fn with_free(cluster: &str, mask: u8, free: &[usize]) -> CidrSet {
    let mut set = CidrSet::new(net(cluster));
    for (number, block) in blocks(cluster, mask).iter().enumerate() {
        if !free.contains(&number) {
            set.occupy(block);
        }
    }
    set
}

/// The numbers of the blocks of a mask that are held in part or completely.
fn held(set: &CidrSet, mask: u8) -> Vec<usize> {
    let all = blocks(&set.cluster().to_string(), mask);
    (0..all.len()).filter(|number| set.is_held(&all[*number])).collect()
}

/// NODE-106, NODE-107.
#[test]
fn node_106_node_107_blocks_are_aligned_to_their_size() {
    // NODE-106: of a range of four.
    let small =
        |free: &[usize]| with_free("127.123.234.0/30", 32, free).find(31).ok().map(|found| found.block);
    assert_eq!(small(&[0, 3]), None);
    assert_eq!(small(&[1, 2]), None);
    assert_eq!(small(&[2, 3]), Some(net("127.123.234.2/31")));
    assert_eq!(small(&[0, 1, 2]), Some(net("127.123.234.0/31")));
    // NODE-107: of a range of many.
    let large =
        |free: &[usize], mask| with_free("10.244.0.0/16", 20, free).find(mask).ok().map(|found| found.block);
    assert_eq!(large(&[8, 9, 10, 11, 12, 13, 14, 15], 17), Some(net("10.244.128.0/17")));
    assert_eq!(large(&[8, 9, 10, 11, 12, 13, 14], 17), None);
    assert_eq!(large(&[1, 3, 5, 7, 9, 11, 12, 13, 14], 19), Some(net("10.244.192.0/19")));
}

/// NODE-108: a held block is held for blocks of any size.
#[test]
fn node_108_blocks_of_different_sizes_stand_side_by_side() {
    let mut set = CidrSet::new(net("127.123.234.0/30"));
    set.occupy(&net("127.123.234.0/31"));
    assert_eq!((held(&set, 32), held(&set, 31), held(&set, 30)), (vec![0, 1], vec![0], vec![0]));
    let mut set = CidrSet::new(net("beef:1234::/30"));
    set.occupy(&net("beef:1236::/31"));
    assert_eq!((held(&set, 32), held(&set, 31)), (vec![2, 3], vec![1]));
    assert_eq!(set.find(32).unwrap().block, net("beef:1234::/32"));
}

/// NODE-109.
#[test]
fn node_109_a_range_that_is_full_says_so() {
    let mut ledger = Ledger::new(&[net("127.123.234.0/30")], &[]);
    assert_eq!(ledger.assign("1", "n1", masks(30, 64)).unwrap(), [net("127.123.234.0/30")]);
    let error = ledger.assign("2", "n2", masks(30, 64)).unwrap_err().to_string();
    assert!(error.starts_with("CIDR allocation failed; ") && error.contains("--cluster-cidr"), "{error}");
}

/// NODE-110.
#[test]
fn node_110_ipv6_ranges_are_not_cut_too_fine() {
    let error = check_mask(net("fd00:10::/48"), 66).unwrap_err().to_string();
    assert!(error.starts_with("new CIDR set failed; the node CIDR size is too big"), "{error}");
    assert_eq!(check_mask(net("fd00:10::/48"), 64), Ok(()));
    assert_eq!(check_mask(net("10.0.0.0/8"), 30), Ok(()), "IPv4 has no such bound");
    assert!(check_mask(net("10.0.0.0/8"), 33).is_err());
}

/// NODE-111: different sizes: each node gets its own, without a common granularity.
#[test]
fn node_111_each_node_gets_ranges_of_its_own_size() {
    let mut ledger = Ledger::new(&[net("10.244.0.0/16"), net("fd00:10:244::/56")], &[]);
    let got: Vec<Vec<IpNet>> = [(24, 66), (26, 65), (25, 64)]
        .iter()
        .enumerate()
        .map(|(number, (v4, v6))| ledger.assign(&number.to_string(), "n", masks(*v4, *v6)).unwrap())
        .collect();
    assert_eq!(got[0], [net("10.244.0.0/24"), net("fd00:10:244::/66")]);
    assert_eq!(got[1], [net("10.244.1.0/26"), net("fd00:10:244:0:8000::/65")]);
    assert_eq!(got[2], [net("10.244.1.128/25"), net("fd00:10:244:1::/64")]);
}

/// NODE-112: a mask that is shorter than the cluster's.
#[test]
fn node_112_a_mask_that_is_shorter_than_the_clusters_is_an_error() {
    let mut ledger = Ledger::new(&[net("10.244.0.0/16"), net("fd00:10::/48")], &[]);
    let error = ledger.assign("1", "n1", masks(15, 64)).unwrap_err();
    assert!(matches!(error, NoRanges::Mask { .. }));
    let text = error.to_string();
    assert!(text.starts_with("invalid ipv4 mask size 15 of node n1, where the cluster's is 16: "), "{text}");
    let text = ledger.assign("1", "n1", masks(24, 45)).unwrap_err().to_string();
    assert!(text.starts_with("invalid ipv6 mask size 45 of node n1, where the cluster's is 48: "), "{text}");
    assert_eq!(ledger.assign("1", "n1", masks(24, 64)).unwrap()[0], net("10.244.0.0/24"), "nothing was lost");
}

/// NODE-113: the range of Services is never assigned to a node, whatever the sizes.
#[test]
fn node_113_reserved_ranges_are_never_given() {
    let services = net("10.244.0.0/18");
    let mut ledger = Ledger::new(&[net("10.244.0.0/16")], &[services]);
    let mut count = 0;
    for mask in [24, 25, 20, 32] {
        for number in 0..20 {
            let ranges = ledger.assign(&format!("{mask}-{number}"), "n", masks(mask, 64)).ok();
            count += ranges.iter().flatten().filter(|range| !services.contains(&range.network())).count();
            assert!(ranges.iter().flatten().all(|range| !services.contains(range)));
        }
    }
    assert!(count > 40, "{count}");
    let mut all = Ledger::new(&[net("10.244.0.0/16")], &[net("10.0.0.0/8")]);
    assert!(all.assign("1", "n1", masks(24, 64)).is_err(), "all of it is reserved");
}

/// NODE-114: if there is no range of the second family, none of the first is lost.
#[test]
fn node_114_a_node_gets_ranges_of_all_families_or_none() {
    let mut ledger = Ledger::new(&[net("10.244.0.0/30"), net("fd00::/64")], &[]);
    ledger.assign("1", "n1", masks(32, 64)).unwrap();
    for _ in 0..10 {
        assert!(ledger.assign("2", "n2", masks(32, 64)).is_err());
    }
    assert!(!ledger.is_held(&net("10.244.0.1/32")) && !ledger.is_held(&net("10.244.0.2/31")));
    ledger.forget("1");
    assert_eq!(ledger.assign("2", "n2", masks(32, 64)).unwrap()[1], net("fd00::/64"));
}

#[test]
fn what_nodes_have_already_is_theirs_and_oddities_are_named() {
    let mut ledger = Ledger::new(&[net("10.244.0.0/22")], &[net("10.244.3.0/24")]);
    assert_eq!(ledger.adopt("1", "n1", &[net("10.244.0.0/24")]), Default::default());
    assert_eq!(ledger.adopt("1", "n1", &[net("10.244.0.0/24")]), Default::default(), "again");
    let odd = ledger.adopt("2", "n2", &[net("10.244.0.0/25"), net("10.99.0.0/24")]);
    assert_eq!(
        odd.shared,
        [Twin { range: net("10.244.0.0/25"), other: Some(("n1".to_owned(), net("10.244.0.0/24"))) }]
    );
    assert_eq!(odd.outside, [net("10.99.0.0/24")]);
    assert_eq!(ledger.assign("3", "n3", masks(24, 64)).unwrap(), [net("10.244.1.0/24")]);
    ledger.forget("1");
    assert_eq!(ledger.assign("4", "n4", masks(24, 64)).unwrap(), [net("10.244.2.0/24")], "n2 has half of it");
    assert!(ledger.assign("5", "n5", masks(24, 64)).is_err());
    ledger.forget("2");
    assert_eq!(ledger.assign("5", "n5", masks(24, 64)).unwrap(), [net("10.244.0.0/24")]);
    assert_eq!(ledger.assign("5", "n5", masks(24, 64)).unwrap(), [net("10.244.0.0/24")], "the same again");
}

/// NODE-271: reports count each block once, whatever holds it, and the share is of addresses.
#[test]
fn node_271_what_is_held_is_counted() {
    let mut ledger = Ledger::new(&[net("10.244.0.0/22"), net("fd00::/64")], &[net("10.244.3.0/24")]);
    let reported = |ledger: &mut Ledger| {
        let all = ledger.turnover().into_iter();
        all.map(|one| (one.allocated, one.released, one.skipped, one.used)).collect::<Vec<_>>()
    };
    assert_eq!(reported(&mut ledger), [(1, 0, vec![], 0.25), (0, 0, vec![], 0.0)], "at the start");
    assert_eq!(reported(&mut ledger), []);
    ledger.adopt("1", "n1", &[net("10.244.0.0/24")]);
    ledger.adopt("2", "n2", &[net("10.244.0.0/25")]);
    assert_eq!(reported(&mut ledger), [(2, 0, vec![], 0.5)], "a part of what is held is held already");
    ledger.adopt("2", "n2", &[net("10.244.0.0/25")]);
    assert_eq!(reported(&mut ledger), []);
    ledger.assign("3", "n3", masks(24, 66)).unwrap();
    assert_eq!(reported(&mut ledger), [(1, 0, vec![1], 0.75), (1, 0, vec![0], 0.25)]);
    ledger.forget("1");
    assert_eq!(reported(&mut ledger), [(0, 1, vec![], 0.625)], "the other one has half of it");
    ledger.forget("2");
    assert_eq!(reported(&mut ledger), [(0, 1, vec![], 0.5)]);
    ledger.adopt("1", "n1", &[net("10.0.0.0/8")]);
    assert_eq!(reported(&mut ledger), [(1, 0, vec![], 1.0)], "no more than all");
}

#[derive(Debug, Clone)]
enum Act {
    Assign(u8, u8),
    Adopt(u8, u8, u8),
    Forget(u8),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        4 => (0_u8..24, 24_u8..29).prop_map(|(node, mask)| Act::Assign(node, mask)),
        2 => (0_u8..24, 0_u8..64, 24_u8..29).prop_map(|(node, at, mask)| Act::Adopt(node, at, mask)),
        2 => (0_u8..24).prop_map(Act::Forget),
    ]
}

proptest! {
    /// NODE-257: in any order of events: an assigned range was free, reserved ranges are never assigned, a refused size
    /// is really not available, and ranges without holder are free.
    #[test]
    fn node_257_ranges_are_never_lost_and_never_given_twice(acts in prop::collection::vec(act(), 1..60)) {
        let (cluster, reserved) = (net("10.244.0.0/22"), net("10.244.1.0/26"));
        let mut ledger = Ledger::new(&[cluster], &[reserved]);
        let mut has: BTreeMap<u8, IpNet> = BTreeMap::new();
        let mut used = 0.0;
        let overlap = |a: &IpNet, b: &IpNet| a.contains(b) || b.contains(a);
        for act in acts {
            match act {
                Act::Assign(node, mask) => {
                    let free = |block: &IpNet, has: &BTreeMap<u8, IpNet>| {
                        !overlap(block, &reserved) && !has.values().any(|other| overlap(block, other))
                    };
                    match ledger.assign(&node.to_string(), "n", masks(mask, 64)) {
                        Ok(ranges) if has.contains_key(&node) => prop_assert_eq!(ranges, vec![has[&node]]),
                        Ok(ranges) => {
                            prop_assert!(free(&ranges[0], &has) && ranges[0].prefix_len() == mask);
                            prop_assert!(cluster.contains(&ranges[0]));
                            has.insert(node, ranges[0]);
                        }
                        Err(_) => {
                            let any = cluster.subnets(mask).unwrap().find(|block| free(block, &has));
                            prop_assert_eq!(any, None);
                        }
                    }
                }
                Act::Adopt(node, at, mask) => {
                    let address = u32::from(at) * 16;
                    let address = std::net::Ipv4Addr::from(0x0af4_0000 + address);
                    let range = IpNet::new(address.into(), mask).unwrap().trunc();
                    has.remove(&node);
                    let shared = overlap(&range, &reserved) || has.values().any(|other| overlap(&range, other));
                    // A node that already has the range is not reported.
                    let odd = ledger.adopt(&node.to_string(), "n", &[range]);
                    prop_assert!(odd.shared.is_empty() || shared);
                    has.insert(node, range);
                }
                Act::Forget(node) => {
                    ledger.forget(&node.to_string());
                    has.remove(&node);
                }
            }
            used = ledger.turnover().first().map_or(used, |now| now.used);
            let held = cluster.subnets(28).unwrap().filter(|block| ledger.is_held(block)).count();
            prop_assert_eq!(used, held as f64 / 64.0);
            for block in cluster.subnets(28).unwrap() {
                let somebodys = overlap(&block, &reserved) || has.values().any(|other| overlap(&block, other));
                prop_assert_eq!(ledger.is_held(&block), somebodys, "{}", block);
            }
        }
    }
}
