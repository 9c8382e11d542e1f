//! Goals of AzureManagedControlPlanes.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use azure_contract::{Contract, Side};
use azure_types::ResourceId;
use capz_api::Gates;
use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use capz_api::azure_managed_machine_pool::AzureManagedMachinePoolSpec;
use capz_planner::agent_pool::AgentPool;
use capz_planner::cluster::{End, Inventory, Memory, contact, end, unrecorded};
use capz_planner::condition::project;
use capz_planner::managed_cluster::{
    ManagedScope, RESOURCE_HEALTH, as_cluster, ends, goals, health_condition, health_reading, read_back,
    remembered,
};
use capz_planner::service::MANAGED_CONTROL_PLANE;
use capz_planner::tags::{ID, owner_key};
use capz_planner::{
    Action, Claimant, ClusterScope, Goal, GoalError, ObservedResources, Plan, Reading, State, Step, noun,
};
use serde_json::{Value, json};

use super::azure::Azure;

static NOTHING_KEPT: BTreeSet<ResourceId> = BTreeSet::new();
pub static NO_ANNOTATIONS: BTreeMap<String, String> = BTreeMap::new();

/// A node pool, with the MachinePool that owns it.
pub struct Pool {
    pub spec: AzureManagedMachinePoolSpec,
    pub annotations: BTreeMap<String, String>,
    pub version: Option<&'static str>,
    pub replicas: Option<i32>,
}

impl Pool {
    pub fn new(spec: Value) -> Self {
        let mut whole =
            json!({ "name": "pool0", "mode": "System", "sku": "Standard_D2s_v3", "osType": "Linux" });
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let spec = serde_json::from_value(whole).unwrap();
        Self { spec, annotations: BTreeMap::new(), version: None, replicas: None }
    }

    pub fn declared(&self) -> AgentPool<'_> {
        AgentPool {
            name: "my-pool",
            spec: &self.spec,
            annotations: &self.annotations,
            version: self.version,
            replicas: self.replicas,
        }
    }
}

/// A managed cluster as a controller reconciles it.
pub struct Managed {
    pub spec: AzureManagedControlPlaneSpec,
    pub as_cluster: AzureClusterSpec,
    pub id: Option<&'static str>,
    pub services: Vec<String>,
    pub pods: Vec<String>,
    pub headers: BTreeMap<String, String>,
    pub auto_upgrade_version: Option<&'static str>,
    pub pools: Vec<Pool>,
}

impl Managed {
    pub fn new(spec: Value) -> Self {
        let mut whole = json!({
            "version": "v1.31.2",
            "location": "eastus",
            "resourceGroupName": "my-rg",
            "nodeResourceGroupName": "MC_my-rg_aks_eastus",
            "networkPlugin": "azure",
            "loadBalancerSKU": "Standard",
            "virtualNetwork": {
                "name": "net", "cidrBlock": "10.0.0.0/8",
                "subnet": { "name": "nodes", "cidrBlock": "10.240.0.0/16" },
            },
        });
        whole.as_object_mut().unwrap().extend(spec.as_object().unwrap().clone());
        let spec: AzureManagedControlPlaneSpec = serde_json::from_value(whole).unwrap();
        Self {
            as_cluster: as_cluster(&spec, "aks"),
            spec,
            id: Some("me"),
            services: Vec::new(),
            pods: Vec::new(),
            headers: BTreeMap::new(),
            auto_upgrade_version: None,
            pools: vec![Pool::new(json!({}))],
        }
    }

    pub fn scope(&self) -> ManagedScope<'_> {
        ManagedScope {
            cluster: ClusterScope {
                cluster: "my-cluster",
                id: self.id,
                marked_only: false,
                kept: &NOTHING_KEPT,
                namespace: "default",
                name: "aks",
                spec: &self.as_cluster,
                subscription: "123",
                api_server_port: None,
                zones: &[],
                dns_suffix: "cloudapp.azure.com",
                gates: Gates::default(),
            },
            spec: &self.spec,
            service_ranges: &self.services,
            pod_ranges: &self.pods,
            headers: &self.headers,
            auto_upgrade_version: self.auto_upgrade_version,
        }
    }

    pub fn cluster_id(&self) -> ResourceId {
        self.scope().managed_cluster()
    }

    fn goals_in(&self, memory: &Memory, observed: &ObservedResources) -> Result<Vec<Goal>, GoalError> {
        let pools: Vec<AgentPool<'_>> = self.pools.iter().map(Pool::declared).collect();
        let goals = goals(self.scope(), &pools, memory, observed)?;
        for goal in &goals {
            assert!(MANAGED_CONTROL_PLANE.contains(&goal.service), "{} has no condition", goal.service.name);
        }
        Ok(goals)
    }

    /// The goals where the cluster has this document; `None` if it does not exist.
    fn goals(&self, held: Option<Value>) -> Result<Vec<Goal>, GoalError> {
        let mut observed = ObservedResources::default();
        observed.take(&self.cluster_id(), held);
        self.goals_in(&Memory::default(), &observed)
    }

    fn goal(&self, held: Option<Value>) -> Goal {
        let goals = self.goals(held).unwrap();
        goals.into_iter().find(|goal| goal.id == self.cluster_id()).unwrap()
    }

    /// The document of the cluster with which it is created.
    fn document(&self) -> Value {
        self.goal(None).document
    }

    /// The next write of the cluster that is there with this document; `None` if it is as desired.
    fn update(&self, held: Value) -> Option<Step> {
        let mut azure = Azure::default();
        let mut held = held;
        held["tags"] = json!(self.scope().cluster.tags(Some("common"), Some("aks")));
        azure.put(&self.cluster_id(), held.clone());
        let plan = azure.plan(self.scope(), vec![self.goal(Some(held))]);
        plan.steps().next().cloned()
    }

    /// Makes it in this Azure. As for a controller, each round has goals of its own.
    pub fn settle(&self, azure: &mut Azure, memory: &Memory) -> Plan {
        for _ in 0..20 {
            let mut observed = ObservedResources::default();
            observed.take(&self.cluster_id(), azure.get(&self.cluster_id()));
            let goals = self.goals_in(memory, &observed).unwrap();
            if let Some(plan) = azure.round(self.scope(), goals) {
                return plan;
            }
        }
        panic!("it does not end: {:?}", azure.rounds.last());
    }
}

