//! The roles `deploy/rights/azure/capz-controller-manager` for managed clusters of both generations are enough, and each
//! of their actions is needed; and the role in Kubernetes has the kinds that are taken over.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use azure_simulator::Azure;
use azure_types::ResourceId;
use capz_planner::operator::kinds;
use serde_json::{Value, json};

use crate::rights::{TOKEN, allow, refused, shipped};
use crate::world::{SUBSCRIPTION, World};
use crate::{managed, raw};

/// How long a cluster may take that has all it needs, and how long one that lacks an action is observed.
const PATIENCE: Duration = Duration::from_secs(1800);
const SHORT: Duration = Duration::from_secs(120);

/// Actions that the clusters below do not need, and why.
const ELSEWHERE: [(&str, &str); 1] = [(
    "Microsoft.ContainerService/locations/operationresults/read",
    "writes and deletions are followed by their status",
)];

/// Actions on types that no simulated Azure has, or that the objects below do not need.
const UNPROVEN: [&str; 11] = [
    "fleets/autoUpgradeProfiles/",
    "fleets/updateRuns/",
    "fleets/updateStrategies/",
    "fleets/listCredentials/",
    "fluxConfigurations/",
    "OperationalInsights/",
    "privateDnsZoneGroups/",
    "extensions/operations/",
    "trustedAccessRoleBindings/",
    // Pools are created with their cluster in these short lives.
    "managedClusters/agentPools/write",
    "privateDnsZones/join/",
];

fn parts(names: &[&str]) -> BTreeSet<String> {
    names.iter().flat_map(|name| shipped(name)).collect()
}

fn managed_parts() -> BTreeSet<String> {
    parts(&[
        "managed-clusters",
        "fleets",
        "cluster-extensions",
        "resource-health",
        "user-assigned-identities",
    ])
}

