//! Managed clusters and their pools: what AKS makes of them, and how they live.

use std::time::Duration;

use crate::common::*;
use azure_simulator::{LatencyProfile, Options};
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

mod network;
mod rules;

const V: &str = "api-version=2025-08-01";
const NODE_GROUP: &str = "MC_rg_c_eastus";

fn cluster() -> ResourceId {
    ResourceId::group(SUBSCRIPTION, GROUP).resource("Microsoft.ContainerService", "managedClusters", "c")
}

fn pool(name: &str) -> ResourceId {
    cluster().child("agentPools", name)
}

fn body(change: impl FnOnce(&mut Value)) -> Value {
    let mut body = json!({
        "location": "eastus",
        "identity": { "type": "SystemAssigned" },
        "properties": {
            "dnsPrefix": "c",
            "agentPoolProfiles": [{ "name": "system", "mode": "System", "count": 2, "vmSize": "Standard_D2s_v3" }],
        },
    });
    change(&mut body);
    body
}

fn user_pool(change: impl FnOnce(&mut Value)) -> Value {
    let mut body = json!({ "properties": { "count": 1, "vmSize": "Standard_D2s_v3" } });
    change(&mut body["properties"]);
    body
}

async fn ask(client: &Client, method: &str, id: &str, body: Value) -> Reply {
    let body = (!body.is_null()).then_some(body);
    client.send(method, &format!("{id}?{V}"), body, &[]).await
}

async fn put(client: &Client, id: &ResourceId, body: Value) -> Reply {
    ask(client, "PUT", id.as_str(), body).await
}

async fn get(client: &Client, id: &ResourceId) -> Value {
    ask(client, "GET", id.as_str(), Value::Null).await.expect(200).body
}

/// Writes, waits for the end and reads.
async fn done(client: &Client, id: &ResourceId, body: Value) -> Value {
    let reply = put(client, id, body).await;
    assert!(reply.status < 300, "{}: {}", reply.status, reply.body);
    assert_eq!(client.wait(&reply).await["status"], "Succeeded");
    get(client, id).await
}

async fn act(client: &Client, id: &ResourceId, action: &str, body: Value) -> Reply {
    ask(client, "POST", &format!("{id}/{action}"), body).await
}

async fn with_cluster() -> Client {
    let client = Client::with_group(Options::default()).await;
    done(&client, &cluster(), body(|_| ())).await;
    client
}

fn set(client: &Client, pool: &str) -> Value {
    let sets = client.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets");
    sets.into_iter().find(|set| set["tags"]["aks-managed-poolName"] == pool).unwrap_or_default()
}

