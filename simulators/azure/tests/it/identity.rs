//! Managed identities, and the tokens that they and others show to Resource Manager.

use std::sync::Arc;

use crate::common::*;
use axum::body::Body;
use azure_simulator::entra::{Application, Entra, EntraOptions};
use azure_simulator::{Azure, Options};
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::Request;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

const V: &str = "api-version=2024-11-30";
const OTHER: &str = "22222222-0000-4000-8000-000000000000";
const OTHER_TENANT: &str = "33333333-0000-4000-8000-000000000000";
const CLIENT: &str = "6c11a2b3-0000-4000-8000-000000000002";

fn identity(name: &str) -> ResourceId {
    ResourceId::group(SUBSCRIPTION, GROUP).resource(
        "Microsoft.ManagedIdentity",
        "userAssignedIdentities",
        name,
    )
}

async fn ask(client: &Client, method: &str, id: &str, body: Value) -> Reply {
    let body = (!body.is_null()).then_some(body);
    client.send(method, &format!("{id}?{V}"), body, &[]).await
}

#[tokio::test(start_paused = true)]
async fn an_identity_is_there_at_once_and_new_after_it_was_deleted() {
    let client = Client::with_group(Options::default()).await;
    let id = identity("worker");
    let body = json!({ "location": "eastus", "properties": { "clientId": "mine" } });
    let made = ask(&client, "PUT", id.as_str(), body.clone()).await.expect(201);
    assert!(made.header("azure-asyncoperation").is_none() && made.header("etag").is_none());
    assert!(made.header("location").unwrap().contains("/resourcegroups/"));
    assert!(made.body["id"].as_str().unwrap().contains("/resourcegroups/"));
    assert_eq!(made.body["tags"], json!({}));
    assert!(made.body.get("etag").is_none() && made.body["properties"].get("provisioningState").is_none());
    let ids = made.body["properties"].clone();
    assert_ne!(ids["clientId"], "mine");
    assert_eq!(ids["tenantId"], client.azure.options().tenant);
    let tagged = json!({ "location": "eastus", "tags": { "a": "b" } });
    let again = ask(&client, "PUT", id.as_str(), tagged).await.expect(200);
    assert_eq!(again.body["properties"], ids);
    let read = ask(&client, "GET", id.as_str(), Value::Null).await.expect(200);
    assert!(read.header("etag").is_none());
    assert_eq!(ask(&client, "DELETE", id.as_str(), Value::Null).await.expect(200).body, Value::Null);
    ask(&client, "DELETE", id.as_str(), Value::Null).await.expect(204);
    ask(&client, "GET", id.as_str(), Value::Null).await.refused(404, "ResourceNotFound");
    let anew = ask(&client, "PUT", id.as_str(), body).await.expect(201);
    assert_ne!(anew.body["properties"]["principalId"], ids["principalId"]);
    let bad = identity("a%20b");
    ask(&client, "PUT", bad.as_str(), json!({ "location": "eastus" }))
        .await
        .refused(400, "InvalidResourceName");
}