/// What is there before: a group of others, a fleet, an account and an identity.
fn prepare(azure: &Azure) {
    let shared = ResourceId::group(SUBSCRIPTION, "shared");
    azure.put(&shared, json!({ "location": "eastus" })).unwrap();
    azure.put(&ResourceId::group(SUBSCRIPTION, "older"), json!({ "location": "eastus" })).unwrap();
    let fleet = shared.resource("Microsoft.ContainerService", "fleets", "fleet");
    azure.put(&fleet, json!({ "location": "eastus", "properties": {} })).unwrap();
    let account = json!({ "location": "eastus", "kind": "StorageV2", "sku": { "name": "Standard_LRS" } });
    azure.put(&shared.resource("Microsoft.Storage", "storageAccounts", "sharedfiles"), account).unwrap();
    let identity = shared.resource("Microsoft.ManagedIdentity", "userAssignedIdentities", "clusters");
    azure.put(&identity, json!({ "location": "eastus" })).unwrap();
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

/// Deletes these objects in their order, as the core does.
async fn end(world: &World, cluster: &str, objects: &[(&str, &str)], patience: Duration) -> bool {
    world.delete_cluster(cluster);
    for (kind, name) in objects {
        world.delete(kind, name);
        if !within(world, patience, |world| world.get(kind, name).is_none()).await {
            return false;
        }
    }
    true
}

/// Clusters of the first generation come, change and go, unless something is missing.
async fn live(actions: &BTreeSet<String>, patience: Duration) -> (World, bool) {
    let mut world = World::new();
    world.settings.gates.aks_resource_health = true;
    prepare(&world.azure);
    allow(&world.azure, actions);
    world.token = TOKEN.to_owned();
    let shared = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/shared/providers");
    managed::cluster(
        &world,
        "aks",
        json!({
            "resourceGroupName": "older",
            "identity": { "type": "UserAssigned",
                "userAssignedIdentityResourceID": format!("{shared}/Microsoft.ManagedIdentity/userAssignedIdentities/clusters") },
            "aadProfile": { "managed": true, "adminGroupObjectIDs": ["917056a9-8eb5-439c-g679-b34901ade75h"] },
            "fleetsMember": { "name": "member", "managerName": "fleet", "managerResourceGroup": "shared", "group": "default" },
            "extensions": [{ "name": "flux", "extensionType": "microsoft.flux", "autoUpgradeMinorVersion": true,
                "identity": "SystemAssigned",
                "plan": { "name": "p", "product": "q", "publisher": "r", "version": "1" },
                "scope": { "scopeType": "Cluster", "releaseNamespace": "flux-system" } }],
            "virtualNetwork": { "name": "net", "cidrBlock": "10.0.0.0/8", "subnet": { "name": "nodes", "cidrBlock": "10.240.0.0/16",
                "privateEndpoints": [{ "name": "files", "privateLinkServiceConnections": [{ "name": "files",
                    "privateLinkServiceID": format!("{shared}/Microsoft.Storage/storageAccounts/sharedfiles"),
                    "groupIDs": ["file"] }] }] } },
        }),
    );
    managed::pool(&world, "aks", "pool0", json!({ "mode": "System" }));
    managed::pool(&world, "aks", "pool1", json!({}));
    managed::cluster(&world, "own", json!({}));
    managed::pool(&world, "own", "own0", json!({ "mode": "System" }));
    world.start();
    let came = |world: &World| {
        ["aks", "own"].iter().all(|it| world.is_ready("AzureManagedControlPlane", it))
            && ["pool0", "pool1", "own0"].iter().all(|it| world.is_ready("AzureManagedMachinePool", it))
    };
    if !within(&world, patience, came).await {
        return (world, false);
    }
    // A pool goes by itself, and so do a member and an extension that are no longer declared.
    world.delete("AzureManagedMachinePool", "pool1");
    let gone = |world: &World| world.get("AzureManagedMachinePool", "pool1").is_none();
    if !within(&world, patience, gone).await {
        return (world, false);
    }
    world.merge(
        "AzureManagedControlPlane",
        "aks",
        json!({ "spec": { "fleetsMember": null, "extensions": [] } }),
    );
    let left = |world: &World| {
        ["Microsoft.ContainerService/fleets/members", "Microsoft.KubernetesConfiguration/extensions"]
            .iter()
            .all(|kind| world.azure.documents_of_type(kind).is_empty())
    };
    if !within(&world, patience, left).await {
        return (world, false);
    }
    for (cluster, pool) in [("aks", "pool0"), ("own", "own0")] {
        let objects = [("AzureManagedMachinePool", pool), ("AzureManagedControlPlane", cluster)];
        if !end(&world, cluster, &objects, patience).await {
            return (world, false);
        }
    }
    (world, true)
}

#[tokio::test(start_paused = true)]
async fn the_roles_of_managed_clusters_are_enough() {
    let (world, all) = live(&managed_parts(), PATIENCE).await;
    assert_eq!(refused(&world.azure), BTreeSet::new());
    let state = world.get("AzureManagedControlPlane", "aks").map(|it| it["status"].clone());
    assert!(all, "the clusters came and went: {state:#?}");
}

/// The newest version of a kind that is no preview.
fn api_of(kind: &str) -> String {
    let kind = operator_resources::KINDS.iter().find(|it| it.kind == kind).unwrap();
    let version = kind.versions.iter().rev().find(|version| !version.contains("preview")).unwrap();
    format!("{}/v1api{}", kind.group, version.replace('-', ""))
}

/// Raw resources of each kind that the simulated Azure has, in a group of others, so that each goes by itself.
fn resources() -> Vec<Value> {
    let older = json!({ "name": "older" });
    let id = |kind: &str| json!({ "armId": format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/older/providers/{kind}") });
    let refer = |kind: &str, name: &str| json!({ "reference": { "group": "network.azure.com", "kind": kind, "name": name } });
    let mut group = raw::group("older");
    group["metadata"]["annotations"]["serviceoperator.azure.com/reconcile-policy"] = json!("skip");
    let member = |kind: &str, name: &str, owner: &str, spec: Value| {
        let mut spec = spec;
        spec["owner"] = json!({ "name": owner });
        raw::resource(&api_of(kind), kind, name, spec)
    };
    let of_group = |kind: &str, name: &str, spec: Value| {
        let mut spec = spec;
        spec["owner"] = older.clone();
        spec["location"].as_str().is_none().then(|| spec["location"] = json!("eastus"));
        raw::resource(&api_of(kind), kind, name, spec)
    };
    let standard = json!({ "name": "Standard" });
    vec![
        group,
        of_group("VirtualNetwork", "net", json!({ "addressSpace": { "addressPrefixes": ["10.0.0.0/8"] } })),
        of_group(
            "VirtualNetwork",
            "hub",
            json!({ "addressSpace": { "addressPrefixes": ["172.16.0.0/16"] } }),
        ),
        member(
            "VirtualNetworksSubnet",
            "nodes",
            "net",
            json!({ "addressPrefix": "10.240.0.0/16",
            "natGateway": refer("NatGateway", "out"),
            "networkSecurityGroup": refer("NetworkSecurityGroup", "rules"),
            "routeTable": refer("RouteTable", "routes") }),
        ),
        member(
            "VirtualNetworksVirtualNetworkPeering",
            "to-hub",
            "net",
            json!({ "allowVirtualNetworkAccess": true,
            "remoteVirtualNetwork": refer("VirtualNetwork", "hub") }),
        ),
        of_group("PublicIPPrefix", "prefix", json!({ "sku": standard, "prefixLength": 30 })),
        of_group(
            "PublicIPAddress",
            "address",
            json!({ "sku": standard, "publicIPAllocationMethod": "Static", "publicIPPrefix": refer("PublicIPPrefix", "prefix") }),
        ),
        of_group(
            "NatGateway",
            "out",
            json!({ "sku": standard,
            "publicIpAddresses": [refer("PublicIPAddress", "address")] }),
        ),
        of_group("ApplicationSecurityGroup", "front", json!({})),
        of_group("NetworkSecurityGroup", "rules", json!({})),
        member(
            "NetworkSecurityGroupsSecurityRule",
            "web",
            "rules",
            json!({ "access": "Allow", "direction": "Inbound",
            "protocol": "Tcp", "priority": 200, "sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationPortRange": "443",
            "destinationApplicationSecurityGroups": [refer("ApplicationSecurityGroup", "front")] }),
        ),
        of_group("RouteTable", "routes", json!({})),
        member(
            "RouteTablesRoute",
            "away",
            "routes",
            json!({ "addressPrefix": "192.0.2.0/24", "nextHopType": "None" }),
        ),
        of_group(
            "PrivateEndpoint",
            "files",
            json!({ "subnet": refer("VirtualNetworksSubnet", "nodes"),
            "privateLinkServiceConnections": [{ "name": "files", "groupIds": ["file"], "privateLinkServiceReference": { "armId":
                format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/shared/providers/Microsoft.Storage/storageAccounts/sharedfiles") } }] }),
        ),
        of_group("PrivateDnsZone", "inner.example", json!({ "location": "global" })),
        member(
            "PrivateDnsZonesVirtualNetworkLink",
            "link",
            "inner.example",
            json!({
            "location": "global", "registrationEnabled": false, "virtualNetwork": refer("VirtualNetwork", "net") }),
        ),
        of_group("UserAssignedIdentity", "people", json!({})),
        member(
            "FederatedIdentityCredential",
            "federation",
            "people",
            json!({ "issuer": "https://issuer.example",
            "subject": "system:serviceaccount:a:b", "audiences": ["api://AzureADTokenExchange"] }),
        ),
        of_group("Registry", "imagesofclusters", json!({ "sku": { "name": "Basic" } })),
        of_group("Fleet", "rawfleet", json!({})),
        member(
            "FleetsMember",
            "member",
            "rawfleet",
            json!({ "clusterResourceReference":
            id("Microsoft.ContainerService/managedClusters/aks") }),
        ),
        raw::resource(
            "authorization.azure.com/v1api20220401",
            "RoleAssignment",
            "reads",
            json!({
            "owner": id("Microsoft.Network/publicIPAddresses/address"), "principalId": "0b1ec700-0000-4000-8000-000000000009",
            "principalType": "ServicePrincipal", "roleDefinitionReference": { "armId": format!(
                "/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/acdd72a7-3385-48ef-bd42-f606fba81ae7") } }),
        ),
    ]
}

/// A cluster of the second generation comes and goes, with resources of all kinds.
async fn live_raw(actions: &BTreeSet<String>, patience: Duration) -> (World, bool) {
    let mut world = World::new();
    prepare(&world.azure);
    allow(&world.azure, actions);
    world.token = TOKEN.to_owned();
    raw::credential(&world);
    let mut cluster = raw::managed_cluster(
        "aks",
        json!({ "identity": { "type": "UserAssigned", "userAssignedIdentities": [{ "reference": {
            "group": "managedidentity.azure.com", "kind": "UserAssignedIdentity", "name": "people" } }] },
            "operatorSpec": { "secrets": {
                "adminCredentials": { "name": "aks-kubeconfig", "key": "value" },
                "userCredentials": { "name": "aks-users", "key": "value" } } } }),
    );
    cluster["spec"]["owner"] = json!({ "name": "older" });
    let maintenance = raw::resource(
        "containerservice.azure.com/v1api20240901",
        "MaintenanceConfiguration",
        "default",
        json!({ "owner": { "name": "aks" }, "timeInWeek": [{ "day": "Monday", "hourSlots": [1] }] }),
    );
    let extension = raw::resource(
        "kubernetesconfiguration.azure.com/v1api20230501",
        "Extension",
        "flux",
        json!({ "owner": { "group": "containerservice.azure.com", "kind": "ManagedCluster", "name": "aks" },
            "extensionType": "microsoft.flux", "autoUpgradeMinorVersion": true }),
    );
    let mut resources = resources();
    let fleets = resources.iter().position(|it| it["kind"] == "FleetsMember").unwrap();
    let member = resources.remove(fleets);
    let control = json!({ "version": "v1.33.2", "resources": [cluster, maintenance, extension, member] });
    raw::cluster(&world, "aks", &resources, control);
    raw::pool(&world, "aks", "pool0", raw::agent_pool("aks", "pool0", "pool0", json!({})));
    raw::nodes(&world, "pool0", &["n0", "n1"]);
    world.create(json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": "n2", "labels": {
        "kubernetes.azure.com/agentpool": "pool0", "kubernetes.azure.com/cluster": "MC_older_aks_eastus" } },
        "spec": { "providerID": "azure:///subscriptions/x/n2" } }));
    world.start();
    let all = [
        ("AzureASOManagedMachinePool", "pool0"),
        ("AzureASOManagedControlPlane", "aks"),
        ("AzureASOManagedCluster", "aks"),
    ];
    if !within(&world, patience, |world| all.iter().all(|(kind, name)| world.is_ready(kind, name))).await {
        return (world, false);
    }
    if !within(&world, patience, |world| world.secret("aks-users", "value").is_some()).await {
        return (world, false);
    }
    let done = end(&world, "aks", &all, patience).await;
    (world, done)
}

fn raw_parts() -> BTreeSet<String> {
    parts(&["managed-clusters", "raw-resources", "raw-role-assignments"])
}

#[tokio::test(start_paused = true)]
async fn the_roles_of_raw_resources_are_enough() {
    let (world, all) = live_raw(&raw_parts(), PATIENCE).await;
    assert_eq!(refused(&world.azure), BTreeSet::new());
    let states: Vec<Value> = ["AzureASOManagedCluster", "AzureASOManagedControlPlane"]
        .iter()
        .filter_map(|kind| world.get(kind, "aks"))
        .map(|it| it["status"].clone())
        .collect();
    assert!(all, "the cluster came and went: {states:#?}");
}

#[tokio::test(start_paused = true)]
#[ignore = "clusters without each of a hundred and fifty actions take minutes: .ci/run runs it"]
async fn each_action_of_the_roles_of_managed_clusters_is_needed() {
    let mut idle = Vec::new();
    let (of_managed, of_raw) = (managed_parts(), raw_parts());
    let is_proven = |action: &&String| {
        ELSEWHERE.iter().all(|(other, _)| action.as_str() != *other)
            && UNPROVEN.iter().all(|part| !action.contains(part))
    };
    let without = |all: &BTreeSet<String>, action: &String| -> BTreeSet<String> {
        all.iter().filter(|other| *other != action).cloned().collect()
    };
    for action in of_managed.union(&of_raw).filter(is_proven) {
        let mut worlds = Vec::new();
        if of_managed.contains(action) {
            worlds.push(live(&without(&of_managed, action), SHORT).await.0);
        }
        if of_raw.contains(action) {
            worlds.push(live_raw(&without(&of_raw, action), SHORT).await.0);
        }
        if !worlds.iter().any(|world| refused(&world.azure).contains(&action.to_ascii_lowercase())) {
            idle.push(action.clone());
        }
    }
    assert_eq!(idle, Vec::<String>::new(), "nothing was refused without these");
}

/// Each kind that raw resources may have can be read, written and deleted.
#[test]
fn the_roles_have_all_kinds_of_raw_resources() {
    let all = raw_parts();
    for kind in operator_resources::KINDS {
        let own = match kind.kind {
            "ResourceGroup" => "Microsoft.Resources/subscriptions/resourceGroups",
            _ => kind.resource_type,
        };
        for verb in ["read", "write", "delete"] {
            assert!(all.contains(&format!("{own}/{verb}")), "{own}/{verb}");
        }
        for (_, _, source) in kind.exports {
            if let operator_resources::Source::Call { action, .. } = source {
                assert!(all.contains(&format!("{own}/{action}/action")), "{own}/{action}/action");
            }
        }
    }
}

/// The role in Kubernetes allows what taking over needs, for each kind.
#[test]
fn the_role_in_kubernetes_has_all_kinds_of_the_operator() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/capz/parts/40-rights.yaml");
    let documents: Vec<Value> = serde_saphyr::from_multiple(&std::fs::read_to_string(path).unwrap()).unwrap();
    let rules: Vec<&Value> =
        documents.iter().flat_map(|it| it["rules"].as_array().into_iter().flatten()).collect();
    let has = |value: &Value, word: &str| value.as_array().is_some_and(|all| all.contains(&json!(word)));
    let allows = |group: &str, resource: &str, verb: &str, name: Option<&str>| {
        rules.iter().any(|rule| {
            has(&rule["apiGroups"], group)
                && has(&rule["resources"], resource)
                && has(&rule["verbs"], verb)
                && name.is_none_or(|name| has(&rule["resourceNames"], name))
        })
    };
    for kind in kinds() {
        for verb in ["delete", "get", "list", "patch"] {
            assert!(allows(kind.group, &kind.plural, verb, None), "{verb} {}", kind.definition());
        }
        let definition = kind.definition();
        let group = "apiextensions.k8s.io";
        assert!(allows(group, "customresourcedefinitions", "patch", Some(&definition)), "{definition}");
    }
}