/// A cluster that declares everything.
fn everything() -> Managed {
    let mut managed = Managed::new(json!({
        "additionalTags": { "team": "a" },
        "sku": { "tier": "Paid" },
        "identity": {
            "type": "UserAssigned",
            "userAssignedIdentityResourceID":
                "/subscriptions/123/resourceGroups/ids/providers/Microsoft.ManagedIdentity/userAssignedIdentities/aks",
        },
        "kubeletUserAssignedIdentity":
            "/subscriptions/123/resourceGroups/ids/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubelet",
        "dnsPrefix": "prefix",
        "networkPluginMode": "overlay",
        "networkPolicy": "cilium",
        "networkDataplane": "cilium",
        "outboundType": "loadBalancer",
        "loadBalancerProfile": { "managedOutboundIPs": 2, "allocatedOutboundPorts": 1024, "idleTimeoutInMinutes": 10 },
        "sshPublicKey": "c3NoLXJzYSBBQUFB",
        "aadProfile": { "managed": true, "adminGroupObjectIDs": ["616077a8-5db7-4c98-b856-b34619afg75h"] },
        "disableLocalAccounts": true,
        "addonProfiles": [{ "name": "azurepolicy", "enabled": true, "config": { "a": "b" } }],
        "apiServerAccessProfile": {
            "authorizedIPRanges": ["12.34.56.78/32"], "enablePrivateCluster": true, "privateDNSZone": "None",
            "enablePrivateClusterPublicFQDN": true,
        },
        "httpProxyConfig": {
            "httpProxy": "http://proxy", "httpsProxy": "https://proxy", "noProxy": ["localhost"], "trustedCa": "YQ==",
        },
        "oidcIssuerProfile": { "enabled": true },
        "autoUpgradeProfile": { "upgradeChannel": "patch" },
        "securityProfile": {
            "azureKeyVaultKms": {
                "enabled": true, "keyID": "https://vault/keys/k", "keyVaultNetworkAccess": "Private",
                "keyVaultResourceID":
                    "/subscriptions/123/resourceGroups/ids/providers/Microsoft.KeyVault/vaults/vault",
            },
            "defender": {
                "logAnalyticsWorkspaceResourceID":
                    "/subscriptions/123/resourceGroups/ids/providers/Microsoft.OperationalInsights/workspaces/w",
                "securityMonitoring": { "enabled": true },
            },
            "imageCleaner": { "enabled": true, "intervalHours": 48 },
            "workloadIdentity": { "enabled": true },
        },
        "autoscalerProfile": {
            "balanceSimilarNodeGroups": "false", "expander": "random", "maxEmptyBulkDelete": "10",
            "maxGracefulTerminationSec": "600", "maxNodeProvisionTime": "15m", "maxTotalUnreadyPercentage": "45",
            "newPodScaleUpDelay": "0s", "okTotalUnreadyCount": "3", "scanInterval": "10s",
            "scaleDownDelayAfterAdd": "10m", "scaleDownDelayAfterDelete": "10s",
            "scaleDownDelayAfterFailure": "3m", "scaleDownUnneededTime": "10m", "scaleDownUnreadyTime": "20m",
            "scaleDownUtilizationThreshold": "0.5", "skipNodesWithLocalStorage": "false",
            "skipNodesWithSystemPods": "true",
        },
        "fleetsMember": { "name": "member", "managerName": "fleet", "managerResourceGroup": "fleets", "group": "default" },
        "extensions": [
            {
                "name": "flux", "extensionType": "microsoft.flux", "autoUpgradeMinorVersion": true,
                "configurationSettings": { "a": "b" }, "releaseTrain": "Stable", "identity": "SystemAssigned",
                "aksAssignedIdentityType": "SystemAssigned",
                "plan": { "name": "p", "product": "q", "promotionCode": "c", "publisher": "r", "version": "1" },
                "scope": { "scopeType": "Cluster", "releaseNamespace": "flux-system" },
            },
            { "name": "dapr", "extensionType": "microsoft.dapr", "version": "1.2.3", "autoUpgradeMinorVersion": false,
              "scope": { "scopeType": "Namespace", "targetNamespace": "dapr" } },
        ],
        "asoManagedClusterPatches": [
            "{\"spec\": {\"supportPlan\": \"KubernetesOfficial\"}}",
            "spec:\n  autoUpgradeProfile:\n    nodeOSUpgradeChannel: SecurityPatch\n",
        ],
    }));
    managed.services = vec!["192.168.0.0/24".into()];
    managed.pods = vec!["10.244.0.0/16".into()];
    managed
}

