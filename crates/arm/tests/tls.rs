//! Over real sockets: TLS with a private authority, a CONNECT proxy, redirected hosts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::net::SocketAddr;
use std::sync::Arc;

use arm::{
    ApiVersion, Class, Client, Cloud, Credential, ProxySettings, RetryPolicy, Transport, TransportOptions,
};
use axum::Router;
use azure_types::ResourceId;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::PrivatePkcs8KeyDer;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A TLS server for `names`; gives its address and the PEM of the authority that vouches for it.
async fn server(names: &[&str]) -> (SocketAddr, String) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = ca.self_signed(&ca_key).unwrap().pem();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let leaf = CertificateParams::new(names).unwrap().signed_by(&key, &issuer).unwrap();
    let mut tls = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], PrivatePkcs8KeyDer::from(key.serialize_der()).into())
        .unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(|request: axum::extract::Request| async move {
        axum::Json(serde_json::json!({"version": format!("{:?}", request.version()), "uri": request.uri().to_string()}))
    });
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, router) = (acceptor.clone(), router.clone());
            tokio::spawn(async move {
                let Ok(stream) = acceptor.accept(stream).await else { return };
                let service = TowerToHyperService::new(router);
                let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    });
    (address, authority)
}

fn options(authority: &str) -> TransportOptions {
    TransportOptions {
        extra_roots: vec![authority.to_owned()],
        system_roots: false,
        ..TransportOptions::default()
    }
}

fn client(endpoint: &str, options: TransportOptions) -> Client {
    let mut cloud = Cloud::built_in(&cloud_config::PUBLIC).unwrap();
    cloud.resource_manager = endpoint.parse().unwrap();
    let transport = Transport::connect(options).unwrap();
    let no_retries = RetryPolicy { retries: 0, ..RetryPolicy::default() };
    Client::builder(cloud, transport, Credential::fixed("t")).retry(no_retries).build()
}

async fn ask(client: &Client) -> Result<Value, arm::Error> {
    client.get(&ResourceId::group("s", "g"), ApiVersion::RESOURCES, Class::Refresh).await
}

#[tokio::test]
async fn a_private_authority_is_trusted_when_named_and_only_then() {
    let (address, authority) = server(&["127.0.0.1"]).await;
    let endpoint = format!("https://{address}");
    let answer = ask(&client(&endpoint, options(&authority))).await.unwrap();
    assert_eq!(answer["version"], "HTTP/2.0");

    let (_, stranger) = server(&["127.0.0.1"]).await;
    let error = ask(&client(&endpoint, options(&stranger))).await.unwrap_err();
    let text = error.to_string();
    assert!(error.is_transient() && text.contains("certificate") && !text.contains('\n'), "{text}");

    let error = Transport::connect(options("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"))
        .unwrap_err();
    assert!(error.to_string().contains("an extra certificate authority is unusable"), "{error}");
    let nothing = TransportOptions { system_roots: false, ..TransportOptions::default() };
    let error = Transport::connect(nothing).unwrap_err();
    assert!(error.to_string().contains("set SSL_CERT_FILE"), "{error}");
}

#[tokio::test]
async fn nobody_at_the_address_is_one_line() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let (_, authority) = server(&["127.0.0.1"]).await;
    let text =
        ask(&client(&format!("https://{address}"), options(&authority))).await.unwrap_err().to_string();
    assert!(text.starts_with("GET resourceGroups/g: no answer from Azure: "), "{text}");
    assert!(text.to_lowercase().contains("connection refused") && !text.contains('\n'), "{text}");
}

/// A proxy that notes what it is asked for and leads every tunnel to one address.
async fn proxy(to: SocketAddr) -> (SocketAddr, Arc<parking_lot::Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<parking_lot::Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let seen = Arc::clone(&seen);
            tokio::spawn(async move {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(stream.read_u8().await.unwrap());
                }
                seen.lock().push(String::from_utf8(head).unwrap());
                stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let mut target = TcpStream::connect(to).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut target).await;
            });
        }
    });
    (address, asked)
}

#[tokio::test]
async fn https_goes_through_the_proxy_and_loopback_does_not() {
    let (address, authority) = server(&["management.azure.com", "127.0.0.1"]).await;
    let (proxy, asked) = proxy(address).await;
    let settings = ProxySettings { https: format!("http://user:word@{proxy}"), no_proxy: String::new() };
    let through = TransportOptions { proxy: settings, ..options(&authority) };
    ask(&client("https://management.azure.com", through.clone())).await.unwrap();
    {
        let asked = asked.lock();
        assert!(asked[0].starts_with("CONNECT management.azure.com:443 "), "{asked:?}");
        assert!(asked[0].to_lowercase().contains("proxy-authorization: basic "), "{asked:?}");
    }
    ask(&client(&format!("https://{address}"), through)).await.unwrap();
    assert_eq!(asked.lock().len(), 1);
}

#[tokio::test]
async fn a_host_can_be_redirected() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let router = Router::new().fallback(|| async { axum::Json(serde_json::json!({"here": true})) });
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
            .await;
    });
    let (_, authority) = server(&["127.0.0.1"]).await;
    let redirected = TransportOptions {
        redirects: vec![("169.254.169.254".to_owned(), format!("http://{address}"))],
        ..options(&authority)
    };
    let transport = Transport::connect(redirected).unwrap();
    let request = http::Request::get("http://169.254.169.254/metadata").body(bytes::Bytes::new()).unwrap();
    let answer = transport.send(request).await.unwrap();
    assert_eq!(answer.body(), &bytes::Bytes::from_static(b"{\"here\":true}"));
    let bad = TransportOptions { redirects: vec![("a".into(), "nowhere".into())], ..options(&authority) };
    assert!(Transport::connect(bad).unwrap_err().to_string().contains("it is no URL"));
}
