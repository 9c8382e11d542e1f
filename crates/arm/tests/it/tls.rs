//! Over real sockets: TLS with a private authority, a CONNECT proxy, redirected hosts.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// TLS for `names`, and the PEM of the issuing authority.
fn acceptor(names: &[&str]) -> (TlsAcceptor, String) {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    // Each has its own name, as authorities do.
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let name = format!("authority {}", NUMBER.fetch_add(1, Ordering::Relaxed));
    ca.distinguished_name.push(rcgen::DnType::CommonName, name);
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
    (TlsAcceptor::from(Arc::new(tls)), authority)
}

/// A TLS server for `names`; returns its address and the PEM of the issuing authority.
async fn server(names: &[&str]) -> (SocketAddr, String) {
    let (acceptor, authority) = acceptor(names);
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
    assert!(text.contains("SSL_CERT_FILE"), "the remedy: {text}");

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

/// Requests to a proxy: their heads.
type ReceivedRequests = Arc<parking_lot::Mutex<Vec<String>>>;

/// A proxy that records its requests and connects every tunnel to one address; with another answer than `200` it opens
/// no tunnel. With `tls` it uses TLS itself.
async fn proxy(
    to: SocketAddr,
    answer: &'static str,
    tls: Option<TlsAcceptor>,
) -> (SocketAddr, ReceivedRequests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let asked = ReceivedRequests::default();
    let seen = Arc::clone(&asked);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (seen, tls) = (Arc::clone(&seen), tls.clone());
            tokio::spawn(async move {
                match tls {
                    Some(tls) => tunnel(tls.accept(stream).await.unwrap(), to, answer, &seen).await,
                    None => tunnel(stream, to, answer, &seen).await,
                }
            });
        }
    });
    (address, asked)
}

async fn tunnel(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    to: SocketAddr,
    answer: &str,
    seen: &parking_lot::Mutex<Vec<String>>,
) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    seen.lock().push(String::from_utf8(head).unwrap());
    stream.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes()).await.unwrap();
    if answer.starts_with("200") {
        let mut target = TcpStream::connect(to).await.unwrap();
        let _ = tokio::io::copy_bidirectional(&mut stream, &mut target).await;
    }
}

fn proxied(variables: &[(&str, &str)], authority: &str) -> TransportOptions {
    let find =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    TransportOptions { proxy: ProxySettings::from_environment(find).unwrap(), ..options(authority) }
}

#[tokio::test]
async fn https_goes_through_the_proxy_and_exceptions_do_not() {
    let (address, authority) = server(&["management.azure.com", "127.0.0.1"]).await;
    let (proxy, asked) = proxy(address, "200 OK", None).await;
    let url = format!("http://user:w%40rd@{proxy}");
    ask(&client("https://management.azure.com", proxied(&[("https_proxy", &url)], &authority)))
        .await
        .unwrap();
    {
        let asked = asked.lock();
        assert!(asked[0].starts_with("CONNECT management.azure.com:443 "), "{asked:?}");
        // user:w@rd
        assert!(asked[0].contains("Proxy-Authorization: Basic dXNlcjp3QHJk\r\n"), "{asked:?}");
    }
    let through = proxied(&[("HTTPS_PROXY", &url)], &authority);
    ask(&client(&format!("https://{address}"), through)).await.unwrap();
    assert_eq!(asked.lock().len(), 1, "this machine is reached directly");
    let excepted = proxied(&[("HTTPS_PROXY", &url), ("NO_PROXY", ".azure.com")], &authority);
    // There is no such host without the proxy; only the proxy's requests count.
    ask(&client("https://nowhere.azure.com:1", excepted)).await.unwrap_err();
    assert_eq!(asked.lock().len(), 1);
}

