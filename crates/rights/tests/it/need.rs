//! What configurations need.

use std::collections::BTreeSet;

use k8s::{Node, Service};
use planner::Cluster;
use rights::Feature;
use rights::need::{Needs, ObjectName, Report, Run, Subject, disk_needs, needs};
use serde_json::{Value, json};

fn object(namespace: &str, name: &str) -> ObjectName {
    ObjectName { namespace: namespace.to_owned(), name: name.to_owned() }
}

fn run() -> Run {
    Run {
        election: Some(object("kube-system", "cloud-controller-manager")),
        secret: None,
        services: true,
        nodes: true,
        node_lifecycle: true,
        routes: false,
        pod_ranges: false,
        pod_ranges_by_tags: false,
        metrics: true,
    }
}

fn cluster(patch: &Value) -> Cluster {
    let mut config = json!({
        "subscriptionId": "s", "tenantId": "t", "resourceGroup": "cluster", "location": "westeurope", "vnetName": "net",
        "subnetName": "nodes", "securityGroupName": "guard", "loadBalancerSku": "Standard", "vmType": "vmss",
    });
    for (key, value) in patch.as_object().unwrap() {
        config[key] = value.clone();
    }
    let config = cloud_config::CloudConfig::parse(&config.to_string()).unwrap();
    Cluster { config, name: "prod".into(), region_zones: Vec::new() }
}

