//! S4: Azure Service Operator is gone, and with it the conversion webhook of its objects; at a real API server, where
//! the manager has the rights of its manifest. If `KUBEBUILDER_ASSETS` contains a kube-controller-manager, too, the
//! test checks that its garbage collector and its namespace controller complete.

use std::path::{Path, PathBuf};
use std::time::Duration;

use certificate_authority::CertificateAuthority;
use real_kubernetes::RealKubernetes;
use serde_json::{Value, json};
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

use super::manager::{Manager, free_port, write_certificate};
use super::place::{Place, cluster, core};
use super::real::of_the_manager;

const SPOKEN: &str = "v1api20201101";
const OLD: &str = "v1api20201101storage";
const NEW: &str = "v1api20240301storage";
const FINALIZER: &str = "serviceoperator.azure.com/finalizer";
const POLICY: &str = "serviceoperator.azure.com/reconcile-policy";
const KINDS: [(&str, &str); 3] = [
    ("resources.azure.com", "ResourceGroup"),
    ("network.azure.com", "VirtualNetwork"),
    ("network.azure.com", "VirtualNetworksSubnet"),
];

fn definition((group, kind): (&str, &str), storage: &str, conversion: &Value) -> Value {
    let schema =
        json!({ "openAPIV3Schema": { "type": "object", "x-kubernetes-preserve-unknown-fields": true } });
    let version = |name: &str| json!({ "name": name, "served": true, "storage": name == storage, "schema": schema, "subresources": { "status": {} } });
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced", "conversion": conversion,
            "names": { "kind": kind, "listKind": format!("{kind}List"), "plural": plural, "singular": kind.to_lowercase() },
            "versions": Value::from([SPOKEN, OLD, NEW].map(version).to_vec()),
        },
    })
}

fn object((group, kind): (&str, &str), version: &str, namespace: &str, owner: Option<&Value>) -> Value {
    let mut object = json!({
        "apiVersion": format!("{group}/{version}"), "kind": kind,
        "metadata": { "name": "c-1", "namespace": namespace, "annotations": { POLICY: "manage" } },
        "spec": { "azureName": "c-1" },
    });
    if let Some(owner) = owner {
        object["metadata"]["finalizers"] = json!([FINALIZER]);
        object["metadata"]["ownerReferences"] = json!([{
            "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true,
        }]);
    }
    object
}

async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(90);
    while !holds().await {
        assert!(Instant::now() < deadline, "not within 90 s: {what}");
        sleep(Duration::from_millis(200)).await;
    }
}

/// The garbage collector, and the namespace controller; `None` if there is no kube-controller-manager.
async fn collector(assets: &Path, kubeconfig: &Path, folder: &Path) -> Option<Child> {
    let program = assets.join("kube-controller-manager");
    if !program.exists() {
        println!("without a kube-controller-manager in KUBEBUILDER_ASSETS nothing collects garbage here");
        return None;
    }
    let log = std::fs::File::create(folder.join("kube-controller-manager.log")).unwrap();
    let kubeconfig = kubeconfig.display();
    let started = Command::new(program)
        .args(["--leader-elect=false", "--controllers=garbage-collector-controller,namespace-controller"])
        .arg(format!("--kubeconfig={kubeconfig}"))
        .arg(format!("--authentication-kubeconfig={kubeconfig}"))
        .arg(format!("--authorization-kubeconfig={kubeconfig}"))
        .arg(format!("--secure-port={}", free_port().await))
        .arg(format!("--cert-dir={}", folder.join("collector").display()))
        .stderr(log)
        .kill_on_drop(true)
        .spawn();
    Some(started.unwrap())
}

