//! The role `deploy/rights/azure/capz-controller-manager` is enough for clusters, and each of its actions is needed. All
//! examples of `docs/clusters` run with it, too.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use azure_simulator::{Azure, LatencyProfile};
use azure_types::ResourceId;
use serde_json::{Value, json};

use crate::play::{apply, objects, ready_nodes, stage};
use crate::pool_flow::pool;
use crate::world::{SUBSCRIPTION, World};

/// A token of the manager's identity; its signature is not checked here.
pub const TOKEN: &str = "eyJhbGciOiJub25lIn0.eyJvaWQiOiIwYjFlYzcwMC0wMDAwLTQwMDAtODAwMC0wMDAwMDAwMDAwMDQiLCJhcHBpZCI6ImMxMWU0NzAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMyJ9.";
const OBJECT_ID: &str = "0b1ec700-0000-4000-8000-000000000004";
const ROLE: &str = "cccccccc-0000-4000-8000-000000000001";

/// Actions that the clusters below do not need, because their groups are deleted as a whole or for another reason, and
/// what needs them.
const ELSEWHERE: [(&str, &str); 23] = [
    ("Microsoft.Compute/availabilitySets/delete", "a region without zones"),
    ("Microsoft.Compute/availabilitySets/read", "a region without zones"),
    ("Microsoft.Compute/availabilitySets/write", "a region without zones"),
    ("Microsoft.Compute/virtualMachineScaleSets/virtualMachines/delete", "a pool that changes"),
    ("Microsoft.Compute/virtualMachines/extensions/read", "machines with extensions"),
    ("Microsoft.Compute/virtualMachines/extensions/write", "machines with extensions"),
    ("Microsoft.Network/loadBalancers/inboundNatRules/delete", "a machine of a control plane that goes"),
    ("Microsoft.Network/loadBalancers/inboundNatRules/read", "a machine of a control plane that goes"),
    ("Microsoft.Network/locations/operationResults/read", "deletions are followed by their status"),
    ("Microsoft.Network/privateDnsZones/AAAA/delete", "IPv6"),
    ("Microsoft.Network/privateDnsZones/AAAA/read", "IPv6"),
    ("Microsoft.Network/privateDnsZones/AAAA/write", "IPv6"),
    ("Microsoft.Network/bastionHosts/delete", "a cluster in a group that is not its own"),
    ("Microsoft.Network/loadBalancers/delete", "a cluster in a group that is not its own"),
    ("Microsoft.Network/natGateways/delete", "a cluster in a group that is not its own"),
    ("Microsoft.Network/networkSecurityGroups/delete", "a cluster in a group that is not its own"),
    ("Microsoft.Network/privateDnsZones/A/delete", "a cluster in a group that is not its own"),
    ("Microsoft.Network/privateDnsZones/delete", "a cluster in a group that is not its own"),
    (
        "Microsoft.Network/privateDnsZones/virtualNetworkLinks/delete",
        "a cluster in a group that is not its own",
    ),
    ("Microsoft.Network/privateEndpoints/delete", "a cluster in a group that is not its own"),
    ("Microsoft.Network/routeTables/delete", "a cluster in a group that is not its own"),
    ("Microsoft.Network/virtualNetworks/delete", "a cluster in a group that is not its own"),
    ("Microsoft.Network/virtualNetworks/subnets/delete", "a cluster in a group that is not its own"),
];

/// The actions of a role.
pub fn shipped(part: &str) -> BTreeSet<String> {
    let folder =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/rights/azure/capz-controller-manager");
    let text = std::fs::read_to_string(folder.join(format!("{part}.json"))).unwrap();
    let role: Value = serde_json::from_str(&text).unwrap();
    serde_json::from_value(role["Actions"].clone()).unwrap()
}

/// Allows the manager only these actions, in the whole subscription.
pub fn allow(azure: &Azure, actions: &BTreeSet<String>) {
    let subscription = ResourceId::subscription(SUBSCRIPTION);
    let role = subscription.resource("Microsoft.Authorization", "roleDefinitions", ROLE);
    let body = json!({"properties": {"roleName": "clusters", "assignableScopes": [subscription],
        "permissions": [{"actions": actions}]}});
    azure.put(&role, body).unwrap();
    azure.assign_role(&subscription, ROLE, OBJECT_ID).unwrap();
    azure.enforce_authorization(true);
}

/// The refusals for lack of a right.
pub fn refused(azure: &Azure) -> BTreeSet<String> {
    let journal = azure.journal();
    let refused = journal.entries.iter().filter(|entry| {
        matches!(entry.code.as_deref(), Some("AuthorizationFailed" | "LinkedAuthorizationFailed"))
    });
    let quoted = |message: &str| {
        let after =
            message.split("perform action(s) '").nth(1).or_else(|| message.split("perform action '").nth(1));
        after.and_then(|rest| rest.split('\'').next()).unwrap_or_default().to_ascii_lowercase()
    };
    refused.map(|entry| quoted(entry.message.as_deref().unwrap_or_default())).collect()
}

