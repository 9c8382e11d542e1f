//! Entra as its clients see it: discovery, the token endpoint, and tokens that verify.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use azure_simulator::entra::{
    Application, AuthFailure, Clock, Entra, EntraOptions, FederatedCredential, PublicKey,
    RegisteredCertificate, TokenVerifier as _,
};
use azure_simulator::imds::{self, MachineIdentities, ManagedIdentity};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use jiff::{SignedDuration, Timestamp};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RSA_PSS_SHA256, RsaEncoding, RsaKeyPair};
use serde_json::{Value, json};
use tower::ServiceExt as _;

const TENANT: &str = "72f988bf-0000-4000-8000-000000000001";
const CLIENT: &str = "6c11a2b3-0000-4000-8000-000000000002";
const OBJECT: &str = "0b1ec700-0000-4000-8000-000000000003";
const SECRET: &str = "open~sesame";
const ARM_SCOPE: &str = "https://management.azure.com/.default";
// A self-signed certificate made for these tests; the key opens nothing else.
const CERTIFICATE: &str = include_str!("data/client-certificate.pem");
const CERTIFICATE_KEY: &[u8] = include_bytes!("data/client-key.der");

fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn entra_with(application: Application) -> Entra {
    let clock: Clock = Arc::new(now);
    let mut options = EntraOptions::new(TENANT, clock);
    options.applications.push(application);
    Entra::new(options).unwrap()
}

fn application() -> Application {
    Application::new(CLIENT, OBJECT)
}

async fn send(router: Router, request: Request<Body>) -> (StatusCode, Value, String) {
    let response = router.oneshot(request).await.unwrap();
    let status = response.status();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(body.to_vec()).unwrap();
    (status, serde_json::from_str(&text).unwrap_or_default(), text)
}

async fn get(router: Router, path: &str) -> (StatusCode, Value) {
    let request = Request::get(path).header("host", "127.0.0.1:8443").body(Body::empty()).unwrap();
    let (status, body, _) = send(router, request).await;
    (status, body)
}

async fn token(entra: &Entra, tenant: &str, form: &[(&str, &str)]) -> (StatusCode, Value, String) {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let request = Request::post(format!("/{tenant}/oauth2/v2.0/token"))
        .header("content-type", "application/x-www-form-urlencoded")
        .body(Body::from(body))
        .unwrap();
    send(entra.router(), request).await
}

fn with_secret<'a>(secret: &'a str, scope: &'a str) -> [(&'a str, &'a str); 4] {
    [("grant_type", "client_credentials"), ("client_id", CLIENT), ("client_secret", secret), ("scope", scope)]
}

fn claims(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).unwrap()).unwrap()
}

#[tokio::test]
async fn a_secret_buys_a_token_that_verifies() {
    let entra = entra_with(application().with_secret(SECRET));
    let scope = "https://management.core.windows.net//.default openid offline_access profile";
    let (status, body, _) = token(&entra, TENANT, &with_secret(SECRET, scope)).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert_eq!(body["token_type"], "Bearer");
    assert_eq!(body["expires_in"], 86_399);
    let bearer = body["access_token"].as_str().unwrap();
    let claims = claims(bearer);
    assert_eq!(claims["aud"], "https://management.core.windows.net/");
    assert_eq!(claims["exp"].as_i64().unwrap(), now().as_second() + 86_399);
    for (claim, value) in [("tid", TENANT), ("appid", CLIENT), ("oid", OBJECT)] {
        assert_eq!(claims[claim], value, "{claim}");
    }
    for _twice in 0..2 {
        let principal = entra.verify(bearer, now()).unwrap();
        assert_eq!((principal.client_id.as_str(), principal.object_id.as_str()), (CLIENT, OBJECT));
        assert_eq!(principal.tenant_id, TENANT);
    }
}

#[tokio::test]
async fn a_wrong_secret_is_answered_with_line_breaks_and_without_the_secret() {
    let entra = entra_with(application().with_secret(SECRET));
    let (status, body, text) = token(&entra, TENANT, &with_secret("wrong-one", ARM_SCOPE)).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    assert_eq!(body["error"], "invalid_client");
    assert_eq!(body["error_codes"], json!([7_000_215]));
    assert!(body["error_description"].as_str().unwrap().starts_with("AADSTS7000215: "));
    assert!(text.contains(r"\r\nTrace ID: "), "an escape that parsers must cope with: {text}");
    assert!(text.contains(r"\r\nTimestamp: 2026-03-01 12:00:00Z"), "{text}");
    assert!(!text.contains("wrong-one") && !text.contains(SECRET));
}

