//! The roles of the chart: each right with the value that it needs, and none for everything.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{CLOUD_PROVIDER, DISK_DRIVER, FILE_DRIVER, Helm, Objects, rendered};

/// Each right as a text: `verb group/resource name`, or `verb group/resource` for all names.
fn rights(objects: &Objects) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let roles = objects.iter().filter(|((kind, ..), _)| kind == "Role" || kind == "ClusterRole");
    for rule in roles.flat_map(|(_, role)| role["rules"].as_array().unwrap()) {
        let list = |key: &str| -> Vec<&str> {
            rule[key].as_array().into_iter().flatten().map(|one| one.as_str().unwrap()).collect()
        };
        let names = list("resourceNames");
        for (verb, resource) in list("verbs")
            .iter()
            .flat_map(|verb| list("resources").into_iter().map(move |resource| (*verb, resource)))
        {
            let right = format!("{verb} {}/{resource}", list("apiGroups").join(","));
            if names.is_empty() {
                found.insert(right.clone());
            }
            found.extend(names.iter().map(|name| format!("{right} {name}")));
        }
    }
    found
}

#[test]
fn each_right_comes_with_its_value() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let with = |values: Value| rights(&rendered(&helm, CLOUD_PROVIDER, &values));
    let controller =
        |values: Value| json!({"cloudNodeManager": {"enabled": false}, "cloudControllerManager": values});
    let node =
        |values: Value| json!({"cloudControllerManager": {"enabled": false}, "cloudNodeManager": values});
    // The right, values without it, and values with it.
    let cases = [
        ("patch /nodes/status", controller(json!({"configureCloudRoutes": "false"})), controller(json!({}))),
        (
            "patch /nodes/status",
            controller(json!({"configureCloudRoutes": false, "controllers": ["*", "-cloud-node"]})),
            controller(json!({"configureCloudRoutes": false, "controllers": ["*", "-cloud-node-lifecycle"]})),
        ),
        (
            "list discovery.k8s.io/endpointslices",
            controller(json!({"rights": {"multipleLoadBalancers": false}})),
            controller(json!({})),
        ),
        (
            "watch /namespaces",
            controller(json!({})),
            controller(json!({"rights": {"serviceNamespaceSelector": true}})),
        ),
        ("watch /events", controller(json!({})), controller(json!({"rights": {"adminState": true}}))),
        (
            "create authentication.k8s.io/tokenreviews",
            controller(json!({"rights": {"metrics": false}})),
            controller(json!({})),
        ),
        ("get /secrets team", controller(json!({})), controller(json!({"cloudConfigSecretName": "team"}))),
        ("create /events", node(json!({})), node(json!({"scheduledEvents": "report"}))),
    ];
    for (right, without, values) in cases {
        assert!(!with(without.clone()).contains(right), "{right} is in {without}");
        assert!(with(values.clone()).contains(right), "{right} is not in {values}");
    }
}

#[test]
fn no_role_is_for_everything() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let everything = json!({
        "cloudControllerManager": {
            "cloudConfigSecretName": "team",
            "rights": {"serviceNamespaceSelector": true, "adminState": true},
            "monitoring": {"readers": [{"name": "prometheus", "namespace": "monitoring"}]},
        },
        "cloudNodeManager": {"scheduledEvents": "drain"},
    });
    let disks = rights(&rendered(&helm, DISK_DRIVER, &json!({"snapshot": {"enabled": true}})));
    let parts = json!({"snapshot": {"enabled": true}, "node": {"enableKataCCMount": true}});
    let shares = rights(&rendered(&helm, FILE_DRIVER, &parts));
    let rights = rights(&rendered(&helm, CLOUD_PROVIDER, &everything));
    assert!(rights.len() > 20 && disks.len() > 50 && shares.len() > 40, "{rights:?} {disks:?} {shares:?}");
    for right in rights.iter().chain(&disks).chain(&shares) {
        assert!(!right.contains('*'), "{right}");
        let words: Vec<&str> = right.split(' ').collect();
        let names_one = words.len() == 3 || words[0] == "create";
        assert!(names_one || !["/secrets", "coordination.k8s.io/leases"].contains(&words[1]), "{right}");
    }
}