#[tokio::test(start_paused = true)]
async fn credentials_of_an_identity_are_bounded_and_distinct() {
    let limits = [("managedIdentity.federatedCredentialsPerIdentity".to_owned(), 2)].into();
    let client = Client::with_group(Options { limits, ..Options::default() }).await;
    let id = identity("worker");
    let credential = |name: &str| id.child("federatedIdentityCredentials", name).to_string();
    let body = |subject: &str| {
        json!({ "properties": {
            "issuer": "https://issuer.example/", "subject": subject, "audiences": ["api://AzureADTokenExchange"],
        }})
    };
    ask(&client, "PUT", &credential("one"), body("a")).await.refused(404, "ParentResourceNotFound");
    ask(&client, "PUT", id.as_str(), json!({ "location": "eastus" })).await.expect(201);
    let made = ask(&client, "PUT", &credential("one"), body("a")).await.expect(201);
    assert_eq!(made.body["properties"], body("a")["properties"]);
    ask(&client, "PUT", &credential("one"), body("b")).await.expect(200);
    ask(&client, "PUT", &credential("two"), body("b")).await.refused(409, "Conflict");
    ask(&client, "PUT", &credential("two"), body("c")).await.expect(201);
    ask(&client, "PUT", &credential("three"), body("d")).await.refused(400, "BadRequest");
    for (member, value) in [("issuer", json!("no url")), ("audiences", json!([])), ("subject", json!(""))] {
        let mut wrong = body("b");
        wrong["properties"][member] = value;
        ask(&client, "PUT", &credential("one"), wrong).await.refused(400, "BadRequest");
    }
    ask(&client, "GET", &credential("none"), Value::Null).await.refused(404, "NotFound");
    let list = id.child("federatedIdentityCredentials", "x").to_string().replace("/x", "");
    let list = ask(&client, "GET", &list, Value::Null).await.expect(200);
    assert_eq!(list.body["value"].as_array().unwrap().len(), 2);
    ask(&client, "DELETE", &credential("two"), Value::Null).await.expect(200);
    ask(&client, "DELETE", &credential("two"), Value::Null).await.expect(204);
}

#[tokio::test(start_paused = true)]
async fn resources_have_identities_that_exist() {
    let client = Client::with_group(Options::default()).await;
    let id = identity("worker");
    let subnet = client.network("10.0.0.0/16").await;
    let set = compute_id("virtualMachineScaleSets/pool");
    let mut body = scale_set(1, &subnet, &[]);
    body["identity"] = json!({ "type": "UserAssigned", "userAssignedIdentities": { (id.as_str()): {} } });
    client.put(&set, body.clone()).await.refused(400, "FailedIdentityOperation");
    let made = ask(&client, "PUT", id.as_str(), json!({ "location": "eastus" })).await.expect(201);
    body["identity"]["type"] = "SystemAssigned,UserAssigned".into();
    client.create(&set, body.clone()).await;
    let shown = client.get(&set).await.body["identity"].clone();
    assert_eq!(shown["type"], "SystemAssigned, UserAssigned");
    assert_eq!(shown["userAssignedIdentities"][id.as_str()]["clientId"], made.body["properties"]["clientId"]);
    let own = format!("{set}/providers/Microsoft.ManagedIdentity/identities/default");
    let own = ask(&client, "GET", &own, Value::Null).await.expect(200);
    assert_eq!(own.body["properties"]["principalId"], shown["principalId"]);
    body["identity"] = json!({ "type": "Everybody" });
    client.put(&set, body).await.refused(400, "InvalidIdentityType");
}

/// An Azure of two tenants whose tokens are judged.
struct Judged {
    azure: Azure,
    entra: Entra,
    router: axum::Router,
}

impl Judged {
    fn new() -> Self {
        let azure = Azure::new(Options {
            more_subscriptions: vec![OTHER.into()],
            subscription_tenants: [(OTHER.to_owned(), OTHER_TENANT.to_owned())].into(),
            ..Options::default()
        });
        let mut options = EntraOptions::new(azure.options().tenant.clone(), azure.clock());
        options.tenants.push(OTHER_TENANT.into());
        options.applications.push(Application::new(CLIENT, "object").with_secret("open~sesame"));
        let entra = Entra::new(options).unwrap();
        entra.look_up_in(Arc::new(azure.clone()));
        azure.set_verifier(Arc::new(entra.clone()));
        let router = azure.router().merge(entra.router());
        Self { azure, entra, router }
    }

