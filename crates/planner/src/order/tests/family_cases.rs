//! Changes of a Service's families: a family that stays keeps its address (F3, LB-601).

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::*;
use crate::model::{Family, Flavor};

/// Every list of families that a Service can have, whatever its policy says about its origin.
const LISTS: [&[&str]; 4] = [&["IPv4"], &["IPv6"], &["IPv4", "IPv6"], &["IPv6", "IPv4"]];

fn family(name: &str) -> Family {
    if name == "IPv6" { Family::V6 } else { Family::V4 }
}

/// The address at which each family's rule arrives. Its frontend and its pool are of one family.
fn addresses(azure: &Azure, flavor: Flavor) -> BTreeMap<Family, IpAddr> {
    let lb = azure.load_balancer(flavor).unwrap().properties.as_ref().unwrap();
    let mut found = BTreeMap::new();
    for rule in lb.load_balancing_rules.iter().flatten() {
        let p = rule.properties.as_ref().unwrap();
        let id = |part: &Option<azure_types::SubResource>| part.as_ref().unwrap().id.clone().unwrap();
        let frontend = id(&p.frontend_ip_configuration);
        let mut frontends = lb.frontend_ip_configurations.iter().flatten();
        let frontend = frontends.find(|one| one.name.as_deref() == Some(frontend.name())).unwrap();
        let frontend = frontend.properties.as_ref().unwrap();
        let address: IpAddr = match &frontend.public_ip_address {
            Some(reference) => {
                let mut all = azure.observed.public_ips.iter();
                let public_ip = all.find(|one| one.id == reference.id).unwrap();
                public_ip.properties.as_ref().unwrap().ip_address.clone().unwrap().parse().unwrap()
            }
            None => frontend.private_ip_address.clone().unwrap().parse().unwrap(),
        };
        let pool = id(&p.backend_address_pool);
        assert_eq!(crate::model::names::family_of_name(pool.name()), Family::of(address), "{rule:?}");
        assert_eq!(found.insert(Family::of(address), address), None);
    }
    found
}

/// F3, LB-601: all changes from one list of families to another and on to a third, external and internal.
#[test]
fn lb_601_a_family_that_stays_keeps_its_address() {
    let nodes = nodes([node("alpha", 0)]);
    let all = || LISTS.into_iter();
    let ways = all().flat_map(|a| all().flat_map(move |b| all().map(move |c| [a, b, c])));
    for way in ways.flat_map(|way| [(Flavor::External, way), (Flavor::Internal, way)]) {
        let (flavor, lists) = way;
        let mut azure = Azure::new();
        let mut before: BTreeMap<Family, IpAddr> = BTreeMap::new();
        for list in lists {
            let published: Vec<String> = before.values().map(ToString::to_string).collect();
            let published: Vec<&str> = published.iter().map(String::as_str).collect();
            let service = svc("test1").tcp(80).families(list).published(&published);
            let service = if flavor.is_internal() { service.internal() } else { service };
            let end = azure.converge(&[service.arc()], &nodes);
            assert!(end.refused.is_empty() && end.waiting.is_empty(), "{way:?}: {:?}", end.refused);
            let now = addresses(&azure, flavor);
            let wanted: std::collections::BTreeSet<Family> = list.iter().map(|name| family(name)).collect();
            assert_eq!(now.keys().copied().collect::<std::collections::BTreeSet<_>>(), wanted, "{way:?}");
            for (family, address) in before.iter().filter(|(family, _)| wanted.contains(family)) {
                assert_eq!(now.get(family), Some(address), "{way:?} at {list:?}");
            }
            let lb = azure.load_balancer(flavor).unwrap().properties.as_ref().unwrap();
            assert_eq!(lb.frontend_ip_configurations.as_ref().unwrap().len(), list.len(), "{way:?}");
            let public = if flavor.is_internal() { 0 } else { list.len() };
            assert_eq!(azure.observed.public_ips.len(), public, "{way:?}");
            before = now;
        }
        let gone = svc("test1").tcp(80).families(lists[2]).deleting();
        azure.converge(&[gone.arc()], &nodes);
        assert!(azure.observed.load_balancers.is_empty() && azure.observed.public_ips.is_empty(), "{way:?}");
    }
}