#[test]
fn every_field_has_its_member() {
    let document = everything().document();
    let id =
        |kind: &str, name: &str| format!("/subscriptions/123/resourceGroups/ids/providers/{kind}/{name}");
    let identity = "Microsoft.ManagedIdentity/userAssignedIdentities";
    assert_eq!(document["sku"], json!({ "name": "Base", "tier": "Standard" }));
    assert_eq!(
        document["identity"],
        json!({ "type": "UserAssigned", "userAssignedIdentities": { id(identity, "aks"): {} } })
    );
    assert_eq!(
        document["tags"],
        json!({
            "team": "a", "Name": "aks", owner_key("my-cluster"): "owned", ID: "me",
            "sigs.k8s.io_cluster-api-provider-azure_role": "common",
        })
    );
    let expected = [
        ("identityProfile", json!({ "kubeletidentity": { "resourceId": id(identity, "kubelet") } })),
        ("nodeResourceGroup", json!("MC_my-rg_aks_eastus")),
        ("enableRBAC", json!(true)),
        ("dnsPrefix", json!("prefix")),
        ("kubernetesVersion", json!("1.31.2")),
        ("servicePrincipalProfile", json!({ "clientId": "msi" })),
        (
            "networkProfile",
            json!({
                "networkPlugin": "azure", "networkPluginMode": "overlay", "networkPolicy": "cilium",
                "networkDataplane": "cilium", "outboundType": "loadBalancer", "loadBalancerSku": "standard",
                "podCidr": "10.244.0.0/16", "serviceCidr": "192.168.0.0/24", "dnsServiceIP": "192.168.0.10",
                "loadBalancerProfile": {
                    "managedOutboundIPs": { "count": 2 }, "allocatedOutboundPorts": 1024, "idleTimeoutInMinutes": 10,
                },
            }),
        ),
        (
            "linuxProfile",
            json!({ "adminUsername": "azureuser", "ssh": { "publicKeys": [{ "keyData": "ssh-rsa AAAA" }] } }),
        ),
        (
            "aadProfile",
            json!({ "managed": true, "enableAzureRBAC": true,
                "adminGroupObjectIDs": ["616077a8-5db7-4c98-b856-b34619afg75h"] }),
        ),
        ("disableLocalAccounts", json!(true)),
        ("addonProfiles", json!({ "azurepolicy": { "enabled": true, "config": { "a": "b" } } })),
        (
            "apiServerAccessProfile",
            json!({ "authorizedIPRanges": ["12.34.56.78/32"], "enablePrivateCluster": true, "privateDNSZone": "None",
                "enablePrivateClusterPublicFQDN": true }),
        ),
        (
            "httpProxyConfig",
            json!({ "httpProxy": "http://proxy", "httpsProxy": "https://proxy", "noProxy": ["localhost"],
                "trustedCa": "YQ==" }),
        ),
        ("oidcIssuerProfile", json!({ "enabled": true })),
        ("supportPlan", json!("KubernetesOfficial")),
        ("autoUpgradeProfile", json!({ "upgradeChannel": "patch", "nodeOSUpgradeChannel": "SecurityPatch" })),
        (
            "securityProfile",
            json!({
                "azureKeyVaultKms": { "enabled": true, "keyId": "https://vault/keys/k",
                    "keyVaultNetworkAccess": "Private", "keyVaultResourceId": id("Microsoft.KeyVault/vaults", "vault") },
                "defender": {
                    "logAnalyticsWorkspaceResourceId": id("Microsoft.OperationalInsights/workspaces", "w"),
                    "securityMonitoring": { "enabled": true },
                },
                "imageCleaner": { "enabled": true, "intervalHours": 48 },
                "workloadIdentity": { "enabled": true },
            }),
        ),
    ];
    let properties = document["properties"].as_object().unwrap();
    for (member, value) in &expected {
        assert_eq!(properties.get(*member), Some(value), "{member}");
    }
    let autoscaler = properties["autoScalerProfile"].as_object().unwrap();
    assert_eq!(autoscaler.len(), 17);
    assert_eq!(autoscaler["scale-down-utilization-threshold"], "0.5");
    let mut all: BTreeSet<&str> = expected.iter().map(|(member, _)| *member).collect();
    all.extend(["autoScalerProfile", "agentPoolProfiles"]);
    assert_eq!(properties.keys().map(String::as_str).collect::<BTreeSet<_>>(), all);
}

/// Documents of all goals of a cluster that declares everything are documents of their type, by what Azure publishes.
#[test]
fn azure_accepts_every_member() {
    let Some(folder) =
        std::env::var_os("CERULEAN_AZURE_CONTRACT").map(PathBuf::from).filter(|it| it.is_dir())
    else {
        return;
    };
    let contract = Contract::read(&folder).unwrap();
    let mut managed = everything();
    managed.pools = vec![super::agent_pool::everything()];
    managed.spec.enable_preview_features = Some(false);
    let mut goals = managed.goals(None).unwrap();
    goals.extend(super::agent_pool::goals_of(&managed, None));
    managed.spec.enable_preview_features = Some(true);
    goals.push(managed.goal(None));
    let mut judged = BTreeSet::new();
    for goal in goals.iter().filter(|goal| goal.document.is_object()) {
        let judged_type = goal.kind().resource_type;
        // Resource groups have no contract.
        let Some(judgement) = contract.judge(judged_type, goal.api_version, Side::Request, &goal.document)
        else {
            continue;
        };
        assert!(judgement.violations.is_empty(), "{}: {:?}", goal.id, judgement.violations);
        judged.insert((noun(&goal.id), goal.api_version));
    }
    for known in [
        ("managed cluster", "2025-08-01"),
        ("managed cluster", "2025-10-02-preview"),
        ("node pool", "2025-08-01"),
        ("fleet member", "2025-03-01"),
        ("cluster extension", "2023-05-01"),
    ] {
        assert!(judged.contains(&known), "{known:?} among {judged:?}");
    }
}

