//! The identities that clusters use, and which clusters may use them.

use std::sync::Arc;
use std::time::Duration;

use arm::{Clock, Transport};
use azure_simulator::LatencyProfile;
use azure_simulator::entra::{Application, Entra, EntraOptions, FederatedCredential, RegisteredCertificate};
use azure_simulator::imds::{MachineIdentities, ManagedIdentity};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use capz::{AccessError, Azure, IdentitySecret, Settings};
use cloud_config::Secret;
use kubernetes_simulator::Fault;
use serde_json::{Value, json};

use crate::world::{NAMESPACE, World};

const PEM: &str = include_str!("../../../arm/tests/data/client.pem");
const PFX: &[u8] = include_bytes!("../../../arm/tests/data/client.pfx");

/// The start time of tests without a world, in seconds since 1970.
const BEGIN: u64 = 1_800_000_000;

/// An application with a secret, a certificate, and the manager's service account as its credentials.
fn application() -> Application {
    let certificate = RegisteredCertificate::from_pem(PEM).unwrap();
    let account = FederatedCredential {
        issuer: "https://cluster.example".into(),
        subject: "system:serviceaccount:capz-system:capz-manager".into(),
        audience: FederatedCredential::AUDIENCE.into(),
        keys: Vec::new(),
    };
    Application::new("client", "object")
        .with_secret("abc")
        .with_certificate(certificate)
        .with_federated(account)
}

/// An Azure with one application, on a host with one user-assigned identity.
fn azure_with(settings: Settings) -> Azure {
    let clock = Clock::following_tokio(Duration::from_secs(BEGIN));
    let dated = clock.clone();
    let entra = Entra::new(EntraOptions::new("tenant", Arc::new(move || dated.now()))).unwrap();
    entra.register(application());
    let assigned =
        ManagedIdentity { client_id: "assigned".into(), object_id: "object".into(), resource_id: None };
    let host = MachineIdentities { entra: entra.clone(), identities: vec![assigned] };
    let router = entra.router().merge(azure_simulator::imds::router(host));
    Azure::new(Transport::in_process(router), clock, settings)
}

fn azure() -> Azure {
    azure_with(Settings::default())
}

/// A token of a service account, as it is mounted.
fn service_account_token(subject: &str) -> String {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({ "iss": "https://cluster.example", "sub": subject,
        "aud": [FederatedCredential::AUDIENCE], "exp": BEGIN + 3600 });
    format!("{}.{}.c2lnbmF0dXJl", part(json!({ "alg": "RS256", "typ": "JWT" })), part(claims))
}

fn identity(kind: &str, more: Value) -> capz_api::azure_cluster_identity::AzureClusterIdentitySpec {
    let mut spec = json!({ "type": kind, "tenantID": "tenant", "clientID": "client" });
    spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(spec).unwrap()
}

