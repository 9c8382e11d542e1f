//! With a real API server. It has no cluster network, so the webhooks are registered by address.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use certificate_authority::CertificateAuthority;
use real_kubernetes::RealKubernetes;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use super::manager::{Manager, write_certificate};
use super::place::{Place, cluster, infrastructure};

/// Runs kubectl with an object on its standard input, and returns its output.
async fn kubectl(program: &Path, kubeconfig: &Path, arguments: &[&str], object: &Value) -> (bool, String) {
    let mut child = Command::new(program)
        .arg(format!("--kubeconfig={}", kubeconfig.display()))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(object.to_string().as_bytes()).await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.success(), text)
}

/// A kubeconfig of the manager's service account, with only the rights of the manifest.
pub async fn of_the_manager(
    kubernetes: &RealKubernetes,
    place: &Place,
    kubectl_program: &Path,
    folder: &Path,
) -> PathBuf {
    let rights = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/capz/parts/40-rights.yaml");
    let arguments = ["apply", "-f", rights.to_str().unwrap()];
    let (done, text) = kubectl(kubectl_program, &kubernetes.kubeconfig, &arguments, &Value::Null).await;
    assert!(done, "{text}");
    // No controller aggregates roles here.
    let account = json!({ "kind": "ServiceAccount", "name": "capz-manager", "namespace": "capz-system" });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": { "name": "base" },
        "roleRef": { "apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "capz-base-manager-role" },
        "subjects": [account],
    });
    place.create(binding).await.unwrap();
    let request = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {} });
    let request = http::Request::post("/api/v1/namespaces/capz-system/serviceaccounts/capz-manager/token")
        .header("Content-Type", "application/json")
        .body(request.to_string().into_bytes())
        .unwrap();
    let answer: Value = place.0.request(request).await.unwrap();
    let token = answer["status"]["token"].as_str().unwrap();
    let text = std::fs::read_to_string(&kubernetes.kubeconfig).unwrap();
    let path = folder.join("manager.kubeconfig");
    std::fs::write(&path, text.replace("administrator-of-a-test", token)).unwrap();
    // Rights take effect with a delay.
    let question =
        ["auth", "can-i", "watch", "azureclusters.infrastructure.cluster.x-k8s.io", "--all-namespaces"];
    let mut tries = 0;
    while !kubectl(kubectl_program, &path, &question, &Value::Null).await.0 && tries < 150 {
        tries += 1;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    path
}

/// `kubectl explain` describes every member of a cluster's network.
async fn explains_well(program: &Path, kubeconfig: &Path) {
    let explain = async |what: &str| kubectl(program, kubeconfig, &["explain", what], &Value::Null).await;
    // The server publishes the schemas of new kinds with a delay of some seconds.
    let mut tries = 0;
    let text = loop {
        let (done, text) = explain("azurecluster.spec.networkSpec").await;
        if done || tries > 150 {
            break text;
        }
        tries += 1;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    };
    assert!(text.contains("FIELD: networkSpec <Object>"), "{text}");
    for member in
        ["vnet\t<Object>", "subnets\t<[]Object>", "apiServerLB\t<Object>", "nodeOutboundLB\t<Object>"]
    {
        assert!(text.contains(member), "{member}: {text}");
    }
    let subnets = explain("azurecluster.spec.networkSpec.subnets").await.1;
    for text in [text, subnets] {
        assert!(!text.contains("<no description>") && !text.contains("<empty>"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_sees_what_is_completed_and_what_is_refused() {
    let Some(assets) = std::env::var_os("KUBEBUILDER_ASSETS").map(PathBuf::from) else {
        assert!(
            std::env::var_os("CI").is_none(),
            "KUBEBUILDER_ASSETS is not set: in CI a real server must ask"
        );
        println!("skipped: KUBEBUILDER_ASSETS names no folder with etcd, kube-apiserver and kubectl");
        return;
    };
    arm::install_crypto_provider();
    let folder = tempfile::tempdir().unwrap();
    let kubernetes = RealKubernetes::start(&assets, &folder.path().join("kubernetes")).await.unwrap();
    let place = Place(kubernetes.client().await.unwrap());
    let authority = CertificateAuthority::generate().unwrap();
    write_certificate(&authority, folder.path());
    place.install().await;
    let program = assets.join("kubectl");
    let kubeconfig = of_the_manager(&kubernetes, &place, &program, folder.path()).await;
    let manager = Manager::start(&kubeconfig, folder.path(), &[]).await;
    let port = manager.webhooks;
    let by_address = move |config: &mut Value| {
        let path = config["service"]["path"].as_str().unwrap_or_default();
        let url = format!("https://127.0.0.1:{port}{path}");
        *config = json!({ "url": url, "caBundle": config["caBundle"] });
    };
    place.register(&authority, by_address).await;
    let apply = async |object: &Value, arguments: &[&str]| {
        let all = [&["apply", "-f", "-"], arguments].concat();
        kubectl(&program, &kubernetes.kubeconfig, &all, object).await
    };
    // Registrations take effect with a delay.
    let mut tries = 0;
    let made = loop {
        let (_, text) = apply(&cluster("c-1"), &["-o", "json", "--dry-run=server"]).await;
        let made: Value = serde_json::from_str(&text).unwrap_or_default();
        if made["spec"]["resourceGroup"] == "c-1" || tries > 300 {
            break made;
        }
        tries += 1;
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    };
    assert_eq!(made["spec"]["networkSpec"]["vnet"]["name"], "c-1-vnet", "{made}");
    assert_eq!(
        apply(&cluster("c-1"), &[]).await,
        (true, "azurecluster.infrastructure.cluster.x-k8s.io/c-1 created\n".to_owned())
    );
    // Applying the same file again does not remove the webhook's defaults.
    let again = "azurecluster.infrastructure.cluster.x-k8s.io/c-1 unchanged\n".to_owned();
    assert_eq!(apply(&cluster("c-1"), &[]).await, (true, again));

    let mut moved = cluster("c-1");
    moved["spec"]["location"] = json!("westeurope");
    let (done, text) = apply(&moved, &[]).await;
    assert!(
        !done && text.contains("spec.location: Invalid value: \"westeurope\": field is immutable"),
        "{text}"
    );
    let identity = infrastructure(
        "AzureClusterIdentity",
        "identity",
        json!({ "type": "WorkloadIdentity", "clientID": "c", "tenantID": "t", "resourceID": "r" }),
    );
    let (done, text) = apply(&identity, &[]).await;
    assert!(!done && text.contains("spec.resourceID"), "{text}");
    explains_well(&program, &kubernetes.kubeconfig).await;
    let metrics = manager.metrics().await;
    assert!(metrics.contains("controller_runtime_webhook_requests_total"), "{metrics}");
    let log = manager.log();
    assert!(log.contains("became leader") && !log.to_lowercase().contains("forbidden"), "{log}");
    assert_eq!(manager.stop().await, Some(0));
}
