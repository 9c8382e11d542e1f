//! Where a driver listens (section 2.1 of the specification of the drivers).

use std::os::unix::fs::PermissionsExt as _;

use csi::endpoint::Endpoint;
use csi::listener::{ListenError, Listener};
use csi::server::serve;
use csi::v1::identity_client::IdentityClient;
use csi::v1::plugin_capability::{Service, Type, VolumeExpansion};
use csi::v1::{GetPluginCapabilitiesRequest, GetPluginInfoRequest, ProbeRequest};
use tokio_util::sync::CancellationToken;

use crate::driver::{Running, connect, driver};

#[tokio::test]
async fn a_driver_says_what_it_is_over_its_socket() {
    let running = Running::start().await;
    let mut client = IdentityClient::new(connect(&running.socket).await.unwrap());
    let info = client.get_plugin_info(GetPluginInfoRequest {}).await.unwrap().into_inner();
    assert_eq!((info.name.as_str(), info.vendor_version.as_str()), ("disk.csi.azure.com", "1.2.3"));
    let probe = client.probe(ProbeRequest {}).await.unwrap().into_inner();
    assert_eq!(probe.ready, Some(true));
    let answer = client.get_plugin_capabilities(GetPluginCapabilitiesRequest {}).await.unwrap().into_inner();
    let capabilities: Vec<_> = answer.capabilities.into_iter().filter_map(|one| one.r#type).collect();
    let expected = [
        Type::Service(Service { r#type: 1 }),
        Type::Service(Service { r#type: 2 }),
        Type::VolumeExpansion(VolumeExpansion { r#type: 2 }),
    ];
    assert_eq!(capabilities, expected);
}

#[tokio::test]
async fn its_owner_alone_may_connect_to_a_socket() {
    let running = Running::start().await;
    let mode = std::fs::metadata(&running.socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn a_socket_that_an_earlier_process_left_is_replaced_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("csi.sock");
    let endpoint = Endpoint::Unix(path.clone());
    drop(Listener::bind(&endpoint).await.unwrap());
    assert!(path.exists(), "this test needs a stale socket");
    let listener = Listener::bind(&endpoint).await.unwrap();
    let (services, ..) = driver();
    tokio::spawn(serve(services, listener, CancellationToken::new()));
    let mut client = IdentityClient::new(connect(&path).await.unwrap());
    client.probe(ProbeRequest {}).await.unwrap();

    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "keep me").unwrap();
    let error = Listener::bind(&Endpoint::Unix(path.clone())).await.unwrap_err();
    assert!(matches!(error, ListenError::Occupied(_)), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "keep me");

    let missing = Endpoint::Unix(folder.path().join("none/csi.sock"));
    let error = Listener::bind(&missing).await.unwrap_err();
    assert!(error.to_string().contains(&format!("cannot listen at {missing}: ")), "{error}");
}

#[tokio::test]
async fn a_driver_listens_on_tcp_by_address_and_by_port_alone() {
    for text in ["tcp://127.0.0.1:0", "tcp://:0", "tcp://localhost:0"] {
        let listener = Listener::bind(&text.parse().unwrap()).await.unwrap();
        let port = listener.tcp_address().unwrap().port();
        let (services, ..) = driver();
        tokio::spawn(serve(services, listener, CancellationToken::new()));
        let host = if text.contains("localhost") { "localhost" } else { "127.0.0.1" };
        let channel = tonic::transport::Endpoint::from_shared(format!("http://{host}:{port}")).unwrap();
        let mut client = IdentityClient::new(channel.connect().await.unwrap());
        client.probe(ProbeRequest {}).await.unwrap_or_else(|error| panic!("{text}: {error}"));
    }
}