#[tokio::test]
async fn each_mistake_has_its_own_code() {
    let entra = entra_with(application().with_secret(SECRET));
    let good = with_secret(SECRET, ARM_SCOPE);
    let changed = |name: &str, value: &'static str| {
        good.map(|(field, old)| if field == name { (field, value) } else { (field, old) })
    };
    let table = [
        ("unknown-tenant", good, 400, "AADSTS90002"),
        (TENANT, changed("client_id", "00000000-0000-0000-0000-000000000000"), 400, "AADSTS700016"),
        (TENANT, changed("client_id", ""), 400, "AADSTS900144"),
        (TENANT, changed("client_secret", ""), 401, "AADSTS7000218"),
        (TENANT, changed("grant_type", "password"), 400, "AADSTS70003"),
        (TENANT, changed("scope", "https://management.azure.com/user"), 400, "AADSTS1002012"),
        (TENANT, changed("scope", "https://nowhere.example/.default"), 400, "AADSTS500011"),
    ];
    for (tenant, form, status, code) in table {
        let (got, body, _) = token(&entra, tenant, &form).await;
        let description = body["error_description"].as_str().unwrap_or_default();
        assert_eq!(got.as_u16(), status, "{description}");
        assert!(description.starts_with(&format!("{code}: ")), "{code}: {description}");
    }
}

#[tokio::test]
async fn tokens_end_and_are_for_one_audience_and_one_directory() {
    let entra = entra_with(application());
    let arm = entra.issue(CLIENT, OBJECT, TENANT, "https://management.azure.com/").unwrap();
    entra.verify(arm.token.secret(), now()).unwrap();
    let end = arm.expires_at;
    entra.verify(arm.token.secret(), end - SignedDuration::from_secs(1)).unwrap();
    let expired = entra.verify(arm.token.secret(), end).unwrap_err();
    assert_eq!(expired, AuthFailure::Expired { expiry: end, now: end });
    assert_eq!(expired.code(), "ExpiredAuthenticationToken");
    let early = entra.verify(arm.token.secret(), now() - SignedDuration::from_hours(1)).unwrap_err();
    assert!(matches!(early, AuthFailure::NotYetValid { .. }));

    let vault = entra.issue(CLIENT, OBJECT, TENANT, "https://vault.azure.net").unwrap();
    let failure = entra.verify(vault.token.secret(), now()).unwrap_err();
    assert_eq!(failure, AuthFailure::WrongAudience { audience: "https://vault.azure.net".into() });
    let foreign = entra.issue(CLIENT, OBJECT, "elsewhere", "https://management.azure.com/").unwrap();
    assert_eq!(
        entra.verify(foreign.token.secret(), now()).unwrap_err().code(),
        "InvalidAuthenticationTokenTenant"
    );

    let custom = entra.issue(CLIENT, OBJECT, TENANT, "https://127.0.0.1:8443/").unwrap();
    entra.verify(custom.token.secret(), now()).unwrap_err();
    entra.accept_audience("https://127.0.0.1:8443");
    entra.verify(custom.token.secret(), now()).unwrap();

    let other = entra_with(application());
    assert_eq!(other.verify(arm.token.secret(), now()), Err(AuthFailure::Invalid));
    let (head, rest) = arm.token.secret().split_once('.').unwrap();
    let (_, signature) = rest.split_once('.').unwrap();
    let mut forged = claims(arm.token.secret());
    forged["oid"] = json!("someone-else");
    let forged = format!("{head}.{}.{signature}", URL_SAFE_NO_PAD.encode(forged.to_string()));
    assert_eq!(entra.verify(&forged, now()), Err(AuthFailure::Invalid));
    for nonsense in ["", "a", "a.b.c", "..", "eyJhbGciOiJub25lIn0.e30."] {
        assert_eq!(entra.verify(nonsense, now()), Err(AuthFailure::Invalid), "{nonsense}");
    }
}