fn instances(client: &Client, pool: &str) -> usize {
    let set = set(client, pool)["id"].as_str().unwrap_or("none").to_ascii_lowercase();
    let all = client.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets/virtualMachines");
    all.iter()
        .filter(|one| one["id"].as_str().unwrap().to_ascii_lowercase().starts_with(&format!("{set}/")))
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_has_a_group_of_its_own_with_all_that_its_nodes_need() {
    let client = with_cluster().await;
    let shown = get(&client, &cluster()).await;
    let properties = &shown["properties"];
    assert_eq!(shown["type"], "Microsoft.ContainerService/ManagedClusters");
    assert_eq!(properties["nodeResourceGroup"], NODE_GROUP);
    assert_eq!(properties["agentPoolProfiles"][0]["count"], 2);
    let group = client.azure.document(&ResourceId::group(SUBSCRIPTION, NODE_GROUP)).unwrap();
    assert_eq!(group["managedBy"], cluster().as_str());
    let outbound =
        properties["networkProfile"]["loadBalancerProfile"]["effectiveOutboundIPs"][0]["id"].clone();
    let address = client.azure.document(&outbound.as_str().unwrap().parse().unwrap()).unwrap();
    assert!(address["properties"]["ipAddress"].is_string(), "{address}");
    let kubelet = properties["identityProfile"]["kubeletidentity"]["resourceId"].as_str().unwrap().to_owned();
    assert!(kubelet.ends_with("/userAssignedIdentities/c-agentpool"), "{kubelet}");
    let in_group = |kind: &str| {
        let all = client.azure.documents_of_type(kind);
        all.into_iter().filter(|one| one["id"].as_str().unwrap().contains(NODE_GROUP)).collect::<Vec<_>>()
    };
    let balancer = in_group("Microsoft.Network/loadBalancers");
    assert_eq!(balancer[0]["name"], "kubernetes");
    let members =
        &balancer[0]["properties"]["backendAddressPools"][0]["properties"]["backendIPConfigurations"];
    assert_eq!(members.as_array().map(Vec::len), Some(2), "{members}");
    for (kind, start) in [
        ("Microsoft.Network/virtualNetworks", "aks-vnet-"),
        ("Microsoft.Network/networkSecurityGroups", "aks-agentpool-"),
        ("Microsoft.Compute/virtualMachineScaleSets", "aks-system-"),
    ] {
        let found = in_group(kind);
        assert!(found.len() == 1 && found[0]["name"].as_str().unwrap().starts_with(start), "{kind}");
    }
    assert_eq!(instances(&client, "system"), 2);
    // All of it goes with the cluster.
    let gone = ask(&client, "DELETE", cluster().as_str(), Value::Null).await.expect(202);
    assert!(gone.header("location").unwrap().to_ascii_lowercase().contains("/operationresults/"));
    assert_eq!(client.wait(&gone).await["status"], "Succeeded");
    assert!(client.azure.document(&ResourceId::group(SUBSCRIPTION, NODE_GROUP)).is_none());
    assert!(client.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets").is_empty());
    ask(&client, "GET", cluster().as_str(), Value::Null).await.refused(404, "ResourceNotFound");
}

#[tokio::test(start_paused = true)]
async fn a_given_subnet_is_used_and_a_group_can_go_with_cluster_and_network() {
    let client = Client::with_group(Options::default()).await;
    let subnet = client.network("10.240.0.0/16").await;
    done(
        &client,
        &cluster(),
        body(|body| {
            body["properties"]["agentPoolProfiles"][0]["vnetSubnetID"] = json!(subnet);
            body["properties"]["networkProfile"] = json!({ "networkPlugin": "kubenet" });
        }),
    )
    .await;
    let held = client.azure.document(&subnet).unwrap();
    assert_eq!(held["properties"]["ipConfigurations"].as_array().map(Vec::len), Some(2));
    assert!(held["properties"]["routeTable"]["id"].as_str().unwrap().ends_with("-routetable"), "{held}");
    assert!(client.azure.documents_of_type("Microsoft.Network/virtualNetworks").len() == 1);
    let gone = client.send("DELETE", &format!("{}?api-version=2021-04-01", group_path()), None, &[]).await;
    client.wait(&gone.expect(202)).await;
    assert!(client.azure.document(&ResourceId::group(SUBSCRIPTION, NODE_GROUP)).is_none());
}

#[tokio::test(start_paused = true)]
async fn pools_come_grow_shrink_and_go_with_their_machines() {
    let client = with_cluster().await;
    let shown = done(&client, &pool("work"), user_pool(|pool| pool["count"] = 3.into())).await;
    assert_eq!(shown["properties"]["mode"], "User");
    assert_eq!(shown["properties"]["currentOrchestratorVersion"], "1.30.9");
    assert_eq!(instances(&client, "work"), 3);
    assert_eq!(get(&client, &cluster()).await["properties"]["agentPoolProfiles"][1]["name"], "work");
    done(&client, &pool("work"), user_pool(|pool| pool["count"] = 5.into())).await;
    assert_eq!(instances(&client, "work"), 5);
    done(&client, &pool("work"), user_pool(|pool| pool["count"] = 0.into())).await;
    assert_eq!(instances(&client, "work"), 0);
    done(&client, &pool("work"), user_pool(|pool| pool["count"] = 2.into())).await;
    let machines =
        ask(&client, "GET", &format!("{}/machines", pool("work")), Value::Null).await.expect(200).body;
    let first = machines["value"][0]["name"].as_str().unwrap().to_owned();
    assert!(machines["value"][0]["properties"]["network"]["ipAddresses"][0]["ip"].is_string(), "{machines}");
    let answer = act(&client, &pool("work"), "deleteMachines", json!({ "machineNames": [first] })).await;
    client.wait(&answer.expect(202)).await;
    assert_eq!(
        (instances(&client, "work"), get(&client, &pool("work")).await["properties"]["count"].clone()),
        (1, json!(1))
    );
    // A whole cluster as it was read, with one more node: what `az aks scale` sends.
    let mut whole = get(&client, &cluster()).await;
    whole["properties"]["agentPoolProfiles"][0]["count"] = 3.into();
    done(&client, &cluster(), whole).await;
    assert_eq!(instances(&client, "system"), 3);
    let gone = ask(&client, "DELETE", pool("work").as_str(), Value::Null).await.expect(202);
    client.wait(&gone).await;
    assert_eq!(set(&client, "work"), Value::Null);
    ask(&client, "GET", pool("work").as_str(), Value::Null).await.expect(404);
}

#[tokio::test(start_paused = true)]
async fn versions_and_images_go_up() {
    let client = with_cluster().await;
    done(&client, &pool("work"), user_pool(|_| ())).await;
    let profile = ask(&client, "GET", &format!("{}/upgradeProfiles/default", cluster()), Value::Null)
        .await
        .expect(200)
        .body;
    let upgrades = profile["properties"]["controlPlaneProfile"]["upgrades"].as_array().unwrap();
    assert!(
        upgrades.iter().all(|upgrade| upgrade["kubernetesVersion"].as_str().unwrap().starts_with("1.31."))
    );
    let shown = done(
        &client,
        &cluster(),
        body(|body| {
            body["properties"]["kubernetesVersion"] = "1.31.3".into();
            body["properties"].as_object_mut().unwrap().remove("agentPoolProfiles");
        }),
    )
    .await;
    assert_eq!(shown["properties"]["currentKubernetesVersion"], "1.31.3");
    let versions = |shown: &Value| {
        let pools = shown["properties"]["agentPoolProfiles"].as_array().unwrap();
        pools.iter().map(|pool| pool["currentOrchestratorVersion"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(versions(&shown), ["1.30.9", "1.30.9"]);
    done(&client, &pool("work"), user_pool(|pool| pool["orchestratorVersion"] = "1.31.3".into())).await;
    assert_eq!(versions(&get(&client, &cluster()).await), ["1.30.9", "1.31.3"]);
    assert_eq!(set(&client, "work")["tags"]["aks-managed-orchestrator"], "Kubernetes:1.31.3");
    let answer = act(&client, &pool("work"), "upgradeNodeImageVersion", Value::Null).await.expect(202);
    assert_eq!(client.wait(&answer).await["status"], "Succeeded");
    let pool_shown = get(&client, &pool("work")).await;
    let profile = ask(&client, "GET", &format!("{}/upgradeProfiles/default", pool("work")), Value::Null)
        .await
        .expect(200)
        .body;
    assert_eq!(pool_shown["properties"]["nodeImageVersion"], profile["properties"]["latestNodeImageVersion"]);
    let all = client.azure.documents_of_type("Microsoft.Compute/virtualMachineScaleSets/virtualMachines");
    assert!(all.iter().all(|one| one["properties"]["latestModelApplied"] == true));
    assert_eq!(pool_shown["properties"]["provisioningState"], "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn states_say_what_goes_on_and_busy_clusters_refuse_the_rest() {
    let latency =
        LatencyProfile::instant().with("*", "Microsoft.ContainerService/*", Duration::from_secs(60));
    let client = Client::with_group(Options { latency, ..Options::default() }).await;
    let state = async |id: &ResourceId| get(&client, id).await["properties"]["provisioningState"].clone();
    let made = put(&client, &cluster(), body(|_| ())).await.expect(201);
    assert_eq!(
        (state(&cluster()).await, state(&pool("system")).await),
        (json!("Creating"), json!("Creating"))
    );
    put(&client, &cluster(), body(|_| ())).await.refused(409, "OperationNotAllowed");
    put(&client, &pool("work"), user_pool(|_| ())).await.refused(409, "OperationNotAllowed");
    // Reading actions need not wait.
    act(&client, &cluster(), "listClusterUserCredential", Value::Null).await.expect(200);
    client.wait(&made).await;
    assert_eq!(
        (state(&cluster()).await, state(&pool("system")).await),
        (json!("Succeeded"), json!("Succeeded"))
    );
    for (id, change, word) in [
        (pool("system"), json!({ "properties": { "count": 3 } }), "Scaling"),
        (cluster(), body(|body| body["properties"]["kubernetesVersion"] = "1.31.1".into()), "Upgrading"),
        (pool("system"), json!({ "properties": { "orchestratorVersion": "1.31.1" } }), "Upgrading"),
    ] {
        let reply = put(&client, &id, change).await.expect(200);
        assert_eq!(reply.body["properties"]["provisioningState"], word, "{id}");
        // Pools go on side by side; the cluster waits for them.
        if id == pool("system") {
            put(&client, &cluster(), body(|_| ())).await.refused(409, "OperationNotAllowed");
        }
        client.wait(&reply).await;
    }
    let stop = act(&client, &cluster(), "stop", Value::Null).await.expect(202);
    assert_eq!(state(&cluster()).await, "Stopping");
    client.wait(&stop).await;
    let stopped = get(&client, &cluster()).await;
    assert_eq!(stopped["properties"]["powerState"]["code"], "Stopped");
    assert_eq!(stopped["properties"]["agentPoolProfiles"][0]["count"], 2);
    assert_eq!(instances(&client, "system"), 0);
    put(&client, &pool("work"), user_pool(|_| ())).await.refused(400, "OperationNotAllowed");
    let start = act(&client, &cluster(), "start", Value::Null).await.expect(202);
    assert_eq!(state(&cluster()).await, "Starting");
    client.wait(&start).await;
    assert_eq!(instances(&client, "system"), 2);
    // An operation that a client aborts.
    put(&client, &pool("system"), json!({ "properties": { "count": 4 } })).await.expect(200);
    let abort = act(&client, &pool("system"), "abort", Value::Null).await.expect(202);
    client.wait(&abort).await;
    assert_eq!(state(&pool("system")).await, "Canceled");
    let gone = ask(&client, "DELETE", cluster().as_str(), Value::Null).await.expect(202);
    assert_eq!(state(&cluster()).await, "Deleting");
    client.wait(&gone).await;
}

#[tokio::test(start_paused = true)]
async fn an_operation_fails_with_what_the_machines_provider_refuses() {
    let limits = [("compute.coresPerRegion".to_owned(), 3)].into();
    let client = Client::with_group(Options { limits, ..Options::default() }).await;
    let reply = put(&client, &cluster(), body(|_| ())).await.expect(201);
    let end = client.wait(&reply).await;
    assert_eq!(
        (&end["status"], &end["error"]["code"]),
        (&json!("Failed"), &json!("OperationNotAllowed")),
        "{end}"
    );
    assert_eq!(get(&client, &cluster()).await["properties"]["provisioningState"], "Failed");
    client.azure.set_limits([("compute.coresPerRegion".to_owned(), 100)].into()).unwrap();
    let repaired = done(&client, &cluster(), body(|_| ())).await;
    assert_eq!(repaired["properties"]["agentPoolProfiles"][0]["provisioningState"], "Succeeded");
    assert_eq!(instances(&client, "system"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_autoscalers_count_is_its_own() {
    let client = with_cluster().await;
    let scaled = |count: u64, min: u64, max: u64| {
        user_pool(|pool| {
            *pool = json!({ "count": count, "enableAutoScaling": true, "minCount": min, "maxCount": max,
                "vmSize": "Standard_D2s_v3" });
        })
    };
    done(&client, &pool("auto"), scaled(2, 1, 5)).await;
    assert_eq!(done(&client, &pool("auto"), scaled(4, 1, 5)).await["properties"]["count"], 2);
    assert_eq!(done(&client, &pool("auto"), scaled(4, 3, 5)).await["properties"]["count"], 3);
    let fixed = user_pool(|pool| *pool = json!({ "count": 1, "enableAutoScaling": false }));
    let fixed = done(&client, &pool("auto"), fixed).await;
    assert!(fixed["properties"].get("minCount").is_none() && fixed["properties"]["count"] == 1, "{fixed}");
    let spot = done(&client, &pool("spot"), user_pool(|pool| pool["scaleSetPriority"] = "Spot".into())).await;
    assert_eq!(spot["properties"]["nodeLabels"]["kubernetes.azure.com/scalesetpriority"], "spot");
    assert_eq!(set(&client, "spot")["properties"]["virtualMachineProfile"]["priority"], "Spot");
}

#[tokio::test(start_paused = true)]
async fn kubeconfigs_name_the_clusters_host_and_valid_certificates() {
    let client = with_cluster().await;
    let config = async |action: &str| {
        let answer = act(&client, &cluster(), action, Value::Null).await.expect(200).body;
        let text = STANDARD.decode(answer["kubeconfigs"][0]["value"].as_str().unwrap()).unwrap();
        (answer["kubeconfigs"][0]["name"].as_str().unwrap().to_owned(), String::from_utf8(text).unwrap())
    };
    let member = |text: &str, member: &str| {
        let (_, rest) = text.split_once(&format!("\"{member}\":\"")).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    let (name, admin) = config("listClusterAdminCredential").await;
    assert_eq!(name, "clusterAdmin");
    let host = get(&client, &cluster()).await["properties"]["fqdn"].as_str().unwrap().to_owned();
    assert_eq!(member(&admin, "server"), format!("https://{host}:443"));
    assert!(admin.contains("name: c-admin") && admin.contains("clusterAdmin_rg_c"), "{admin}");
    for part in ["certificate-authority-data", "client-certificate-data", "client-key-data"] {
        let pem = String::from_utf8(STANDARD.decode(member(&admin, part)).unwrap()).unwrap();
        assert!(pem.starts_with("-----BEGIN "), "{part}: {pem}");
    }
    assert_eq!(config("listClusterAdminCredential").await.1, admin, "the same each time");
    assert_eq!(config("listClusterUserCredential").await.0, "clusterUser");
    assert_eq!(config("listClusterMonitoringUserCredential").await.0, "clusterMonitoringUser");
    let profile = act(&client, &cluster(), "accessProfiles/clusterUser/listCredential", Value::Null)
        .await
        .expect(200)
        .body;
    assert!(profile["properties"]["kubeConfig"].is_string(), "{profile}");
    let rotated = act(&client, &cluster(), "rotateClusterCertificates", Value::Null).await.expect(202);
    client.wait(&rotated).await;
    assert_ne!(config("listClusterAdminCredential").await.1, admin);
    // Without local accounts, only users of the directory get access.
    done(
        &client,
        &cluster(),
        body(|body| {
            body["properties"]["aadProfile"] = json!({ "managed": true });
            body["properties"]["disableLocalAccounts"] = true.into();
        }),
    )
    .await;
    act(&client, &cluster(), "listClusterAdminCredential", Value::Null).await.refused(400, "BadRequest");
    let user = config("listClusterUserCredential").await.1;
    assert!(user.contains("kubelogin") && !user.contains("\"token\""), "{user}");
}

#[tokio::test(start_paused = true)]
async fn windows_maintenance_trust_fleets_and_extensions() {
    let client = with_cluster().await;
    let window = cluster().child("maintenanceConfigurations", "default");
    let slots = json!({ "properties": { "timeInWeek": [{ "day": "Monday", "hourSlots": [1, 2] }] } });
    put(&client, &window, slots.clone()).await.expect(201);
    assert_eq!(get(&client, &window).await["properties"], slots["properties"]);
    put(&client, &cluster().child("maintenanceConfigurations", "mine"), slots)
        .await
        .refused(400, "InvalidParameter");
    put(&client, &window, json!({ "properties": { "timeInWeek": [{ "day": "Moonday" }] } }))
        .await
        .refused(400, "InvalidParameter");
    ask(&client, "DELETE", window.as_str(), Value::Null).await.expect(200);

    let binding = cluster().child("trustedAccessRoleBindings", "backup");
    let source = network_id("natGateways/n");
    done(
        &client,
        &binding,
        json!({ "properties": { "sourceResourceId": source,
        "roles": ["Microsoft.DataProtection/backupVaults/backup-operator"] } }),
    )
    .await;
    put(&client, &binding, json!({ "properties": { "sourceResourceId": source, "roles": ["x/y"] } }))
        .await
        .refused(400, "InvalidParameter");

    let group = ResourceId::group(SUBSCRIPTION, GROUP);
    let fleet = group.resource("Microsoft.ContainerService", "fleets", "f");
    done(&client, &fleet, json!({ "location": "eastus" })).await;
    let joined = json!({ "properties": { "clusterResourceId": cluster(), "group": "one" } });
    let member = done(&client, &fleet.child("members", "m"), joined.clone()).await;
    assert_eq!((&member["properties"]["group"], member["eTag"].is_string()), (&json!("one"), true));
    put(&client, &fleet.child("members", "n"), joined).await.refused(409, "ClusterAlreadyJoined");
    let strange = json!({ "properties": { "clusterResourceId": group.resource("Microsoft.ContainerService", "managedClusters", "x") } });
    put(&client, &fleet.child("members", "x"), strange).await.refused(400, "ClusterResourceNotFound");

    let extension = cluster().resource("Microsoft.KubernetesConfiguration", "extensions", "flux");
    let flux =
        json!({ "properties": { "extensionType": "microsoft.flux", "configurationSettings": { "a": "b" } } });
    let shown = done(&client, &extension, flux).await;
    assert_eq!(shown["properties"]["scope"]["cluster"]["releaseNamespace"], "microsoft-flux");
    assert_eq!(shown["properties"]["releaseTrain"], "Stable");
    let changed = json!({ "properties": { "extensionType": "other" } });
    put(&client, &extension, changed).await.refused(400, "ExtensionPropertyChangeNotAllowed");
    let gone = ask(&client, "DELETE", extension.as_str(), Value::Null).await.expect(202);
    client.wait(&gone).await;
}

#[tokio::test(start_paused = true)]
async fn a_location_says_which_versions_there_are() {
    let client = Client::new(Options::default());
    let below =
        format!("/subscriptions/{SUBSCRIPTION}/providers/Microsoft.ContainerService/locations/eastus");
    let versions =
        ask(&client, "GET", &format!("{below}/kubernetesVersions"), Value::Null).await.expect(200).body;
    let values = versions["values"].as_array().unwrap();
    let usual = values.iter().find(|value| value["isDefault"] == true).unwrap();
    assert_eq!(usual["version"], "1.30");
    assert!(usual["patchVersions"]["1.30.9"]["upgrades"].as_array().unwrap().contains(&json!("1.31.1")));
    let older = ask(&client, "GET", &format!("{below}/orchestrators"), Value::Null).await.expect(200).body;
    assert!(older["properties"]["orchestrators"].as_array().unwrap().len() > 20);
    ask(&client, "GET", &format!("{below}/osOptions/default"), Value::Null).await.expect(200);
    ask(&client, "GET", &format!("{below}/nothing"), Value::Null).await.expect(404);
}