/// S3, S4: objects that are stored in an older version, and that no webhook converts any more, become harmless and are
/// deleted, with only the rights of the manifest; afterwards they are listed in all versions, and a namespace with some
/// of them is deleted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_go_that_nothing_converts_any_more() {
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
    place.install().await;
    for kind in KINDS {
        place.create(definition(kind, OLD, &json!({ "strategy": "None" }))).await.unwrap();
    }
    let made = place.create(core(
        "Cluster",
        "c-1",
        json!({ "infrastructureRef": { "kind": "AzureCluster", "name": "c-1" } }),
    ));
    let owner = made.await.unwrap();
    let mut declared = cluster("c-1");
    declared["metadata"]["ownerReferences"] = json!([{ "apiVersion": owner["apiVersion"], "kind": "Cluster", "name": "c-1",
        "uid": owner["metadata"]["uid"], "controller": true }]);
    declared["metadata"]["finalizers"] = json!(["azurecluster.infrastructure.cluster.x-k8s.io"]);
    let declared = place.create(declared).await.unwrap();
    place
        .create(json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team" } }))
        .await
        .unwrap();
    for kind in KINDS {
        let ours = object(kind, OLD, "default", Some(&declared));
        until("the kind is served", async || {
            let made = place.create(ours.clone()).await;
            let is_early =
                |error: &kube::Error| matches!(error, kube::Error::Api(it) if [404, 429].contains(&it.code));
            assert!(made.as_ref().is_ok() || made.as_ref().is_err_and(is_early), "{made:?}");
            made.is_ok()
        })
        .await;
        // A user's own, whose namespace is deleted afterwards.
        place.create(object(kind, OLD, "team", None)).await.unwrap();
    }
    let service = json!({ "namespace": "capz-system", "name": "azureserviceoperator-webhook-service", "path": "/convert" });
    let conversion = json!({ "strategy": "Webhook", "webhook": { "conversionReviewVersions": ["v1"],
        "clientConfig": { "service": service, "caBundle": null } } });
    for kind in KINDS {
        place.merge(definition(kind, NEW, &conversion)).await.unwrap();
    }
    let network = |version: &str| object(KINDS[1], version, "default", None);
    let listed = async |version: &str| {
        let path = format!("/apis/network.azure.com/{version}/virtualnetworks");
        place.0.request::<Value>(http::Request::get(path).body(Vec::new()).unwrap()).await
    };
    for version in [SPOKEN, NEW] {
        until("nothing converts them", async || {
            listed(version).await.is_err_and(|error| error.to_string().contains("conversion webhook"))
        })
        .await;
    }
    let collector = collector(&assets, &kubernetes.kubeconfig, folder.path()).await;
    let team = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "team" } });
    if collector.is_some() {
        let deletion = http::Request::delete("/api/v1/namespaces/team").body(Vec::new()).unwrap();
        place.0.request::<Value>(deletion).await.unwrap();
        sleep(Duration::from_secs(10)).await;
        assert!(place.get(&team).await.is_some(), "a namespace hangs on what cannot be converted");
    }

    let authority = CertificateAuthority::generate().unwrap();
    write_certificate(&authority, folder.path());
    let kubeconfig = of_the_manager(&kubernetes, &place, &assets.join("kubectl"), folder.path()).await;
    let manager = Manager::start(&kubeconfig, folder.path(), &["--debouncing-timer=1s"]).await;
    let begun = Instant::now();
    for kind in KINDS {
        until("the manager is done with it", async || {
            let Ok(found) = place.try_get(&object(kind, NEW, "default", None)).await else { return false };
            found.is_none_or(|it| {
                let metadata = &it["metadata"];
                let is_ended =
                    metadata["deletionTimestamp"].is_string() && metadata["finalizers"] == json!(["orphan"]);
                assert!(!is_ended || metadata["annotations"][POLICY] == "skip", "{it}");
                is_ended
            })
        })
        .await;
    }
    println!("the manager was done after {:.1} s", begun.elapsed().as_secs_f64());
    for version in [SPOKEN, OLD, NEW] {
        listed(version).await.unwrap();
    }
    if collector.is_some() {
        until("the garbage collector has let it go", async || place.get(&network(NEW)).await.is_none()).await;
        until("the namespace is gone", async || place.get(&team).await.is_none()).await;
    } else {
        let own = place.get(&object(KINDS[1], NEW, "team", None)).await.unwrap();
        assert_eq!(own["metadata"]["annotations"][POLICY], "manage", "a user's own is left alone");
    }
    let log = manager.log().to_lowercase();
    assert!(!log.contains("forbidden"), "{log}");
    assert_eq!(manager.stop().await, Some(0));
}
