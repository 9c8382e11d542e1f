//! The chart of the disk driver, where it differs from the established one on purpose.

use serde_json::{Value, json};

use super::{DISK_DRIVER, Helm, arguments, container, folder, object, objects, rendered};

/// Section 3.12 of the facts about the disk driver: the period is left out where the API server does not know the field.
#[test]
fn kubelets_ask_again_for_the_attach_limit_where_the_api_server_knows_the_field() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let period = |kubernetes: &str, values: Value| {
        let text = helm.template_for(kubernetes, &folder(DISK_DRIVER), &values).unwrap();
        object(&objects(&text), "CSIDriver", "disk.csi.azure.com")["spec"]["nodeAllocatableUpdatePeriodSeconds"]
            .clone()
    };
    assert_eq!(period("v1.36.3", json!({})), 600);
    assert_eq!(period("v1.33.0", json!({})), 600);
    assert_eq!(period("v1.32.9", json!({})), Value::Null);
    assert_eq!(period("v1.36.3", json!({"feature": {"nodeAllocatableUpdatePeriodSeconds": 60}})), 60);
    assert_eq!(period("v1.36.3", json!({"feature": {"nodeAllocatableUpdatePeriodSeconds": 0}})), Value::Null);
}

/// Section 3.18 of the facts about the disk driver: no inline volumes, and ownership by the file system's group.
#[test]
fn the_driver_object_says_what_the_driver_takes() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let spec = |values: Value| {
        object(&rendered(&helm, DISK_DRIVER, &values), "CSIDriver", "disk.csi.azure.com")["spec"].clone()
    };
    let expected = json!({
        "attachRequired": true, "podInfoOnMount": false, "fsGroupPolicy": "File",
        "nodeAllocatableUpdatePeriodSeconds": 600,
    });
    assert_eq!(spec(json!({})), expected);
    let other = spec(json!({"feature": {"enableFSGroupPolicy": false, "enableSELinuxMount": true}}));
    assert_eq!((&other["fsGroupPolicy"], &other["seLinuxMount"]), (&Value::Null, &json!(true)));
}

/// Section 5.2 of the facts about the drivers: health checks are on localhost, in the pods of nodes, too, unless a pod has a network of its own.
#[test]
fn health_checks_are_not_open_on_the_hosts_network() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let endpoints = |values: Value| {
        let all = rendered(&helm, DISK_DRIVER, &values);
        let controller = object(&all, "Deployment", "csi-azuredisk-controller");
        let node = object(&all, "DaemonSet", "csi-azuredisk-node");
        let found =
            [(controller, "liveness-probe"), (node, "liveness-probe"), (node, "node-driver-registrar")];
        let of_one = |(workload, name): (&Value, &str)| {
            let all = arguments(workload, name);
            let found = all.iter().find(|one| one.contains("-endpoint=") || one.contains("-port="));
            (*found.unwrap()).to_owned()
        };
        found.map(of_one)
    };
    assert_eq!(
        endpoints(json!({})),
        [
            "--http-endpoint=localhost:29602",
            "--http-endpoint=localhost:29603",
            "--http-endpoint=localhost:29607"
        ]
    );
    let own = json!({"controller": {"hostNetwork": false}, "linux": {"hostNetwork": false}});
    assert_eq!(endpoints(own), ["--health-port=29602", "--health-port=29603", "--http-endpoint=:29607"]);
}

