//! The cloud provider's configuration on machines.

use std::collections::BTreeMap;

use capz_planner::azure_json::{self, Credentials};
use cloud_config::Secret;
use serde_json::{Value, json};

use super::cluster::Cluster;

fn text(cluster: &Cluster, identity: Option<&str>, client: Option<&str>, pools: bool) -> String {
    let secret = Secret::new("s&<\"");
    let credentials = Credentials { tenant: "tenant", client_id: "client", client_secret: Some(&secret) };
    azure_json::contents(cluster.scope(), credentials, identity, client, pools).unwrap().reveal().to_owned()
}

fn members(cluster: &Cluster, identity: Option<&str>, client: Option<&str>) -> Value {
    serde_json::from_str(&text(cluster, identity, client, false)).unwrap()
}

/// CAPZ-132: every member, in order, exactly.
#[test]
fn it_is_written_as_it_always_was() {
    let cluster = Cluster::new(json!({}));
    assert_eq!(
        text(&cluster, None, None, true),
        r#"{
    "cloud": "AzurePublicCloud",
    "tenantId": "tenant",
    "subscriptionId": "123",
    "aadClientId": "client",
    "aadClientSecret": "s\u0026\u003c\"",
    "resourceGroup": "my-rg",
    "securityGroupName": "my-cluster-node-nsg",
    "securityGroupResourceGroup": "my-rg",
    "location": "eastus",
    "vmType": "vmss",
    "vnetName": "my-cluster-vnet",
    "vnetResourceGroup": "my-rg",
    "subnetName": "my-cluster-node-subnet",
    "routeTableName": "my-cluster-node-routetable",
    "loadBalancerSku": "Standard",
    "loadBalancerName": "",
    "maximumLoadBalancerRuleCount": 250,
    "useManagedIdentityExtension": false,
    "useInstanceMetadata": true,
    "enableVmssFlexNodes": true
}"#
    );
    assert_eq!(members(&cluster, None, None).get("enableVmssFlexNodes"), None);
}

/// CAPZ-130: overrides are numbers, of which zero is not written.
#[test]
fn limits_and_back_offs_follow() {
    let cluster = Cluster::new(json!({ "cloudProviderConfigOverrides": {
        "rateLimits": [
            { "name": "loadBalancerRateLimit", "config": { "cloudProviderRateLimitBucket": 10, "cloudProviderRateLimitQPSWrite": 3 } },
            { "name": "routeRateLimit", "config": { "cloudProviderRateLimit": false } },
            { "name": "defaultRateLimit", "config": { "cloudProviderRateLimit": true, "cloudProviderRateLimitQPS": "1.2" } },
        ],
        "backOffs": {
            "cloudProviderBackoff": true,
            "cloudProviderBackoffRetries": 1,
            "cloudProviderBackoffExponent": "1.2",
            "cloudProviderBackoffDuration": 60,
            "cloudProviderBackoffJitter": "500m",
        },
    } }));
    let text = text(&cluster, None, None, true);
    let tail = &text[text.find("    \"enableVmssFlexNodes\"").unwrap()..];
    assert_eq!(
        tail,
        r#"    "enableVmssFlexNodes": true,
    "cloudProviderRateLimit": true,
    "cloudProviderRateLimitQPS": 1.2,
    "routeRateLimit": {},
    "loadBalancerRateLimit": {
        "cloudProviderRateLimitBucket": 10,
        "cloudProviderRateLimitQPSWrite": 3
    },
    "cloudProviderBackoff": true,
    "cloudProviderBackoffRetries": 1,
    "cloudProviderBackoffExponent": 1.2000000000000002,
    "cloudProviderBackoffDuration": 60,
    "cloudProviderBackoffJitter": 0.5
}"#
    );
}

/// CAPZ-128, CAPZ-129: secrets are included only if the machines have no identity of their own.
#[test]
fn machines_with_an_identity_carry_no_secret() {
    let cluster = Cluster::new(json!({}));
    for (identity, client, wanted) in [
        (None, None, json!(["client", "s&<\"", false, null])),
        (Some("None"), None, json!(["client", "s&<\"", false, null])),
        (Some("SystemAssigned"), None, json!([null, null, true, null])),
        (Some("UserAssigned"), Some("who"), json!([null, null, true, "who"])),
    ] {
        let members = members(&cluster, identity, client);
        let said =
            ["aadClientId", "aadClientSecret", "useManagedIdentityExtension", "userAssignedIdentityID"]
                .map(|name| members.get(name).cloned().unwrap_or_default());
        assert_eq!(json!(said), wanted, "{identity:?}");
    }
    let credentials = Credentials { tenant: "t", client_id: "", client_secret: None };
    for client in [None, Some("")] {
        assert!(
            azure_json::contents(cluster.scope(), credentials, Some("UserAssigned"), client, false).is_err()
        );
    }
    for (identity, of_cluster, warns) in [
        (None, "ServicePrincipal", true),
        (Some("None"), "ServicePrincipal", true),
        (Some("None"), "WorkloadIdentity", false),
        (Some("SystemAssigned"), "ServicePrincipal", false),
    ] {
        assert_eq!(azure_json::carries_secret(identity, of_cluster), warns);
    }
}

/// CAPZ-131.
#[test]
fn the_network_may_be_in_another_group() {
    let cluster = Cluster::new(json!({
        "azureEnvironment": "AzureChinaCloud",
        "networkSpec": { "vnet": { "name": "v", "resourceGroup": "net" }, "nodeOutboundLB": { "name": "lb" } },
    }));
    let members = members(&cluster, None, None);
    let said = [
        "cloud",
        "resourceGroup",
        "vnetResourceGroup",
        "securityGroupResourceGroup",
        "vnetName",
        "loadBalancerName",
    ]
    .map(|name| members[name].clone());
    assert_eq!(json!(said), json!(["AzureChinaCloud", "my-rg", "net", "net", "v", "lb"]));
}

/// CAPZ-125, CAPZ-126, CAPZ-127: the owner of a Secret, and the objects that have one.
#[test]
fn secrets_are_ours_by_their_label() {
    assert_eq!(azure_json::secret_name("my-cluster-md-0"), "my-cluster-md-0-azure-json");
    assert_eq!(azure_json::KEYS, ["control-plane-azure.json", "worker-node-azure.json", "azure.json"]);
    assert_eq!(azure_json::owner_label("my-cluster"), ("my-cluster", "owned"));
    let from =
        |kind: &str| BTreeMap::from([("cluster.x-k8s.io/cloned-from-groupkind".to_owned(), kind.to_owned())]);
    assert!(azure_json::machine_has_own(&BTreeMap::new()));
    assert!(azure_json::machine_has_own(&from("Other.infrastructure.cluster.x-k8s.io")));
    assert!(!azure_json::machine_has_own(&from("AzureMachineTemplate.infrastructure.cluster.x-k8s.io")));
}
