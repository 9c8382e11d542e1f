//! The manifests of `examples/volumes` are what API servers and the disk driver take.
//!
//! `kubectl apply` is run against the simulated Kubernetes and, with the programs of `KUBEBUILDER_ASSETS`, against a real API
//! server; parameters of classes are read by the driver's own tables.
#![allow(clippy::disallowed_methods, reason = "kubectl reads the clock of the system")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubernetes_simulator::{Collection, Kubernetes, Options, Token};
use real_kubernetes::RealKubernetes;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use volume_planner::ClusterPlace;
use volume_planner::parameters::disk::DiskParameters;
use volume_planner::parameters::modification::Modification;
use volume_planner::parameters::snapshot::SnapshotParameters;

const DRIVER: &str = "disk.csi.azure.com";
/// What the driver takes over from the in-tree plugin.
const IN_TREE: &str = "kubernetes.io/azure-disk";
/// Kinds that the simulated Kubernetes does not serve: files with them are applied to a real API server alone.
const NOT_SIMULATED: [&str; 1] = ["VolumeAttributesClass"];
const DEFINITIONS: &str = "deploy/charts/azuredisk-csi-driver/files/definitions";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The files of the examples from the root, each with its objects.
fn examples() -> BTreeMap<String, Vec<Value>> {
    let mut found = BTreeMap::new();
    for folder in ["examples/volumes", "examples/volumes/classes"] {
        for entry in std::fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                let text = std::fs::read_to_string(&path).unwrap();
                let name = format!("{folder}/{}", path.file_name().unwrap().display());
                assert!(text.starts_with("# "), "{name} does not say what it is for");
                found.insert(name, serde_saphyr::from_multiple(&text).unwrap());
            }
        }
    }
    assert!(found.len() > 30, "{}", found.len());
    found
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn entries(object: &Value) -> BTreeMap<String, String> {
    serde_json::from_value(object["parameters"].clone()).unwrap()
}

#[test]
fn parameters_of_each_class_are_what_the_driver_takes() {
    let place = ClusterPlace {
        subscription: "00000000-0000-0000-0000-000000000001".to_owned(),
        group: "cluster".to_owned(),
        location: "westeurope".to_owned(),
        is_stack: false,
    };
    let mut classes = [0; 3];
    for (file, objects) in examples() {
        for object in objects {
            let name = format!("{file}: {}", text(&object, "/metadata/name"));
            match text(&object, "/kind") {
                "StorageClass" => {
                    assert!([DRIVER, IN_TREE].contains(&text(&object, "/provisioner")), "{name}");
                    let read = DiskParameters::parse(&entries(&object), &BTreeMap::new(), &place);
                    read.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
                    classes[0] += 1;
                }
                "VolumeSnapshotClass" => {
                    assert_eq!(text(&object, "/driver"), DRIVER, "{name}");
                    let read = SnapshotParameters::parse(&entries(&object), &place);
                    read.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
                    classes[1] += 1;
                }
                "VolumeAttributesClass" => {
                    assert_eq!(text(&object, "/driverName"), DRIVER, "{name}");
                    let read = Modification::parse(&entries(&object), false);
                    read.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
                    classes[2] += 1;
                }
                _ => {}
            }
        }
    }
    assert_eq!(classes, [21, 3, 2]);
}

/// A claim names a class of the examples, or none, and a claim that a pod names is in the same file.
#[test]
fn claims_have_their_classes_and_pods_their_claims() {
    let all = examples();
    let of_kind = |kind: &str| -> Vec<String> {
        let objects = all.values().flatten().filter(|object| text(object, "/kind") == kind);
        objects.map(|object| text(object, "/metadata/name").to_owned()).collect()
    };
    let (classes, attributes) = (of_kind("StorageClass"), of_kind("VolumeAttributesClass"));
    let known = |names: &[String], name: &str| name.is_empty() || names.iter().any(|one| one == name);
    for (file, objects) in &all {
        let claims: Vec<&Value> =
            objects.iter().filter(|object| text(object, "/kind") == "PersistentVolumeClaim").collect();
        let mut specs: Vec<&Value> = claims.iter().map(|claim| &claim["spec"]).collect();
        for object in objects {
            let volumes = object.pointer("/spec/template/spec/volumes").and_then(Value::as_array);
            for volume in volumes.into_iter().flatten() {
                let claim = text(volume, "/persistentVolumeClaim/claimName");
                let is_here = claims.iter().any(|one| text(one, "/metadata/name") == claim);
                assert!(claim.is_empty() || is_here, "{file}: {claim}");
                specs.extend(volume.pointer("/ephemeral/volumeClaimTemplate/spec"));
            }
            let templates = object.pointer("/spec/volumeClaimTemplates").and_then(Value::as_array);
            specs.extend(templates.into_iter().flatten().map(|template| &template["spec"]));
        }
        for spec in specs {
            assert!(known(&classes, text(spec, "/storageClassName")), "{file}: {spec}");
            assert!(known(&attributes, text(spec, "/volumeAttributesClassName")), "{file}: {spec}");
        }
    }
}

