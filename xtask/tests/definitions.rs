//! The definitions of Cluster API's kinds for Azure can be applied, and explain their fields.
//!
//! `kubectl apply` and `kubectl explain` are run against the simulated Kubernetes and, with the programs of
//! `KUBEBUILDER_ASSETS`, against a real API server, with every available kubectl: the one beside them, and the one on
//! the path.
#![allow(clippy::disallowed_methods, reason = "kubectl reads the clock of the system")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use kubernetes_simulator::{Collection, Kubernetes, Options, Token};
use real_kubernetes::RealKubernetes;
use tokio_util::sync::CancellationToken;

/// The served kinds, as `kubectl` names them.
const KINDS: [&str; 19] = [
    "azurecluster",
    "azureclustertemplate",
    "azureclusteridentity",
    "azuremachine",
    "azuremachinetemplate",
    "azuremachinepool",
    "azuremachinepoolmachine",
    "azuremanagedcontrolplane",
    "azuremanagedcontrolplanetemplate",
    "azuremanagedcluster",
    "azuremanagedclustertemplate",
    "azuremanagedmachinepool",
    "azuremanagedmachinepooltemplate",
    "azureasomanagedcluster",
    "azureasomanagedclustertemplate",
    "azureasomanagedcontrolplane",
    "azureasomanagedcontrolplanetemplate",
    "azureasomanagedmachinepool",
    "azureasomanagedmachinepooltemplate",
];

/// Fields that users look up, and the words that they must find.
const EXPLAINED: [(&str, &[&str]); 6] = [
    (
        "azurecluster.spec.networkSpec",
        &[
            "The network: a virtual network",
            "apiServerLB",
            "The load balancer of the API server.",
            "privateDNSZoneName",
            "Workers need one of the role node",
        ],
    ),
    ("azurecluster.spec.networkSpec.subnets.natGateway.name", &["The name of the NAT gateway."]),
    ("azuremachine.spec.osDisk.managedDisk.storageAccountType", &["The kind, such as Premium_LRS."]),
    ("amp.spec.strategy.rollingUpdate.maxSurge", &["How many machines more than desired are permitted"]),
    ("ammp.spec.linuxOSConfig.sysctls", &["vmSwappiness", "how readily memory is moved to swap"]),
    (
        "azureclusteridentity.spec.allowedNamespaces",
        &["If it is not set, no namespace may; if it is empty, all may."],
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every available kubectl.
fn kubectls() -> Vec<PathBuf> {
    let assets = std::env::var_os("KUBEBUILDER_ASSETS").map(|assets| PathBuf::from(assets).join("kubectl"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&path).map(|folder| folder.join("kubectl")).find(|file| file.exists());
    assets.into_iter().chain(on_path).filter(|file| file.exists()).collect()
}

/// Runs it: its standard output, or its error output.
fn run(kubectl: &Path, kubeconfig: &Path, home: &Path, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(kubectl)
        .arg("--kubeconfig")
        .arg(kubeconfig)
        .args(arguments)
        .env("HOME", home)
        .current_dir(root())
        .output()
        .unwrap();
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{} {arguments:?}: {}", kubectl.display(), String::from_utf8_lossy(&output.stderr)))
}

/// The usual steps with the definitions.
fn apply_and_explain(server: &str, kubeconfig: &Path, folder: &Path) {
    for (number, kubectl) in kubectls().into_iter().enumerate() {
        // A kubectl caches what it discovers about a server in its home folder.
        let home = folder.join(format!("home-{number}"));
        std::fs::create_dir_all(&home).unwrap();
        let try_run = |arguments: &[&str]| run(&kubectl, kubeconfig, &home, arguments);
        let run = |arguments: &[&str]| try_run(arguments).unwrap();
        run(&["apply", "-f", "deploy/capz/crd"]);
        run(&["wait", "--for=condition=Established", "--timeout=60s", "-f", "deploy/capz/crd"]);
        let again = run(&["apply", "-f", "deploy/capz/crd"]);
        assert!(again.lines().all(|line| line.ends_with(" unchanged")), "{server}: {again}");
        run(&["apply", "--dry-run=server", "-f", "deploy/capz/webhook"]);
        let resources = ["api-resources", "--api-group=infrastructure.cluster.x-k8s.io", "-o", "name"];
        let listed = until_known(|| try_run(&resources), |text| text.lines().count() == KINDS.len());
        assert_eq!(listed.lines().count(), KINDS.len(), "{server}: {listed}");
        // The output is broken into lines.
        let plain = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for kind in KINDS {
            let text = plain(until_known(
                || try_run(&["explain", &format!("{kind}.spec")]),
                |text| text.contains("FIELDS:"),
            ));
            assert!(!text.contains("<empty>") && !text.contains("<no description>"), "{server}: {text}");
        }
        for (path, words) in EXPLAINED {
            let text = plain(run(&["explain", path]));
            for word in words {
                assert!(text.contains(word), "{server}, {}: {path} says {word:?}: {text}", kubectl.display());
            }
        }
        println!("{server}, {}:\n{}", kubectl.display(), run(&["explain", EXPLAINED[0].0]));
    }
}

/// Retries: a server publishes a kind's schema a moment after it serves the kind.
fn until_known(ask: impl Fn() -> Result<String, String>, is_known: impl Fn(&str) -> bool) -> String {
    for _ in 0..120 {
        if let Ok(text) = ask()
            && is_known(&text)
        {
            return text;
        }
        std::thread::sleep(std::time::Duration::from_millis(500));
    }
    ask().unwrap()
}

#[test]
fn definitions_apply_and_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    if kubectls().is_empty() {
        assert!(std::env::var_os("CI").is_none(), "in CI there must be a kubectl");
        println!("skipped: no kubectl on the path, and none in KUBEBUILDER_ASSETS");
        return;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let stop = CancellationToken::new();
    let simulated = folder.path().join("simulated");
    std::fs::create_dir_all(&simulated).unwrap();
    runtime.block_on(async {
        let options = Options {
            tokens: vec![Token::new("administrator-of-a-test")],
            collection: Collection::Off,
            ..Options::default()
        };
        let kubernetes = Kubernetes::new(options);
        let address = kubernetes.serve_https(([127, 0, 0, 1], 0).into(), stop.clone()).await.unwrap();
        let config = kubernetes.kubeconfig(&format!("https://{address}")).unwrap();
        std::fs::write(simulated.join("kubeconfig"), config).unwrap();
    });
    apply_and_explain("simulated", &simulated.join("kubeconfig"), &simulated);
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
    apply_and_explain("real", &servers.kubeconfig, &real);
}