#[tokio::test]
async fn published_keys_verify_tokens() {
    let entra = entra_with(application());
    let (_, keys) = get(entra.router(), &format!("/{TENANT}/discovery/v2.0/keys")).await;
    let jwk = &keys["keys"][0];
    let issued = entra.issue(CLIENT, OBJECT, TENANT, "https://management.azure.com/").unwrap();
    let bearer = issued.token.secret();
    let (signed, signature) = bearer.rsplit_once('.').unwrap();
    let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(jwk[name].as_str().unwrap()).unwrap();
    let point = [vec![4], coordinate("x"), coordinate("y")].concat();
    ring::signature::UnparsedPublicKey::new(&ring::signature::ECDSA_P256_SHA256_FIXED, point)
        .verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(signature).unwrap())
        .unwrap();
}

#[tokio::test]
async fn discovery_leads_back_to_the_host_that_was_asked() {
    let entra = entra_with(application());
    let (status, body) =
        get(entra.router(), &format!("/{TENANT}/v2.0/.well-known/openid-configuration")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(body["token_endpoint"], format!("https://127.0.0.1:8443/{TENANT}/oauth2/v2.0/token"));
    assert_eq!(body["issuer"], format!("https://127.0.0.1:8443/{TENANT}/v2.0"));
    assert!(!body["authorization_endpoint"].as_str().unwrap().is_empty());

    let (_, adfs) = get(entra.router(), "/adfs/.well-known/openid-configuration").await;
    assert_eq!(adfs["token_endpoint"], "https://127.0.0.1:8443/adfs/oauth2/token");
    let (status, unknown) = get(entra.router(), "/nobody/v2.0/.well-known/openid-configuration").await;
    assert_eq!((status, &unknown["error_codes"]), (StatusCode::BAD_REQUEST, &json!([90_002])));

    let instance = |endpoint: &str| {
        format!("/common/discovery/instance?api-version=1.1&authorization_endpoint={endpoint}")
    };
    let known = instance("https://127.0.0.1:8443/t/oauth2/v2.0/authorize");
    let (_, body) = get(entra.router(), &known).await;
    assert_eq!(
        body["tenant_discovery_endpoint"],
        "https://127.0.0.1:8443/t/v2.0/.well-known/openid-configuration"
    );
    assert_eq!(body["metadata"][0]["aliases"], json!(["127.0.0.1:8443"]));
    let (status, body) = get(entra.router(), &instance("https://evil.example/t/oauth2/v2.0/authorize")).await;
    assert_eq!((status, &body["error"]), (StatusCode::BAD_REQUEST, &json!("invalid_instance")));
}

#[tokio::test]
async fn the_older_endpoint_takes_a_resource_and_writes_numbers_as_text() {
    let entra = entra_with(application().with_secret(SECRET));
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", CLIENT),
        ("client_secret", SECRET),
        ("resource", "https://management.core.windows.net/"),
    ];
    let (status, body, _) = token(&entra, "adfs", &form).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert_eq!(body["expires_in"], "86399");
    entra.verify(body["access_token"].as_str().unwrap(), now()).unwrap();
}

/// Signs claims with the test certificate's key.
fn assertion(algorithm: &str, header: &Value, claims: &Value) -> String {
    let key = RsaKeyPair::from_pkcs8(CERTIFICATE_KEY).unwrap();
    let mut header = header.clone();
    header["alg"] = json!(algorithm);
    let signed = format!(
        "{}.{}",
        URL_SAFE_NO_PAD.encode(header.to_string()),
        URL_SAFE_NO_PAD.encode(claims.to_string())
    );
    let padding: &dyn RsaEncoding = if algorithm == "PS256" { &RSA_PSS_SHA256 } else { &RSA_PKCS1_SHA256 };
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(padding, &SystemRandom::new(), signed.as_bytes(), &mut signature).unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn thumbprint(algorithm: &'static ring::digest::Algorithm) -> String {
    use rustls_pki_types::pem::PemObject as _;
    let der = rustls_pki_types::CertificateDer::from_pem_slice(CERTIFICATE.as_bytes()).unwrap();
    URL_SAFE_NO_PAD.encode(ring::digest::digest(algorithm, &der))
}

async fn with_assertion(entra: &Entra, assertion: &str) -> (StatusCode, Value) {
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", CLIENT),
        ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
        ("client_assertion", assertion),
        ("scope", ARM_SCOPE),
    ];
    let (status, body, _) = token(entra, TENANT, &form).await;
    (status, body)
}

