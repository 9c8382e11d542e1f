//! The chart of the driver for file shares, where it differs from the established one on purpose.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{FILE_DRIVER, Helm, Objects, arguments, container, folder, object, objects, rendered};

/// Names and namespaces of the roles that let a service account at all Secrets of a namespace, or of the cluster (`*`), with verbs.
fn secret_rights(all: &Objects, account: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for ((kind, namespace, _), binding) in all.iter().filter(|((kind, ..), _)| kind.ends_with("Binding")) {
        if binding["subjects"][0]["name"] != account {
            continue;
        }
        let role_kind = kind.trim_end_matches("Binding");
        let role = object(all, role_kind, binding["roleRef"]["name"].as_str().unwrap());
        for rule in role["rules"].as_array().unwrap() {
            if rule["resources"] == json!(["secrets"]) && rule["resourceNames"].is_null() {
                let verbs: Vec<&str> =
                    rule["verbs"].as_array().unwrap().iter().map(|verb| verb.as_str().unwrap()).collect();
                let place = if kind == "ClusterRoleBinding" { "*" } else { namespace };
                found.insert(format!("{} {place}", verbs.join(",")));
            }
        }
    }
    found
}

/// Section 5.2 of the facts about the drivers has it as a defect that node pods may read every Secret of the cluster.
#[test]
fn secrets_with_account_keys_are_read_in_the_namespaces_that_are_named() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let of = |namespaces: Value, account: &str| {
        let all = rendered(&helm, FILE_DRIVER, &json!({"accountKeys": {"namespaces": namespaces}}));
        secret_rights(&all, account).into_iter().collect::<Vec<_>>()
    };
    let (controller, node) = ("csi-azurefile-controller-sa", "csi-azurefile-node-sa");
    assert!(of(json!([]), controller).is_empty() && of(json!([]), node).is_empty());
    assert_eq!(of(json!(["shop", "default"]), node), ["get default", "get shop"]);
    assert_eq!(of(json!(["shop"]), controller), ["get,create,update shop"]);
    assert_eq!(of(json!(["*", "shop"]), node), ["get *"]);
    assert_eq!(of(json!(["*"]), controller), ["get,create,update *"]);
    let established = rendered(&helm, FILE_DRIVER, &json!({"accountKeys": {"namespaces": ["*"]}}));
    object(&established, "ClusterRole", "csi-azurefile-node-secret-role");
    object(&established, "ClusterRoleBinding", "csi-azurefile-controller-secret-binding");
}

/// Section 5.1 of the facts about the drivers: the established chart installs a service and packages on each host. Ours changes no
/// host, also where values of a release ask for it.
#[test]
fn no_container_changes_a_host() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let proxy = json!({"enabled": true, "installAznfsMount": true, "migrateK8sRepo": true});
    let established = json!({"azurefileProxy": proxy, "enableManagedIdentityAuth": true});
    for node in [json!({}), established] {
        let all = rendered(&helm, FILE_DRIVER, &json!({"node": node}));
        let spec = &object(&all, "DaemonSet", "csi-azurefile-node")["spec"]["template"]["spec"];
        assert!(spec["initContainers"].is_null() && spec["hostPID"].is_null(), "{spec}");
        let folders: BTreeSet<&str> = spec["volumes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|volume| volume["hostPath"]["path"].as_str().unwrap())
            .collect();
        let expected = [
            "/dev",
            "/etc/kubernetes/",
            "/var/lib/kubelet/plugins",
            "/var/lib/kubelet/plugins/file.csi.azure.com",
            "/var/lib/kubelet/plugins_registry/",
            "/var/lib/kubelet/pods",
        ];
        assert_eq!(folders, BTreeSet::from(expected));
        let mounts = container(object(&all, "DaemonSet", "csi-azurefile-node"), "azurefile")["volumeMounts"]
            .as_array()
            .unwrap();
        let of_etc = mounts.iter().find(|mount| mount["mountPath"] == "/etc/kubernetes/").unwrap();
        assert_eq!(of_etc["readOnly"], true);
    }
}

/// The proxy is used where a release says that hosts have it, and NFS without encryption only beside it.
#[test]
fn encryption_in_transit_is_an_option() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let given = |node: Value| {
        let all = rendered(&helm, FILE_DRIVER, &json!({"node": node}));
        let found = arguments(object(&all, "DaemonSet", "csi-azurefile-node"), "azurefile");
        ["--enable-azurefile-proxy=true", "--use-aznfs-for-nfs-mounts=true"].map(|flag| found.contains(&flag))
    };
    assert_eq!(given(json!({})), [false, false]);
    assert_eq!(given(json!({"useAZNFSForNFSMounts": true})), [false, false]);
    assert_eq!(given(json!({"azurefileProxy": {"enabled": true}})), [true, false]);
    assert_eq!(
        given(json!({"azurefileProxy": {"enabled": true}, "useAZNFSForNFSMounts": true})),
        [true, true]
    );
}