#[tokio::test]
async fn the_way_to_a_proxy_may_need_tls_itself() {
    let (address, authority) = server(&["management.azure.com"]).await;
    let (acceptor, of_proxy) = acceptor(&["127.0.0.1"]);
    let (proxy, asked) = proxy(address, "200 Connection established", Some(acceptor)).await;
    let url = format!("https://{proxy}");
    let mut through = proxied(&[("HTTPS_PROXY", &url)], &authority);
    let endpoint = "https://management.azure.com";
    let stranger = ask(&client(endpoint, through.clone())).await.unwrap_err().to_string();
    assert!(stranger.contains(&url) && stranger.contains("SSL_CERT_FILE"), "{stranger}");
    through.extra_roots.push(of_proxy);
    assert_eq!(ask(&client(endpoint, through)).await.unwrap()["version"], "HTTP/2.0");
    assert_eq!(asked.lock().len(), 1);
}

/// A proxy that is down or refuses is named, with its variable and without its password.
#[tokio::test]
async fn a_proxy_that_does_not_lead_on_is_named() {
    let (address, authority) = server(&["management.azure.com"]).await;
    let (refusing, _) = proxy(address, "407 Proxy Authentication Required", None).await;
    let (closed, _) = proxy(address, "403 Forbidden", None).await;
    let down = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = down.local_addr().unwrap();
    drop(down);
    let refuses = "refuses to connect to";
    for (proxy, verb, words) in [
        (refusing, refuses, "proxy authorization required"),
        (closed, refuses, "unsuccessful"),
        (nobody, "does not lead to", "Connection refused"),
    ] {
        let url = format!("http://user:hunter2@{proxy}");
        let through = proxied(&[("HTTPS_PROXY", &url)], &authority);
        let error = ask(&client("https://management.azure.com", through.clone())).await.unwrap_err();
        let text = error.to_string();
        let named = format!("the proxy http://{proxy} of HTTPS_PROXY {verb} management.azure.com: ");
        assert!(text.contains(&named) && text.contains(words), "{text}");
        assert!(!format!("{text} {error:?} {through:?}").contains("hunter2"), "{error:?}");
        assert!(error.is_transient());
    }
}

/// Requests for tokens of Entra use the proxy like everything else; those to the metadata service never do.
#[tokio::test]
async fn tokens_of_entra_go_through_the_proxy_and_those_of_the_metadata_service_do_not() {
    let (address, authority) = server(&["login.microsoftonline.com"]).await;
    let (proxy, asked) = proxy(address, "200 OK", None).await;
    let url = format!("http://{proxy}");
    let through = proxied(&[("HTTPS_PROXY", &url), ("HTTP_PROXY", &url)], &authority);
    let check = async |config: &str, options: TransportOptions| {
        let config = cloud_config::CloudConfig::parse(config).unwrap();
        let cloud = Cloud::built_in(&config.endpoints()).unwrap();
        let transport = Transport::connect(options).unwrap();
        let credential = Credential::from_config(&config, &cloud, &transport, arm::Clock::system()).unwrap();
        Client::builder(cloud, transport, credential).build().check_credential().await
    };
    let text = check("{tenantId: t, aadClientId: c, aadClientSecret: s}", through.clone()).await.unwrap_err();
    assert!(text.to_string().contains("login.microsoftonline.com answered without a token"), "{text}");
    assert!(asked.lock()[0].starts_with("CONNECT login.microsoftonline.com:443 "));

    let router = Router::new().fallback(|| async {
        axum::Json(serde_json::json!({"access_token": "t", "expires_on": "4102444800"}))
    });
    let metadata = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let direct = TransportOptions {
        // The address of the metadata service is unreachable from here.
        redirects: vec![("169.254.169.254".to_owned(), format!("http://{}", metadata.local_addr().unwrap()))],
        ..through
    };
    tokio::spawn(async move { axum_serve(metadata, router).await });
    check("{useManagedIdentityExtension: true}", direct).await.unwrap();
    assert_eq!(asked.lock().len(), 1);
}

async fn axum_serve(listener: TcpListener, router: Router) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = TowerToHyperService::new(router.clone());
        let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
            .serve_connection(TokioIo::new(stream), service)
            .await;
    }
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
    assert!(Transport::connect(bad).unwrap_err().to_string().contains("it is not a URL"));
}