#[tokio::test]
async fn a_certificate_signs_in_by_either_padding_and_thumbprint() {
    let certificate = RegisteredCertificate::from_pem(CERTIFICATE).unwrap();
    let entra = entra_with(application().with_certificate(certificate));
    let sha1 = json!({ "x5t": thumbprint(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY) });
    let sha256 = json!({ "x5t#S256": thumbprint(&ring::digest::SHA256) });
    let claims = json!({
        "aud": format!("https://127.0.0.1:8443/{TENANT}/oauth2/v2.0/token"),
        "iss": CLIENT, "sub": CLIENT, "jti": "1",
        "nbf": now().as_second(), "exp": now().as_second() + 600,
    });
    for (algorithm, header) in [("PS256", &sha256), ("RS256", &sha1), ("RS256", &sha256)] {
        let (status, body) = with_assertion(&entra, &assertion(algorithm, header, &claims)).await;
        assert_eq!(status, StatusCode::OK, "{algorithm}: {body}");
        entra.verify(body["access_token"].as_str().unwrap(), now()).unwrap();
    }

    let changed = |name: &str, value: Value| {
        let mut changed = claims.clone();
        changed[name] = value;
        changed
    };
    let late = assertion("PS256", &sha256, &changed("exp", json!(now().as_second() - 301)));
    let elsewhere =
        assertion("PS256", &sha256, &changed("aud", json!("https://127.0.0.1/other/oauth2/v2.0/token")));
    let unknown_key = assertion("PS256", &json!({ "x5t": "abc" }), &claims);
    let good = assertion("PS256", &sha256, &claims);
    let (signed, _) = good.rsplit_once('.').unwrap();
    let unsigned = format!("{signed}.{}", URL_SAFE_NO_PAD.encode([7; 256]));
    for (assertion, code) in [
        (late, 700_024),
        (elsewhere, 700_023),
        (unknown_key, 700_027),
        (unsigned, 700_027),
        ("not a token".to_owned(), 50_027),
    ] {
        let (status, body) = with_assertion(&entra, &assertion).await;
        assert_eq!((status, &body["error_codes"]), (StatusCode::UNAUTHORIZED, &json!([code])), "{body}");
    }
}

#[tokio::test]
async fn a_federated_token_signs_in_when_issuer_subject_audience_and_key_are_known() {
    let key = RsaKeyPair::from_pkcs8(CERTIFICATE_KEY).unwrap();
    let public = ring::rsa::PublicKeyComponents::<Vec<u8>>::from(key.public());
    let jwk = json!({
        "kty": "RSA", "n": URL_SAFE_NO_PAD.encode(&public.n), "e": URL_SAFE_NO_PAD.encode(&public.e),
    });
    let entra = entra_with(application().with_federated(FederatedCredential {
        issuer: "https://cluster.example/".into(),
        subject: "system:serviceaccount:kube-system:cloud".into(),
        audience: FederatedCredential::AUDIENCE.into(),
        keys: vec![PublicKey::from_jwk(&jwk).unwrap()],
    }));
    let claims = json!({
        "iss": "https://cluster.example/", "sub": "system:serviceaccount:kube-system:cloud",
        "aud": ["api://AzureADTokenExchange"], "exp": now().as_second() + 3600,
    });
    let (status, body) = with_assertion(&entra, &assertion("RS256", &json!({}), &claims)).await;
    assert_eq!(status, StatusCode::OK, "{body}");
    for (claim, value, code) in [
        ("iss", "https://other.example/", 700_211),
        ("sub", "system:serviceaccount:default:default", 700_213),
        ("aud", "https://kubernetes.default.svc", 700_212),
    ] {
        let mut changed = claims.clone();
        changed[claim] = json!(value);
        let (status, body) = with_assertion(&entra, &assertion("RS256", &json!({}), &changed)).await;
        assert_eq!((status, &body["error_codes"]), (StatusCode::UNAUTHORIZED, &json!([code])), "{body}");
    }
    let wrong_padding = assertion("PS256", &json!({}), &claims).replacen(
        &URL_SAFE_NO_PAD.encode(json!({ "alg": "PS256" }).to_string()),
        &URL_SAFE_NO_PAD.encode(json!({ "alg": "RS256" }).to_string()),
        1,
    );
    let (_, body) = with_assertion(&entra, &wrong_padding).await;
    assert_eq!(body["error_codes"], json!([700_027]));
}

#[test]
fn secrets_and_tokens_cannot_be_printed() {
    let application = application().with_secret(SECRET);
    let entra = entra_with(application.clone());
    let issued = entra.issue(CLIENT, OBJECT, TENANT, "https://management.azure.com/").unwrap();
    let printed = format!("{application:?} {entra:?} {issued:?}");
    assert!(!printed.contains(SECRET), "{printed}");
    assert!(!printed.contains(issued.token.secret()), "{printed}");
}

