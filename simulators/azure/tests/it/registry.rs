//! A container registry as Docker-like clients see it: challenge, exchange, tokens, pull.

use std::sync::Arc;

use axum::body::Body;
use azure_simulator::entra::{Application, Clock, Entra, EntraOptions};
use azure_simulator::registry::{Registries, Registry};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::BodyExt as _;
use jiff::Timestamp;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const TENANT: &str = "72f988bf-0000-4000-8000-000000000001";
const PULLER: &str = "0b1ec700-0000-4000-8000-000000000003";
const STRANGER: &str = "0b1ec700-0000-4000-8000-000000000004";
const HOST: &str = "foo.azurecr.io";
const AUDIENCE: &str = "https://containerregistry.azure.net";
const LAYER: &[u8] = b"a layer";

struct Fixture {
    entra: Entra,
    registries: Registries,
}

struct Reply {
    status: u16,
    challenge: String,
    body: Value,
}

impl Fixture {
    fn new() -> Self {
        let now: Timestamp = "2026-03-01T12:00:00Z".parse().unwrap();
        let clock: Clock = Arc::new(move || now);
        let mut options = EntraOptions::new(TENANT, clock);
        options.applications.push(Application::new("app", PULLER).with_secret("open~sesame"));
        let entra = Entra::new(options).unwrap();
        let registries = Registries::new(entra.clone()).unwrap();
        let manifest = json!({ "schemaVersion": 2, "layers": [] });
        let registry = Registry::new(HOST).with_puller(PULLER);
        registries.add(registry.with_image("team/app", "v1", &manifest, &[LAYER]));
        let open = Registry::new("open.azurecr.io").with_anonymous_pull();
        registries.add(open.with_image("app", "v1", &manifest, &[]));
        Self { entra, registries }
    }

    async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.registries.router().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let header = response.headers().get("www-authenticate");
        let challenge = header.map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body = serde_json::from_slice(&body).unwrap_or_else(|_| String::from_utf8_lossy(&body).into());
        Reply { status, challenge, body }
    }

    async fn get(&self, host: &str, path: &str, authorization: &str) -> Reply {
        let request = Request::get(path).header("host", host).header("authorization", authorization);
        self.send(request.body(Body::empty()).unwrap()).await
    }

    async fn post(&self, path: &str, form: &[(&str, &str)]) -> Reply {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        self.send(Request::post(path).header("host", HOST).body(Body::from(body)).unwrap()).await
    }

    async fn exchange(&self, object_id: &str, audience: &str, service: &str) -> Reply {
        let issued = self.entra.issue("client", object_id, TENANT, audience).unwrap();
        let token = issued.token.secret();
        let form = [
            ("grant_type", "access_token_refresh_token"),
            ("service", service),
            ("tenant", TENANT),
            ("access_token", token),
            ("refresh_token", token),
        ];
        self.post("/oauth2/exchange", &form).await
    }

    async fn refresh_token(&self) -> String {
        let reply = self.exchange(PULLER, AUDIENCE, HOST).await;
        assert_eq!(reply.status, 200, "{}", reply.body);
        reply.body["refresh_token"].as_str().unwrap().to_owned()
    }
}

const SCOPE: &str = "repository:team/app:pull";