/// Each example has a line on the page of volumes.
#[test]
fn the_page_names_each_example() {
    let page = std::fs::read_to_string(root().join("docs/volumes/README.md")).unwrap();
    for file in examples().keys() {
        assert!(page.contains(&format!("](../../{file})")), "docs/volumes/README.md does not name {file}");
    }
}

/// Every available kubectl: the one of the assets, and the one on the path.
fn kubectls() -> Vec<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(|assets| PathBuf::from(assets).join("kubectl"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|file| file.exists());
    assets.into_iter().chain(on_path).filter(|file| file.exists()).collect()
}

/// Applies all files twice: the second time nothing is new.
fn apply(server: &str, kubeconfig: &Path, folder: &Path, files: &[String]) {
    for (number, kubectl) in kubectls().into_iter().enumerate() {
        // A kubectl caches what it discovers about a server in its home folder.
        let home = folder.join(format!("home-{number}"));
        std::fs::create_dir_all(&home).unwrap();
        let run = |arguments: &[&str]| {
            let output = Command::new(&kubectl)
                .arg("--kubeconfig")
                .arg(kubeconfig)
                .args(arguments)
                .env("HOME", &home)
                .current_dir(root())
                .output()
                .unwrap();
            let errors = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(output.status.success(), "{server}, {}, {arguments:?}: {errors}", kubectl.display());
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        run(&["apply", "-f", DEFINITIONS]);
        run(&["wait", "--for=condition=Established", "--timeout=60s", "-f", DEFINITIONS]);
        let all: Vec<&str> =
            ["apply"].into_iter().chain(files.iter().flat_map(|file| ["-f", file.as_str()])).collect();
        run(&all);
        // Of a list in which the server sets defaults, kubectl says that it is configured.
        let is_known =
            |line: &str| line.ends_with(" unchanged") || line == "statefulset.apps/database configured";
        let again = run(&all);
        let new: Vec<&str> = again.lines().filter(|line| !is_known(line)).collect();
        assert!(new.is_empty(), "{server}: {new:?}");
        println!("{server}, {}: {} files applied", kubectl.display(), files.len());
    }
}

#[test]
fn api_servers_take_each_example() {
    if kubectls().is_empty() {
        assert!(std::env::var_os("CI").is_none(), "in CI there must be a kubectl");
        println!("skipped: no kubectl on the path, and none in KUBEBUILDER_ASSETS");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let all = examples();
    let is_simulated =
        |objects: &[Value]| objects.iter().all(|object| !NOT_SIMULATED.contains(&text(object, "/kind")));
    let simulated_files: Vec<String> =
        all.iter().filter(|(_, objects)| is_simulated(objects)).map(|(file, _)| file.clone()).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let simulated = folder.path().join("simulated");
    std::fs::create_dir_all(&simulated).unwrap();
    runtime.block_on(async {
        let options = Options {
            tokens: vec![Token::new("administrator-of-a-test")],
            collection: Collection::Off,
            ..Options::default()
        };
        let kubernetes = Kubernetes::new(options);
        let stop = CancellationToken::new();
        let address = kubernetes.serve_https(([127, 0, 0, 1], 0).into(), stop).await.unwrap();
        let config = kubernetes.kubeconfig(&format!("https://{address}")).unwrap();
        std::fs::write(simulated.join("kubeconfig"), config).unwrap();
    });
    apply("simulated", &simulated.join("kubeconfig"), &simulated, &simulated_files);
    let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS") else {
        assert!(
            std::env::var_os("CI").is_none(),
            "KUBEBUILDER_ASSETS is not set: CI asks a real server, too"
        );
        println!("skipped: KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kubectl");
        return;
    };
    let real = folder.path().join("real");
    std::fs::create_dir_all(&real).unwrap();
    let servers = runtime.block_on(RealKubernetes::start(assets.as_ref(), &real)).unwrap();
    let files: Vec<String> = all.into_keys().collect();
    apply("real", &servers.kubeconfig, &real, &files);
}