/// Section 4.1 of the facts about the driver for files.
#[test]
fn the_driver_object_says_what_the_driver_takes() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let spec = |kubernetes: &str, values: Value| {
        let text = helm.template_for(kubernetes, &folder(FILE_DRIVER), &values).unwrap();
        object(&objects(&text), "CSIDriver", "file.csi.azure.com")["spec"].clone()
    };
    let expected = json!({
        "attachRequired": false, "podInfoOnMount": true, "requiresRepublish": true,
        "volumeLifecycleModes": ["Persistent", "Ephemeral"], "fsGroupPolicy": "ReadWriteOnceWithFSType",
        "tokenRequests": [{"audience": "api://AzureADTokenExchange"}],
    });
    assert_eq!(spec("v1.36.3", json!({})), expected);
    let secrets = json!({"feature": {"serviceAccountTokenInSecrets": true, "requiresRepublish": false}});
    assert_eq!(spec("v1.36.3", secrets.clone())["serviceAccountTokenInSecrets"], true);
    assert_eq!(spec("v1.36.3", secrets.clone())["requiresRepublish"], false);
    assert_eq!(spec("v1.34.1", secrets)["serviceAccountTokenInSecrets"], Value::Null);
}

/// Section 5.1 of the facts about the drivers.
#[test]
fn side_cars_have_the_established_versions_and_arguments() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let all = rendered(&helm, FILE_DRIVER, &json!({}));
    let controller = object(&all, "Deployment", "csi-azurefile-controller");
    let node = object(&all, "DaemonSet", "csi-azurefile-node");
    let cases: [(&Value, &str, &str, &[&str]); 6] = [
        (
            controller,
            "csi-provisioner",
            "csi-provisioner:v6.3.0",
            &[
                "--timeout=1200s",
                "--extra-create-metadata=true",
                "--kube-api-qps=50",
                "--kube-api-burst=100",
                "--feature-gates=VolumeAttributesClass=true",
            ],
        ),
        (
            controller,
            "csi-resizer",
            "csi-resizer:v2.2.1",
            &[
                "--timeout=120s",
                "--handle-volume-inuse-error=false",
                "--feature-gates=RecoverVolumeExpansionFailure=true,VolumeAttributesClass=true",
            ],
        ),
        (controller, "csi-snapshotter", "csi-snapshotter:v8.5.0", &[]),
        (controller, "liveness-probe", "livenessprobe:v2.19.0", &["--probe-timeout=3s"]),
        (node, "liveness-probe", "livenessprobe:v2.19.0", &["--probe-timeout=10s"]),
        (
            node,
            "node-driver-registrar",
            "csi-node-driver-registrar:v2.17.0",
            &["--kubelet-registration-path=/var/lib/kubelet/plugins/file.csi.azure.com/csi.sock"],
        ),
    ];
    for (workload, name, image, expected) in cases {
        let found = container(workload, name)["image"].as_str().unwrap();
        assert_eq!(found, format!("mcr.microsoft.com/oss/v2/kubernetes-csi/{image}"), "{name}");
        let given = arguments(workload, name);
        for argument in expected {
            assert!(given.contains(argument), "{name}: {argument} is missing in {given:?}");
        }
    }
    let names = controller["spec"]["template"]["spec"]["containers"].as_array().unwrap();
    assert!(names.iter().all(|one| one["name"] != "csi-attacher"));
}

/// Without root where nothing is mounted: the containers of the controller have one user, to whom the socket belongs.
#[test]
fn only_the_driver_on_nodes_is_privileged() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let all = rendered(&helm, FILE_DRIVER, &json!({"snapshot": {"enabled": true}}));
    let workloads = all.values().filter(|one| one["spec"]["template"]["spec"]["containers"].is_array());
    let mut containers = 0;
    for workload in workloads {
        let (name, spec) = (&workload["metadata"]["name"], &workload["spec"]["template"]["spec"]);
        assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault", "{name}");
        let is_windows = spec["nodeSelector"]["kubernetes.io/os"] == "windows";
        if workload["kind"] == "Deployment" {
            assert_eq!(spec["securityContext"]["runAsNonRoot"], true, "{name}");
            assert_eq!(spec["securityContext"]["runAsUser"], 65532, "{name}");
        }
        for one in spec["containers"].as_array().unwrap().iter().filter(|_| !is_windows) {
            containers += 1;
            let context = &one["securityContext"];
            let mounts = *name == "csi-azurefile-node" && one["name"] == "azurefile";
            assert_eq!(context["privileged"] == true, mounts, "{name} {}", one["name"]);
            assert!(mounts || context["capabilities"]["drop"] == json!(["ALL"]), "{name}");
        }
    }
    assert_eq!(containers, 5 + 3 + 1);
}

/// Numbers are what YAML makes of 0777, and texts are octal.
#[test]
fn permissions_of_mounts_are_numbers_or_octal_texts() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let given = |permissions: Value| {
        let all = rendered(&helm, FILE_DRIVER, &json!({"linux": {"mountPermissions": permissions}}));
        let found = arguments(object(&all, "DaemonSet", "csi-azurefile-node"), "azurefile");
        (*found.iter().find(|one| one.starts_with("--mount-permissions=")).unwrap()).to_owned()
    };
    assert_eq!(given(json!(511)), "--mount-permissions=511");
    assert_eq!(given(json!(0)), "--mount-permissions=0");
    assert_eq!(given(json!("0750")), "--mount-permissions=0750");
}
