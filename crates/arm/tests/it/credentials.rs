//! Credentials against a scripted authority, through the same transport as everything else.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::scripted_azure::{RecordedRequest, Reply, azure, balancer, reply};
use arm::{ApiVersion, Class, Client, Clock, Cloud, Credential, Error, Transport};
use azure_core::credentials::{AccessToken, TokenCredential, TokenRequestOptions};
use azure_core::error::ErrorKind;
use azure_core::time::OffsetDateTime;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use cloud_config::CloudConfig;
use rustls_pki_types::pem::PemObject;
use serde_json::{Value, json};

const SECRET: &str = "hunter2-the-secret";

fn config(text: &str) -> CloudConfig {
    CloudConfig::parse(text).unwrap()
}

fn service_principal() -> CloudConfig {
    config(&format!("tenantId: tenant\naadClientId: client\naadClientSecret: {SECRET}\n"))
}

fn client(config: &CloudConfig, transport: &Transport) -> Result<Client, Error> {
    let cloud = Cloud::built_in(&config.endpoints())?;
    let clock = Clock::following_tokio(Duration::from_secs(crate::scripted_azure::START));
    let credential = Credential::from_config(config, &cloud, transport, clock)?;
    assert!(!format!("{credential:?}").contains(SECRET));
    Ok(Client::builder(cloud, transport.clone(), credential).build())
}

fn form(body: &str) -> HashMap<String, String> {
    url::form_urlencoded::parse(body.as_bytes()).into_owned().collect()
}

/// Issues a token at the token endpoint and returns documents elsewhere.
fn gives_token(_: usize, request: &RecordedRequest) -> Reply {
    if request.uri.contains("/oauth2/") {
        // Authorities may spell numbers as text.
        reply(200, json!({"token_type": "Bearer", "expires_in": "3599", "access_token": "token-1"}))
    } else {
        reply(200, json!({"ok": true}))
    }
}

/// NODE-212
#[tokio::test(start_paused = true)]
async fn a_bare_token_is_waited_for_as_long_as_said_and_the_last_words_are_told() {
    let (transport, _) = azure(gives_token);
    let config = service_principal();
    let cloud = Cloud::built_in(&config.endpoints()).unwrap();
    let scope = "https://containerregistry.azure.net/.default";
    let credential =
        |transport: &Transport| Credential::from_config(&config, &cloud, transport, Clock::system()).unwrap();
    let timeout = Duration::from_secs(2);
    let token = credential(&transport).token(scope, timeout).await.unwrap();
    assert_eq!(token.reveal(), "token-1");

    let (busy, _) = azure(|_, _| reply(503, json!({"error": "busy", "error_description": "Not today"})));
    let begun = tokio::time::Instant::now();
    let error = credential(&busy).token(scope, timeout).await.unwrap_err().to_string();
    assert!(begun.elapsed() <= timeout, "{:?}", begun.elapsed());
    assert!(error.contains("Not today (status 503)"), "{error}");
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
         Ensure the \"secret\" is right. (status 401)"
    );
    assert_eq!(
        error.request_id(),
        Some("Trace ID: t Correlation ID: c"),
        "differs each time, so apart from the text"
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
    assert!(error.is_transient() && !error.is_authentication(), "{error:?}");
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
        // Expired at once: every call requests a new one.
        reply(200, json!({"token_type": "Bearer", "expires_in": 0, "access_token": "t"}))
    });
    let client = client(&config(&text), &transport).unwrap();
    client.check_credential().await.unwrap();
    std::fs::write(&file, "projected-2\n").unwrap();
    client.check_credential().await.unwrap();
    std::fs::write(&file, "\n").unwrap();
    let error = client.check_credential().await.unwrap_err().to_string();
    assert!(error.contains("aadFederatedTokenFile=") && error.contains("is empty"), "{error}");
    std::fs::remove_file(&file).unwrap();
    let error = client.check_credential().await.unwrap_err().to_string();
    assert!(error.contains("aadFederatedTokenFile=") && error.contains("cannot be read"), "{error}");
    let journal = journal.lock();
    let sent: Vec<String> =
        journal.iter().map(|request| form(&request.body)["client_assertion"].clone()).collect();
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
            // A number where the library expects text, and nothing else.
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

