//! Deletion of clusters.

use capz_planner::cluster::{End, Inventory, Memory, end, ends, remembered};
use serde_json::json;

use super::azure::Azure;
use super::cluster::Cluster;

/// CAPZ-058: groups that are ours are deleted as a whole, after the resources in foreign groups: nothing in them is
/// deleted by itself.
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
    assert!(
        azure.settle("my-cluster", &ends(cluster.scope(), &remembered(cluster.scope()), end)).is_reached()
    );
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

/// CAPZ-059: in a foreign group resources are deleted one by one, those first that refer to others.
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
    let plan = azure.settle("my-cluster", &ends(cluster.scope(), &remembered(cluster.scope()), end));
    assert!(plan.is_reached(), "{plan}");
    assert_eq!(azure.documents, before);
}

/// Unknown is not absent: nothing is deleted while the owner of the groups is unknown.
#[test]
fn nothing_goes_while_groups_are_unknown() {
    let cluster = Cluster::new(json!({}));
    let unknown = capz_planner::ObservedResources::default();
    assert_eq!(end(cluster.scope(), true, &unknown), End::Unknown);
    assert!(ends(cluster.scope(), &Memory::default(), End::Unknown).is_empty());
}

/// Each step that writes to or deletes an existing resource carries its proof, and prints it.
#[test]
fn steps_on_what_exists_carry_their_proof() {
    let cluster = Cluster::new(json!({}));
    let mut azure = Azure::default();
    assert!(azure.settle("my-cluster", &cluster.goals()).is_reached());
    assert!(azure.proofs.is_empty(), "what is created needs none: {:?}", azure.proofs);
    let group = cluster.scope().group();
    azure.documents.get_mut(&group).unwrap()["tags"]["Name"] = json!("other");
    let plan = azure.plan("my-cluster", cluster.goals());
    let step = plan.steps().next().unwrap();
    let tag = "tag sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster=owned";
    assert!(step.proof.as_ref().unwrap().to_string().contains(tag), "{step:?}");
    let ended = ends(cluster.scope(), &remembered(cluster.scope()), End::OneByOne);
    let plan = azure.plan("my-cluster", ended.clone());
    assert!(
        plan.to_string()
            .contains(&format!("it belongs to AzureCluster my-cluster of cluster my-cluster ({tag}")),
        "{plan}"
    );
    assert!(azure.settle("my-cluster", &ended).is_reached());
    assert!(azure.proofs.iter().all(|(_, proof)| proof.is_some()), "{:?}", azure.proofs);
    assert!(azure.proofs.len() > 10);
}

fn listed(id: &azure_types::ResourceId, tags: serde_json::Value) -> serde_json::Value {
    json!({ "id": id.as_str(), "tags": tags })
}

