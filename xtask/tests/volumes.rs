//! The manifests of `examples/volumes` and `examples/shares` are what API servers and the drivers take.
//!
//! `kubectl apply` is run against the simulated Kubernetes and, with the programs of `KUBEBUILDER_ASSETS`, against a real API
//! server; parameters of classes are read by the drivers' own tables.
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

/// The examples of one driver.
struct Set {
    /// Their folder; classes are in its folder `classes`.
    folder: &'static str,
    /// The page that names each of them.
    page: &'static str,
    driver: &'static str,
    /// What the driver takes over from the in-tree plugin.
    in_tree: &'static str,
    /// How many files there are at least.
    files: usize,
    /// The numbers of StorageClasses, VolumeSnapshotClasses and VolumeAttributesClasses.
    classes: [usize; 3],
}

const DISKS: Set = Set {
    folder: "examples/volumes",
    page: "docs/volumes/README.md",
    driver: "disk.csi.azure.com",
    in_tree: "kubernetes.io/azure-disk",
    files: 30,
    classes: [21, 3, 2],
};
const SHARES: Set = Set {
    folder: "examples/shares",
    page: "docs/shares/README.md",
    driver: "file.csi.azure.com",
    in_tree: "kubernetes.io/azure-file",
    files: 40,
    classes: [28, 2, 2],
};
/// Kinds that the simulated Kubernetes does not serve: files with them are applied to a real API server alone.
const NOT_SIMULATED: [&str; 1] = ["VolumeAttributesClass"];
const DEFINITIONS: &str = "deploy/charts/azuredisk-csi-driver/files/definitions";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// The files of the examples from the root, each with its objects.
fn examples(set: &Set) -> BTreeMap<String, Vec<Value>> {
    let mut found = BTreeMap::new();
    for folder in [set.folder.to_owned(), format!("{}/classes", set.folder)] {
        for entry in std::fs::read_dir(root().join(&folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                let text = std::fs::read_to_string(&path).unwrap();
                let name = format!("{folder}/{}", path.file_name().unwrap().display());
                assert!(text.starts_with("# "), "{name} does not say what it is for");
                found.insert(name, serde_saphyr::from_multiple(&text).unwrap());
            }
        }
    }
    assert!(found.len() > set.files, "{}", found.len());
    found
}

/// Those of both drivers.
fn all_examples() -> BTreeMap<String, Vec<Value>> {
    [&DISKS, &SHARES].into_iter().flat_map(examples).collect()
}

fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn entries(object: &Value) -> BTreeMap<String, String> {
    serde_json::from_value::<Option<_>>(object["parameters"].clone()).unwrap().unwrap_or_default()
}

/// Classes are of the driver, and `read` takes the parameters of each; the text is the kind.
fn assert_classes(set: &Set, read: impl Fn(&str, &BTreeMap<String, String>) -> Result<(), String>) {
    let kinds = [
        ("StorageClass", "/provisioner"),
        ("VolumeSnapshotClass", "/driver"),
        ("VolumeAttributesClass", "/driverName"),
    ];
    let mut classes = [0; 3];
    for (file, objects) in examples(set) {
        for object in objects {
            let kind = text(&object, "/kind");
            let Some(index) = kinds.iter().position(|(known, _)| *known == kind) else { continue };
            let name = format!("{file}: {}", text(&object, "/metadata/name"));
            let driver = text(&object, kinds[index].1);
            let is_in_tree = kind == "StorageClass" && driver == set.in_tree;
            assert!(driver == set.driver || is_in_tree, "{name}: {driver}");
            read(kind, &entries(&object)).unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
            classes[index] += 1;
        }
    }
    assert_eq!(classes, set.classes, "{}", set.folder);
}

fn place() -> ClusterPlace {
    ClusterPlace {
        subscription: "00000000-0000-0000-0000-000000000001".to_owned(),
        group: "cluster".to_owned(),
        location: "westeurope".to_owned(),
        is_stack: false,
    }
}

#[test]
fn parameters_of_each_class_are_what_the_disk_driver_takes() {
    let none = BTreeMap::new();
    assert_classes(&DISKS, |kind, entries| {
        match kind {
            "StorageClass" => DiskParameters::parse(entries, &none, &place()).map(drop),
            "VolumeSnapshotClass" => SnapshotParameters::parse(entries, &place()).map(drop),
            _ => Modification::parse(entries, false).map(drop),
        }
        .map_err(|refusal| refusal.to_string())
    });
}

#[test]
fn classes_of_shares_are_those_of_their_driver() {
    assert_classes(&SHARES, |_, _| Ok(()));
}

/// A claim names a class of the examples, or none, and a claim that a pod names is in the same file.
#[test]
fn claims_have_their_classes_and_pods_their_claims() {
    let all = all_examples();
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

/// Each example has a line on the page of its driver's volumes.
#[test]
fn the_page_names_each_example() {
    for set in [&DISKS, &SHARES] {
        let page = std::fs::read_to_string(root().join(set.page)).unwrap();
        for file in examples(set).keys() {
            assert!(page.contains(&format!("](../../{file})")), "{} does not name {file}", set.page);
        }
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

/// Of a list in which the server sets defaults, and of texts in Secrets, kubectl says that they are configured.
const CONFIGURED: [&str; 5] = [
    "secret/in-tree-share configured",
    "secret/inline-share configured",
    "secret/static-share configured",
    "statefulset.apps/database configured",
    "statefulset.apps/writers configured",
];

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
        let is_known = |line: &str| line.ends_with(" unchanged") || CONFIGURED.contains(&line);
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
    let all = all_examples();
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