/// F5: if the agent of Azure Arc sets its endpoint, it is asked, and not the metadata service of Azure's own machines.
#[tokio::test(start_paused = true)]
async fn managed_identity_asks_the_agent_of_azure_arc() {
    let arc = |name: &str| match name {
        "IDENTITY_ENDPOINT" => Some("http://localhost:40342/metadata/identity/oauth2/token".to_owned()),
        "IMDS_ENDPOINT" => Some("http://localhost:40342".to_owned()),
        _ => None,
    };
    let read = |text: &str| CloudConfig::from_file(text, &arc).unwrap();
    let (transport, journal) = azure(|_, _| reply(200, json!({"access_token": "t", "expires_in": "3600"})));
    let config = read("useManagedIdentityExtension: true\n");
    client(&config, &transport).unwrap().check_credential().await.unwrap();
    let url = url::Url::parse(&journal.lock()[0].uri).unwrap();
    assert_eq!((url.host_str(), url.port()), (Some("localhost"), Some(40342)));
    let named = read("useManagedIdentityExtension: true\nuserAssignedIdentityID: i\n");
    let error = client(&named, &transport).err().unwrap().to_string();
    assert!(error.contains("userAssignedIdentityID=i") && error.contains("remove it"), "{error}");
    let (transport, _) = azure(|_, _| reply(500, Value::Null));
    let error = client(&config, &transport).unwrap().check_credential().await.unwrap_err().to_string();
    assert!(error.contains("managed identity of Azure Arc"), "{error}");
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
    // A file as users have it: an issuer before the certificate of the key.
    let issuer = rcgen::generate_simple_self_signed(vec!["issuer".into()]).unwrap();
    let issuer_first = std::env::temp_dir().join(format!("issuer-first-{}.pem", std::process::id()));
    std::fs::write(&issuer_first, [issuer.cert.pem().as_bytes(), &pem].concat()).unwrap();
    let of = |name: &str| format!("{data}/{name}");
    for (file, password) in [
        (of("client.pem"), ""),
        (of("client.pfx"), "correct-horse"),
        (issuer_first.display().to_string(), ""),
    ] {
        let text = format!(
            "tenantId: tenant\naadClientId: client\naadClientCertPath: {file}\naadClientCertPassword: {password}\n"
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
        assert_eq!(claims["nbf"], crate::scripted_azure::START);
        ring::signature::UnparsedPublicKey::new(
            &ring::signature::RSA_PSS_2048_8192_SHA256,
            key.public().as_ref(),
        )
        .verify(format!("{}.{}", parts[0], parts[1]).as_bytes(), &decode(parts[2]))
        .unwrap();
    }
    // The key of one pair with the certificate of another.
    let whole = String::from_utf8(pem).unwrap();
    let key = &whole[whole.find("-----BEGIN PRIVATE KEY").unwrap()..];
    let key = &key[..key.find("-----END PRIVATE KEY-----\n").unwrap() + 26];
    std::fs::write(&issuer_first, format!("{}{key}", issuer.cert.pem())).unwrap();
    let text = format!("tenantId: t\naadClientId: c\naadClientCertPath: {}\n", issuer_first.display());
    let error = client(&config(&text), &azure(gives_token).0).unwrap_err().to_string();
    assert!(error.ends_with(": holds no certificate that belongs to its private key"), "{error}");
    std::fs::remove_file(&issuer_first).unwrap();
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

/// A source of tokens that are valid for an hour, whose answers a test controls and counts.
#[derive(Debug)]
struct Source {
    clock: Clock,
    asked: AtomicUsize,
    fails: AtomicBool,
    takes: Duration,
}

#[async_trait::async_trait]
impl TokenCredential for Source {
    async fn get_token(
        &self,
        _: &[&str],
        _: Option<TokenRequestOptions<'_>>,
    ) -> azure_core::Result<AccessToken> {
        let number = self.asked.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(self.takes).await;
        if self.fails.load(Ordering::Relaxed) {
            return Err(azure_core::Error::with_message(ErrorKind::Credential, "the authority is down"));
        }
        let expires = self.clock.since_1970().as_secs() + 3600;
        let expires = OffsetDateTime::from_unix_timestamp(i64::try_from(expires).unwrap()).unwrap();
        Ok(AccessToken::new(format!("token-{number}"), expires))
    }
}

fn client_of_source(takes: Duration) -> (Client, Arc<Source>, crate::scripted_azure::Journal) {
    let clock = Clock::following_tokio(Duration::from_secs(crate::scripted_azure::START));
    let (asked, fails) = (AtomicUsize::new(0), AtomicBool::new(false));
    let source = Arc::new(Source { clock: clock.clone(), asked, fails, takes });
    let (transport, journal) = azure(|_, _| reply(200, json!({"ok": true})));
    let cloud = Cloud::built_in(&cloud_config::PUBLIC).unwrap();
    let credential = Credential::from_source(source.clone(), "test", clock.clone());
    (Client::builder(cloud, transport, credential).clock(clock).build(), source, journal)
}

async fn read(client: &Client) -> Result<Value, Error> {
    client.get::<Value>(&balancer("lb"), ApiVersion::NETWORK, Class::Refresh).await
}

/// C2, R6: Azure rejects a token that has not expired. It is dropped, and the call is sent once more with another one;
/// if the new one is rejected as well, that is an answer, and not every call requests another one.
#[tokio::test(start_paused = true)]
async fn a_token_that_azure_rejects_is_asked_for_once_more() {
    let asked = Arc::new(AtomicUsize::new(0));
    let bad = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let (counter, rejects) = (Arc::clone(&asked), Arc::clone(&bad));
    let (transport, _) = azure(move |_, request| {
        if request.uri.contains("/oauth2/") {
            let number = counter.fetch_add(1, Ordering::Relaxed);
            return reply(200, json!({"expires_in": 3599, "access_token": format!("token-{number}")}));
        }
        let token = request.headers["authorization"].clone();
        if rejects.lock().contains(&token) {
            return crate::scripted_azure::error(401, "InvalidAuthenticationToken");
        }
        reply(200, json!({"ok": true}))
    });
    let client = client(&service_principal(), &transport).unwrap();
    read(&client).await.unwrap();
    tokio::time::advance(Duration::from_secs(60)).await;
    bad.lock().push("Bearer token-0".to_owned());
    read(&client).await.unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    bad.lock().extend((1..9).map(|number| format!("Bearer token-{number}")));
    for _ in 0..3 {
        assert_eq!(read(&client).await.unwrap_err().status(), Some(401));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2, "it is new");
    tokio::time::advance(Duration::from_secs(60)).await;
    for _ in 0..3 {
        assert_eq!(read(&client).await.unwrap_err().status(), Some(401));
    }
    assert_eq!(asked.load(Ordering::Relaxed), 3);
    bad.lock().clear();
    read(&client).await.unwrap();
}

/// A renewal begins minutes before the token expires: while the authority fails, calls use the token that they have,
/// without waiting, and ask again now and then; after its expiry they fail.
#[tokio::test(start_paused = true)]
async fn a_valid_token_is_used_while_its_renewal_fails() {
    let (client, source, journal) = client_of_source(Duration::ZERO);
    read(&client).await.unwrap();
    source.fails.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(3600 - 200)).await;
    for _ in 0..100 {
        read(&client).await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert!(journal.lock().iter().all(|request| request.headers["authorization"] == "Bearer token-0"));
    let asked = source.asked.load(Ordering::Relaxed);
    assert!((3..=6).contains(&asked), "asked {asked} times");
    tokio::time::sleep(Duration::from_secs(100)).await;
    let error = read(&client).await.unwrap_err();
    assert!(error.to_string().ends_with("with the test: the authority is down"), "{error}");
    source.fails.store(false, Ordering::Relaxed);
    read(&client).await.unwrap();
    let last = journal.lock().last().unwrap().headers["authorization"].clone();
    assert_eq!(last, format!("Bearer token-{}", source.asked.load(Ordering::Relaxed) - 1));
}

/// An authority that never answers delays one call for ten seconds, and no other one.
#[tokio::test(start_paused = true)]
async fn a_slow_authority_does_not_hold_up_calls_that_have_a_token() {
    let (client, source, _) = client_of_source(Duration::from_secs(20));
    read(&client).await.unwrap();
    source.fails.store(true, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(3600 - 200)).await;
    let started = tokio::time::Instant::now();
    let renewing = tokio::spawn({
        let client = client.clone();
        async move { read(&client).await }
    });
    tokio::task::yield_now().await;
    for _ in 0..20 {
        read(&client).await.unwrap();
    }
    assert_eq!(started.elapsed(), Duration::ZERO);
    renewing.await.unwrap().unwrap();
    assert_eq!(started.elapsed(), Duration::from_secs(10));
}

/// Calls without a token share one request to the authority, also if it fails.
#[tokio::test(start_paused = true)]
async fn calls_without_a_token_share_one_question() {
    for fails in [false, true] {
        let (client, source, _) = client_of_source(Duration::from_secs(20));
        source.fails.store(fails, Ordering::Relaxed);
        let calls: Vec<_> = (0..50)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move { read(&client).await })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().is_err(), fails);
        }
        assert_eq!(source.asked.load(Ordering::Relaxed), 1);
    }
    let (client, _, _) = client_of_source(Duration::from_secs(3600));
    let started = tokio::time::Instant::now();
    let error = read(&client).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no token for Azure with the test: the authority did not answer within 120 s"
    );
    assert!(error.is_transient() && started.elapsed() == Duration::from_secs(120));
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