/// CAPZ-167: an address that is not declared is sent as .10 of the range of Services.
#[test]
fn the_dns_service_has_the_address_10() {
    for (declared, services, expected) in [
        (json!(null), vec!["192.168.0.0/24"], json!("192.168.0.10")),
        (json!(""), vec!["10.96.0.0/12"], json!("10.96.0.10")),
        (json!("192.168.0.20"), vec!["192.168.0.0/24"], json!("192.168.0.20")),
        (json!(null), vec!["fd00::/108"], json!("fd00::a")),
        (json!(null), vec![], json!(null)),
        (json!("10.0.0.10"), vec![], json!(null)),
        (json!(null), vec!["10.0.0.0/16", "fd00::/108"], json!(null)),
    ] {
        let mut managed = Managed::new(json!({ "dnsServiceIP": declared }));
        managed.services = services.iter().map(ToString::to_string).collect();
        let profile = managed.document()["properties"]["networkProfile"].clone();
        assert_eq!(profile["dnsServiceIP"], expected, "{services:?}");
        assert_eq!(profile["serviceCidr"].is_null(), services.len() != 1, "{services:?}");
    }
    let mut managed = Managed::new(json!({}));
    managed.services = vec!["10.0.0.0".into()];
    let words = managed.goals(None).unwrap_err().to_string();
    assert!(words.contains("services.cidrBlocks"), "{words}");
}

/// CAPZ-182: a cluster is not created without a System pool, or with pools that are newer than it.
#[test]
fn a_cluster_needs_a_system_pool_that_is_not_newer() {
    let user = || Pool::new(json!({ "name": "user", "mode": "User" }));
    let of_version = |version| Pool { version: Some(version), ..Pool::new(json!({})) };
    let has_pools = json!({ "properties": { "agentPoolProfiles": [{ "name": "pool0" }] } });
    for (pools, held, expected) in [
        (vec![], None, Some("mode System")),
        (vec![user()], None, Some("mode System")),
        (vec![user(), Pool::new(json!({}))], None, None),
        (vec![of_version("v1.31.2")], None, None),
        (vec![of_version("1.30.9")], None, None),
        (
            vec![of_version("v1.31.3")],
            None,
            Some("my-pool is higher than that of the control plane, v1.31.2"),
        ),
        (vec![of_version("v1.32.0")], Some(json!({ "properties": {} })), Some("is higher")),
        (vec![user()], Some(has_pools.clone()), None),
        (vec![of_version("v1.32.0")], Some(has_pools), None),
    ] {
        let managed = Managed { pools, ..Managed::new(json!({})) };
        match (managed.goals(held.clone()), expected) {
            (Ok(_), None) => {}
            (Err(GoalError::NotNow(words)), Some(part)) => assert!(words.contains(part), "{words}"),
            (other, _) => panic!("{held:?} {expected:?}: {other:?}"),
        }
    }
}

/// CAPZ-183: all pools are in the first request, sorted by name; once Azure shows pools, no request has any.
#[test]
fn pools_are_in_the_first_request_alone() {
    let mut managed = Managed::new(json!({}));
    managed.pools = vec![
        Pool::new(json!({ "name": "second", "mode": "User" })),
        Pool { replicas: Some(3), ..Pool::new(json!({ "name": "first" })) },
    ];
    let pools = managed.document()["properties"]["agentPoolProfiles"].clone();
    let said: Vec<_> = pools.as_array().unwrap().iter().map(|pool| (&pool["name"], &pool["count"])).collect();
    assert_eq!(json!(said), json!([["first", 3], ["second", 1]]));
    let mut held = managed.document();
    assert_eq!(managed.update(held.clone()), None);
    held["properties"]["dnsPrefix"] = json!("other");
    held["properties"]["kubernetesVersion"] = json!("1.30.1");
    let step = managed.update(held.clone()).unwrap();
    assert_eq!(step.action, Action::Update);
    assert_eq!(step.document["properties"].get("agentPoolProfiles"), None);
    assert_eq!(step.document["properties"]["kubernetesVersion"], "1.31.2");
    assert_eq!(step.document["properties"]["dnsPrefix"], "other");
    // Its creation has failed before Azure created a pool.
    held["properties"]["agentPoolProfiles"] = json!([]);
    let step = managed.update(held).unwrap();
    assert_eq!(step.document["properties"]["agentPoolProfiles"], pools);
}

