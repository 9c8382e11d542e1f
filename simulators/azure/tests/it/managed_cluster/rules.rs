//! What managed clusters and pools cannot be.

use super::*;

#[tokio::test(start_paused = true)]
async fn what_no_new_cluster_can_be() {
    let client = Client::with_group(Options::default()).await;
    type Change = fn(&mut Value);
    let cases: &[(Change, Option<Refused>)] = &[
        (
            |b| drop(b["properties"].as_object_mut().unwrap().remove("dnsPrefix")),
            Some((400, "InvalidParameter", "dnsPrefix is missing")),
        ),
        (|b| b["properties"]["dnsPrefix"] = "-x".into(), Some((400, "InvalidParameter", "alphanumeric"))),
        (
            |b| drop(b.as_object_mut().unwrap().remove("identity")),
            Some((400, "InvalidParameter", "servicePrincipalProfile")),
        ),
        (
            |b| b["properties"]["kubernetesVersion"] = "1.12.1".into(),
            Some((400, "K8sVersionNotSupported", "1.12.1")),
        ),
        (
            |b| b["properties"]["agentPoolProfiles"] = json!([]),
            Some((400, "InvalidParameter", "agentPoolProfiles")),
        ),
        (
            |b| b["properties"]["agentPoolProfiles"][0]["mode"] = "User".into(),
            Some((400, "MustDefineAtLeastOneSystemPool", "Must define")),
        ),
        (
            |b| b["properties"]["agentPoolProfiles"][0]["name"] = "Big".into(),
            Some((400, "InvalidParameter", "lowercase letter")),
        ),
        (
            |b| b["properties"]["agentPoolProfiles"][0]["count"] = 0.into(),
            Some((400, "InvalidParameter", "at least one")),
        ),
        (
            |b| b["properties"]["agentPoolProfiles"][0]["orchestratorVersion"] = "1.31.1".into(),
            Some((400, "NodePoolMcVersionIncompatible", "bigger than control plane")),
        ),
        (
            |b| b["properties"]["agentPoolProfiles"][0]["enableAutoScaling"] = true.into(),
            Some((400, "InvalidParameter", "must be set with enableAutoScaling")),
        ),
        (
            |b| {
                b["properties"]["networkProfile"] =
                    json!({ "serviceCidr": "10.244.0.0/24", "dnsServiceIP": "10.244.0.10" })
            },
            Some((400, "InvalidParameter", "overlap")),
        ),
        (
            |b| b["properties"]["networkProfile"] = json!({ "dnsServiceIP": "10.9.0.10" }),
            Some((400, "InvalidParameter", "dnsServiceIP")),
        ),
        (|b| b["properties"]["disableLocalAccounts"] = true.into(), Some((400, "BadRequest", "managed AAD"))),
        (
            |b| b["properties"]["nodeResourceGroup"] = GROUP.into(),
            Some((409, "NodeResourceGroupAlreadyExists", GROUP)),
        ),
        // The Azure CLI sends empty texts for what it does not choose.
        (
            |b| {
                b["properties"]["kubernetesVersion"] = "".into();
                b["properties"]["agentPoolProfiles"][0]["orchestratorVersion"] = "".into();
            },
            None,
        ),
    ];
    for (change, expected) in cases {
        let body = body(change);
        check(put(&client, &cluster(), body.clone()).await, *expected, &body);
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_change_of_a_cluster_can_be() {
    let client = with_cluster().await;
    type Change = fn(&mut Value);
    let cases: &[(Change, Refused)] = &[
        (|b| b["properties"]["dnsPrefix"] = "d".into(), (400, "PropertyChangeNotAllowed", "'dnsPrefix'")),
        (
            |b| {
                b["properties"]["networkProfile"] =
                    json!({ "serviceCidr": "10.1.0.0/16", "dnsServiceIP": "10.1.0.10" })
            },
            (400, "PropertyChangeNotAllowed", "networkProfile."),
        ),
        (|b| b["properties"]["enableRBAC"] = false.into(), (400, "PropertyChangeNotAllowed", "enableRBAC")),
        (
            |b| b["properties"]["kubernetesVersion"] = "1.32.1".into(),
            (400, "OperationNotAllowed", "Available upgrades: [1.31.9"),
        ),
        (
            |b| b["properties"]["kubernetesVersion"] = "1.30.1".into(),
            (400, "OperationNotAllowed", "is not allowed"),
        ),
        (
            |b| b["properties"]["agentPoolProfiles"][0]["vmSize"] = "Standard_D4s_v3".into(),
            (400, "PropertyChangeNotAllowed", "agentPoolProfile.vmSize"),
        ),
        (
            |b| b["properties"]["agentPoolProfiles"][0]["name"] = "other".into(),
            (400, "BadRequest", "A new agent pool was introduced"),
        ),
        (
            |b| {
                b["properties"]["kubernetesVersion"] = "1.31.3".into();
                b["properties"]["agentPoolProfiles"][0]["orchestratorVersion"] = "1.31.1".into();
            },
            (400, "NotAllAgentPoolOrchestratorVersionSpecifiedAndUnchanged", "per agent pool operations"),
        ),
    ];
    for (change, expected) in cases {
        let body = body(change);
        check(put(&client, &cluster(), body.clone()).await, Some(*expected), &body);
    }
}

#[tokio::test(start_paused = true)]
async fn what_no_pool_can_be() {
    let client = with_cluster().await;
    done(&client, &pool("work"), user_pool(|_| ())).await;
    type Change = fn(&mut Value);
    let cases: &[(&str, Change, Refused)] = &[
        ("Work", |_| (), (400, "InvalidParameter", "lowercase letter")),
        ("averyveryverylongname", |_| (), (400, "InvalidParameter", "max length of 12")),
        ("windows", |p| p["osType"] = "Windows".into(), (400, "InvalidParameter", "max length of 6")),
        (
            "win",
            |p| {
                p["osType"] = "Windows".into();
                p["mode"] = "System".into();
            },
            (400, "InvalidParameter", "must be Linux"),
        ),
        ("more", |p| p["count"] = 1001.into(), (400, "InvalidParameter", "1000")),
        (
            "more",
            |p| p["orchestratorVersion"] = "1.31.1".into(),
            (400, "NodePoolMcVersionIncompatible", "bigger"),
        ),
        (
            "more",
            |p| p["nodeTaints"] = json!(["a=b:no-schedule"]),
            (400, "InvalidParameter", "key=value:effect"),
        ),
        (
            "more",
            |p| p["vnetSubnetID"] = json!(network_id("virtualNetworks/n/subnets/s")),
            (400, "InvalidResourceReference", ""),
        ),
        (
            "work",
            |p| p["vmSize"] = "Standard_D4s_v3".into(),
            (400, "PropertyChangeNotAllowed", "agentPoolProfile.vmSize"),
        ),
        ("work", |p| p["maxPods"] = 30.into(), (400, "PropertyChangeNotAllowed", "maxPods")),
        ("work", |p| p["orchestratorVersion"] = "1.30.1".into(), (400, "OperationNotAllowed", "Downgrading")),
        (
            "work",
            |p| {
                p["count"] = 3.into();
                p["enableAutoScaling"] = true.into();
                p["minCount"] = 1.into();
                p["maxCount"] = 4.into();
            },
            (400, "BadRequest", "Cannot manually scale and enable cluster autoscaler"),
        ),
        (
            "system",
            |p| p["mode"] = "User".into(),
            (400, "OperationNotAllowed", "at least one system agent pool"),
        ),
    ];
    for (name, change, expected) in cases {
        let body = user_pool(change);
        check(put(&client, &pool(name), body.clone()).await, Some(*expected), &format!("{name} {body}"));
    }
    ask(&client, "DELETE", pool("system").as_str(), Value::Null).await.refused(400, "OperationNotAllowed");
    let gone = ask(&client, "DELETE", pool("work").as_str(), Value::Null).await.expect(202);
    client.wait(&gone).await;
    let last = ask(&client, "DELETE", pool("system").as_str(), Value::Null).await;
    check(last, Some((400, "OperationNotAllowed", "at least one agent pool.")), &"the last pool");
}