/// Whatever an authority answers instead of a token, the error is a sentence that names the authority.
#[tokio::test(start_paused = true)]
async fn odd_answers_of_an_authority_are_told_in_words() {
    let login = "login.microsoftonline.com answered without";
    let metadata = "169.254.169.254 answered without";
    for (status, body, secret, managed) in [
        (
            200,
            json!("<html>"),
            format!("{login} a token (status 200)"),
            format!("{metadata} a token (status 200)"),
        ),
        (200, json!({}), format!("{login} a token (status 200)"), format!("{metadata} a token (status 200)")),
        (
            200,
            json!({"access_token": 5}),
            format!("{login} a token (status 200)"),
            format!("{metadata} a token (status 200)"),
        ),
        (
            302,
            json!(""),
            format!("{login} saying why (status 302)"),
            format!("{metadata} saying why (status 302)"),
        ),
        (
            400,
            json!("<html>"),
            format!("{login} saying why (status 400)"),
            format!("{metadata} saying why (status 400)"),
        ),
        (
            407,
            json!("proxy"),
            format!("{login} saying why (status 407)"),
            format!("{metadata} saying why (status 407)"),
        ),
        (429, json!({"error": "busy"}), "busy (status 429)".into(), "busy (status 429)".into()),
    ] {
        for (expected, config) in
            [(secret, service_principal()), (managed, config("useManagedIdentityExtension: true"))]
        {
            let answer = body.clone();
            // A pause that no authority intends; the library would sleep for it.
            let (transport, _) =
                azure(move |_, _| reply(status, answer.clone()).with("retry-after", u64::MAX));
            let started = tokio::time::Instant::now();
            let error = client(&config, &transport).unwrap().check_credential().await.unwrap_err();
            assert!(error.to_string().ends_with(&format!(": {expected}")), "{error}");
            assert_eq!(error.is_transient(), status == 429, "{error}");
            assert!(started.elapsed() < Duration::from_secs(120));
        }
    }
    // A lifetime beyond any calendar.
    let (transport, _) = azure(|_, _| {
        reply(200, json!({"token_type": "Bearer", "access_token": "t", "expires_in": i64::MAX}))
    });
    client(&service_principal(), &transport).unwrap().check_credential().await.unwrap();
}
