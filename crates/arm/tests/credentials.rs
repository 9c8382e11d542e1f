//! Credentials against a scripted authority, through the same transport as everything else.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use std::collections::HashMap;
use std::time::Duration;

use arm::{ApiVersion, Class, Client, Clock, Cloud, Credential, Error, Transport};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cloud_config::CloudConfig;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};
use world::{Reply, Seen, azure, balancer, reply};

const SECRET: &str = "hunter2-the-secret";

fn config(text: &str) -> CloudConfig {
    CloudConfig::parse(text).unwrap()
}

fn service_principal() -> CloudConfig {
    config(&format!("tenantId: tenant\naadClientId: client\naadClientSecret: {SECRET}\n"))
}

fn client(config: &CloudConfig, transport: &Transport) -> Result<Client, Error> {
    let cloud = Cloud::built_in(&config.endpoints())?;
    let clock = Clock::following_tokio(Duration::from_secs(world::START));
    let credential = Credential::from_config(config, &cloud, transport, clock)?;
    assert!(!format!("{credential:?}").contains(SECRET));
    Ok(Client::builder(cloud, transport.clone(), credential).build())
}

fn form(body: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(body.as_bytes()).into_owned().collect()
}

/// Gives out a token at the token endpoint and documents elsewhere.
fn gives_token(_: usize, seen: &Seen) -> Reply {
    if seen.uri.contains("/oauth2/") {
        // Authorities may spell numbers as text.
        reply(200, json!({"token_type": "Bearer", "expires_in": "3599", "access_token": "token-1"}))
    } else {
        reply(200, json!({"ok": true}))
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_secret_gets_one_token_for_many_calls() {
    let (transport, journal) = azure(gives_token);
    let client = client(&service_principal(), &transport).unwrap();
    for _ in 0..2 {
        client.get::<Value>(&balancer("lb"), ApiVersion::NETWORK, Class::Refresh).await.unwrap();
    }
    let journal = journal.lock();
    assert_eq!(journal.len(), 3);
    assert_eq!(journal[0].uri, "https://login.microsoftonline.com/tenant/oauth2/v2.0/token");
    let form = form(&journal[0].body);
    assert_eq!(form["client_id"], "client");
    assert_eq!(form["client_secret"], SECRET);
    assert_eq!(form["scope"], "https://management.core.windows.net//.default");
    assert_eq!(journal[2].headers["authorization"], "Bearer token-1");
}

/// Wrong credentials give one clear line with Entra's code, whatever escapes its description holds, and
/// neither that line nor any debug output holds the secret.
#[tokio::test(start_paused = true)]
async fn wrong_credentials_give_one_clear_line() {
    let (transport, journal) = azure(|_, _| {
        reply(
            401,
            json!({
                "error": "invalid_client",
                "error_description": "AADSTS7000215: Invalid client secret provided. Ensure the \"secret\" is right.\r\nTrace ID: t\r\nCorrelation ID: c",
                "error_codes": [7000215],
            }),
        )
    });
    let client = client(&service_principal(), &transport).unwrap();
    let error = client.check_credential().await.unwrap_err();
    let text = error.to_string();
    assert_eq!(
        text,
        "no token for Azure with the client secret of client client: AADSTS7000215: Invalid client secret provided. \
         Ensure the \"secret\" is right. Trace ID: t Correlation ID: c (status 401)"
    );
    assert!(error.is_authentication() && !error.is_refusal() && !error.is_transient());
    assert!(!format!("{text} {error:?}").contains(SECRET));
    assert_eq!(journal.lock().len(), 1, "a refusal is not repeated");
    let same = client.get::<Value>(&balancer("lb"), ApiVersion::NETWORK, Class::Refresh).await.unwrap_err();
    assert!(same.is_authentication());
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_authority_is_one_line_too() {
    let (transport, _) = azure(|_, _| reply(0, Value::Null));
    let error = client(&service_principal(), &transport).unwrap().check_credential().await.unwrap_err();
    let text = error.to_string();
    assert!(text.starts_with("no token for Azure with the client secret of client client: "), "{text}");
    assert!(text.contains("connection reset") && !text.contains('\n'), "{text}");
}

/// Neither configuration, credential, client nor any error shows the secret, however it is formatted.
#[tokio::test(start_paused = true)]
async fn a_client_secret_cannot_be_formatted() {
    let config = service_principal();
    let (transport, _) = azure(|_, _| reply(500, json!("oops")));
    let client = client(&config, &transport).unwrap();
    let error = client.check_credential().await.unwrap_err();
    for text in [
        format!("{config:?}"),
        format!("{config:#?}"),
        format!("{} {:?}", config.aad_client_secret, config.aad_client_secret),
        format!("{client:?} {client:#?} {transport:?}"),
        format!("{error} {error:?} {error:#?}"),
    ] {
        assert!(!text.contains("hunter2"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn workload_identity_reads_its_token_file_for_each_exchange() {
    let file = std::env::temp_dir().join(format!("federated-token-{}", std::process::id()));
    std::fs::write(&file, "projected-1\n").unwrap();
    let text = format!(
        "tenantId: tenant\naadClientId: client\nuseFederatedWorkloadIdentityExtension: true\n\
         useManagedIdentityExtension: true\naadFederatedTokenFile: {}\n",
        file.display()
    );
    let (transport, journal) = azure(|_, _| {
        // Valid for less than the renewal margin: every call asks anew.
        reply(200, json!({"token_type": "Bearer", "expires_in": 10, "access_token": "t"}))
    });
    let client = client(&config(&text), &transport).unwrap();
    client.check_credential().await.unwrap();
    std::fs::write(&file, "projected-2\n").unwrap();
    client.check_credential().await.unwrap();
    std::fs::remove_file(&file).unwrap();
    let error = client.check_credential().await.unwrap_err().to_string();
    assert!(error.contains("aadFederatedTokenFile=") && error.contains("cannot be read"), "{error}");
    let journal = journal.lock();
    let sent: Vec<String> = journal.iter().map(|seen| form(&seen.body)["client_assertion"].clone()).collect();
    assert_eq!(sent, ["projected-1", "projected-2"]);
    assert_eq!(
        form(&journal[0].body)["client_assertion_type"],
        "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    );
}

#[tokio::test(start_paused = true)]
async fn managed_identity_asks_the_metadata_service() {
    for (id, parameter) in [
        ("", None),
        ("0000-c", Some(("client_id", "0000-c"))),
        (
            "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i",
            Some((
                "msi_res_id",
                "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i",
            )),
        ),
    ] {
        let (transport, journal) = azure(|_, _| {
            // A number where the library wants text, and nothing beside it.
            reply(200, json!({"access_token": "t", "expires_on": 4_102_444_800u64}))
        });
        let text = format!(
            "useManagedIdentityExtension: true\nuserAssignedIdentityID: '{id}'\naadClientSecret: x\n"
        );
        client(&config(&text), &transport).unwrap().check_credential().await.unwrap();
        let journal = journal.lock();
        let url = url::Url::parse(&journal[0].uri).unwrap();
        assert_eq!(
            (url.host_str(), url.path()),
            (Some("169.254.169.254"), "/metadata/identity/oauth2/token")
        );
        assert_eq!(journal[0].headers["metadata"], "true");
        let query: HashMap<String, String> = url.query_pairs().into_owned().collect();
        assert_eq!(query["resource"], "https://management.core.windows.net/");
        match parameter {
            Some((name, value)) => assert_eq!(query[name], value),
            None => assert_eq!(query.len(), 2, "{query:?}"),
        }
    }
    let (transport, _) = azure(|_, _| {
        reply(400, json!({"error": "invalid_request", "error_description": "Identity not found"}))
    });
    let error = client(&config("useManagedIdentityExtension: true"), &transport)
        .unwrap()
        .check_credential()
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "no token for Azure with the system-assigned managed identity: Identity not found (status 400)"
    );
}

#[tokio::test(start_paused = true)]
async fn a_client_certificate_signs_assertions_that_verify() {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
    let pem = std::fs::read(format!("{data}/client.pem")).unwrap();
    let leaf = rustls_pki_types::CertificateDer::from_pem_slice(&pem).unwrap();
    let key = match rustls_pki_types::PrivateKeyDer::from_pem_slice(&pem).unwrap() {
        rustls_pki_types::PrivateKeyDer::Pkcs8(key) => {
            ring::signature::RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()).unwrap()
        }
        _ => panic!("the fixture is PKCS#8"),
    };
    for (file, password) in [("client.pem", ""), ("client.pfx", "correct-horse")] {
        let text = format!(
            "tenantId: tenant\naadClientId: client\naadClientCertPath: {data}/{file}\naadClientCertPassword: {password}\n"
        );
        let (transport, journal) = azure(gives_token);
        client(&config(&text), &transport).unwrap().check_credential().await.unwrap();
        let assertion = form(&journal.lock()[0].body)["client_assertion"].clone();
        let parts: Vec<&str> = assertion.split('.').collect();
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).unwrap();
        let header: Value = serde_json::from_slice(&decode(parts[0])).unwrap();
        let claims: Value = serde_json::from_slice(&decode(parts[1])).unwrap();
        assert_eq!(header["alg"], "PS256");
        assert_eq!(header["x5c"][0], STANDARD.encode(&leaf), "{file}");
        let thumbprint = ring::digest::digest(&ring::digest::SHA256, &leaf);
        assert_eq!(header["x5t#S256"], URL_SAFE_NO_PAD.encode(thumbprint));
        assert_eq!(claims["aud"], "https://login.microsoftonline.com/tenant/oauth2/v2.0/token");
        assert_eq!((&claims["iss"], &claims["sub"]), (&json!("client"), &json!("client")));
        assert_eq!(claims["exp"].as_u64().unwrap() - claims["nbf"].as_u64().unwrap(), 600);
        assert_eq!(claims["nbf"], world::START);
        ring::signature::UnparsedPublicKey::new(
            &ring::signature::RSA_PSS_2048_8192_SHA256,
            key.public().as_ref(),
        )
        .verify(format!("{}.{}", parts[0], parts[1]).as_bytes(), &decode(parts[2]))
        .unwrap();
    }
    for (file, password, words) in [
        ("client.pfx", "wrong-horse", "is neither PEM nor a PKCS#12 file that this password opens"),
        ("missing.pem", "", "cannot be read"),
    ] {
        let text = format!(
            "tenantId: tenant\naadClientId: client\naadClientCertPath: {data}/{file}\naadClientCertPassword: {password}\n"
        );
        let (transport, _) = azure(gives_token);
        let error = client(&config(&text), &transport).unwrap_err().to_string();
        assert!(error.starts_with("aadClientCertPath=") && error.contains(words), "{error}");
        assert!(!error.contains("horse"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_missing_is_named() {
    for (text, words) in [
        ("location: l", "no credential is configured: set useManagedIdentityExtension"),
        ("aadClientSecret: s", "a client secret needs tenantId and aadClientId in the cloud config"),
        ("{aadClientSecret: s, tenantId: t}", "a client secret needs aadClientId in the cloud config"),
        (
            "{useFederatedWorkloadIdentityExtension: true, tenantId: t, aadClientId: c}",
            "workload identity needs aadFederatedTokenFile in the cloud config",
        ),
    ] {
        let (transport, journal) = azure(gives_token);
        let error = client(&config(text), &transport).unwrap_err();
        assert!(matches!(error, Error::Configuration { .. }));
        assert!(error.to_string().starts_with(words), "{error}");
        assert_eq!(journal.lock().len(), 0);
    }
}