/// CAPZ-184.
#[test]
fn the_endpoint_is_the_name_that_reaches_the_server() {
    for (access, expected) in [
        (json!(null), "public"),
        (json!({ "enablePrivateCluster": false }), "public"),
        (json!({ "enablePrivateCluster": true }), "private"),
        (json!({ "enablePrivateCluster": true, "enablePrivateClusterPublicFQDN": false }), "private"),
        (json!({ "enablePrivateCluster": true, "enablePrivateClusterPublicFQDN": true }), "public"),
    ] {
        let managed = Managed::new(json!({ "apiServerAccessProfile": access }));
        let held = json!({ "properties": { "fqdn": "public", "privateFQDN": "private",
            "oidcIssuerProfile": { "issuerURL": "https://issuer" }, "currentKubernetesVersion": "1.31.2" } });
        let reported = read_back(managed.scope(), &held);
        let endpoint = reported.endpoint.unwrap();
        assert_eq!((endpoint.host.as_deref(), endpoint.port), (Some(expected), Some(443)), "{access}");
        assert_eq!(reported.issuer_url.as_deref(), Some("https://issuer"));
        assert_eq!(reported.version.as_deref(), Some("v1.31.2"));
        assert_eq!(reported.auto_upgrade_version, None);
    }
    let managed = Managed::new(json!({}));
    assert_eq!(
        read_back(managed.scope(), &json!({ "properties": {} })),
        capz_planner::managed_cluster::Reported::default()
    );
}

/// CAPZ-185: what Azure has upgraded stays upgraded.
#[test]
fn a_version_is_never_lowered() {
    for (declared, current, sent) in [
        ("v1.24.6", Some("1.25.4"), "1.25.4"),
        ("v1.25.4", Some("1.24.6"), "1.25.4"),
        ("v1.24.10", Some("1.24.9"), "1.24.10"),
        ("v1.24.6", None, "1.24.6"),
        ("1.24.6", Some("1.24.6"), "1.24.6"),
    ] {
        let managed = Managed::new(json!({ "version": declared }));
        let held = current.map(|version| {
            json!({ "properties": { "currentKubernetesVersion": version, "agentPoolProfiles": [{}] } })
        });
        let goal = managed.goal(held);
        assert_eq!(goal.document["properties"]["kubernetesVersion"], sent, "{declared} {current:?}");
    }
    let managed = Managed::new(json!({}));
    for (channel, expected) in [
        ("patch", Some("v1.25.4")),
        ("Stable", Some("v1.25.4")),
        ("rapid", Some("v1.25.4")),
        ("node-image", None),
        ("none", None),
    ] {
        let held = json!({ "properties": { "currentKubernetesVersion": "1.25.4",
            "autoUpgradeProfile": { "upgradeChannel": channel } } });
        let reported = read_back(managed.scope(), &held);
        assert_eq!(reported.auto_upgrade_version.as_deref(), expected, "{channel}");
        assert_eq!(reported.version.as_deref(), Some("v1.25.4"));
    }
}

/// CAPZ-188.
#[test]
fn health_becomes_a_condition() {
    let hours = |hours: u64| Duration::from_secs(hours * 3600);
    for (state, age, status, severity) in [
        ("Available", hours(2), "True", None),
        ("Unavailable", hours(2), "False", Some("Error")),
        ("Unavailable", hours(0), "False", Some("Error")),
        ("Degraded", hours(0), "True", None),
        ("Degraded", hours(1), "False", Some("Warning")),
        ("Unknown", hours(0), "True", None),
        ("Unknown", hours(2), "False", Some("Warning")),
        ("Else", hours(0), "False", None),
    ] {
        let answer = json!({ "properties": {
            "availabilityState": state, "reasonType": "customer initiated", "summary": "It is stopped." } });
        let found = health_condition(&answer, age);
        assert_eq!(found.condition.as_deref(), Some(RESOURCE_HEALTH));
        assert_eq!((found.status.as_deref(), found.severity.as_deref()), (Some(status), severity), "{state}");
        let fails = status == "False";
        assert_eq!(found.reason.as_deref(), fails.then_some("CustomerInitiated"), "{state}");
        assert_eq!(found.message.as_deref(), fails.then_some("It is stopped."), "{state}");
    }
    let nothing = health_condition(&json!({}), hours(2));
    assert_eq!((nothing.status.as_deref(), nothing.reason), (Some("False"), None));
    let managed = Managed::new(json!({}));
    let Reading::Get { id, .. } = health_reading(&managed.cluster_id()) else { panic!() };
    assert_eq!(
        id.as_str(),
        format!("{}/providers/Microsoft.ResourceHealth/availabilityStatuses/current", managed.cluster_id())
    );
}

