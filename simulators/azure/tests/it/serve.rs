//! Listeners over real sockets: TLS handshakes, both HTTP versions, a clean end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Extensions;
use axum::routing::get;
use azure_simulator::serve::{Scheme, serve};
use certificate_authority::CertificateAuthority;
use http::{Request, StatusCode};
use http_body_util::BodyExt as _;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

fn router() -> Router {
    async fn who(extensions: Extensions) -> String {
        let peer = extensions.get::<ConnectInfo<SocketAddr>>().unwrap().0;
        format!("{} {}", extensions.get::<Scheme>().unwrap().as_str(), peer.ip())
    }
    async fn forever() -> Body {
        Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>())
    }
    Router::new().route("/who", get(who)).route("/forever", get(forever))
}

fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Performs the handshake and answers with the protocol that was agreed on.
async fn connect(
    authority: &CertificateAuthority,
    address: SocketAddr,
    name: &str,
    offer: &[&str],
) -> std::io::Result<tokio_rustls::client::TlsStream<TcpStream>> {
    let mut config = authority.client_config().unwrap();
    config.alpn_protocols = offer.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await.unwrap();
    TlsConnector::from(Arc::new(config)).connect(name.to_owned().try_into().unwrap(), stream).await
}

#[tokio::test]
async fn https_speaks_both_http_versions_to_clients_that_trust_the_authority() {
    let authority = CertificateAuthority::generate().unwrap();
    let tls = authority.server_config(&["localhost", "127.0.0.1"]).unwrap();
    let stop = CancellationToken::new();
    let server = serve(any_port(), router(), Some(tls), stop.clone()).await.unwrap();
    assert_ne!(server.address().port(), 0);
    assert_eq!(server.url(), format!("https://{}", server.address()));

    let stream = connect(&authority, server.address(), "localhost", &["h2", "http/1.1"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
    let (mut sender, driver) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let response = sender
        .send_request(Request::get("https://localhost/who").body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "https 127.0.0.1");
    drop(sender);

    let stream = connect(&authority, server.address(), "127.0.0.1", &["http/1.1"]).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"http/1.1"[..]));
    let (mut sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(driver);
    let request = Request::get("/who").header("host", "localhost").body(Body::empty()).unwrap();
    let response = sender.send_request(request).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "https 127.0.0.1");

    let stranger = CertificateAuthority::generate().unwrap();
    connect(&stranger, server.address(), "localhost", &["h2"]).await.unwrap_err();
    connect(&authority, server.address(), "elsewhere.example", &["h2"]).await.unwrap_err();
    stop.cancel();
    server.stopped().await;
}

#[tokio::test]
async fn plain_http_stops_without_waiting_for_idle_or_endless_connections() {
    let stop = CancellationToken::new();
    let server = serve(any_port(), router(), None, stop.clone()).await.unwrap();
    let address = server.address();
    assert!(server.url().starts_with("http://127.0.0.1:"));

    let idle = TcpStream::connect(address).await.unwrap();
    let (mut sender, driver) =
        hyper::client::conn::http1::handshake(TokioIo::new(TcpStream::connect(address).await.unwrap()))
            .await
            .unwrap();
    tokio::spawn(driver);
    let request = |path| Request::get(path).header("host", "x").body(Body::empty()).unwrap();
    let who = sender.send_request(request("/who")).await.unwrap();
    assert_eq!(who.into_body().collect().await.unwrap().to_bytes(), "http 127.0.0.1");
    let endless = sender.send_request(request("/forever")).await.unwrap();

    stop.cancel();
    tokio::time::timeout(Duration::from_secs(8), server.stopped()).await.expect("the server stops");
    assert!(TcpStream::connect(address).await.is_err(), "the listener is closed");
    drop((idle, endless));
}

#[tokio::test]
async fn a_taken_address_is_named_in_the_error() {
    let stop = CancellationToken::new();
    let server = serve(any_port(), router(), None, stop.clone()).await.unwrap();
    let error = serve(server.address(), router(), None, stop.clone()).await.unwrap_err();
    assert!(error.to_string().contains(&server.address().to_string()), "{error}");
    stop.cancel();
}