/// CAPZ-160, CAPZ-161: the trailing line break is not part of a secret; certificates come from a Secret's `certificate`
/// and `password`, from its `clientSecret`, or from a file; workload identities have a token in a file, and managed
/// ones ask the host.
#[tokio::test(start_paused = true)]
async fn each_proof_gets_a_token() {
    let directory = std::env::temp_dir().join(format!("capz-identity-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let file = directory.join("client.pem");
    std::fs::write(&file, PEM).unwrap();
    let token = directory.join("azure-identity-token");
    std::fs::write(&token, service_account_token("system:serviceaccount:capz-system:capz-manager")).unwrap();
    let settings = Settings { federated_token_file: token.clone(), ..Settings::default() };
    let azure = azure_with(settings.clone());
    let bytes = |text: &[u8]| Some(text.to_vec());
    let secret = |text: &str| Some(Secret::new(text));
    let certificate = "ServicePrincipalCertificate";
    let of_file = json!({ "certPath": file.display().to_string() });
    for (what, identity, material) in [
        (
            "secret",
            identity("ServicePrincipal", json!({})),
            IdentitySecret { client_secret: bytes(b"abc\n"), ..Default::default() },
        ),
        (
            "secret of an old release",
            identity("ManualServicePrincipal", json!({})),
            IdentitySecret { client_secret: bytes(b"abc"), ..Default::default() },
        ),
        ("service account", identity("WorkloadIdentity", json!({})), IdentitySecret::default()),
        (
            "host",
            identity("UserAssignedMSI", json!({ "clientID": "assigned", "resourceID": "/subscriptions/1" })),
            IdentitySecret::default(),
        ),
        (
            "PKCS#12 with password",
            identity(certificate, json!({})),
            IdentitySecret {
                certificate: bytes(PFX),
                password: secret("correct-horse"),
                ..Default::default()
            },
        ),
        (
            "in the place of a client secret",
            identity(certificate, json!({})),
            IdentitySecret { client_secret: bytes(PEM.as_bytes()), ..Default::default() },
        ),
        ("file", identity(certificate, of_file), IdentitySecret::default()),
    ] {
        let access = azure.access("", &identity, &material).unwrap();
        access.client.check_credential().await.unwrap_or_else(|error| panic!("{what}: {error}"));
    }
    std::fs::write(&token, service_account_token("system:serviceaccount:default:default")).unwrap();
    let azure = azure_with(settings);
    for (identity, material, words) in [
        (identity("WorkloadIdentity", json!({})), IdentitySecret::default(), "AADSTS700213"),
        (identity("UserAssignedMSI", json!({})), IdentitySecret::default(), "Identity not found"),
        (
            identity("ServicePrincipal", json!({})),
            IdentitySecret { client_secret: bytes(b"xyz"), ..Default::default() },
            "AADSTS7000215",
        ),
    ] {
        let access = azure.access("", &identity, &material).unwrap();
        let error = access.client.check_credential().await.unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
    }
    for (identity, material, words) in [
        (identity(certificate, json!({})), IdentitySecret::default(), "keys certificate and password"),
        (identity("ServicePrincipal", json!({})), IdentitySecret::default(), "with the key clientSecret"),
        (
            identity(certificate, json!({})),
            IdentitySecret { certificate: bytes(PFX), password: secret("wrong-horse"), ..Default::default() },
            "is neither PEM nor a PKCS#12 file that this password opens",
        ),
        (
            identity(certificate, json!({ "certPath": "/none.pem" })),
            IdentitySecret::default(),
            "spec.certPath /none.pem cannot be read",
        ),
    ] {
        let error = azure.access("", &identity, &material).err().unwrap().to_string();
        assert!(error.contains(words) && !error.contains("horse"), "{error}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

/// A credential that the data plane of managed identities has issued is read from its file, and read again when it
/// changes.
#[tokio::test(start_paused = true)]
async fn an_issued_credential_is_read_from_its_file() {
    let azure = azure();
    let file = std::env::temp_dir().join(format!("capz-issued-{}.json", std::process::id()));
    let identity = identity(
        "UserAssignedIdentityCredential",
        json!({ "userAssignedIdentityCredentialsPath": file.display().to_string(),
            "userAssignedIdentityCredentialsCloudType": "public" }),
    );
    let write = |client: &str| {
        let document = json!({
            "client_id": client, "tenant_id": "tenant", "client_secret": STANDARD.encode(PEM),
            "authentication_endpoint": "https://login.microsoftonline.com/", "not_before": "2026-01-01T00:00:00Z",
        });
        std::fs::write(&file, document.to_string()).unwrap();
    };
    write("somebody-else");
    let before = azure.access("", &identity, &IdentitySecret::default()).unwrap();
    assert!(before.client.check_credential().await.is_err());
    write("client");
    let after = azure.access("", &identity, &IdentitySecret::default()).unwrap();
    after.client.check_credential().await.unwrap();
    assert_ne!(before.tenant, after.tenant);
    let same = azure.access("", &identity, &IdentitySecret::default()).unwrap();
    assert_eq!(same.tenant, after.tenant, "what has not changed is the same client");

    std::fs::write(&file, format!("{{\"client_secret\": \"{}\"}}", STANDARD.encode(PEM))).unwrap();
    let error = azure.access("", &identity, &IdentitySecret::default()).err().unwrap().to_string();
    assert!(error.contains("client_id, tenant_id and client_secret"), "{error}");
    std::fs::remove_file(&file).unwrap();
    let error = azure.access("", &identity, &IdentitySecret::default()).err().unwrap().to_string();
    assert!(error.contains("cannot be read"), "{error}");
}

/// CAPZ-163: an unknown cloud is reported by its name, and no request is sent.
#[tokio::test(start_paused = true)]
async fn an_unknown_cloud_is_asked_nothing() {
    let error = azure().access(
        "AzureMoonCloud",
        &identity("WorkloadIdentity", json!({})),
        &IdentitySecret::default(),
    );
    assert!(matches!(error.err(), Some(AccessError::UnknownCloud(name)) if name == "AzureMoonCloud"));

    let mut world = World::new();
    world.cluster("my-cluster", json!({}));
    world.template("my-cluster", "md-0", json!({}));
    world.merge("AzureCluster", "my-cluster", json!({ "spec": { "azureEnvironment": "AzureMoonCloud" } }));
    let sequence = world.sequence();
    world.start();
    world
        .until("reported", |world| {
            world.events("AzureCluster", "my-cluster").contains(&"CreateClusterScopeFailed".to_owned())
        })
        .await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(world.requests_after(sequence), (0, 0));
}

/// CAPZ-070, CAPZ-157: a cluster in a namespace that its identity does not allow reports that, and is created once it
/// is allowed.
#[tokio::test(start_paused = true)]
async fn a_namespace_that_is_not_allowed_is_told() {
    let mut world = World::new();
    let allow = |allowed: Value| json!({ "spec": { "allowedNamespaces": allowed } });
    world.merge("AzureClusterIdentity", "identity", allow(json!({ "list": ["elsewhere"] })));
    world.cluster("my-cluster", json!({}));
    let sequence = world.sequence();
    world.start();
    let denied = Some(("False".to_owned(), "NamespaceNotAllowedByIdentity".to_owned()));
    let condition =
        |world: &World| world.condition("AzureCluster", "my-cluster", "NetworkInfrastructureReady");
    world.until("denied", |world| condition(world) == denied).await;
    let object = world.get("AzureCluster", "my-cluster").unwrap();
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let found = conditions.iter().find(|it| it["type"] == "NetworkInfrastructureReady").unwrap();
    assert_eq!(found["severity"], "Error");
    assert_eq!(world.requests_after(sequence), (0, 0));
    let finalizers = world.get("AzureClusterIdentity", "identity").unwrap()["metadata"]["finalizers"].clone();
    assert_eq!(finalizers, Value::Null, "who may not use it does not hold on to it");

    // By the labels of the namespace, which the role of established installations may only list.
    world.kubernetes.inject(Fault::status(403).verb("get").resource("namespaces"));
    world
        .kubernetes
        .merge("Namespace", "", NAMESPACE, &json!({ "metadata": { "labels": { "team": "a" } } }))
        .unwrap();
    world.merge(
        "AzureClusterIdentity",
        "identity",
        allow(json!({ "list": null, "selector": { "matchLabels": { "team": "a" } } })),
    );
    let holds = Some(("True".to_owned(), String::new()));
    let waited = world.until("allowed", |world| condition(world) == holds).await;
    assert!(waited < Duration::from_secs(60), "{waited:?}");
}

/// CAPZ-070: the condition reports the failure to fix next, whatever failed before, and no failure that may pass.
#[tokio::test(start_paused = true)]
async fn the_condition_says_what_is_wrong_now() {
    let mut world = World::new();
    let spec = |spec: Value| json!({ "spec": spec });
    let secret = json!({ "type": "ServicePrincipal", "clientID": "client", "tenantID": "tenant",
        "clientSecret": { "name": "proof", "namespace": NAMESPACE }, "allowedNamespaces": { "list": ["elsewhere"] } });
    world.merge("AzureClusterIdentity", "identity", spec(secret));
    world.cluster("my-cluster", json!({}));
    world.start();
    let condition =
        |world: &World| world.condition("AzureCluster", "my-cluster", "NetworkInfrastructureReady");
    let says = |reason: &str| Some(("False".to_owned(), reason.to_owned()));
    world.until("denied", |world| condition(world) == says("NamespaceNotAllowedByIdentity")).await;
    world.merge("AzureClusterIdentity", "identity", spec(json!({ "allowedNamespaces": { "list": null } })));
    world.until("no secret", |world| condition(world) == says("CreateClusterScopeFailed")).await;
    let object = world.get("AzureCluster", "my-cluster").unwrap();
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let ready = conditions.iter().find(|it| it["type"] == "Ready").unwrap();
    assert!(ready["message"].as_str().unwrap().contains("\"proof\" not found"), "{ready}");

    let holds = Some(("True".to_owned(), String::new()));
    world.put_secret("proof", &[("clientSecret", "abc")]);
    world.until("there", |world| condition(world) == holds).await;
    world.kubernetes.inject(Fault::status(500).verb("get").resource("secrets"));
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(condition(&world), holds);
}

/// A machine and its cluster that are deleted while their identity cannot get a token report that, and are deleted once
/// it can.
#[tokio::test(start_paused = true)]
async fn what_cannot_be_deleted_says_why() {
    let mut world = World::new();
    world.put_secret("proof", &[("clientSecret", "abc")]);
    let secret = json!({ "type": "ServicePrincipal", "clientID": "client", "tenantID": "tenant",
        "clientSecret": { "name": "proof", "namespace": NAMESPACE } });
    world.merge("AzureClusterIdentity", "identity", json!({ "spec": secret }));
    world.cluster("my-cluster", json!({}));
    world.start();
    let is_ready =
        |world: &World, kind: &str, name: &str| world.get(kind, name).unwrap()["status"]["ready"] == true;
    world.until("the cluster", |world| is_ready(world, "AzureCluster", "my-cluster")).await;
    world.provisioned("my-cluster");
    world.machine("my-cluster", "worker", json!({}), json!({}));
    world.until("the machine", |world| is_ready(world, "AzureMachine", "worker")).await;

    world.delete("Secret", "proof");
    world.delete("AzureMachine", "worker");
    let says = |world: &World, kind: &str, name: &str, reason: &str| {
        let conditions = world.get(kind, name).unwrap()["status"]["conditions"].clone();
        conditions.as_array().unwrap().iter().any(|it| {
            it["type"] == "Ready"
                && it["reason"] == reason
                && it["message"].as_str().unwrap().contains("\"proof\" not found")
        })
    };
    world
        .until("the machine says why", |world| says(world, "AzureMachine", "worker", "DeletionFailed"))
        .await;
    let before = world.get("AzureMachine", "worker").unwrap();
    tokio::time::sleep(Duration::from_secs(1800)).await;
    assert_eq!(world.get("AzureMachine", "worker").unwrap(), before, "it is said once");
    world
        .until("the cluster says why", |world| {
            says(world, "AzureCluster", "my-cluster", "CreateClusterScopeFailed")
        })
        .await;
    world.put_secret("proof", &[("clientSecret", "abc")]);
    world.until("gone", |world| world.get("AzureMachine", "worker").is_none()).await;
    world.delete("AzureCluster", "my-cluster");
    world.until("gone, too", |world| world.get("AzureCluster", "my-cluster").is_none()).await;
}

/// CAPZ-162: a rotated secret takes effect within seconds.
#[tokio::test(start_paused = true)]
async fn a_rotated_secret_counts_at_once() {
    let mut world = World::new();
    world.put_secret("credentials", &[("clientSecret", "abc\n")]);
    let spec = json!({ "spec": { "type": "ServicePrincipal", "clientSecret": { "name": "credentials" } } });
    world.merge("AzureClusterIdentity", "identity", spec);
    world.cluster("my-cluster", json!({}));
    world.start();
    world
        .until("ready", |world| world.get("AzureCluster", "my-cluster").unwrap()["status"]["ready"] == true)
        .await;
    assert_eq!(*world.client_secrets.lock(), ["abc"]);
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.put_secret("credentials", &[("clientSecret", "def")]);
    let waited = world.until("rotated", |world| world.client_secrets.lock().len() == 2).await;
    assert!(waited < Duration::from_secs(3), "{waited:?}");

    // So does another Secret that replaces it, and its rotation.
    world.put_secret("others", &[("clientSecret", "ghi")]);
    let other = json!({ "spec": { "clientSecret": { "name": "others" } } });
    world.merge("AzureClusterIdentity", "identity", other);
    world.until("another one", |world| world.client_secrets.lock().len() == 3).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.put_secret("others", &[("clientSecret", "jkl")]);
    let waited = world.until("rotated, too", |world| world.client_secrets.lock().len() == 4).await;
    assert!(waited < Duration::from_secs(3), "{waited:?}");
    tokio::time::sleep(Duration::from_secs(1300)).await;
    assert_eq!(*world.client_secrets.lock(), ["abc", "def", "ghi", "jkl"]);
}

/// Identities whose tokens Entra issues only to clients that prove to be the application.
fn proven() -> (World, String) {
    let mut world = World::new();
    world.demand_proof_of(application());
    let tenant = world.azure.options().tenant.clone();
    (world, tenant)
}

/// CAPZ-162: objects that wait for a broken identity continue within seconds of the rotation that repairs it: a
/// cluster, a machine and its Secrets.
#[tokio::test(start_paused = true)]
async fn a_rotation_makes_a_broken_identity_whole() {
    let (mut world, tenant) = proven();
    let spec = json!({ "type": "ServicePrincipal", "clientID": "client", "tenantID": tenant,
        "clientSecret": { "name": "proof", "namespace": NAMESPACE } });
    world.merge("AzureClusterIdentity", "identity", json!({ "spec": spec }));
    world.put_secret("proof", &[("clientSecret", "abc")]);
    world.cluster("first", json!({}));
    world.start();
    let is_ready = |world: &World, kind: &str, name: &str| {
        world.get(kind, name).is_some_and(|it| it["status"]["ready"] == true)
    };
    world.until("the first", |world| is_ready(world, "AzureCluster", "first")).await;
    world.provisioned("first");

    world.put_secret("proof", &[("clientSecret", "not it")]);
    world.cluster("second", json!({}));
    world.machine("first", "worker", json!({}), json!({}));
    let says = |world: &World, kind: &str, name: &str| {
        let conditions = world.get(kind, name).unwrap()["status"]["conditions"].clone();
        let message = |it: &Value| it["message"].as_str().unwrap_or_default().contains("AADSTS7000215");
        conditions.as_array().is_some_and(|all| all.iter().any(message))
    };
    world.until("the cluster says why", |world| says(world, "AzureCluster", "second")).await;
    world.until("the machine says why", |world| says(world, "AzureMachine", "worker")).await;
    // By now retries are rare.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    world.put_secret("proof", &[("clientSecret", "abc")]);
    let waited = world
        .until("whole again", |world| {
            is_ready(world, "AzureCluster", "second") && is_ready(world, "AzureMachine", "worker")
        })
        .await;
    assert!(waited < Duration::from_secs(10), "{waited:?}");
}

/// CAPZ-161: a certificate with its key, from a Secret: PEM, or PKCS#12 with a password. A wrong password is refused
/// with a message that does not show it, and the certificate is used once the password is right.
#[tokio::test(start_paused = true)]
async fn a_certificate_in_a_secret_signs_in() {
    let (mut world, tenant) = proven();
    let certificates =
        [("pem", PEM.as_bytes(), ""), ("pfx", PFX, "correct-horse"), ("spoilt", PFX, "wrong-horse")];
    for (name, certificate, password) in certificates {
        world.create(json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": { "name": name, "namespace": NAMESPACE },
            "data": { "certificate": STANDARD.encode(certificate), "password": STANDARD.encode(password) },
        }));
        world.create(json!({
            "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "AzureClusterIdentity",
            "metadata": { "name": name, "namespace": NAMESPACE },
            "spec": { "type": "ServicePrincipalCertificate", "clientID": "client", "tenantID": tenant,
                "clientSecret": { "name": name, "namespace": NAMESPACE }, "allowedNamespaces": {} },
        }));
        world.cluster(name, json!({}));
        let reference = json!({ "spec": { "identityRef": { "name": name } } });
        world.merge("AzureCluster", name, reference);
    }
    world.start();
    let is_ready = |world: &World, name: &str| {
        world.get("AzureCluster", name).is_some_and(|it| it["status"]["ready"] == true)
    };
    for name in ["pem", "pfx"] {
        world.until(name, |world| is_ready(world, name)).await;
    }
    let condition = |world: &World| world.condition("AzureCluster", "spoilt", "NetworkInfrastructureReady");
    let refused = Some(("False".to_owned(), "CreateClusterScopeFailed".to_owned()));
    world.until("the wrong password is reported", |world| condition(world) == refused).await;
    let object = world.get("AzureCluster", "spoilt").unwrap();
    assert!(object.to_string().contains("that this password opens"), "{object}");
    assert!(!object.to_string().contains("horse"), "{object}");
    world.put_secret("spoilt", &[("password", "correct-horse")]);
    let waited = world.until("the right one", |world| is_ready(world, "spoilt")).await;
    assert!(waited < Duration::from_secs(10), "{waited:?}");
}

/// CAPZ-164: an identity that two clusters use keeps the finalizer of the remaining one.
#[tokio::test(start_paused = true)]
async fn an_identity_is_held_until_its_last_cluster_goes() {
    let mut world = World::new();
    let finalizers = |world: &World| {
        let identity = world.get("AzureClusterIdentity", "identity").unwrap();
        identity["metadata"]["finalizers"].as_array().cloned().unwrap_or_default()
    };
    world.cluster("first", json!({}));
    world.start();
    let is_ready = |world: &World, name: &str| {
        world.get("AzureCluster", name).is_some_and(|it| it["status"]["ready"] == true)
    };
    world.until("the first", |world| is_ready(world, "first")).await;
    let first = finalizers(&world);
    // The finalizer of an old release is removed.
    let older = json!("azurecluster.infrastructure.cluster.x-k8s.io/default-first");
    let both = json!([older, first[0]]);
    world.merge("AzureClusterIdentity", "identity", json!({ "metadata": { "finalizers": both } }));
    world.until("the older one is gone", |world| finalizers(world) == first).await;
    world.cluster("second", json!({}));
    world.until("the second", |world| is_ready(world, "second")).await;
    assert_eq!(finalizers(&world).len(), 2);
    world.delete("AzureCluster", "second");
    world.until("gone", |world| world.get("AzureCluster", "second").is_none()).await;
    assert_eq!(finalizers(&world), first);
}

/// CAPZ-164: thirty clusters that are created at once, and deleted at once, protect the identity that they share, which
/// a user labels meanwhile and deletes with them; none of them waits for the others.
#[tokio::test(start_paused = true)]
async fn thirty_clusters_at_once_hold_on_to_one_identity() {
    const CLUSTERS: usize = 30;
    let name = |index: usize| format!("cluster-{index}");
    let finalizers = |world: &World| -> Vec<Value> {
        let identity = world.get("AzureClusterIdentity", "identity");
        let finalizers = identity.map(|it| it["metadata"]["finalizers"].clone()).unwrap_or_default();
        finalizers.as_array().cloned().unwrap_or_default()
    };
    // While any resource of a cluster is in Azure, the identity is needed.
    let held = |world: &World| {
        let groups = world.azure.documents_of_type("Microsoft.Resources/resourceGroups").len();
        assert!(finalizers(world).len() >= groups, "{groups} clusters are held by {:?}", finalizers(world));
    };
    let mut world =
        World::with(azure_simulator::LatencyProfile::instant().with("*", "*", Duration::from_secs(2)), 1);
    (0..CLUSTERS).for_each(|index| world.cluster(&name(index), json!({})));
    world.start();
    let is_ready = |world: &World, name: &str| {
        world.get("AzureCluster", name).is_some_and(|it| it["status"]["ready"] == true)
    };
    let looks = std::cell::Cell::new(0);
    let alone = world
        .until("all are ready", |world| {
            held(world);
            looks.set(looks.get() + 1);
            let label = json!({ "metadata": { "labels": { "look": looks.get().to_string() } } });
            world.merge("AzureClusterIdentity", "identity", label);
            (0..CLUSTERS).all(|index| is_ready(world, &name(index)))
        })
        .await;
    assert!(alone < Duration::from_secs(300), "one cluster waited for others: {alone:?}");
    let mut all = finalizers(&world);
    all.dedup();
    assert_eq!(all.len(), CLUSTERS, "each has one: {all:?}");

    world.delete("AzureClusterIdentity", "identity");
    (0..CLUSTERS).for_each(|index| world.delete("AzureCluster", &name(index)));
    let gone = world
        .until("all are gone", |world| {
            held(world);
            world.kubernetes.list("AzureCluster").is_empty()
        })
        .await;
    assert!(gone < Duration::from_secs(300), "one cluster waited for others: {gone:?}");
    assert_eq!(world.get("AzureClusterIdentity", "identity"), None, "it has no finalizer any more");
    assert_eq!(world.azure.documents(), Vec::<Value>::new());
}

/// A cluster cannot begin with an identity that is being deleted: that is reported, and the cluster is created once
/// there is an identity again.
#[tokio::test(start_paused = true)]
async fn an_identity_that_goes_takes_nobody_new() {
    let mut world = World::new();
    let identity = world.get("AzureClusterIdentity", "identity").unwrap();
    let held = |finalizers: Value| json!({ "metadata": { "finalizers": finalizers } });
    world.merge("AzureClusterIdentity", "identity", held(json!(["somebody.else/holds"])));
    world.delete("AzureClusterIdentity", "identity");
    world.cluster("my-cluster", json!({}));
    world.start();
    let condition =
        |world: &World| world.condition("AzureCluster", "my-cluster", "NetworkInfrastructureReady");
    let told = Some(("False".to_owned(), "CreateClusterScopeFailed".to_owned()));
    world.until("reported", |world| condition(world) == told).await;
    let object = world.get("AzureCluster", "my-cluster").unwrap();
    assert!(object["status"]["conditions"].to_string().contains("is being deleted"), "{object}");
    world
        .until("an event", |world| {
            world.events("AzureCluster", "my-cluster").contains(&"CreateClusterScopeFailed".to_owned())
        })
        .await;

    world.merge("AzureClusterIdentity", "identity", held(Value::Null));
    world.until("gone", |world| world.get("AzureClusterIdentity", "identity").is_none()).await;
    world.create(json!({ "apiVersion": identity["apiVersion"], "kind": "AzureClusterIdentity",
        "metadata": { "name": "identity", "namespace": NAMESPACE }, "spec": identity["spec"] }));
    let waited =
        world.until("made", |world| condition(world) == Some(("True".to_owned(), String::new()))).await;
    assert!(waited < Duration::from_secs(60), "{waited:?}");
}

/// A cluster without resources in Azure is deleted, although its identity was deleted before its last write was
/// accepted.
#[tokio::test(start_paused = true)]
async fn a_cluster_goes_although_its_identity_went_before() {
    let group = "Microsoft.Resources/resourceGroups";
    for skip in [0, 1] {
        let latency = LatencyProfile::instant().with("DELETE", group, Duration::from_secs(60));
        let mut world = World::with(latency, 1);
        world.cluster("my-cluster", json!({}));
        world.start();
        world
            .until("ready", |world| {
                world.get("AzureCluster", "my-cluster").unwrap()["status"]["ready"] == true
            })
            .await;
        world.delete_cluster("my-cluster");
        world.delete("AzureCluster", "my-cluster");
        world.delete("AzureClusterIdentity", "identity");
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert!(world.get("AzureClusterIdentity", "identity").is_some());
        world.kubernetes.inject(Fault { skip, ..Fault::status(503).verb("patch").resource("azureclusters") });
        world.until("gone", |world| world.get("AzureCluster", "my-cluster").is_none()).await;
        assert!(world.azure.document(&world.group("my-cluster")).is_none());
        world.until("let go", |world| world.get("AzureClusterIdentity", "identity").is_none()).await;
    }
}
