//! The connection to the Kubernetes API over real sockets: which servers the client trusts, and which credentials the
//! server accepts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arm::ProxySettings;
use base64::Engine as _;
use certificate_authority::CertificateAuthority;
use kubernetes_simulator::{Kubernetes, Options, Token};
use program::in_one_line;
use program::kubernetes::{Address, connect};
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

/// A simulated API server that asks for a token, and a folder for files.
struct Fixture {
    files: tempfile::TempDir,
    /// The kubeconfig of the accepted user.
    config: Value,
    token: String,
    stop: CancellationToken,
}

impl Fixture {
    async fn new() -> Self {
        arm::install_crypto_provider();
        let kubernetes = Kubernetes::new(Options { tokens: vec![Token::generate()], ..Options::default() });
        let stop = CancellationToken::new();
        let address = kubernetes.serve_https(([127, 0, 0, 1], 0).into(), stop.clone()).await.unwrap();
        let text = kubernetes.kubeconfig(&format!("https://{address}")).unwrap();
        let config: Value = serde_saphyr::from_str(&text).unwrap();
        let token = config["users"][0]["user"]["token"].as_str().unwrap().to_owned();
        Self { files: tempfile::tempdir().unwrap(), config, token, stop }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.files.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Connects with another user, and with members of the cluster added or, if null, removed.
    async fn reach(&self, user: &Value, cluster: &Value) -> Result<(), String> {
        let mut config = self.config.clone();
        config["users"][0]["user"] = user.clone();
        for (key, value) in cluster.as_object().unwrap() {
            config["clusters"][0]["cluster"][key] = value.clone();
        }
        reach(&self.file("kubeconfig", &config.to_string())).await
    }

    fn plugin(&self, script: &str) -> Value {
        json!({"exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script],
            "env": [{"name": "TOKEN", "value": self.token}], "interactiveMode": "Never",
        }})
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn reach(kubeconfig: &Path) -> Result<(), String> {
    let kubeconfig = kubeconfig.to_str().unwrap();
    let address = Address { kubeconfig, master: "", agent: "program/1", waits: false, observer: None };
    let connected = connect(&address, &ProxySettings::default()).await;
    let client = connected.map_err(|error| in_one_line(&error))?;
    // The version needs no credential.
    let request = http::Request::get("/api/v1/namespaces").body(Vec::new()).unwrap();
    client.request_text(request).await.map(drop).map_err(|error| error.to_string())
}

/// F4: a broken connection and a 503 are retried; a refusal of this client is final. Each request carries the user
/// agent.
#[tokio::test]
async fn what_passes_is_waited_for_and_a_refusal_is_not() {
    arm::install_crypto_provider();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = format!("http://{}", listener.local_addr().unwrap());
    let answers = async {
        let mut heads = Vec::new();
        for answer in ["", "503 Service Unavailable", "429 Too Many Requests", "403 Forbidden"] {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = vec![0; 4096];
            let read = stream.read(&mut head).await.unwrap();
            heads.push(String::from_utf8_lossy(&head[..read]).to_lowercase());
            if !answer.is_empty() {
                let body = json!({ "kind": "Status", "status": "Failure", "message": "no", "code": answer[..3].parse::<u16>().unwrap() });
                let body = body.to_string();
                let text = format!(
                    "HTTP/1.1 {answer}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(text.as_bytes()).await.unwrap();
            }
        }
        heads
    };
    let files = tempfile::tempdir().unwrap();
    let path = files.path().join("kubeconfig");
    let config = json!({ "current-context": "a", "contexts": [{ "name": "a", "context": { "cluster": "a" } }],
        "clusters": [{ "name": "a", "cluster": { "server": server } }] });
    std::fs::write(&path, config.to_string()).unwrap();
    let kubeconfig = path.to_str().unwrap();
    let address = Address { kubeconfig, master: "", agent: "program/1", waits: true, observer: None };
    let proxy = ProxySettings::default();
    let (heads, connected) = tokio::join!(answers, connect(&address, &proxy));
    let error = in_one_line(&connected.err().unwrap());
    assert!(error.contains("refuses us: 403 no"), "{error}");
    assert!(heads.iter().all(|head| head.contains("user-agent: program/1\r\n")), "{heads:?}");
    let impatient = Address { waits: false, ..address };
    drop(listener);
    let error = in_one_line(&connect(&impatient, &proxy).await.err().unwrap());
    assert!(error.contains("cannot be reached"), "{error}");
}

/// Each way to a token works, and a client without token is refused in the API's own words.
#[tokio::test]
async fn node_284_tokens_come_from_the_kubeconfig_a_file_or_a_program() {
    let fixture = Fixture::new().await;
    let same = json!({});
    let file = fixture.file("token", &format!("{}\n", fixture.token));
    let asked = r#"echo "$KUBERNETES_EXEC_INFO" | grep -q '"kind":"ExecCredential"' || exit 3;"#;
    let answer = r#"echo "{\"kind\": \"ExecCredential\", \"status\": {\"token\": \"$TOKEN\"}}""#;
    for user in [
        json!({"token": fixture.token}),
        json!({"tokenFile": file, "token": "old"}),
        json!({"tokenFile": "token"}),
        fixture.plugin(&format!("{asked} {answer}")),
        fixture.plugin(r#"printf 'kind: ExecCredential\nstatus:\n  token: %s\n' "$TOKEN""#),
    ] {
        fixture.reach(&user, &same).await.unwrap();
    }
    for (user, words) in [
        (json!({}), "Unauthorized"),
        (json!({"token": "wrong"}), "Unauthorized"),
        (json!({"username": "me", "password": "hunter2"}), "Unauthorized"),
        (json!({"tokenFile": "/nowhere/token"}), "cannot read the token /nowhere/token"),
        (json!({"token": "two\nlines"}), "the user's token: it holds characters that no header may hold"),
        (fixture.plugin("echo no login >&2; exit 4"), "exec: sh failed (exit status: 4) no login"),
        (fixture.plugin("echo '{}'"), "printed no ExecCredential with a status"),
        (json!({"exec": {"command": "/nowhere/login"}}), "exec: cannot run /nowhere/login"),
        (json!({"auth-provider": {"name": "gcp", "config": {}}}), r#"auth-provider "gcp""#),
    ] {
        let error = fixture.reach(&user, &same).await.unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
        assert!(!error.contains("hunter2") && !error.contains(&fixture.token), "{error}");
    }
}

/// An expiring token is not used: the program runs again for each of the two requests. It runs once for a token that
/// lasts.
#[tokio::test]
async fn node_284_a_program_is_asked_again_when_its_token_ends() {
    let fixture = Fixture::new().await;
    let log = fixture.files.path().join("log");
    for (end, times) in [("2001-01-01T00:00:00Z", 3), ("2999-01-01T00:00:00Z", 1)] {
        let script = format!(
            r#"echo asked >> {}; echo "{{\"status\": {{\"token\": \"$TOKEN\", \"expirationTimestamp\": \"{end}\"}}}}""#,
            log.display()
        );
        fixture.reach(&fixture.plugin(&script), &json!({})).await.unwrap();
        assert_eq!(std::fs::read_to_string(&log).unwrap().lines().count(), times, "{end}");
        std::fs::remove_file(&log).unwrap();
    }
}

/// Only a server with the expected certificate is accepted.
#[tokio::test]
async fn node_285_the_api_server_is_judged_as_the_kubeconfig_says() {
    let fixture = Fixture::new().await;
    let user = json!({"token": fixture.token});
    let other = CertificateAuthority::generate().unwrap();
    let other = base64::engine::general_purpose::STANDARD.encode(other.certificate_pem());
    fixture.reach(&user, &json!({"tls-server-name": "localhost"})).await.unwrap();
    let anybody = json!({"certificate-authority-data": null, "insecure-skip-tls-verify": true});
    fixture.reach(&user, &anybody).await.unwrap();
    for (cluster, words) in [
        (json!({"certificate-authority-data": other}), "certificate"),
        // The system's authorities do not sign a simulator's certificate.
        (json!({"certificate-authority-data": null}), "certificate"),
        (json!({"tls-server-name": "elsewhere.example"}), "elsewhere.example"),
        (json!({"tls-server-name": "no name"}), "tls-server-name \"no name\" is not a server name"),
    ] {
        let error = fixture.reach(&user, &cluster).await.unwrap_err();
        assert!(error.contains(words), "{cluster}: {error}");
    }
}

/// A server with a certificate of this authority that accepts clients certified by `visitors`, and answers everything
/// with its version.
async fn server(authority: &CertificateAuthority, visitors: CertificateDer<'static>) -> u16 {
    let parts = authority.issue(&["127.0.0.1"]).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(visitors).unwrap();
    let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build().unwrap();
    let certificate = CertificateDer::from_pem_slice(parts.certificate_pem.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(parts.key_pem.as_bytes()).unwrap();
    let config = rustls::ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let Ok(mut stream) = acceptor.accept(stream).await else { continue };
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await;
            let version = json!({"major": "1", "minor": "33", "gitVersion": "v1.33.0", "gitCommit": "",
                "gitTreeState": "", "buildDate": "", "goVersion": "", "compiler": "", "platform": ""});
            let body = version.to_string();
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    });
    port
}

/// A certificate from the kubeconfig, from files, or from a program satisfies the server.
#[tokio::test]
async fn node_284_certificates_come_from_the_kubeconfig_files_or_a_program() {
    let fixture = Fixture::new().await;
    let encoded = |text: &str| base64::engine::general_purpose::STANDARD.encode(text);
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().unwrap();
    let visitors = params.self_signed(&key).unwrap();
    let issuer = rcgen::Issuer::new(params, key);
    let key = rcgen::KeyPair::generate().unwrap();
    let mine =
        rcgen::CertificateParams::new(vec!["me".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let (certificate, key) = (mine.pem(), key.serialize_pem());
    let authority = CertificateAuthority::generate().unwrap();
    let port = server(&authority, visitors.der().clone()).await;
    let cluster = json!({
        "server": format!("https://127.0.0.1:{port}"),
        "certificate-authority-data": encoded(authority.certificate_pem()),
    });
    let paths = [fixture.file("me.crt", &certificate), fixture.file("me.key", &key)];
    let printed = json!({"status": {"clientCertificateData": certificate, "clientKeyData": key}});
    let printed = fixture.file("printed", &printed.to_string());
    for user in [
        json!({"client-certificate-data": encoded(&certificate), "client-key-data": encoded(&key)}),
        json!({"client-certificate": paths[0], "client-key": paths[1]}),
        json!({"client-certificate": "me.crt", "client-key": "me.key"}),
        fixture.plugin(&format!("cat {}", printed.display())),
    ] {
        fixture.reach(&user, &cluster).await.unwrap();
    }
    for (user, words) in [
        (json!({}), "CertificateRequired"),
        (json!({"client-certificate": paths[0]}), "the user has a client-certificate and no client-key"),
        (json!({"client-certificate": paths[1], "client-key": paths[1]}), "holds no certificate"),
        (json!({"client-certificate": paths[0], "client-key": paths[0]}), "client-key holds no key in PEM"),
        (
            json!({"client-certificate-data": "?", "client-key-data": "?"}),
            "client-certificate-data is not base64",
        ),
    ] {
        let error = fixture.reach(&user, &cluster).await.unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
    }
}
