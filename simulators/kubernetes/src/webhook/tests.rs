use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use certificate_authority::CertificateAuthority;
use http::StatusCode;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::{Kubernetes, Options};

fn echo() -> Router {
    Router::new()
        .route("/echo", post(async |Json(body): Json<Value>| Json(json!({ "heard": body }))))
        .route("/broken", post(async || (StatusCode::INTERNAL_SERVER_ERROR, "out of order")))
        .route("/never", post(async || std::future::pending::<()>().await))
}

/// Serves `echo` over TLS for one name. Returns the address.
async fn serve(authority: &CertificateAuthority, name: &str) -> SocketAddr {
    serve_with(authority.server_config(&[name]).unwrap()).await
}

async fn serve_with(tls: Arc<rustls::ServerConfig>) -> SocketAddr {
    let acceptor = TlsAcceptor::from(tls);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let Ok(stream) = acceptor.accept(stream).await else { continue };
            let service = TowerToHyperService::new(echo());
            tokio::spawn(async move {
                hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await
                    .map_err(|error| error.to_string())
            });
        }
    });
    address
}

fn config(path: &str, authority: &CertificateAuthority) -> ClientConfig {
    let bundle = BASE64_STANDARD.encode(authority.certificate_pem());
    let service = json!({ "name": "hook", "namespace": "default", "path": path });
    ClientConfig::parse(&json!({ "service": service, "caBundle": bundle })).unwrap()
}

const TEN: Duration = Duration::from_secs(10);

#[tokio::test]
async fn a_webhook_is_asked_over_tls_and_trusted_by_its_bundle_alone() {
    let authority = CertificateAuthority::generate().unwrap();
    let kubernetes = Kubernetes::new(Options::default());
    let address = serve(&authority, "hook.default.svc").await;
    kubernetes.webhook_host("hook.default.svc", WebhookHost::At(address));
    let ask = async |config: ClientConfig| kubernetes.call_webhook(&config, &json!({ "a": 1 }), TEN).await;
    assert_eq!(ask(config("echo", &authority)).await.unwrap(), json!({ "heard": { "a": 1 } }));

    let broken = ask(config("/broken", &authority)).await.unwrap_err().to_string();
    assert_eq!(broken, "an error on the server (\"out of order\") has prevented the request from succeeding");
    let other = CertificateAuthority::generate().unwrap();
    let stranger = ask(config("/echo", &other)).await.unwrap_err().to_string();
    assert_eq!(
        stranger,
        "Post \"https://hook.default.svc:443/echo?timeout=10s\": tls: failed to verify certificate: x509: \
         certificate signed by unknown authority"
    );
    let other_name = serve(&authority, "other.default.svc").await;
    kubernetes.webhook_host("hook.default.svc", WebhookHost::At(other_name));
    let misnamed = ask(config("/echo", &authority)).await.unwrap_err().to_string();
    assert!(misnamed.contains("wanted to match hook.default.svc"), "{misnamed}");
}

/// A self-signed certificate for a name, that of an authority as `openssl req -x509` makes it, and a server with it.
async fn serve_self_signed(name: &str, days: i64) -> (String, SocketAddr) {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    params.not_before = rcgen::date_time_ymd(2020, 1, 1);
    params.not_after = params.not_before + Duration::from_secs(days.unsigned_abs() * 86_400);
    let certificate = params.self_signed(&key).unwrap();
    let tls = rustls::ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key.serialize_der().try_into().unwrap())
        .unwrap();
    (certificate.pem(), serve_with(Arc::new(tls)).await)
}

/// Go accepts a server certificate that is in the bundle itself, even an authority's, if its name and its dates match.
#[tokio::test]
async fn a_self_signed_certificate_is_its_own_bundle() {
    const CENTURY: i64 = 36_500;
    let kubernetes = Kubernetes::new(Options::default());
    let ask = async |pem: &str, address| {
        kubernetes.webhook_host("hook.default.svc", WebhookHost::At(address));
        let service = json!({ "name": "hook", "namespace": "default", "path": "/echo" });
        let bundle = BASE64_STANDARD.encode(pem);
        let config = ClientConfig::parse(&json!({ "service": service, "caBundle": bundle })).unwrap();
        kubernetes.call_webhook(&config, &json!([]), TEN).await.map_err(|error| error.to_string())
    };
    let (own, address) = serve_self_signed("hook.default.svc", CENTURY).await;
    assert_eq!(ask(&own, address).await, Ok(json!({ "heard": [] })));
    let (other, misnamed) = serve_self_signed("other.default.svc", CENTURY).await;
    let said = ask(&other, misnamed).await.unwrap_err();
    assert!(said.contains("wanted to match hook.default.svc"), "{said}");
    let said = ask(&other, address).await.unwrap_err();
    assert!(said.ends_with("x509: certificate signed by unknown authority"), "{said}");
    let (old, address) = serve_self_signed("hook.default.svc", 1).await;
    let said = ask(&old, address).await.unwrap_err();
    assert!(said.ends_with("x509: certificate has expired or is not yet valid"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_host_in_this_process_needs_no_socket() {
    let authority = CertificateAuthority::generate().unwrap();
    let kubernetes = Kubernetes::new(Options::default());
    kubernetes.webhook_host("hook.default.svc", WebhookHost::InProcess(echo()));
    let answer = kubernetes.call_webhook(&config("/echo", &authority), &json!([]), TEN).await.unwrap();
    assert_eq!(answer, json!({ "heard": [] }));
    let late = kubernetes.call_webhook(&config("/never", &authority), &json!([]), TEN).await.unwrap_err();
    assert!(late.to_string().ends_with("context deadline exceeded"), "{late}");
}

#[tokio::test]
async fn a_service_is_resolved_by_its_endpoints() {
    let authority = CertificateAuthority::generate().unwrap();
    let kubernetes = Kubernetes::new(Options::default());
    let failed = async || {
        kubernetes.call_webhook(&config("/echo", &authority), &json!({}), TEN).await.unwrap_err().to_string()
    };
    assert!(failed().await.ends_with("service \"hook\" not found"));
    let service = json!({ "apiVersion": "v1", "kind": "Service", "metadata": { "name": "hook" },
        "spec": { "ports": [{ "port": 443, "targetPort": 9443 }] } });
    kubernetes.create(service).unwrap();
    assert!(failed().await.ends_with("no endpoints available for service \"hook\""));
    let address = serve(&authority, "hook.default.svc").await;
    let slice = json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": { "name": "hook-1", "labels": { "kubernetes.io/service-name": "hook" } },
        "endpoints": [{ "addresses": ["127.0.0.1"] }], "ports": [{ "name": "", "port": address.port() }] });
    if kubernetes.create(slice).is_ok() {
        let answer = kubernetes.call_webhook(&config("/echo", &authority), &json!(1), TEN).await.unwrap();
        assert_eq!(answer, json!({ "heard": 1 }));
    }
}