/// S2: the resources in the list of a group, and their owners.
#[test]
fn a_group_is_looked_at_as_a_whole() {
    let cluster = Cluster::new(json!({}));
    let scope = capz_planner::ClusterScope { id: Some("a"), ..cluster.scope() };
    let group = scope.group();
    let of = |kind: &str, name: &str| {
        let (namespace, kind) = kind.split_once('/').unwrap();
        group.resource(namespace, kind, name)
    };
    let ours = json!({ "sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster": "owned" });
    let mut theirs = ours.clone();
    theirs["sigs.k8s.io_cluster-api-provider-azure_cluster-id"] = json!("b");
    let vm = of("Microsoft.Compute/virtualMachines", "vm");
    let disk = |name: &str| of("Microsoft.Compute/disks", name);
    let balancer = of("Microsoft.Network/loadBalancers", "my-cluster");
    let address = of("Microsoft.Network/publicIPAddresses", "service");
    let interface = of("Microsoft.Network/networkInterfaces", "endpoint");
    let mut managed = listed(&disk("attached"), json!({}));
    managed["managedBy"] = json!(vm.as_str());
    let all = [
        listed(&vm, ours.clone()),
        listed(&vm.child("extensions", "e"), json!({})),
        managed,
        listed(&disk("pvc"), json!({})),
        listed(&of("Microsoft.Compute/virtualMachines", "rival"), theirs),
        listed(&address, json!({ "k8s-azure-cluster-name": "my-cluster" })),
        listed(
            &of("Microsoft.Network/publicIPAddresses", "other"),
            json!({ "k8s-azure-cluster-name": "other" }),
        ),
        listed(&balancer, json!({})),
        listed(&of("Microsoft.Network/privateEndpoints", "pe"), ours),
        listed(&interface, json!({})),
    ];
    let mut inventory = Inventory::of(scope, &all);
    let names = |inventory: &Inventory| -> Vec<String> {
        inventory.others().map(|id| id.name().to_owned()).collect()
    };
    assert_eq!(names(&inventory), ["pvc", "rival", "my-cluster", "endpoint", "other"]);
    let asked: Vec<_> = inventory.unsettled().into_values().flatten().collect();
    assert!(asked.contains(&balancer) && asked.contains(&interface));
    let frontend = json!({ "properties": { "publicIPAddress": { "id": address.as_str() } } });
    let with_members = |member: &azure_types::ResourceId| {
        let members = json!([{ "id": member.as_str() }]);
        json!({ "id": balancer.as_str(), "properties": { "frontendIPConfigurations": [frontend],
            "backendAddressPools": [{ "properties": { "backendIPConfigurations": members } }] } })
    };
    let endpoint = json!({ "id": interface.as_str(),
        "properties": { "privateEndpoint": { "id": of("Microsoft.Network/privateEndpoints", "pe").as_str() } } });
    let mut shared = inventory.clone();
    shared.settle(
        scope,
        &[with_members(&of("Microsoft.Network/networkInterfaces", "theirs")), endpoint.clone()],
    );
    assert_eq!(names(&shared), ["pvc", "rival", "my-cluster", "other"]);
    inventory.settle(scope, &[with_members(&interface.child("ipConfigurations", "ip")), endpoint]);
    assert_eq!(names(&inventory), ["pvc", "rival", "other"]);
    assert!(inventory.others_for_people().contains("Microsoft.Compute/disks pvc"));
    // What lies in a resource of the cluster's is deleted with it.
    let ends = inventory.ends();
    let ended: Vec<_> = ends.iter().map(|goal| (goal.id.name(), goal.service.name, goal.wanted)).collect();
    assert_eq!(
        ended,
        [
            ("attached", "group", false),
            ("vm", "group", false),
            ("my-cluster", "loadbalancers", false),
            ("endpoint", "group", false),
            ("pe", "group", false),
            ("service", "publicips", false),
        ]
    );
}

/// A group with resources of others stays, and what is proven to be the cluster's is deleted one by one.
#[test]
fn a_group_that_others_use_stays() {
    let cluster = Cluster::new(json!({}));
    let (scope, memory) = (cluster.scope(), remembered(cluster.scope()));
    let ours = json!({ "sigs.k8s.io_cluster-api-provider-azure_cluster_my-cluster": "owned" });
    let disk = |name: &str| scope.group().resource("Microsoft.Compute", "disks", name);
    let network = listed(&scope.network(), ours.clone());
    let empty = Inventory::of(scope, &[listed(&disk("ours"), ours.clone()), network.clone()]);
    let shared =
        Inventory::of(scope, &[listed(&disk("ours"), ours), network, listed(&disk("theirs"), json!({}))]);
    assert_eq!(
        (empty.others_for_people(), shared.others_for_people()),
        (String::new(), "Microsoft.Compute/disks theirs".to_owned())
    );
    for (end, inventory, has_group, has_disk) in [
        (End::WholeGroups, &empty, true, false),
        (End::WholeGroups, &shared, false, false),
        (End::OneByOne, &empty, true, true),
        (End::OneByOne, &shared, false, true),
        (End::Unknown, &shared, false, false),
    ] {
        let goals = capz_planner::cluster::ends_beside(scope, &memory, end, inventory);
        let count = |name: &str| goals.iter().filter(|goal| goal.id.name() == name).count();
        assert_eq!(
            (count("my-rg"), count("ours")),
            (usize::from(has_group), usize::from(has_disk)),
            "{end:?}"
        );
        assert!(count("my-cluster-vnet") <= 1 && count("theirs") == 0, "{goals:?}");
    }
}