fn service(name: &str, annotations: &Value) -> Service {
    let mut all = json!({});
    for (key, value) in annotations.as_object().unwrap() {
        all[format!("service.beta.kubernetes.io/{key}")] = value.clone();
    }
    let object = json!({"metadata": {"namespace": "shop", "name": name, "annotations": all},
        "spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30080}]}});
    serde_json::from_value(object).unwrap()
}

fn node(name: &str, machine: &str) -> Node {
    let id = format!("azure:///subscriptions/s/resourceGroups/{machine}");
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": {"providerID": id}})).unwrap()
}

fn instance() -> Node {
    node("a", "cluster/providers/Microsoft.Compute/virtualMachineScaleSets/a/virtualMachines/0")
}

/// Scopes without what they have in common, each with its actions.
fn scopes(needs: &Needs) -> Vec<(String, BTreeSet<&'static str>)> {
    needs
        .azure
        .iter()
        .map(|(scope, actions)| {
            let scope = scope.as_str().trim_start_matches("/subscriptions/").replace("/resourceGroups/", ":");
            (scope, actions.keys().copied().collect())
        })
        .collect()
}

fn features(needs: &Needs) -> Vec<&'static str> {
    needs.features.keys().map(|feature| feature.name()).collect()
}

const ALWAYS: [&str; 5] = ["base", "election", "services", "nodes", "node-lifecycle"];

/// Its name, changes of azure.json, what runs, Services, Nodes, and the expected features.
type Case = (&'static str, Value, Run, Vec<Service>, Vec<Node>, &'static [&'static str]);

/// A configuration, and the features that it adds to those that every cluster has.
#[test]
fn features_follow_from_azure_json_flags_services_and_nodes() {
    let balancers =
        json!([{"name": "a", "primaryVMSet": "a", "serviceNamespaceSelector": {"matchLabels": {"a": "b"}}}]);
    let node_ip = json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"});
    let migrated = json!({"loadBalancerBackendPoolConfigurationType": "nodeIP",
        "enableMigrateToIPBasedBackendPoolAPI": true});
    let several = json!({"multipleStandardLoadBalancerConfigurations": balancers,
        "loadBalancerBackendPoolConfigurationType": "nodeIP"});
    let link = json!({"azure-pls-create": "true", "azure-load-balancer-internal": "true"});
    let prefix = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/publicIPPrefixes/p";
    let from_prefix = json!({"azure-pip-prefix-id": prefix});
    let machine = node("b", "other/providers/Microsoft.Compute/virtualMachines/b");
    let all = run();
    let cases: Vec<Case> = vec![
        ("scale sets", json!({}), all.clone(), vec![], vec![instance()], &["metrics"]),
        ("no node", json!({}), all.clone(), vec![], vec![], &["virtual-machines", "metrics"]),
        (
            "no node may be one",
            json!({"disableAvailabilitySetNodes": true}),
            all.clone(),
            vec![],
            vec![],
            &["metrics"],
        ),
        (
            "a machine",
            json!({}),
            all.clone(),
            vec![],
            vec![instance(), machine],
            &["virtual-machines", "metrics"],
        ),
        ("nodeIP", node_ip, all.clone(), vec![], vec![instance()], &["node-ip", "metrics"]),
        ("migration", migrated, all.clone(), vec![], vec![instance()], &["node-ip", "migration", "metrics"]),
        (
            "several",
            several,
            all.clone(),
            vec![],
            vec![instance()],
            &["node-ip", "local-pools", "namespace-selectors", "metrics"],
        ),
        (
            "admin state",
            json!({"enableLoadBalancerAdminState": true}),
            all.clone(),
            vec![],
            vec![instance()],
            &["admin-state", "metrics"],
        ),
        (
            "private link",
            json!({}),
            all.clone(),
            vec![service("a", &link)],
            vec![instance()],
            &["private-link", "metrics"],
        ),
        (
            "prefix",
            json!({}),
            all.clone(),
            vec![service("a", &from_prefix)],
            vec![instance()],
            &["public-ip-prefixes", "metrics"],
        ),
        (
            "routes",
            json!({"routeTableName": "r"}),
            Run { routes: true, pod_ranges: true, ..all.clone() },
            vec![],
            vec![instance()],
            &["routes", "pod-ranges", "metrics"],
        ),
        ("no table", json!({}), Run { routes: true, ..all.clone() }, vec![], vec![instance()], &["metrics"]),
        (
            "tags",
            json!({}),
            Run { pod_ranges: true, pod_ranges_by_tags: true, metrics: false, ..all },
            vec![],
            vec![instance()],
            &["pod-ranges", "pod-ranges-by-tags"],
        ),
    ];
    for (what, patch, run, services, nodes, expected) in cases {
        let cluster = cluster(&patch);
        let subject = Subject { cluster: &cluster, run: &run, services: &services, nodes: &nodes, more: &[] };
        assert_eq!(features(&needs(&subject)), [&ALWAYS, expected].concat(), "{what}");
    }
}

#[test]
fn controllers_that_do_not_run_need_no_rights() {
    let cluster = cluster(&json!({"loadBalancerBackendPoolConfigurationType": "nodeIP"}));
    let run = Run { services: false, election: None, node_lifecycle: false, ..run() };
    let services =
        [service("a", &json!({"azure-pls-create": "true", "azure-load-balancer-internal": "true"}))];
    let nodes = [instance()];
    let needs =
        needs(&Subject { cluster: &cluster, run: &run, services: &services, nodes: &nodes, more: &[] });
    assert_eq!(features(&needs), ["base", "nodes", "metrics"]);
    let all: BTreeSet<&str> = needs.azure.values().flat_map(|actions| actions.keys().copied()).collect();
    assert!(all.iter().all(|action| action.ends_with("/read")), "{all:?}");
    assert!(needs.kubernetes().iter().all(|role| role.namespace.is_none()));
}

/// Every part in a group of its own: no group has more than its part needs.
#[test]
fn scopes_are_those_that_azure_json_and_services_name() {
    let cluster = cluster(&json!({
        "loadBalancerResourceGroup": "balancers", "securityGroupResourceGroup": "guards", "vnetResourceGroup": "networks",
        "routeTableName": "r", "routeTableResourceGroup": "tables", "networkResourceSubscriptionID": "n",
    }));
    let services = [service("a", &json!({"azure-load-balancer-resource-group": "addresses"}))];
    let nodes = [
        instance(),
        node("b", "Other/providers/Microsoft.Compute/virtualMachineScaleSets/b/virtualMachines/1"),
    ];
    let run = Run { routes: true, ..run() };
    let needs =
        needs(&Subject { cluster: &cluster, run: &run, services: &services, nodes: &nodes, more: &[] });
    let scopes = scopes(&needs);
    let names: Vec<&str> = scopes.iter().map(|(scope, _)| scope.as_str()).collect();
    assert_eq!(
        names,
        [
            "n",
            "n:addresses",
            "n:balancers",
            "n:cluster",
            "n:guards",
            "n:networks",
            "n:tables",
            "s:cluster",
            "s:other"
        ]
    );
    let of = |name: &str| {
        let (_, actions) = scopes.iter().find(|(scope, _)| scope == name).unwrap();
        actions.iter().map(|action| action.trim_start_matches("Microsoft.")).collect::<Vec<_>>()
    };
    assert_eq!(
        of("n"),
        [
            "Network/privateLinkServices/read",
            "Network/publicIPAddresses/read",
            "Resources/subscriptions/providers/read"
        ]
    );
    // The subscription's right to read includes the group's.
    let addresses =
        ["delete", "join/action", "write"].map(|verb| format!("Network/publicIPAddresses/{verb}"));
    assert_eq!(of("n:addresses"), addresses);
    assert_eq!(
        of("n:tables"),
        ["Network/locations/operations/read", "Network/routeTables/read", "Network/routeTables/write"]
    );
    assert_eq!(of("s:cluster"), of("s:other"));
    let roles = needs.azure_roles();
    let machines =
        roles.iter().find(|role| role.scopes.len() == 2 && role.scopes[1].as_str().contains("other"));
    assert_eq!(machines.unwrap().scopes[0].as_str(), "/subscriptions/s/resourceGroups/cluster");
    let names: BTreeSet<&str> = roles.iter().map(|role| role.name.as_str()).collect();
    assert_eq!(names.len(), roles.len(), "{names:?}");
}

#[test]
fn another_lease_and_a_secret_are_named_in_their_roles() {
    let cluster = cluster(&json!({}));
    let run =
        Run { election: Some(object("cloud", "ours")), secret: Some(object("secrets", "azure")), ..run() };
    let nodes = [instance()];
    let needs = needs(&Subject { cluster: &cluster, run: &run, services: &[], nodes: &nodes, more: &[] });
    let objects: Vec<Value> = needs.kubernetes().iter().flat_map(|role| role.objects()).collect();
    let role =
        objects.iter().find(|it| it["kind"] == "Role" && it["metadata"]["namespace"] == "cloud").unwrap();
    assert_eq!(role["rules"][1]["resourceNames"], json!(["ours"]));
    let role =
        objects.iter().find(|it| it["kind"] == "Role" && it["metadata"]["namespace"] == "secrets").unwrap();
    let rule =
        json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["azure"], "verbs": ["get"]});
    assert_eq!(role["rules"], json!([rule]));
}

#[test]
fn what_is_not_known_is_said() {
    let cluster = cluster(&json!({"networkResourceTenantID": "other"}));
    let services = [service("bad", &json!({"azure-load-balancer-tcp-idle-timeout": "3"}))];
    let nodes = [node("far", "x")];
    let mut stranger = nodes[0].clone();
    stranger.spec.provider_id = "aws:///x".into();
    let nodes = [stranger];
    let run = Run { routes: true, ..run() };
    let needs = needs(&Subject {
        cluster: &cluster,
        run: &run,
        services: &services,
        nodes: &nodes,
        more: &[Feature::ApplicationSecurityGroups],
    });
    for expected in [
        "routeTableName is not set",
        "shop/bad is refused",
        "node far is not on Azure",
        "networkResourceTenantID",
    ] {
        assert!(needs.notes.iter().any(|note| note.contains(expected)), "{expected}: {:#?}", needs.notes);
    }
    assert_eq!(needs.features[&Feature::ApplicationSecurityGroups], "--with");
}

fn small() -> Needs {
    let cluster = cluster(&json!({"disableAvailabilitySetNodes": true, "resourceGroup": "o'neill"}));
    let run = Run { services: false, node_lifecycle: false, metrics: false, ..run() };
    needs(&Subject { cluster: &cluster, run: &run, services: &[], nodes: &[], more: &[] })
}

#[test]
fn the_report_in_its_forms() {
    let needs = small();
    let report = Report(&needs);
    insta::assert_snapshot!(report, @r#"
    Features of cluster prod, by 0 Services and 0 Nodes:

      base      always
      election  --leader-elect, the default
      nodes     the controller cloud-node, a default

    In Azure, for the identity that azure.json names:

      /subscriptions/s
        Microsoft.Resources/subscriptions/providers/read  the zones of the region, when a replica becomes the leader, and for --dry-run and cerulean plan. The program ends without it

      /subscriptions/s/resourceGroups/o'neill
        Microsoft.Compute/virtualMachineScaleSets/networkInterfaces/read  addresses of instances, public ones if they have any
        Microsoft.Compute/virtualMachineScaleSets/publicIPAddresses/read  addresses of instances, public ones if they have any
        Microsoft.Compute/virtualMachineScaleSets/read                    nodes, and the members of pools
        Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read    nodes, and the members of pools

    In Kubernetes, for the service account kube-system/cloud-controller-manager:

      cloud-controller-manager-base, in the cluster
        nodes: list, watch  which nodes there are
        events: create, patch  Events on Services and Nodes

      cloud-controller-manager-election, in namespace kube-system
        leases: create  to become the leader for the first time
        leases cloud-controller-manager: get, update  to stay the leader, or to become it after another replica

      cloud-controller-manager-nodes, in the cluster
        nodes: get, patch  provider ids, labels and taints; a node is read again if another client wrote it at the same time
        nodes/status: patch  addresses
    "#);
    insta::assert_snapshot!(report.commands(), @r#"
    # The object ID of the identity that azure.json names, of a service principal or managed identity.
    : "${ASSIGNEE:?set ASSIGNEE to the object ID of the identity in azure.json}"

    az role definition create --role-definition '{
      "Name": "cloud-controller-manager prod subscription",
      "IsCustom": true,
      "Description": "cloud-controller-manager of the cluster prod",
      "Actions": [
        "Microsoft.Resources/subscriptions/providers/read"
      ],
      "NotActions": [],
      "AssignableScopes": [
        "/subscriptions/s"
      ]
    }' >/dev/null
    az role assignment create --role 'cloud-controller-manager prod subscription' --assignee-object-id "$ASSIGNEE" --assignee-principal-type ServicePrincipal --scope '/subscriptions/s' >/dev/null

    az role definition create --role-definition '{
      "Name": "cloud-controller-manager prod o'\''neill",
      "IsCustom": true,
      "Description": "cloud-controller-manager of the cluster prod",
      "Actions": [
        "Microsoft.Compute/virtualMachineScaleSets/networkInterfaces/read",
        "Microsoft.Compute/virtualMachineScaleSets/publicIPAddresses/read",
        "Microsoft.Compute/virtualMachineScaleSets/read",
        "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/read"
      ],
      "NotActions": [],
      "AssignableScopes": [
        "/subscriptions/s/resourceGroups/o'\''neill"
      ]
    }' >/dev/null
    az role assignment create --role 'cloud-controller-manager prod o'\''neill' --assignee-object-id "$ASSIGNEE" --assignee-principal-type ServicePrincipal --scope '/subscriptions/s/resourceGroups/o'\''neill' >/dev/null
    "#);
    let read: Vec<Value> = serde_saphyr::from_multiple(&report.manifests()).unwrap();
    let json = report.json();
    assert_eq!(json["kubernetes"], Value::from(read));
    let assignments = json!([
        {"role": "cloud-controller-manager prod subscription", "scope": "/subscriptions/s"},
        {"role": "cloud-controller-manager prod o'neill", "scope": "/subscriptions/s/resourceGroups/o'neill"},
    ]);
    assert_eq!(json["roleAssignments"], assignments);
    let definitions = json["roleDefinitions"].as_array().unwrap();
    for (definition, assignment) in definitions.iter().zip(assignments.as_array().unwrap()) {
        assert_eq!(definition["Name"], assignment["role"]);
        assert_eq!(definition["AssignableScopes"], json!([assignment["scope"]]));
        assert!(report.commands().contains(definition["Actions"][0].as_str().unwrap()));
    }
}

/// The groups, encryption sets and machines of the driver for disks come from classes, volumes and Nodes.
#[test]
fn the_disk_driver_needs_what_its_classes_and_volumes_name() {
    let set = "/subscriptions/s/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/mine";
    let disk = "/subscriptions/other/resourceGroups/Static/providers/Microsoft.Compute/disks/data";
    let objects = [
        json!({"kind": "StorageClass", "parameters": {"resourcegroup": "fast", "DiskEncryptionSetID": set}}),
        json!({"kind": "PersistentVolume", "spec": {"csi": {"volumeHandle": disk}}}),
    ];
    let cluster = cluster(&json!({}));
    let node: Node = serde_json::from_value(json!({
        "metadata": {"name": "n"},
        "spec": {"providerID": "azure:///subscriptions/s/resourceGroups/pool/providers/Microsoft.Compute/virtualMachineScaleSets/v/virtualMachines/0"},
    }))
    .unwrap();
    let run = run();
    let subject = Subject { cluster: &cluster, run: &run, services: &[], nodes: &[node], more: &[] };
    let needs = disk_needs(&subject, &objects);
    let has = |scope: &str, action: &str| {
        let found = needs.azure.iter().find(|(id, _)| id.as_str().eq_ignore_ascii_case(scope));
        found.is_some_and(|(_, actions)| actions.contains_key(action))
    };
    for group in ["s/resourceGroups/cluster", "s/resourceGroups/fast", "other/resourceGroups/static"] {
        assert!(has(&format!("/subscriptions/{group}"), "Microsoft.Compute/disks/write"), "{group}");
    }
    assert!(has("/subscriptions/s", "Microsoft.Compute/skus/read"));
    assert!(has(set, "Microsoft.Compute/diskEncryptionSets/read"));
    let instances = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/write";
    assert!(has("/subscriptions/s/resourceGroups/pool", instances));
    assert!(!needs.features.contains_key(&Feature::VirtualMachines));
    let text = Report(&needs).to_string();
    let accounts = "kube-system/csi-azuredisk-controller-sa and kube-system/csi-azuredisk-node-sa";
    assert!(text.contains(accounts) && text.contains("2 classes and volumes"), "{text}");
    assert!(needs.azure_roles().iter().all(|role| role.name.starts_with("csi-azuredisk-controller prod")));
}
