//! The server over TLS, through the kubeconfig that it writes. These tests use sockets and real time.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certificate_authority::{CertificateAuthority, ClientCertificate};
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use kubernetes_simulator::{Kubernetes, Options, Token};
use serde_json::json;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

use crate::api::*;

#[tokio::test]
async fn a_client_with_the_kubeconfig_reads_and_watches() {
    let names = vec!["api.example.com".to_owned()];
    let options = Options { tokens: vec![Token::generate()], server_names: names, ..Options::default() };
    let kubernetes = Kubernetes::new(options);
    let shutdown = CancellationToken::new();
    let address = kubernetes.serve_https("127.0.0.1:0".parse().unwrap(), shutdown.clone()).await.unwrap();
    let text = kubernetes.kubeconfig(&format!("https://{address}")).unwrap();
    let config = Kubeconfig::from_yaml(&text).unwrap();
    let mut config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    let client = Client::try_from(config).unwrap();
    let api: Api<ConfigMap> = Api::default_namespaced(client);
    let version = kubernetes.resource_version().to_string();
    let mut watch = api.watch(&WatchParams::default(), &version).await.unwrap().boxed();
    api.create(&PostParams::default(), &typed(config_map("a", json!({})))).await.unwrap();
    assert!(
        matches!(watch.try_next().await.unwrap(), Some(WatchEvent::Added(object)) if object.metadata.name.as_deref() == Some("a"))
    );

    shutdown.cancel();
    while let Ok(Some(_)) = watch.try_next().await {}
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(api.get("a").await.is_err(), "the listener is closed");
}

#[tokio::test]
async fn a_client_is_who_its_certificate_says() {
    let kubernetes = Kubernetes::new(Options { tokens: vec![Token::generate()], ..Options::default() });
    let address =
        kubernetes.serve_https("127.0.0.1:0".parse().unwrap(), CancellationToken::new()).await.unwrap();
    let server = format!("https://{address}");
    let who = async |authority: &CertificateAuthority| {
        let client = ClientCertificate { user: "jane".to_owned(), groups: vec!["developers".to_owned()] };
        let issued = authority.issue_client(&client).unwrap();
        let mut config: serde_json::Value =
            serde_saphyr::from_str(&kubernetes.kubeconfig(&server).unwrap()).unwrap();
        config["users"][0]["user"] = json!({"client-certificate-data": STANDARD.encode(&issued.certificate_pem),
            "client-key-data": STANDARD.encode(&issued.key_pem)});
        let config = Kubeconfig::from_yaml(&config.to_string()).unwrap();
        let mut config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
        config.default_retry = false;
        let review = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header("content-type", "application/json")
            .body(b"{}".to_vec());
        let answer = Client::try_from(config).unwrap().request::<serde_json::Value>(review.unwrap()).await;
        answer.map(|answer| answer["status"]["userInfo"].clone())
    };
    let seen = who(&*kubernetes.authority().unwrap()).await.unwrap();
    assert_eq!(seen, json!({"username": "jane", "groups": ["developers", "system:authenticated"]}));
    who(&CertificateAuthority::generate().unwrap()).await.expect_err("one of another authority");
}

/// KubeadmControlPlane finds the certificate whose end it reads by the name that kubeadm gives it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_certificate_has_the_name_that_kubeadm_gives_it() {
    let kubernetes = Kubernetes::new(Options::default());
    let shutdown = CancellationToken::new();
    let authority = CertificateAuthority::generate().unwrap();
    let any = "127.0.0.1:0".parse().unwrap();
    let address = kubernetes.serve_https_as(&authority, &["localhost"], any, shutdown).await.unwrap();
    let stream = TcpStream::connect(address).await.unwrap();
    let connector = TlsConnector::from(Arc::new(authority.client_config().unwrap()));
    let connected = connector.connect("localhost".try_into().unwrap(), stream).await.unwrap();
    let shown = connected.get_ref().1.peer_certificates().unwrap();
    assert_eq!(ClientCertificate::read(&shown[0]).unwrap().user, "kube-apiserver");
}