fn machine(identities: Vec<ManagedIdentity>) -> MachineIdentities {
    MachineIdentities { entra: entra_with(application()), identities }
}

fn user_assigned(client_id: &str) -> ManagedIdentity {
    let group = azure_types::ResourceId::group("s", "g");
    ManagedIdentity {
        client_id: client_id.into(),
        object_id: format!("object-of-{client_id}"),
        resource_id: Some(group.resource("Microsoft.ManagedIdentity", "userAssignedIdentities", client_id)),
    }
}

async fn imds(machine: &MachineIdentities, query: &str) -> (StatusCode, Value) {
    let request = Request::get(format!("/metadata/identity/oauth2/token?{query}"))
        .header("Metadata", "TRUE")
        .body(Body::empty())
        .unwrap();
    let (status, body, _) = send(imds::router(machine.clone()), request).await;
    (status, body)
}

#[tokio::test]
async fn a_machine_gets_tokens_with_numbers_as_text() {
    let machine = machine(vec![user_assigned("one")]);
    let (status, body) =
        imds(&machine, "api-version=2018-02-01&resource=https://management.azure.com/").await;
    assert_eq!(status, StatusCode::OK, "{body}");
    assert_eq!(body["client_id"], "one");
    assert_eq!(body["token_type"], "Bearer");
    assert_eq!(body["resource"], "https://management.azure.com/");
    assert_eq!(body["expires_on"], (now().as_second() + 86_399).to_string());
    assert_eq!(
        (&body["expires_in"], &body["not_before"]),
        (&json!("86399"), &json!(now().as_second().to_string()))
    );
    let principal = machine.entra.verify(body["access_token"].as_str().unwrap(), now()).unwrap();
    assert_eq!(principal.object_id, "object-of-one");
}

#[tokio::test]
async fn a_machine_with_several_identities_must_choose() {
    let machine = machine(vec![user_assigned("one"), user_assigned("two")]);
    let base = "api-version=2018-02-01&resource=https://management.azure.com/";
    let (status, _) = imds(&machine, base).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    let id =
        "/subscriptions/s/resourcegroups/G/providers/Microsoft.ManagedIdentity/userAssignedIdentities/TWO";
    for choice in ["client_id=two", "object_id=object-of-two", &format!("msi_res_id={id}")] {
        let (_, body) = imds(&machine, &format!("{base}&{choice}")).await;
        assert_eq!(body["client_id"], "two", "{choice}");
    }
    for refused in
        [&format!("{base}&client_id=three"), &format!("{base}&client_id=one&object_id=x"), "resource=r"]
    {
        let (status, _) = imds(&machine, refused).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{refused}");
    }
    let own = ManagedIdentity { client_id: "own".into(), object_id: "o".into(), resource_id: None };
    let machine = MachineIdentities { identities: vec![user_assigned("one"), own], ..machine };
    let (_, body) = imds(&machine, base).await;
    assert_eq!(body["client_id"], "own");
}

#[tokio::test]
async fn metadata_needs_its_header_and_no_proxy() {
    let machine = machine(vec![user_assigned("one")]);
    let path =
        "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https://management.azure.com/";
    let bare = Request::get(path).body(Body::empty()).unwrap();
    let proxied = Request::get(path)
        .header("Metadata", "true")
        .header("X-Forwarded-For", "10.0.0.1")
        .body(Body::empty())
        .unwrap();
    for request in [bare, proxied] {
        let (status, _, _) = send(imds::router(machine.clone()), request).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
    }
}

#[tokio::test]
async fn the_app_service_form_checks_its_header() {
    let machine = machine(vec![user_assigned("one")]);
    let path = "/msi/token?api-version=2019-08-01&resource=https://management.azure.com/&client_id=one";
    for (header, status) in [("right", StatusCode::OK), ("wrong", StatusCode::UNAUTHORIZED)] {
        let request = Request::get(path).header("X-IDENTITY-HEADER", header).body(Body::empty()).unwrap();
        let (got, body, _) = send(imds::app_service_router(machine.clone(), "right"), request).await;
        assert_eq!(got, status);
        if status == StatusCode::OK {
            assert_eq!(body["expires_on"], (now().as_second() + 86_399).to_string());
            machine.entra.verify(body["access_token"].as_str().unwrap(), now()).unwrap();
        }
    }
}
