//! The IP families of an existing Service change: a family that stays keeps its address.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s::Service;
use simulated_cluster::Shape;

use crate::world::*;

/// Every list of families.
const LISTS: [&[&str]; 4] = [&["IPv4"], &["IPv6"], &["IPv4", "IPv6"], &["IPv6", "IPv4"]];

fn of_families(mut service: Service, list: &[&str]) -> Service {
    service.spec.ip_families = list.iter().map(|family| (*family).to_owned()).collect();
    service
}

/// Addresses by whether they are IPv6.
fn by_family(addresses: &[IpAddr]) -> BTreeMap<bool, IpAddr> {
    addresses.iter().map(|address| (address.is_ipv6(), *address)).collect()
}

/// F3, LB-601: from every list to every other one and back, external and internal, with and without a restart.
#[tokio::test(start_paused = true)]
async fn lb_601_a_family_that_stays_keeps_its_address() {
    let ways = LISTS.into_iter().flat_map(|from| LISTS.map(|to| (from, to)));
    for ((from, to), is_internal) in ways.flat_map(|way| [(way, false), (way, true)]) {
        let world = World::of(&Shape { dual_stack: true, ..shape() });
        let mut program = world.start();
        let web = |list: &[&str]| {
            let web = of_families(service("web", &[80]), list);
            if is_internal { internal(web) } else { web }
        };
        let mut before = BTreeMap::new();
        for (step, list) in [from, to, from, to].into_iter().enumerate() {
            if step == 2 {
                program = world.start();
            }
            let ensured = world.serve(&program, web(list)).await.unwrap();
            let now = by_family(&ensured.addresses);
            assert_eq!(ensured.addresses.len(), list.len(), "{from:?} {to:?} {is_internal}: {ensured:?}");
            assert_eq!(now.len(), list.len(), "{from:?} {to:?} {is_internal}: {ensured:?}");
            for (is_v6, address) in &now {
                let old = before.get(is_v6).unwrap_or(address);
                assert_eq!(old, address, "{from:?} {to:?} {is_internal}");
            }
            before = now;
            let count = if is_internal { 0 } else { list.len() };
            assert_eq!(world.documents(PUBLIC_IPS).len(), count, "{from:?} {to:?}");
            program = world.start();
            world.azure.clear_journal();
            world.serve(&program, web(list)).await.unwrap();
            assert_eq!(world.all_writes(), Vec::<String>::new(), "{from:?} {to:?}");
        }
        world.remove(&program, &web(to)).await.unwrap();
        assert!(world.documents(PUBLIC_IPS).is_empty() && world.documents(LOAD_BALANCERS).is_empty());
    }
}
