//! How clusters end.

use capz_planner::cluster::{End, Memory, end, ends};
use serde_json::json;

use super::azure::Azure;
use super::cluster::Cluster;

/// CAPZ-058: groups that are ours go as a whole, after what was made in groups of others: nothing in them goes by itself.
#[test]
fn owned_groups_go_with_all_that_is_in_them() {
    let peerings = json!([{ "remoteVnetName": "vnet2", "resourceGroup": "rg2" }]);
    let cluster = Cluster::new(json!({ "networkSpec": {
        "apiServerLB": { "type": "Internal" }, "vnet": { "peerings": peerings },
        "privateDNSZoneName": "corp.example.com", "privateDNSZoneResourceGroup": "dns",
    } }));
    let mut azure = Azure::default();
    let remote = azure_types::ResourceId::group("123", "rg2");
    azure.put(&remote, json!({}));
    azure.put(&remote.resource("Microsoft.Network", "virtualNetworks", "vnet2"), json!({ "properties": {} }));
    azure.put(&azure_types::ResourceId::group("123", "dns"), json!({}));
    let before = azure.documents.clone();
    assert!(azure.settle("my-cluster", &cluster.goals()).is_reached());
    let observed = azure.observed(&cluster.goals());
    assert_eq!(end(cluster.scope(), false, &observed), End::OneByOne);
    let end = end(cluster.scope(), true, &observed);
    assert_eq!(end, End::WholeGroups);
    azure.rounds.clear();
    assert!(azure.settle("my-cluster", &ends(cluster.scope(), &Memory::default(), end)).is_reached());
    assert_eq!(azure.documents, before);
    let rounds: Vec<Vec<&str>> =
        azure.rounds.iter().map(|round| round.iter().map(String::as_str).collect()).collect();
    assert_eq!(
        rounds,
        [
            vec!["vnet2-To-my-cluster-vnet", "my-cluster-vnet-link", "vnet2-link"],
            vec!["my-rg", "corp.example.com"],
        ]
    );
}

/// CAPZ-059: in somebody else's group resources go one by one, those first that speak of others.
#[test]
fn resources_in_a_foreign_group_go_one_by_one() {
    let cluster = Cluster::new(json!({ "bastionSpec": { "azureBastion": {} } }));
    let mut azure = Azure::default();
    azure.put(&cluster.scope().group(), json!({ "location": "eastus" }));
    let foreign = cluster.scope().public_ip("theirs");
    azure.put(&foreign, json!({ "properties": {} }));
    let before = azure.documents.clone();
    assert!(azure.settle("my-cluster", &cluster.goals()).is_reached());
    assert!(azure.documents.len() > 10);
    let observed = azure.observed(&cluster.goals());
    let end = end(cluster.scope(), true, &observed);
    assert_eq!(end, End::OneByOne);
    let plan = azure.settle("my-cluster", &ends(cluster.scope(), &Memory::default(), end));
    assert!(plan.is_reached(), "{plan}");
    assert_eq!(azure.documents, before);
}

/// Unknown is not absent: nothing goes while nobody knows whose the groups are.
#[test]
fn nothing_goes_while_groups_are_unknown() {
    let cluster = Cluster::new(json!({}));
    let unknown = capz_planner::Observed::default();
    assert_eq!(end(cluster.scope(), true, &unknown), End::Unknown);
    assert!(ends(cluster.scope(), &Memory::default(), End::Unknown).is_empty());
}
