//! Access to managed clusters: endpoints, kubeconfigs, tokens, issuers, and their health.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use azure_simulator::entra::Application;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{CONTROL_PLANE, LONG, aks, ask, message, ready, running, running_with};
use crate::world::{NAMESPACE, World};

const ISSUER: &str = "aks-aso-oidc-issuer-profile";

fn kubeconfig(world: &World, name: &str) -> Value {
    serde_saphyr::from_str(&world.secret(name, "value").unwrap()).unwrap()
}

/// CAPZ-184: the endpoint of a private cluster is its private name, unless it has a public one, too.
#[tokio::test(start_paused = true)]
async fn the_endpoint_of_a_private_cluster_is_private() {
    for (is_public, member) in
        [(json!(null), "privateFQDN"), (json!(false), "privateFQDN"), (json!(true), "fqdn")]
    {
        let profile = json!({ "enablePrivateCluster": true, "enablePrivateClusterPublicFQDN": is_public });
        let world = running_with(json!({ "apiServerAccessProfile": profile })).await;
        let host = world.azure.document(&aks(&world, "aks")).unwrap()["properties"][member].clone();
        assert!(host.is_string());
        let endpoint = world.get(CONTROL_PLANE, "aks").unwrap()["spec"]["controlPlaneEndpoint"].clone();
        assert_eq!(endpoint, json!({ "host": host, "port": 443 }), "{is_public}");
    }
}

/// CAPZ-186: with Microsoft Entra ID there is a kubeconfig for people beside the administrator's.
#[tokio::test(start_paused = true)]
async fn people_sign_in_with_a_kubeconfig_of_their_own() {
    let groups = json!(["917056a9-8eb5-439c-g679-b34901ade75h"]);
    let world =
        running_with(json!({ "aadProfile": { "managed": true, "adminGroupObjectIDs": groups } })).await;
    let user = kubeconfig(&world, "aks-kubeconfig-user");
    assert!(user["users"][0]["user"]["exec"].is_object(), "{user}");
    assert!(kubeconfig(&world, "aks-kubeconfig")["users"][0]["user"]["exec"].is_null());
    let labels = &world.get("Secret", "aks-kubeconfig-user").unwrap()["metadata"]["labels"];
    assert_eq!(labels["cluster.x-k8s.io/cluster-name"], "aks");
    assert_eq!(world.secret("aks-ca", "tls.key").unwrap(), "foo");
}

/// The seconds for which the token in the administrator's kubeconfig is still valid.
fn left(world: &World) -> i64 {
    let config = kubeconfig(world, "aks-kubeconfig");
    let user = &config["users"][0]["user"];
    assert!(user.get("exec").is_none(), "{}", user["exec"]);
    let claims = user["token"].as_str().unwrap().split('.').nth(1).unwrap();
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap();
    assert!(claims["aud"].to_string().contains("6dae42f8-4368-4678-94ff-3960e28e3630"), "{claims}");
    claims["exp"].as_i64().unwrap() - world.azure.now().as_second()
}

/// CAPZ-187: without local accounts the administrator's kubeconfig has a bearer token, and no command; the
/// administrator's credential is never asked for.
#[tokio::test(start_paused = true)]
async fn without_local_accounts_the_kubeconfig_has_a_token() {
    let mut world = World::new();
    world.demand_proof_of(Application::new("client", "object").with_secret("abc"));
    let tenant = world.azure.options().tenant.clone();
    let spec = json!({ "type": "ServicePrincipal", "clientID": "client", "tenantID": tenant,
        "clientSecret": { "name": "proof", "namespace": NAMESPACE } });
    world.merge("AzureClusterIdentity", "identity", json!({ "spec": spec }));
    world.put_secret("proof", &[("clientSecret", "abc")]);
    let groups = json!(["917056a9-8eb5-439c-g679-b34901ade75h"]);
    let profile = json!({ "managed": true, "adminGroupObjectIDs": groups });
    ask(&world, json!({ "aadProfile": profile, "disableLocalAccounts": true }));
    world.start();
    ready(&world, "aks").await;
    assert!(kubeconfig(&world, "aks-kubeconfig-user")["users"][0]["user"]["exec"].is_object());
    assert!(left(&world) > 1800);
    let token = |world: &World| kubeconfig(world, "aks-kubeconfig")["users"][0]["user"]["token"].clone();
    let before = token(&world);
    tokio::time::sleep(LONG).await;
    assert_eq!(token(&world), before, "a token that is still good is not replaced");
    assert!(world.calls_after(0).iter().all(|call| !call.contains("listClusterAdminCredential")));
}

/// CAPZ-187: the token is renewed before it expires.
#[tokio::test(start_paused = true)]
async fn the_token_of_a_kubeconfig_is_renewed() {
    let mut world = World::new();
    world.token_life = Some(Duration::from_secs(3600));
    let profile = json!({ "managed": true, "adminGroupObjectIDs": ["917056a9-8eb5-439c-g679-b34901ade75h"] });
    ask(&world, json!({ "aadProfile": profile, "disableLocalAccounts": true }));
    world.start();
    ready(&world, "aks").await;
    crate::tokens::are_renewed(&mut world, "aks-kubeconfig").await;
}