    async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = response.into_body().collect().await.unwrap().to_bytes();
        Reply { status, headers, body: serde_json::from_slice(&body).unwrap_or_default() }
    }

    async fn grant(&self, tenant: &str, fields: &[(&str, &str)]) -> Reply {
        let mut form = url::form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "client_credentials");
        form.append_pair("scope", "https://management.azure.com/.default");
        fields.iter().for_each(|(name, value)| {
            form.append_pair(name, value);
        });
        let request = Request::post(format!("/{tenant}/oauth2/v2.0/token"));
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        self.send(request.body(Body::from(form.finish())).unwrap()).await
    }

    async fn token(&self, tenant: &str, claims: &str) -> String {
        let secret = [("client_id", CLIENT), ("client_secret", "open~sesame")];
        let mut fields = secret.to_vec();
        if !claims.is_empty() {
            fields.push(("claims", claims));
        }
        let answer = self.grant(tenant, &fields).await.expect(200);
        answer.body["access_token"].as_str().unwrap().to_owned()
    }

    async fn arm(&self, method: &str, path: &str, body: Value, token: &str, auxiliary: &str) -> Reply {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{path}?api-version=2024-05-01"))
            .header("authorization", format!("Bearer {token}"));
        if !auxiliary.is_empty() {
            request = request.header("x-ms-authorization-auxiliary", format!("Bearer {auxiliary}"));
        }
        let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
        self.send(request.body(body).unwrap()).await
    }
}

#[tokio::test(start_paused = true)]
async fn tokens_are_of_the_tenant_of_the_subscription() {
    let identities = Judged::new();
    let home = identities.azure.options().tenant.clone();
    let (own, other) = (identities.token(&home, "").await, identities.token(OTHER_TENANT, "").await);
    let at = |subscription: &str| format!("/subscriptions/{subscription}/resourcegroups/rg");
    let group = json!({ "location": "eastus" });
    let refused = identities.arm("PUT", &at(OTHER), group.clone(), &own, "").await;
    let refused = refused.refused(401, "InvalidAuthenticationTokenTenant");
    assert!(refused.header("www-authenticate").unwrap().contains(OTHER_TENANT));
    identities.arm("PUT", &at(OTHER), group.clone(), &other, "").await.expect(201);
    identities.arm("PUT", &at(SUBSCRIPTION), group, &own, "").await.expect(201);
    // Who comes without a token learns the tenant.
    let request = Request::get(format!("{}?api-version=2021-04-01", at(OTHER))).body(Body::empty()).unwrap();
    let asked = identities.send(request).await.refused(401, "AuthenticationFailed");
    assert!(asked.header("www-authenticate").unwrap().contains(OTHER_TENANT));

    // What lies in another tenant needs a token of that tenant beside one's own.
    let foreign = format!("{}/providers/Microsoft.Network/publicIPPrefixes/p", at(OTHER));
    let address = format!("{}/providers/Microsoft.Network/publicIPAddresses/a", at(SUBSCRIPTION));
    let prefix =
        json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": { "prefixLength": 30 } });
    identities.arm("PUT", &foreign, prefix, &other, "").await.expect(201);
    let body = json!({ "location": "eastus", "sku": { "name": "Standard" }, "properties": {
        "publicIPAllocationMethod": "Static", "publicIPPrefix": { "id": foreign },
    }});
    let linked = identities.arm("PUT", &address, body.clone(), &own, "").await;
    linked.refused(403, "LinkedAuthorizationFailed");
    identities
        .arm("PUT", &address, body.clone(), &own, "nonsense")
        .await
        .refused(401, "InvalidAuxiliaryTokens");
    let with_both = identities.arm("PUT", &address, body, &own, &other).await;
    assert_ne!(
        (with_both.status, with_both.code()),
        (403, "LinkedAuthorizationFailed"),
        "{}",
        with_both.body
    );
}