#[tokio::test]
async fn a_stranger_is_sent_to_the_token_service() {
    let fixture = Fixture::new();
    let base = r#"Bearer realm="https://foo.azurecr.io/oauth2/token",service="foo.azurecr.io""#;
    let reply = fixture.get(HOST, "/v2/", "").await;
    assert_eq!((reply.status, reply.challenge.as_str()), (401, base));
    let reply = fixture.get(HOST, "/v2/team/app/manifests/v1", "Bearer nonsense").await;
    assert_eq!((reply.status, reply.challenge), (401, format!(r#"{base},scope="{SCOPE}""#)));
}

#[tokio::test]
async fn a_token_of_entra_is_exchanged_by_whoever_has_a_role() {
    let fixture = Fixture::new();
    for audience in [AUDIENCE, "https://management.azure.com/"] {
        assert_eq!(fixture.exchange(PULLER, audience, HOST).await.status, 200, "{audience}");
    }
    for (object_id, audience, service, status) in [
        (STRANGER, AUDIENCE, HOST, 401),
        (PULLER, "https://vault.azure.net", HOST, 401),
        (PULLER, AUDIENCE, "bar.azurecr.io", 400),
    ] {
        let reply = fixture.exchange(object_id, audience, service).await;
        assert_eq!(reply.status, status, "{object_id} {audience} {service}: {}", reply.body);
        assert!(reply.body["errors"][0]["message"].is_string());
    }
    let forged = [("grant_type", "access_token"), ("service", HOST), ("access_token", "a.b.c")];
    assert_eq!(fixture.post("/oauth2/exchange", &forged).await.status, 401);
}

/// A refresh token as containerd uses it (form), as Docker does (basic), and a password of an application.
#[tokio::test]
async fn an_image_is_pulled_by_each_way_of_signing_in() {
    let fixture = Fixture::new();
    let refresh = fixture.refresh_token().await;
    let user = "00000000-0000-0000-0000-000000000000";
    let by_refresh = [("grant_type", "refresh_token"), ("refresh_token", &refresh), ("scope", SCOPE)];
    let by_password =
        [("grant_type", "password"), ("username", user), ("password", &refresh), ("scope", SCOPE)];
    let basic =
        |user: &str, password: &str| format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
    let path = format!("/oauth2/token?service={HOST}&scope={SCOPE}");
    for reply in [
        fixture.post("/oauth2/token", &by_refresh).await,
        fixture.post("/oauth2/token", &by_password).await,
        fixture.get(HOST, &path, &basic(user, &refresh)).await,
        fixture.get(HOST, &path, &basic("app", "open~sesame")).await,
    ] {
        assert_eq!(reply.status, 200, "{}", reply.body);
        let bearer = format!("Bearer {}", reply.body["access_token"].as_str().unwrap());
        assert_eq!(fixture.get(HOST, "/v2/", &bearer).await.status, 200);
        let manifest = fixture.get(HOST, "/v2/team/app/manifests/v1", &bearer).await;
        assert_eq!((manifest.status, manifest.body["schemaVersion"].as_u64()), (200, Some(2)));
        assert_eq!(fixture.get(HOST, "/v2/team/other/manifests/v1", &bearer).await.status, 401);
        assert_eq!(fixture.get(HOST, "/v2/team/app/manifests/v2", &bearer).await.status, 404);
        let layer = fixture.get(HOST, &format!("/v2/team/app/blobs/{}", digest(LAYER)), &bearer).await;
        assert_eq!((layer.status, layer.body.as_str()), (200, Some("a layer")));
        let absent = digest(b"another layer");
        assert_eq!(fixture.get(HOST, &format!("/v2/team/app/blobs/{absent}"), &bearer).await.status, 404);
    }
    for (user, password) in [(user, "a.b.c"), ("app", "wrong"), ("nobody", "open~sesame")] {
        assert_eq!(fixture.get(HOST, &path, &basic(user, password)).await.status, 401, "{user}");
    }
    // A refresh token opens no door by itself, nor does one of another registry.
    assert_eq!(fixture.get(HOST, "/v2/", &format!("Bearer {refresh}")).await.status, 401);
    assert_eq!(fixture.get("open.azurecr.io", &path, &basic(user, &refresh)).await.status, 401);
}

fn digest(content: &[u8]) -> String {
    let hash = ring::digest::digest(&ring::digest::SHA256, content);
    format!("sha256:{}", hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[tokio::test]
async fn who_asks_for_more_than_a_role_allows_gets_less_or_nothing() {
    let fixture = Fixture::new();
    let refresh = fixture.refresh_token().await;
    let ask =
        |scope| [("grant_type", "refresh_token"), ("refresh_token", refresh.as_str()), ("scope", scope)];
    assert_eq!(fixture.post("/oauth2/token", &ask("repository:team/app:pull,push")).await.status, 200);
    assert_eq!(fixture.post("/oauth2/token", &ask("repository:team/app:push")).await.status, 401);
    assert_eq!(fixture.post("/oauth2/token", &ask("registry:catalog:*")).await.status, 401);
}

#[tokio::test]
async fn a_registry_may_let_everybody_pull() {
    let fixture = Fixture::new();
    let request = |host: &str| {
        let path = "/oauth2/token?scope=repository:app:pull";
        Request::get(path).header("host", host).body(Body::empty()).unwrap()
    };
    assert_eq!(fixture.send(request(HOST)).await.status, 401);
    let reply = fixture.send(request("open.azurecr.io")).await;
    let bearer = format!("Bearer {}", reply.body["access_token"].as_str().unwrap());
    assert_eq!(fixture.get("open.azurecr.io", "/v2/app/manifests/v1", &bearer).await.status, 200);
    assert_eq!(fixture.get(HOST, "/v2/team/app/manifests/v1", &bearer).await.status, 401);
    assert_eq!(fixture.get("absent.azurecr.io", "/oauth2/token", "").await.status, 404);
    let last = fixture.registries.requests().pop().unwrap();
    assert_eq!(
        (last.host.as_str(), last.path.as_str(), last.status),
        ("absent.azurecr.io", "/oauth2/token", 404)
    );
}