/// A cluster is made in the order of its references, converges, and its conditions are true.
#[test]
fn a_cluster_is_made_and_at_rest() {
    let managed = Managed::new(json!({
        "fleetsMember": { "name": "member", "managerName": "fleet", "managerResourceGroup": "fleets" },
        "extensions": [{ "name": "flux", "extensionType": "microsoft.flux" }],
        "virtualNetwork": { "name": "net", "cidrBlock": "10.0.0.0/8", "subnet": {
            "name": "nodes", "cidrBlock": "10.240.0.0/16",
            "privateEndpoints": [{ "name": "pe", "privateLinkServiceConnections": [
                { "privateLinkServiceID": "https://else" }] }] } },
    }));
    let mut azure = Azure::default();
    let plan = managed.settle(&mut azure, &Memory::default());
    assert!(plan.is_reached(), "{plan}");
    let rounds: Vec<Vec<&str>> =
        azure.rounds.iter().map(|round| round.iter().map(String::as_str).collect()).collect();
    assert_eq!(
        rounds,
        [vec!["my-rg"], vec!["net"], vec!["nodes"], vec!["aks", "pe"], vec!["member", "flux"]]
    );
    let conditions = project(&MANAGED_CONTROL_PLANE, &plan);
    let named: Vec<_> = conditions
        .iter()
        .map(|it| (it.condition.as_deref().unwrap(), it.status.as_deref() == Some("True")))
        .collect();
    assert_eq!(
        named,
        [
            ("ResourceGroupReady", true),
            ("VNetReady", true),
            ("SubnetsReady", true),
            ("ManagedClusterRunning", true),
            ("PrivateEndpointsReady", true),
            ("FleetReady", true),
            ("AKSExtensionsReady", true),
        ]
    );
    // A member of a fleet, and extensions, that are no longer declared are deleted.
    let memory = remembered(managed.scope());
    let less = Managed::new(json!({}));
    azure.rounds.clear();
    let less = Managed { as_cluster: managed.as_cluster.clone(), ..less };
    assert!(less.settle(&mut azure, &memory).is_reached());
    assert_eq!(azure.rounds, [vec!["flux".to_owned(), "member".to_owned()]]);
}

/// CAPZ-199: a network that exists is used as it is.
#[test]
fn a_network_of_others_is_used_as_it_is() {
    let managed = Managed::new(json!({ "virtualNetwork": {
        "name": "test-vnet", "resourceGroup": "test-rg", "cidrBlock": "10.0.0.0/8",
        "subnet": { "name": "test-subnet", "cidrBlock": "10.0.2.0/24" } } }));
    let network =
        ResourceId::group("123", "test-rg").resource("Microsoft.Network", "virtualNetworks", "test-vnet");
    let mut azure = Azure::default();
    azure.put(&ResourceId::group("123", "test-rg"), json!({ "location": "eastus" }));
    let theirs = json!({ "location": "eastus", "properties": { "addressSpace": { "addressPrefixes": ["10.9.0.0/16"] } } });
    azure.put(&network, theirs);
    azure.put(
        &network.child("subnets", "test-subnet"),
        json!({ "properties": { "addressPrefix": "10.9.1.0/24" } }),
    );
    let before = azure.get(&network);
    let plan = managed.settle(&mut azure, &Memory::default());
    assert!(plan.is_reached(), "{plan}");
    assert_eq!(azure.rounds, [vec!["my-rg".to_owned()], vec!["aks".to_owned()]]);
    assert_eq!(azure.get(&network), before);
    let pools = &managed.document()["properties"]["agentPoolProfiles"];
    assert_eq!(pools[0]["vnetSubnetID"], network.child("subnets", "test-subnet").as_str());
}

/// CAPZ-198: the managed cluster is deleted once, then its group. Pools and extensions need no calls.
#[test]
fn a_cluster_is_deleted_and_then_its_group() {
    let managed = Managed::new(json!({
        "fleetsMember": { "name": "member", "managerName": "fleet", "managerResourceGroup": "fleets" },
        "extensions": [{ "name": "flux", "extensionType": "microsoft.flux" }],
    }));
    let mut azure = Azure::default();
    let memory = remembered(managed.scope());
    managed.settle(&mut azure, &memory);
    let scope = managed.scope();
    let listed: Vec<Value> = azure
        .documents
        .iter()
        .filter(|(id, _)| {
            id.is_within(&scope.cluster.group()) && id.parent().is_some_and(|it| it == scope.cluster.group())
        })
        .map(|(_, document)| document.clone())
        .collect();
    let inventory = Inventory::of(scope.cluster, &listed);
    assert_eq!(inventory.others_for_people(), "");
    let mut observed = ObservedResources::default();
    observed.take(&scope.cluster.group(), azure.get(&scope.cluster.group()));
    assert_eq!(end(scope.cluster, true, &observed), End::WholeGroups);
    azure.rounds.clear();
    let goals = ends(scope, &memory, End::WholeGroups, &inventory);
    let plan = azure.settle(scope, &goals);
    assert!(plan.is_reached(), "{plan}");
    assert_eq!(azure.rounds, [vec!["member".to_owned()], vec!["aks".to_owned()], vec!["my-rg".to_owned()]]);
    // A group with a resource of others stays.
    managed.settle(&mut azure, &memory);
    let mut listed = listed;
    listed.push(json!({ "id": scope.cluster.in_group("publicIPAddresses", "theirs").as_str() }));
    let inventory = Inventory::of(scope.cluster, &listed);
    azure.rounds.clear();
    azure.settle(scope, &ends(scope, &memory, End::OneByOne, &inventory));
    let gone: Vec<String> = azure.rounds.concat();
    assert_eq!(gone, ["member", "aks", "nodes", "net"]);
    assert!(azure.names().contains("my-rg"));
}