#[tokio::test(start_paused = true)]
async fn a_revoked_token_is_replaced_by_one_with_the_claims_of_the_challenge() {
    let identities = Judged::new();
    let tenant = identities.azure.options().tenant.clone();
    let able = r#"{"access_token":{"xms_cc":{"values":["CP1"]}}}"#;
    let (token, plain) = (identities.token(&tenant, able).await, identities.token(&tenant, "").await);
    let path = format!("/subscriptions/{SUBSCRIPTION}");
    identities.arm("GET", &path, Value::Null, &token, "").await.expect(200);
    let revoke = Request::post("/_cerulean/tokens/revoke").header("content-type", "application/json");
    let revoke = revoke.body(Body::from(json!({ "clientId": CLIENT }).to_string())).unwrap();
    identities.send(revoke).await.expect(204);
    let challenged = identities.arm("GET", &path, Value::Null, &token, "").await;
    let challenged = challenged.refused(401, "InvalidAuthenticationToken");
    let challenge = challenged.header("www-authenticate").unwrap();
    assert!(challenge.contains("error=\"insufficient_claims\""));
    let claims = challenge.split("claims=\"").nth(1).unwrap().trim_end_matches('"');
    let claims: Value = serde_json::from_slice(&STANDARD.decode(claims).unwrap()).unwrap();
    let mut wanted: Value = serde_json::from_str(able).unwrap();
    wanted["access_token"]["nbf"] = claims["access_token"]["nbf"].clone();
    let renewed = identities.token(&tenant, &wanted.to_string()).await;
    identities.arm("GET", &path, Value::Null, &renewed, "").await.expect(200);
    // A client that cannot answer challenges keeps its token.
    identities.arm("GET", &path, Value::Null, &plain, "").await.expect(200);
}

#[tokio::test(start_paused = true)]
async fn a_managed_identity_signs_in_by_its_federated_credential() {
    let identities = Judged::new();
    let id = identity("worker");
    let made = identities.azure.put(&id, json!({})).unwrap();
    let credential = json!({ "properties": {
        "issuer": "https://issuer.example/", "subject": "system:serviceaccount:ns:name",
        "audiences": ["api://AzureADTokenExchange"],
    }});
    identities.azure.put(&id.child("federatedIdentityCredentials", "cluster"), credential).unwrap();
    let client_id = made["properties"]["clientId"].as_str().unwrap();
    let now = identities.azure.now().as_second();
    let assertion = |subject: &str| {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let header = part(json!({ "alg": "RS256", "typ": "JWT" }));
        let claims = part(json!({
            "iss": "https://issuer.example/", "sub": subject, "aud": "api://AzureADTokenExchange",
            "exp": now + 600, "nbf": now,
        }));
        format!("{header}.{claims}.{}", URL_SAFE_NO_PAD.encode("unchecked"))
    };
    let sign_in = |tenant: String, assertion: String| {
        let identities = &identities;
        async move {
            let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
            let fields =
                [("client_id", client_id), ("client_assertion_type", kind), ("client_assertion", &assertion)];
            identities.grant(&tenant, &fields).await
        }
    };
    let tenant = identities.azure.options().tenant.clone();
    let right = "system:serviceaccount:ns:name";
    let granted = sign_in(tenant.clone(), assertion(right)).await.expect(200);
    let token = granted.body["access_token"].as_str().unwrap();
    identities
        .arm("GET", &format!("/subscriptions/{SUBSCRIPTION}"), Value::Null, token, "")
        .await
        .expect(200);
    let wrong = sign_in(tenant.clone(), assertion("system:serviceaccount:ns:other")).await.expect(401);
    assert_eq!(wrong.body["error_codes"], json!([700213]));
    // It is known in its own tenant alone, and its issuer's keys count as soon as they are known.
    let abroad = sign_in(OTHER_TENANT.into(), assertion(right)).await.expect(400);
    assert_eq!(abroad.body["error_codes"], json!([700016]));
    let keys = Request::get(format!("/{tenant}/discovery/v2.0/keys")).body(Body::empty()).unwrap();
    let keys = identities.send(keys).await.expect(200);
    let key = azure_simulator::entra::PublicKey::from_jwk(&keys.body["keys"][0]).unwrap();
    identities.entra.know_issuer("https://issuer.example/", vec![key]);
    let unsigned = sign_in(tenant, assertion(right)).await.expect(401);
    assert_eq!(unsigned.body["error_codes"], json!([700027]));
}