#[test]
fn a_cluster_has_the_groups_of_its_own_and_of_its_network() {
    let groups = |spec| {
        let cluster = Cluster::new(spec);
        capz_planner::cluster::groups(cluster.scope())
            .iter()
            .map(|id| id.name().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(groups(json!({})), ["my-rg"]);
    let mut both = groups(json!({ "networkSpec": { "vnet": { "resourceGroup": "net-rg", "name": "v" } } }));
    both.sort();
    assert_eq!(both, ["my-rg", "net-rg"]);
}

/// The first few are named.
#[test]
fn many_resources_of_others_are_counted() {
    let cluster = Cluster::new(json!({}));
    let scope = cluster.scope();
    let all = |count: usize| -> Vec<_> {
        let disk = |number| scope.group().resource("Microsoft.Compute", "disks", &format!("d{number}"));
        (0..count).map(|number| listed(&disk(number), json!({}))).collect()
    };
    for (count, end) in
        [(1, "disks d0"), (5, "disks d4"), (6, "disks d4 and 1 more"), (8, "disks d4 and 3 more")]
    {
        let words = Inventory::of(scope, &all(count)).others_for_people();
        assert!(words.ends_with(end), "{count}: {words}");
    }
}

/// The plan after Azure refused these deletions.
fn planned(
    azure: &Azure,
    goals: &[capz_planner::Goal],
    refused: std::collections::BTreeMap<azure_types::ResourceId, String>,
) -> capz_planner::Plan {
    let (observed, running) = (azure.observed(goals), std::collections::BTreeMap::new());
    let claimant = "my-cluster".into();
    let facts =
        capz_planner::plan::Facts { claimant, observed: &observed, running: &running, refused: &refused };
    capz_planner::plan::plan(goals.to_vec(), facts)
}

/// A resource that Azure does not delete because a foreign one uses it stays with that, and is named. Other refusals
/// stay refusals.
#[test]
fn what_is_left_to_others_keeps_what_it_uses() {
    let cluster = Cluster::new(json!({}));
    let mut azure = Azure::default();
    azure.put(&cluster.scope().group(), json!({ "location": "eastus" }));
    assert!(azure.settle("my-cluster", &cluster.goals()).is_reached());
    let is_of = |id: &azure_types::ResourceId, kind: &str| id.resource_type().ends_with(kind);
    let gateway = azure.documents.keys().find(|id| is_of(id, "/natGateways")).unwrap().clone();
    let is_used = |id: &azure_types::ResourceId| azure.documents[&gateway].to_string().contains(id.as_str());
    let address =
        azure.documents.keys().find(|id| is_of(id, "/publicIPAddresses") && is_used(id)).unwrap().clone();
    azure.documents.get_mut(&gateway).unwrap()["tags"] = json!({});
    let goals = ends(cluster.scope(), &remembered(cluster.scope()), End::OneByOne);
    for (words, stays) in
        [(format!("400: still allocated to resource {gateway}"), true), ("403: no right".to_owned(), false)]
    {
        let refused = std::collections::BTreeMap::from([(address.clone(), words)]);
        let plan = planned(&azure, &goals, refused);
        assert_eq!(plan.state_of(&gateway), Some(&capz_planner::State::Foreign));
        let state = plan.state_of(&address).unwrap();
        assert_eq!(*state == capz_planner::State::InUse(gateway.clone()), stays, "{state:?}");
        let named = plan.in_use();
        assert_eq!(
            named.iter().any(|it| it.contains(address.name()) && it.contains(gateway.name())),
            stays,
            "{named:?}"
        );
    }
}

/// A load balancer that was given up keeps the network, which keeps the security groups and the route table of its
/// subnets.
#[test]
fn what_stays_keeps_what_it_uses_in_turn() {
    let cluster = Cluster::new(json!({}));
    let mut azure = Azure::default();
    azure.put(&cluster.scope().group(), json!({ "location": "eastus" }));
    assert!(azure.settle("my-cluster", &cluster.goals()).is_reached());
    let find = |kind: &str| {
        let mut ids = azure.documents.keys().filter(|id| id.resource_type().ends_with(kind));
        ids.next().unwrap().clone()
    };
    let [balancer, network, table] = ["/loadBalancers", "/virtualNetworks", "/routeTables"].map(find);
    let goals = ends(cluster.scope(), &remembered(cluster.scope()), End::OneByOne);
    azure.documents.get_mut(&balancer).unwrap()["tags"] = json!({});
    for (words, stays) in [("400: it is in use and cannot be deleted", true), ("403: no right", false)] {
        let refused = std::collections::BTreeMap::from([
            (
                network.clone(),
                format!("400: Subnet nodes is in use by {balancer}/frontendIPConfigurations/front"),
            ),
            (table.clone(), words.to_owned()),
        ]);
        let plan = planned(&azure, &goals, refused);
        assert_eq!(plan.state_of(&network), Some(&capz_planner::State::InUse(balancer.clone())));
        let state = plan.state_of(&table).unwrap();
        assert_eq!(*state == capz_planner::State::InUse(network.clone()), stays, "{state:?}");
    }
}

/// A zone with the link of another cluster's network stays when its cluster is deleted. The cluster's own resources in
/// it are deleted before.
#[test]
fn a_zone_that_others_have_linked_stays() {
    let cluster = Cluster::new(json!({ "networkSpec": {
        "apiServerLB": { "type": "Internal", "frontendIPs": [{ "name": "f", "privateIP": "10.0.0.100" }] },
        "privateDNSZoneName": "corp.example.com",
    } }));
    let mut azure = Azure::default();
    azure.put(&cluster.scope().group(), json!({ "location": "eastus" }));
    assert!(azure.settle("my-cluster", &cluster.goals()).is_reached());
    let goals = ends(cluster.scope(), &remembered(cluster.scope()), End::OneByOne);
    let is_zone = |id: &&azure_types::ResourceId| id.resource_type().ends_with("/privateDnsZones");
    let zone = azure.documents.keys().find(is_zone).unwrap().clone();
    let own = goals.iter().map(|goal| goal.id.clone()).find(|id| *id != zone && id.is_within(&zone)).unwrap();
    let theirs = zone.child("virtualNetworkLinks", "theirs");
    for (words, stays) in [
        (format!("409: nested resources exist. Some existing IDs include: '{theirs}'. Please delete"), true),
        (format!("409: nested resources exist. Some existing IDs include: '{own}'. Please delete"), false),
        (format!("400: {theirs} is in use"), false),
    ] {
        let refused = std::collections::BTreeMap::from([(zone.clone(), words)]);
        let plan = planned(&azure, &goals, refused);
        let state = plan.state_of(&zone).unwrap();
        assert_eq!(*state == capz_planner::State::InUse(theirs.clone()), stays, "{state:?}");
    }
}

/// Clusters of two names that created one group at the same moment: it belongs to the one whose tags it bears, and the
/// other one uses it.
#[test]
fn a_group_of_a_cluster_of_another_name_is_used_and_not_written() {
    let cluster = Cluster::new(json!({}));
    let mut azure = Azure::default();
    assert!(azure.settle("my-cluster", &cluster.goals()).is_reached());
    let group = cluster.scope().group();
    let goals = cluster.goals();
    let claimant = capz_planner::Claimant { id: Some("a"), ..capz_planner::Claimant::from("my-cluster") };
    let key = |name: &str| format!("sigs.k8s.io_cluster-api-provider-azure_cluster_{name}");
    let id = "sigs.k8s.io_cluster-api-provider-azure_cluster-id";
    for (tags, foreign) in [
        (json!({ key("my-cluster"): "owned", key("other"): "owned", id: "b" }), true),
        (json!({ key("other"): "owned", id: "b" }), true),
        (json!({ key("my-cluster"): "owned", id: "b" }), false),
    ] {
        azure.documents.get_mut(&group).unwrap()["tags"] = tags;
        let (observed, nothing, none) = (azure.observed(&goals), Default::default(), Default::default());
        let facts =
            capz_planner::plan::Facts { claimant, observed: &observed, running: &nothing, refused: &none };
        let plan = capz_planner::plan::plan(goals.clone(), facts);
        let state = plan.state_of(&group).unwrap();
        assert_eq!(*state == capz_planner::State::Foreign, foreign, "{state:?}");
    }
}

/// A zone to which another cluster's network is linked stays. Azure names that link among others.
#[test]
fn a_zone_stays_with_the_link_of_others() {
    let cluster = Cluster::new(json!({ "networkSpec": { "apiServerLB": { "type": "Internal" } } }));
    let mut azure = Azure::default();
    azure.put(&cluster.scope().group(), json!({ "location": "eastus" }));
    assert!(azure.settle("my-cluster", &cluster.goals()).is_reached());
    let is_zone = |id: &&azure_types::ResourceId| id.resource_type().ends_with("/privateDnsZones");
    let zone = azure.documents.keys().find(is_zone).unwrap().clone();
    azure.documents.retain(|id, _| *id == zone || !id.is_within(&zone));
    let goals = ends(cluster.scope(), &remembered(cluster.scope()), End::OneByOne);
    let theirs = zone.child("virtualNetworkLinks", "theirs");
    for (words, stays) in [
        (format!("409: nested resources exist: '{zone}', '{theirs}'."), true),
        (format!("409: nested resources exist: '{zone}'."), false),
        (format!("409: nested resources exist: '{}'.", cluster.scope().network()), false),
        (format!("409: conflict with '{theirs}'."), false),
    ] {
        let plan = planned(&azure, &goals, [(zone.clone(), words.clone())].into());
        let state = plan.state_of(&zone).unwrap();
        assert_eq!(*state == capz_planner::State::InUse(theirs.clone()), stays, "{words}: {state:?}");
    }
}