/// S1: a managed cluster with the name of this one is taken over unless its tags name another owner.
#[test]
fn the_cluster_of_another_owner_is_refused() {
    let managed = Managed::new(json!({}));
    let name = owner_key("my-cluster");
    for (tags, before, after) in [
        (json!({}), None, "written"),
        (json!({ "team": "a" }), None, "written"),
        (json!({ name.clone(): "owned", ID: "me" }), None, "written"),
        (json!({ ID: "me" }), None, "written"),
        (json!({ name.clone(): "owned" }), Some("this cluster has not made it"), "written"),
        (
            json!({ name.clone(): "owned", ID: "else" }),
            Some("another cluster with the name my-cluster"),
            "disputed",
        ),
        (json!({ ID: "else" }), Some("another cluster"), "disputed"),
        (json!({ owner_key("green"): "owned" }), Some("cluster green"), "disputed"),
        (json!({ owner_key("green"): "shared" }), None, "written"),
        (json!({ name.clone(): "shared" }), None, "foreign"),
    ] {
        let held = json!({ "tags": tags, "properties": { "kubernetesVersion": "1.30.1", "agentPoolProfiles": [{}] } });
        let mut observed = ObservedResources::default();
        observed.take(&managed.cluster_id(), Some(held.clone()));
        let goal = managed.goal(Some(held.clone()));
        let found = contact(managed.scope(), std::slice::from_ref(&goal), &observed);
        match (&found, before) {
            (Ok(strangers), None) => assert!(strangers.is_empty()),
            (Err(words), Some(part)) => {
                assert!(words.contains(part), "{tags}: {words}");
                assert!(words.contains("spec.resourceGroupName of its AzureManagedControlPlane"), "{words}");
            }
            _ => panic!("{tags}: {found:?}"),
        }
        let mut azure = Azure::default();
        azure.put(&managed.cluster_id(), held);
        for (goal, action) in [(goal.clone(), Action::Update), (goal.ended(), Action::Delete)] {
            let plan = azure.plan(managed.scope(), vec![goal]);
            let (_, state) = &plan.items[0];
            let state = match state {
                State::Now(step) => {
                    assert_eq!(step.action, action);
                    assert!(step.proof.is_some());
                    "written"
                }
                State::Disputed(_) => "disputed",
                State::Foreign if action == Action::Delete && after == "disputed" => "disputed",
                State::Foreign => "foreign",
                other => panic!("{tags}: {other:?}"),
            };
            assert_eq!(state, after, "{tags} {action:?}");
        }
    }
    // Another cluster of the management cluster has precedence: only what bears the ID is ours.
    let strict = Claimant { marked_only: true, ..managed.scope().claimant() };
    let mut azure = Azure::default();
    azure.put(&managed.cluster_id(), json!({ "tags": {}, "properties": {} }));
    let plan = azure.plan(strict, vec![managed.goal(None).ended()]);
    assert_eq!(plan.items[0].1, State::Foreign);
}

/// A membership in a fleet bears no tag: one that the cluster has not made is used if it says the same.
#[test]
fn a_membership_that_exists_is_not_taken_over() {
    let managed = Managed::new(json!({ "fleetsMember": {
        "name": "member", "managerName": "fleet", "managerResourceGroup": "fleets", "group": "default" } }));
    let goals = unrecorded(managed.goals(None).unwrap(), &Memory::default());
    let member = goals.into_iter().find(|goal| goal.id.name() == "member").unwrap();
    assert_eq!(
        member.id.as_str(),
        "/subscriptions/123/resourceGroups/fleets/providers/Microsoft.ContainerService/fleets/fleet/members/member"
    );
    // Its cluster's name, and not the Cluster's.
    assert_eq!(member.document["properties"]["clusterResourceId"], managed.cluster_id().as_str());
    let mut observed = ObservedResources::default();
    observed.take(&member.id, Some(member.document.clone()));
    let used = contact(managed.scope(), std::slice::from_ref(&member), &observed).unwrap();
    assert_eq!(used, BTreeSet::from([member.id.clone()]));
    observed.take(
        &member.id,
        Some(json!({ "properties": { "clusterResourceId": "/subscriptions/1/resourceGroups/g" } })),
    );
    let words = contact(managed.scope(), std::slice::from_ref(&member), &observed).unwrap_err();
    assert!(words.contains("spec.fleetsMember"), "{words}");
}

