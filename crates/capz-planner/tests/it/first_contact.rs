//! Resources that exist before the cluster has recorded that it creates them.

use std::collections::BTreeSet;

use azure_types::ResourceId;
use capz_planner::cluster::{Memory, contact, linked_already, links_of_zones, remembered, unrecorded};
use capz_planner::service::{self, Service};
use capz_planner::tags::{ID, OWNED, owner_key};
use capz_planner::{Goal, ObservedResources, OwnershipRule, Reading};
use serde_json::{Value, json};

use super::cluster::Cluster;

fn observed(documents: &[(&ResourceId, Value)]) -> ObservedResources {
    let mut observed = ObservedResources::default();
    for (id, document) in documents {
        observed.take(id, Some(document.clone()));
    }
    observed
}

/// The verdict on one existing resource: used as it is, of no concern, or the beginning of the refusal.
fn verdict(id: Option<&str>, goal: Goal, held: Value) -> Result<bool, String> {
    let cluster = Cluster::new(json!({}));
    let scope = capz_planner::ClusterScope { id, ..cluster.scope() };
    let used = contact(scope, std::slice::from_ref(&goal), &observed(&[(&goal.id, held)]))?;
    assert!(used.iter().all(|used| *used == goal.id));
    Ok(!used.is_empty())
}

#[test]
fn tags_tell_the_owner_of_a_resource_that_is_not_recorded() {
    let group = Cluster::new(json!({})).scope().in_group("publicIPAddresses", "ip");
    let goal = || Goal::new(group.clone(), &service::PUBLIC_IPS, json!({}));
    let owned = |more: Value| {
        let mut tags = json!({ owner_key("my-cluster"): OWNED });
        tags.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "tags": tags })
    };
    for (id, held, expected) in [
        (None, json!({}), None),
        (None, json!({ "tags": { "team": "a" } }), None),
        (None, owned(json!({})), Some("this cluster has not made it")),
        (None, owned(json!({ ID: "" })), Some("this cluster has not made it")),
        (None, owned(json!({ "team": "a" })), Some("this cluster has not made it")),
        (None, owned(json!({ ID: "me" })), None),
        (Some("me"), owned(json!({ ID.to_uppercase(): "me" })), None),
        (
            Some("me"),
            owned(json!({})),
            Some("give the resource the tag sigs.k8s.io_cluster-api-provider-azure_cluster-id=me"),
        ),
        (
            Some("me"),
            owned(json!({ ID: "another" })),
            Some("belongs to another cluster with the name my-cluster"),
        ),
        (None, json!({ "tags": { owner_key("green"): OWNED } }), Some("belongs to")),
    ] {
        match (verdict(id, goal(), held.clone()), expected) {
            (Ok(used), None) => assert!(!used, "{held}"),
            (Err(words), Some(part)) => assert!(words.contains(part), "{held}: {words}"),
            (other, _) => panic!("{held}: {other:?}"),
        }
    }
}

#[test]
fn a_peering_that_leads_to_the_same_network_is_used_as_it_is() {
    let cluster = Cluster::new(json!({}));
    let network = cluster.scope().network();
    let peering = network.child("virtualNetworkPeerings", "peering");
    let to = |name: &str| {
        let other = ResourceId::group("123", "other").resource("Microsoft.Network", "virtualNetworks", name);
        json!({ "properties": { "remoteVirtualNetwork": { "id": other } } })
    };
    let goal = || {
        Goal::new(peering.clone(), &service::PEERINGS, to("one")).owned(OwnershipRule::Joins(network.clone()))
    };
    assert_eq!(verdict(None, goal(), to("one")), Ok(true));
    assert_eq!(verdict(None, goal(), json!({})), Ok(true));
    let words = verdict(None, goal(), to("two")).unwrap_err();
    assert!(words.contains("leads to another network, ") && words.contains("two"), "{words}");
}