/// Clusters with everything that has a right of its own.
fn manifests() -> Vec<Value> {
    let mut all = objects(1, 1);
    let subnet =
        |name: &str, role: &str, range: &str| json!({"name": name, "role": role, "cidrBlocks": [range]});
    let mut node = subnet("nodes", "node", "10.1.0.0/16");
    node["natGateway"] = json!({"name": "out"});
    let account = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/shared/providers/Microsoft.Storage/storageAccounts/sharedfiles"
    );
    node["privateEndpoints"] = json!([{"name": "files", "privateLinkServiceConnections": [
        {"name": "files", "privateLinkServiceID": account, "groupIDs": ["file"]}]}]);
    let spec = all[1]["spec"].as_object_mut().unwrap();
    spec.insert("bastionSpec".into(), json!({"azureBastion": {}}));
    spec.insert(
        "networkSpec".into(),
        json!({
            "vnet": {"peerings": [{"remoteVnetName": "hub", "resourceGroup": "shared"}]},
            "subnets": [subnet("control-plane", "control-plane", "10.0.0.0/16"), node],
        }),
    );
    // A worker with a public address, a disk of its own and an identity.
    let worker = &mut all[4]["spec"]["template"]["spec"];
    worker["allocatePublicIP"] = json!(true);
    worker["dataDisks"] = json!([{"nameSuffix": "data", "diskSizeGB": 4, "lun": 0}]);
    all.extend(pool(1, json!({})));
    all
}

/// A cluster of another kind: internal, with a private zone.
fn internal() -> Vec<Value> {
    vec![
        json!({ "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "Cluster", "metadata": { "name": "inner" },
            "spec": { "infrastructureRef": { "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1",
                "kind": "AzureCluster", "name": "inner" } } }),
        json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureCluster",
            "metadata": { "name": "inner" },
            "spec": { "location": "eastus", "identityRef": { "kind": "AzureClusterIdentity", "name": "identity" },
                "networkSpec": { "apiServerLB": { "type": "Internal" } } } }),
    ]
}

fn prepare(azure: &Azure) {
    let shared = ResourceId::group(SUBSCRIPTION, "shared");
    azure.put(&shared, json!({"location": "eastus"})).unwrap();
    let hub =
        json!({"location": "eastus", "properties": {"addressSpace": {"addressPrefixes": ["172.16.0.0/16"]}}});
    azure.put(&shared.resource("Microsoft.Network", "virtualNetworks", "hub"), hub).unwrap();
    let account = json!({"location": "eastus", "kind": "StorageV2", "sku": {"name": "Standard_LRS"}});
    azure.put(&shared.resource("Microsoft.Storage", "storageAccounts", "sharedfiles"), account).unwrap();
}

/// The clusters come, and go unless something is missing.
async fn live(actions: &BTreeSet<String>, patience: Duration) -> (World, bool) {
    let (mut world, workloads) = stage(LatencyProfile::instant()).await;
    prepare(&world.azure);
    allow(&world.azure, actions);
    world.token = TOKEN.to_owned();
    world.start();
    apply(&world, &manifests()).await;
    apply(&world, &internal()).await;
    let came = |world: &World| ready_nodes(&workloads) == 3 && world.is_ready("AzureCluster", "inner");
    if !within(&world, patience, came).await {
        return (world, false);
    }
    for (kind, name) in [("MachinePool", "my-pool"), ("MachineDeployment", "my-workers")] {
        world.delete(kind, name);
        if !within(&world, patience, |world| world.get(kind, name).is_none()).await {
            return (world, false);
        }
    }
    for cluster in ["my-cluster", "inner"] {
        world.delete("Cluster", cluster);
    }
    let gone = |world: &World| ["my-cluster", "inner"].iter().all(|it| world.get("Cluster", it).is_none());
    let all = within(&world, patience, gone).await;
    (world, all)
}

async fn within(world: &World, patience: Duration, holds: impl Fn(&World) -> bool) -> bool {
    let begin = tokio::time::Instant::now();
    while begin.elapsed() < patience {
        if holds(world) {
            return true;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    false
}

#[tokio::test(start_paused = true)]
async fn the_shipped_role_is_enough() {
    let (world, all) = live(&shipped("clusters"), Duration::from_secs(1800)).await;
    assert_eq!(refused(&world.azure), BTreeSet::new());
    assert!(all, "the clusters came and went");
}

#[tokio::test(start_paused = true)]
#[ignore = "a cluster without each of eighty actions takes minutes: .ci/run runs it"]
async fn each_action_of_the_shipped_role_is_needed() {
    let all = shipped("clusters");
    let mut idle = Vec::new();
    for action in all.iter().filter(|it| ELSEWHERE.iter().all(|(other, _)| other != it)) {
        let rest = all.iter().filter(|other| *other != action).cloned().collect();
        let (world, _) = live(&rest, Duration::from_secs(300)).await;
        if !refused(&world.azure).contains(&action.to_ascii_lowercase()) {
            idle.push(action.clone());
        }
    }
    assert_eq!(idle, Vec::<String>::new(), "nothing was refused without these");
    assert!(ELSEWHERE.iter().all(|(action, _)| all.contains(*action)));
}