/// The issuer of a cluster is shown in its status and in a ConfigMap, which is repaired.
#[tokio::test(start_paused = true)]
async fn the_issuer_is_in_a_config_map() {
    let world = running_with(json!({ "oidcIssuerProfile": { "enabled": true } })).await;
    let url =
        world.azure.document(&aks(&world, "aks")).unwrap()["properties"]["oidcIssuerProfile"]["issuerURL"]
            .clone();
    assert!(url.is_string());
    assert_eq!(world.get(CONTROL_PLANE, "aks").unwrap()["status"]["oidcIssuerProfile"]["issuerURL"], url);
    let map = world.get("ConfigMap", ISSUER).unwrap();
    assert_eq!(map["data"], json!({ "oidc-issuer-profile-url": url }));
    assert_eq!(map["metadata"]["ownerReferences"][0]["kind"], CONTROL_PLANE);
    assert_eq!(map["metadata"]["labels"]["cluster.x-k8s.io/cluster-name"], "aks");
    world.merge("ConfigMap", ISSUER, json!({ "data": { "oidc-issuer-profile-url": "other", "more": "1" } }));
    tokio::time::sleep(LONG).await;
    let map = world.get("ConfigMap", ISSUER).unwrap();
    assert_eq!(map["data"], json!({ "oidc-issuer-profile-url": url, "more": "1" }));
}

/// Certificates that Azure has rotated are in the Secrets after the next look.
#[tokio::test(start_paused = true)]
async fn rotated_certificates_reach_the_secrets() {
    let world = running().await;
    let of = |world: &World| (world.secret("aks-kubeconfig", "value"), world.secret("aks-ca", "tls.crt"));
    let before = of(&world);
    let client = kube::Client::new(world.azure.router(), "default");
    let path = format!("{}/rotateClusterCertificates?api-version=2025-08-01", aks(&world, "aks"));
    let request = http::Request::post(path).header("authorization", "Bearer token").body(Vec::new()).unwrap();
    client.request_text(request).await.unwrap();
    tokio::time::sleep(LONG).await;
    let now = of(&world);
    assert!(now.0 != before.0 && now.1 != before.1);
}

/// A Secret of a user's with the name of a kubeconfig stays as it is, and the control plane names it.
#[tokio::test(start_paused = true)]
async fn a_users_secret_is_not_overwritten() {
    let mut world = World::new();
    world.put_secret("aks-kubeconfig", &[("value", "mine")]);
    ask(&world, json!({}));
    world.start();
    let says = |world: &World| message(world, CONTROL_PLANE, NAMESPACE, "aks", "ManagedClusterRunning");
    world.until("named", |world| says(world).contains("Secret aks-kubeconfig exists already")).await;
    assert_eq!(world.secret("aks-kubeconfig", "value").unwrap(), "mine");
    world.merge(
        "Secret",
        "aks-kubeconfig",
        json!({ "metadata": { "labels": { "cluster.x-k8s.io/cluster-name": "aks" } } }),
    );
    let took = ready(&world, "aks").await;
    assert!(took < Duration::from_secs(1200), "{took:?}");
}

type Health = Arc<Mutex<Option<(&'static str, &'static str)>>>;

/// A layer that sets the state and the type of the reason in answers of Azure Resource Health.
fn sick(world: &mut World) -> Health {
    let health = Health::default();
    let told = Arc::clone(&health);
    world.settings.gates.aks_resource_health = true;
    world.front = Some(Box::new(move |azure| {
        let told = Arc::clone(&told);
        azure.layer(from_fn(move |request: Request, next: Next| {
            let told = told.lock().filter(|_| request.uri().path().contains("availabilityStatuses"));
            async move {
                let answer = next.run(request).await;
                let Some((state, reason)) = told else { return answer };
                let (mut parts, body) = answer.into_parts();
                let body = to_bytes(body, usize::MAX).await.unwrap();
                let mut body: Value = serde_json::from_slice(&body).unwrap();
                body["properties"]["availabilityState"] = json!(state);
                body["properties"]["reasonType"] = json!(reason);
                body["properties"]["summary"] = json!("It has broken down.");
                parts.headers.remove("content-length");
                Response::from_parts(parts, Body::from(body.to_string()))
            }
        }))
    }));
    health
}

/// CAPZ-188: the health of a cluster is a condition; a cluster that is not available fails to reconcile, one that is
/// degraded does so only after its first hour.
#[tokio::test(start_paused = true)]
async fn the_health_of_a_cluster_is_shown() {
    let mut world = World::new();
    let health = sick(&mut world);
    ask(&world, json!({}));
    *health.lock() = Some(("Unavailable", "Customer Initiated"));
    world.start();
    let condition = |world: &World| -> Value {
        let object = world.get(CONTROL_PLANE, "aks").unwrap();
        let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        all.into_iter().find(|it| it["type"] == "AzureResourceAvailable").unwrap_or_default()
    };
    world.until("not available", |world| condition(world)["status"] == "False").await;
    let shown = condition(&world);
    assert_eq!(
        (&shown["severity"], &shown["reason"], &shown["message"]),
        (&json!("Error"), &json!("CustomerInitiated"), &json!("It has broken down."))
    );
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!world.is_ready(CONTROL_PLANE, "aks"));
    assert_ne!(world.condition(CONTROL_PLANE, "aks", "Ready").unwrap().0, "True");

    *health.lock() = Some(("Degraded", "Unplanned"));
    world.until("degraded in the first hour", |world| condition(world)["status"] == "True").await;
    ready(&world, "aks").await;
    tokio::time::sleep(Duration::from_secs(2 * 3600)).await;
    let shown = condition(&world);
    assert_eq!((&shown["status"], &shown["severity"]), (&json!("False"), &json!("Warning")), "{shown}");
    assert_eq!(world.condition(CONTROL_PLANE, "aks", "Ready").unwrap().0, "False");
    assert!(world.is_ready(CONTROL_PLANE, "aks"), "it never goes back");

    *health.lock() = None;
    tokio::time::sleep(LONG).await;
    assert_eq!(condition(&world)["status"], "True");
    assert_eq!(world.condition(CONTROL_PLANE, "aks", "Ready").unwrap().0, "True");
    world.kill().await;
    world.settings.gates.aks_resource_health = false;
    world.start();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(condition(&world), Value::Null);
}
