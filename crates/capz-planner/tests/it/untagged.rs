//! Resources without tags, and their owners: records in zones that clusters share, and peerings.

use azure_types::ResourceId;
use capz_planner::cluster::{End, contact, ends, goals, remembered, remembered_of};
use capz_planner::{Action, ClusterScope, Goal, State, tags};
use serde_json::{Value, json};

use super::azure::Azure;
use super::cluster::Cluster;

/// A cluster in this group with its name in a user's zone.
fn cluster(group: &str) -> Cluster {
    Cluster::new(json!({ "resourceGroup": group, "networkSpec": {
        "apiServerLB": { "type": "Internal" },
        "privateDNSZoneName": "corp.example.com", "privateDNSZoneResourceGroup": "dns",
    } }))
}

fn scope<'a>(cluster: &'a Cluster, id: &'a str) -> ClusterScope<'a> {
    ClusterScope { id: Some(id), ..cluster.scope() }
}

fn wanted(scope: ClusterScope<'_>) -> Vec<Goal> {
    goals(scope, &remembered(scope))
}

/// The goals of the deletion of a cluster that has recorded its declaration.
fn ended(scope: ClusterScope<'_>) -> Vec<Goal> {
    ends(scope, &remembered(scope), End::WholeGroups)
}

fn zone() -> ResourceId {
    ResourceId::group("123", "dns").resource("Microsoft.Network", "privateDnsZones", "corp.example.com")
}

fn record() -> ResourceId {
    zone().child("A", "apiserver")
}

/// An Azure with the user's zone.
fn azure() -> Azure {
    let mut azure = Azure::default();
    azure.put(&ResourceId::group("123", "dns"), json!({}));
    azure.put(&zone(), json!({ "location": "global" }));
    azure
}

fn made_with(metadata: Value) -> Value {
    json!({ "properties": { "ttl": 300, "aRecords": [{ "ipv4Address": "10.0.0.100" }], "metadata": metadata } })
}

/// S7: two clusters see no record at the same moment, and both record that they will create it. The one that creates it
/// owns it; the other one creates nothing, deletes nothing, and is served once the record was deleted with its cluster.
#[test]
fn of_two_clusters_that_recorded_one_record_one_has_it() {
    let (one, other) = (cluster("one"), cluster("other"));
    let (one, other) = (scope(&one, "a"), scope(&other, "b"));
    let mut azure = azure();
    assert!(azure.settle(one.claimant(), &wanted(one)).is_reached());
    assert_eq!(azure.rounds[0], ["apiserver"]);
    let made = azure.documents.clone();
    assert_eq!(made[&record()]["properties"]["metadata"], json!({ tags::ID: "a" }));

    let plan = azure.plan(other.claimant(), wanted(other));
    assert_eq!(plan.steps().count(), 0, "{plan}");
    let Some(State::Disputed(rival)) = plan.state_of(&record()) else { panic!("{plan}") };
    let goal = wanted(other).into_iter().find(|goal| goal.id == record()).unwrap();
    let words = goal.disputed(other.claimant(), rival);
    assert!(words.contains("belongs to another cluster") && words.contains("privateDNSZoneName"), "{words}");
    assert!(azure.settle(other.claimant(), &ended(other)).is_reached());
    assert_eq!(azure.documents, made);
    // The same at the first contact.
    let observed = azure.observed(&wanted(other));
    assert_eq!(contact(other, std::slice::from_ref(&goal), &observed).unwrap_err(), words);
    assert_eq!(contact(one, &[goal], &observed).unwrap(), [].into());

    assert!(azure.settle(one.claimant(), &ended(one)).is_reached());
    assert_eq!(azure.get(&record()), None);
    assert!(azure.get(&zone()).is_some());
    assert!(azure.settle(other.claimant(), &wanted(other)).is_reached());
    assert_eq!(azure.documents[&record()]["properties"]["metadata"], json!({ tags::ID: "b" }));
}

/// A record that was created without an ID belongs to the cluster that recorded it, as before: it is not written for
/// the ID, and stays in the user's zone.
#[test]
fn a_record_without_an_id_gets_none_and_stays() {
    let own = cluster("one");
    let own = scope(&own, "a");
    for metadata in [Value::Null, json!({ "creator": "a user" }), json!({ tags::ID: "" })] {
        let mut azure = azure();
        azure.put(&record(), made_with(metadata));
        let before = azure.get(&record());
        assert!(azure.settle(own.claimant(), &wanted(own)).is_reached());
        assert_eq!(azure.get(&record()), before);
        // Differences are repaired, and its metadata stays.
        azure.documents.get_mut(&record()).unwrap()["properties"]["ttl"] = json!(5);
        let plan = azure.plan(own.claimant(), wanted(own));
        let steps: Vec<_> =
            plan.steps().map(|step| (step.action, step.document["properties"].clone())).collect();
        assert_eq!(steps, [(Action::Update, before.unwrap()["properties"].clone())]);
        azure.settle(own.claimant(), &wanted(own));
        assert!(azure.settle(own.claimant(), &ended(own)).is_reached());
        assert!(azure.get(&record()).is_some());
    }
}