#[test]
fn a_record_that_says_the_same_is_used_as_it_is() {
    let zone = ResourceId::group("123", "my-rg").resource("Microsoft.Network", "privateDnsZones", "zone");
    let record = zone.child("A", "apiserver");
    let says = |address: &str| json!({ "properties": { "aRecords": [{ "ipv4Address": address }] } });
    let goal =
        || Goal::new(record.clone(), &service::DNS_RECORD, says("10.0.0.4")).owned(OwnershipRule::Recorded);
    assert_eq!(verdict(None, goal(), says("10.0.0.4")), Ok(true));
    let words = verdict(None, goal(), says("10.0.0.5")).unwrap_err();
    assert!(words.contains("exists already in ") && words.contains("zone, says something else"), "{words}");
    // A record that is not there, and rules that nothing but the resource itself concerns.
    let cluster = Cluster::new(json!({}));
    let none = contact(cluster.scope(), &[goal()], &ObservedResources::default());
    assert_eq!(none, Ok(BTreeSet::new()));
    assert_eq!(
        verdict(None, Goal::foreign(record.clone(), &service::DNS_RECORD), says("10.0.0.5")),
        Ok(false)
    );
}

#[test]
fn a_network_that_is_linked_already_needs_no_second_link() {
    let zone =
        |name: &str| ResourceId::group("123", "g").resource("Microsoft.Network", "privateDnsZones", name);
    let network = |name: &str| {
        let id = ResourceId::group("123", "g").resource("Microsoft.Network", "virtualNetworks", name);
        json!({ "properties": { "virtualNetwork": { "id": id } } })
    };
    let link = |of: &str, name: &str| zone(of).child("virtualNetworkLinks", name);
    let goal = |service: &'static Service| Goal::new(link("z", "own"), service, network("n"));
    let shown = |id: &ResourceId, of: &str| {
        let mut document = network(of);
        document["id"] = json!(id.to_string().to_uppercase());
        document
    };
    for (service, held, expected) in [
        (&service::DNS_LINKS, shown(&link("z", "theirs"), "N"), true),
        (&service::DNS_LINKS, shown(&link("z", "theirs"), "other"), false),
        (&service::DNS_LINKS, shown(&link("other", "theirs"), "n"), false),
        (&service::DNS_RECORD, shown(&link("z", "theirs"), "n"), false),
    ] {
        let found = linked_already(&[goal(service)], &[shown(&link("w", "x"), "w"), held.clone()]);
        assert_eq!(found, expected.then(|| link("z", "own")).into_iter().collect(), "{held}");
    }
    // The links of a zone are read if it exists, and the link of the goal does not.
    let links = |service, zone_exists: bool, link_exists: bool| {
        let mut observed = ObservedResources::default();
        observed.take(&zone("z"), zone_exists.then(|| json!({})));
        observed.take(&link("z", "own"), link_exists.then(|| json!({})));
        let found = links_of_zones(&[goal(service)], &observed);
        found
            .iter()
            .all(|reading| matches!(reading, Reading::List { group, .. } if *group == zone("z")))
            .then_some(found.len())
    };
    assert_eq!(links(&service::DNS_LINKS, true, false), Some(1));
    assert_eq!(links(&service::DNS_LINKS, true, true), Some(0));
    assert_eq!(links(&service::DNS_LINKS, false, false), Some(0));
    assert_eq!(links(&service::DNS_RECORD, true, false), Some(0));
}

#[test]
fn what_is_recorded_needs_no_first_contact() {
    let cluster = Cluster::new(json!({}));
    let (goals, memory) = (cluster.goals(), remembered(cluster.scope()));
    let ids = |goals: Vec<Goal>| goals.into_iter().map(|goal| goal.id).collect::<BTreeSet<_>>();
    assert_eq!(ids(unrecorded(goals.clone(), &Memory::default())), ids(goals.clone()));
    assert_eq!(ids(unrecorded(goals.clone(), &memory)), BTreeSet::new());
    // One that another owner made is forgotten.
    let network = BTreeSet::from([cluster.scope().network()]);
    assert_eq!(ids(unrecorded(goals, &memory.without(&network))), network);
}