/// Section 5.1 of the facts about the drivers.
#[test]
fn side_cars_have_the_established_versions_and_arguments() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let all = rendered(&helm, DISK_DRIVER, &json!({}));
    let controller = object(&all, "Deployment", "csi-azuredisk-controller");
    let node = object(&all, "DaemonSet", "csi-azuredisk-node");
    let cases: [(&Value, &str, &str, &[&str]); 7] = [
        (
            controller,
            "csi-provisioner",
            "csi-provisioner:v6.3.0",
            &[
                "--timeout=30s",
                "--worker-threads=100",
                "--extra-create-metadata=true",
                "--strict-topology=true",
                "--kube-api-qps=50",
                "--kube-api-burst=100",
                "--retry-interval-max=30m",
                "--feature-gates=Topology=true,VolumeAttributesClass=true",
            ],
        ),
        (
            controller,
            "csi-attacher",
            "csi-attacher:v4.12.0",
            &["--timeout=600s", "--worker-threads=1000", "--kube-api-qps=200", "--kube-api-burst=400"],
        ),
        (
            controller,
            "csi-resizer",
            "csi-resizer:v2.2.1",
            &[
                "--timeout=240s",
                "--handle-volume-inuse-error=false",
                "--feature-gates=RecoverVolumeExpansionFailure=true,VolumeAttributesClass=true",
            ],
        ),
        (
            controller,
            "csi-snapshotter",
            "csi-snapshotter:v8.6.0",
            &[
                "--timeout=1200s",
                "--worker-threads=250",
                "--extra-create-metadata=true",
                "--kube-api-qps=100",
                "--kube-api-burst=200",
            ],
        ),
        (controller, "liveness-probe", "livenessprobe:v2.19.0", &["--probe-timeout=3s"]),
        (node, "liveness-probe", "livenessprobe:v2.19.0", &["--probe-timeout=10s"]),
        (
            node,
            "node-driver-registrar",
            "csi-node-driver-registrar:v2.17.0",
            &["--kubelet-registration-path=/var/lib/kubelet/plugins/disk.csi.azure.com/csi.sock"],
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
}

/// Without root where no device is touched: the containers of the controller have one user, to whom the socket belongs.
#[test]
fn only_the_driver_on_nodes_is_privileged() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let values = json!({"snapshot": {"enabled": true}, "controller": {"enableTrafficManager": true}});
    let all = rendered(&helm, DISK_DRIVER, &values);
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
            let touches_devices = *name == "csi-azuredisk-node" && one["name"] == "azuredisk";
            assert_eq!(context["privileged"] == true, touches_devices, "{name} {}", one["name"]);
            assert!(touches_devices || context["capabilities"]["drop"] == json!(["ALL"]), "{name}");
        }
    }
    assert_eq!(containers, 7 + 3 + 1);
}

/// An image by the values of releases that switch, and by those of a mirror.
#[test]
fn the_established_repository_means_this_release_and_its_tag_stays_on_windows() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let images = |image: Value, windows: Value| {
        let all = rendered(&helm, DISK_DRIVER, &json!({"image": image, "windows": windows}));
        ["csi-azuredisk-node", "csi-azuredisk-node-win"].map(|name| {
            container(object(&all, "DaemonSet", name), "azuredisk")["image"].as_str().unwrap().to_owned()
        })
    };
    let ours = format!("registry.example/azuredisk-csi:v{}", env!("CARGO_PKG_VERSION"));
    let established = "mcr.microsoft.com/oss/v2/kubernetes-csi/azuredisk-csi";
    let of_release =
        json!({"azuredisk": {"repository": "/oss/v2/kubernetes-csi/azuredisk-csi", "tag": "v1.33.5"}});
    let last = format!("{established}:v1.34.5-windows-hp");
    assert_eq!(images(json!({}), json!({})), [ours.clone(), last]);
    let kept = format!("{established}:v1.33.5-windows-hp");
    assert_eq!(images(of_release.clone(), json!({})), [ours.clone(), kept]);
    let mut mirrored = of_release.clone();
    mirrored["baseRepo"] = json!("mirror.example");
    let [linux, windows] = images(mirrored, json!({}));
    assert_eq!(linux, format!("mirror.example/azuredisk-csi:v{}", env!("CARGO_PKG_VERSION")));
    assert_eq!(windows, "mirror.example/oss/v2/kubernetes-csi/azuredisk-csi:v1.33.5-windows-hp");
    assert_eq!(images(of_release, json!({"image": "mine:1"}))[1], "mine:1");
    let own = json!({"azuredisk": {"repository": "mine.example/disk", "tag": "edge"}});
    assert_eq!(images(own, json!({}))[0], "mine.example/disk:edge");
}

/// The definitions stay when snapshots are switched off: snapshots would go with them.
#[test]
fn helm_never_deletes_the_definitions_of_snapshots() {
    let Some(helm) = Helm::find().unwrap() else { return };
    let all = rendered(&helm, DISK_DRIVER, &json!({"snapshot": {"enabled": true}}));
    let definitions: Vec<&Value> =
        all.iter().filter(|((kind, ..), _)| kind == "CustomResourceDefinition").map(|(_, one)| one).collect();
    assert_eq!(definitions.len(), 3);
    for definition in definitions {
        let annotations = &definition["metadata"]["annotations"];
        assert_eq!(annotations["helm.sh/resource-policy"], "keep");
        assert!(annotations["api-approved.kubernetes.io"].is_string(), "{annotations}");
    }
}