/// The name comes first until the cluster is as desired for the first time. Afterwards it delays nothing.
#[test]
fn a_lost_name_holds_up_no_repair() {
    let own = cluster("one");
    let own = scope(&own, "a");
    let mut azure = azure();
    assert!(azure.settle(own.claimant(), &wanted(own)).is_reached());
    let memory = remembered_of(own, &azure.observed(&wanted(own)));
    let balancer = own.group().resource("Microsoft.Network", "loadBalancers", "my-cluster-internal-lb");
    for id in [&balancer, &record()] {
        assert!(azure.documents.remove(id).is_some(), "{id}");
    }
    let plan = azure.plan(own.claimant(), goals(own, &memory));
    let steps: Vec<_> = plan.steps().map(|step| (step.action, step.target.clone())).collect();
    assert_eq!(steps, [(Action::Create, balancer), (Action::Create, record())]);
}

/// Another cluster of the same name created the group at the same moment. The name, which this one has created already,
/// is deleted again, unless something answers behind it.
#[test]
fn a_refused_cluster_gives_its_name_back() {
    let own = cluster("one");
    let own = scope(&own, "a");
    let theirs =
        json!({ "location": "eastus", "tags": ClusterScope { id: Some("b"), ..own }.tags(None, None) });
    let balancer = own.group().resource("Microsoft.Network", "loadBalancers", "my-cluster-internal-lb");
    for (metadata, has_balancer, expected) in [
        (json!({ tags::ID: "a" }), false, vec![Action::Delete]),
        (json!({ tags::ID: "a" }), true, vec![]),
        (json!({}), false, vec![]),
    ] {
        let mut azure = azure();
        azure.put(&own.group(), theirs.clone());
        azure.put(&record(), made_with(metadata));
        if has_balancer {
            let wanted = wanted(own).into_iter().find(|goal| goal.id == balancer).unwrap();
            azure.put(&balancer, wanted.document);
        }
        let plan = azure.plan(own.claimant(), wanted(own));
        let of_record = |plan: &capz_planner::Plan| -> Vec<Action> {
            plan.steps().filter(|step| step.target == record()).map(|step| step.action).collect()
        };
        assert_eq!(of_record(&plan), expected, "{plan}");
        if expected == [Action::Delete] {
            let plan = azure.settle(own.claimant(), &wanted(own));
            assert_eq!(azure.get(&record()), None);
            assert!(matches!(plan.state_of(&record()), Some(State::Waits(_))), "{plan}");
        }
    }
}

/// Two clusters whose networks have one name, in two groups, are peered with one network: the peerings in that one have
/// the same ID.
#[test]
fn half_a_peering_that_leads_elsewhere_is_another_ones() {
    let own = Cluster::new(json!({ "networkSpec": {
        "vnet": { "peerings": [{ "remoteVnetName": "hub", "resourceGroup": "hub" }] } } }));
    let own = scope(&own, "a");
    let hub = ResourceId::group("123", "hub").resource("Microsoft.Network", "virtualNetworks", "hub");
    let half = hub.child("virtualNetworkPeerings", "hub-To-my-cluster-vnet");
    let other =
        ResourceId::group("123", "other").resource("Microsoft.Network", "virtualNetworks", "my-cluster-vnet");
    for (leads_to, is_own) in [(own.network(), true), (other, false)] {
        let mut azure = Azure::default();
        azure.put(&ResourceId::group("123", "hub"), json!({}));
        azure.put(&hub, json!({ "properties": {} }));
        azure.put(&half, json!({ "properties": { "remoteVirtualNetwork": { "id": leads_to.as_str() } } }));
        let plan = azure.plan(own.claimant(), wanted(own));
        assert_eq!(matches!(plan.state_of(&half), Some(State::Disputed(_))), !is_own, "{plan}");
        // Still declared, and only recorded.
        let plain = Cluster::new(json!({}));
        let plain = scope(&plain, "a");
        let memory = remembered(own);
        for goals in [ended(own), ends(plain, &memory, End::WholeGroups), goals(plain, &memory)] {
            assert!(goals.iter().any(|goal| goal.id == half && !goal.wanted));
            let plan = azure.plan(own.claimant(), goals);
            let deletes = plan.steps().any(|step| step.target == half && step.action == Action::Delete);
            assert_eq!(deletes, is_own, "{plan}");
        }
    }
}