/// Values that Azure keeps although the declaration has others are removed, and others stay.
#[test]
fn what_is_written_is_what_is_declared() {
    let balancer = |profile: Value| json!({ "networkProfile": { "loadBalancerProfile": profile } });
    let access = |ranges: Value| json!({ "apiServerAccessProfile": { "authorizedIPRanges": ranges } });
    let ips =
        |ids: &[&str]| json!({ "publicIPs": ids.iter().map(|id| json!({ "id": id })).collect::<Vec<_>>() });
    for (spec, held, expected) in [
        (
            json!({ "loadBalancerProfile": { "outboundIPs": ["/a"] } }),
            balancer(
                json!({ "managedOutboundIPs": { "count": 1 }, "backendPoolType": "nodeIPConfiguration" }),
            ),
            Some(balancer(json!({ "outboundIPs": ips(&["/a"]), "backendPoolType": "nodeIPConfiguration" }))),
        ),
        (
            json!({ "loadBalancerProfile": { "outboundIPs": ["/a"] } }),
            balancer(json!({ "outboundIPs": ips(&["/a", "/b"]) })),
            Some(balancer(json!({ "outboundIPs": ips(&["/a"]) }))),
        ),
        (
            json!({ "loadBalancerProfile": { "idleTimeoutInMinutes": 10 } }),
            balancer(json!({ "managedOutboundIPs": { "count": 1 }, "idleTimeoutInMinutes": 10 })),
            None,
        ),
        (
            json!({ "apiServerAccessProfile": { "authorizedIPRanges": ["1.2.3.4/32"] } }),
            access(json!(["1.2.3.4/32", "5.6.7.8/32"])),
            Some(access(json!(["1.2.3.4/32"]))),
        ),
        (json!({ "apiServerAccessProfile": {} }), access(json!(["1.2.3.4/32"])), Some(access(json!([])))),
        (json!({}), access(json!(["1.2.3.4/32"])), None),
        (json!({ "apiServerAccessProfile": {} }), json!({}), None),
        (
            json!({ "addonProfiles": [{ "name": "azurePolicy", "enabled": false }] }),
            json!({ "addonProfiles": { "azurepolicy": { "enabled": true, "identity": { "a": "b" } }, "other": { "c": "d" } } }),
            Some(
                json!({ "addonProfiles": { "azurepolicy": { "enabled": false, "identity": { "a": "b" } }, "other": { "c": "d" } } }),
            ),
        ),
        // What Azure cannot change is not written.
        (json!({ "nodeResourceGroupName": "other" }), json!({}), None),
    ] {
        let managed = Managed::new(spec.clone());
        let mut before = Managed::new(json!({})).document();
        before["properties"].as_object_mut().unwrap().remove("networkProfile");
        before["properties"]["networkProfile"] =
            json!({ "networkPlugin": "azure", "loadBalancerSku": "standard" });
        merge(&mut before["properties"], &held);
        let step = managed.update(before.clone());
        assert_eq!(step.is_some(), expected.is_some(), "{spec}: {step:?}");
        if let (Some(step), Some(expected)) = (step, expected) {
            for (member, value) in expected.as_object().unwrap() {
                let sent = &step.document["properties"][member];
                for (inner, value) in value.as_object().unwrap() {
                    assert_eq!(sent[inner], *value, "{spec} {member}.{inner}");
                }
            }
        }
    }
}

fn merge(target: &mut Value, more: &Value) {
    match more {
        Value::Object(members) => {
            for (name, value) in members {
                merge(&mut target[name], value);
            }
        }
        other => *target = other.clone(),
    }
}

/// States in which Azure works on a cluster are waited for; another one is written.
#[test]
fn a_cluster_at_work_is_waited_for() {
    let managed = Managed::new(json!({}));
    for (state, is_running) in [
        ("Upgrading", true),
        ("Scaling", true),
        ("stopping", true),
        ("Creating", true),
        ("Succeeded", false),
        ("Failed", false),
    ] {
        let mut held = json!({ "properties": { "provisioningState": state, "agentPoolProfiles": [{}] } });
        held["tags"] = json!(managed.scope().cluster.tags(None, None));
        let mut azure = Azure::default();
        azure.put(&managed.cluster_id(), held.clone());
        let plan = azure.plan(managed.scope(), vec![managed.goal(Some(held))]);
        assert_eq!(matches!(plan.items[0].1, State::Running(_)), is_running, "{state}");
    }
}

/// A declaration that Azure would refuse is refused with the member and the remedy.
#[test]
fn an_invalid_declaration_says_what_to_change() {
    for (spec, part) in [
        (json!({ "identity": { "type": "UserAssigned" } }), "spec.identity.userAssignedIdentityResourceID"),
        (json!({ "sshPublicKey": "no base64!" }), "spec.sshPublicKey"),
        (json!({ "asoManagedClusterPatches": ["{"] }), "spec.asoManagedClusterPatches[0]"),
        (
            json!({ "asoManagedClusterPatches": ["{}", "{\"spec\": {\"azureName\": \"x\"}}"] }),
            "spec.azureName",
        ),
    ] {
        let words = Managed::new(spec.clone()).goals(None).unwrap_err();
        assert!(matches!(words, GoalError::Terminal(_)), "{spec}");
        assert!(words.to_string().contains(part), "{spec}: {words}");
    }
    let mut managed = Managed::new(json!({}));
    managed.headers = BTreeMap::from([("Authorization".into(), "x".into())]);
    let words = managed.goals(None).unwrap_err().to_string();
    assert!(words.contains("custom-header-Authorization"), "{words}");
}

/// Features in preview need the version of Azure's API that has them, for reads as well as for writes; headers are those
/// of the annotations.
#[test]
fn a_preview_is_read_and_written_in_its_version() {
    for (in_preview, version) in [(false, "2025-08-01"), (true, "2025-10-02-preview")] {
        let mut managed = Managed::new(json!({ "enablePreviewFeatures": in_preview }));
        managed.headers = BTreeMap::from([("AKSHTTPCustomFeatures".into(), "a".into())]);
        let goal = managed.goal(None);
        assert_eq!(goal.api_version, version);
        assert_eq!(goal.headers, managed.headers);
        let read = |goals: &[Goal]| -> Vec<(String, &'static str)> {
            let missing = ObservedResources::default().missing(goals);
            let read = missing.into_keys().map(|reading| match reading {
                Reading::Get { id, api_version } => (id.name().to_owned(), api_version),
                Reading::List { resource_type, api_version, .. } => (resource_type.to_owned(), api_version),
            });
            read.collect()
        };
        assert_eq!(read(&[goal]), [("aks".to_owned(), version)]);
        // One list shows all pools of the cluster.
        let pools = super::agent_pool::goals_of(&managed, None);
        let list = ("Microsoft.ContainerService/managedClusters/agentPools".to_owned(), version);
        assert_eq!(read(&pools), [list, ("aks".to_owned(), version)]);
    }
}
