//! A driver for tests, and its clients.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use csi::call::Call;
use csi::endpoint::Endpoint;
use csi::identity::Plugin;
use csi::listener::Listener;
use csi::observed::Observer;
use csi::operation::{Driver, Operation};
use csi::server::{Services, serve, services};
use csi::v1::controller_client::ControllerClient;
use csi::v1::controller_server::Controller;
use csi::v1::node_server::Node;
use csi::v1::plugin_capability::{service, volume_expansion};
use csi::v1::{
    CreateVolumeRequest, CreateVolumeResponse, DeleteVolumeRequest, DeleteVolumeResponse,
    NodeGetCapabilitiesRequest, NodeGetCapabilitiesResponse, Volume,
};
use hyper_util::rt::TokioIo;
use telemetry::metrics::Metrics;
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Response, Status};

/// What a test holds of a call of DeleteVolume: the handler waits for `go_on`, and `begun` closes when it is dropped.
#[derive(Debug, Clone)]
pub struct Deleting {
    begun: mpsc::Sender<()>,
    pub go_on: Arc<Notify>,
}

/// The driver's services. A volume called `bad` cannot be created; a volume with a source comes from a snapshot.
pub struct TestDriver(Deleting);

#[tonic::async_trait]
impl Controller for TestDriver {
    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Result<Response<CreateVolumeResponse>, Status> {
        let request = request.into_inner();
        if request.name == "bad" {
            let mut status = Status::resource_exhausted("x".repeat(5_000));
            status.metadata_mut().insert("after", MetadataValue::from_static("12"));
            return Err(status);
        }
        if request.volume_content_source.is_some() {
            Call::current().is(Operation::CreateVolumeFromSnapshot);
        }
        Call::current().label("storage_account_type", "Premium_LRS");
        let volume = Volume { volume_id: request.name, ..Volume::default() };
        Ok(Response::new(CreateVolumeResponse { volume: Some(volume) }))
    }

    async fn delete_volume(
        &self,
        _: Request<DeleteVolumeRequest>,
    ) -> Result<Response<DeleteVolumeResponse>, Status> {
        let begun = self.0.begun.clone();
        begun.send(()).await.unwrap();
        self.0.go_on.notified().await;
        Ok(Response::new(DeleteVolumeResponse {}))
    }
}

#[tonic::async_trait]
impl Node for TestDriver {
    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Result<Response<NodeGetCapabilitiesResponse>, Status> {
        Ok(Response::new(NodeGetCapabilitiesResponse::default()))
    }
}

/// A driver, its metrics, and a message for each call of DeleteVolume that has begun.
pub fn driver() -> (Services, Metrics, Deleting, mpsc::Receiver<()>) {
    let plugin = Plugin {
        name: "disk.csi.azure.com".to_owned(),
        version: "1.2.3".to_owned(),
        services: vec![service::Type::ControllerService, service::Type::VolumeAccessibilityConstraints],
        expansion: vec![volume_expansion::Type::Offline],
    };
    let metrics = Metrics::default();
    let (begun, begins) = mpsc::channel(1);
    let deleting = Deleting { begun, go_on: Arc::default() };
    let observer = Observer::of(&metrics, Driver::Disk);
    let services = services(plugin, TestDriver(deleting.clone()), TestDriver(deleting.clone()), observer);
    (services, metrics, deleting, begins)
}

/// A driver that listens at a socket in a folder of its own.
pub struct Running {
    pub metrics: Metrics,
    pub deleting: Deleting,
    pub begins: mpsc::Receiver<()>,
    pub stop: CancellationToken,
    pub ended: JoinHandle<Result<(), tonic::transport::Error>>,
    pub socket: PathBuf,
    _folder: TempDir,
}

impl Running {
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("csi.sock");
        let listener = Listener::bind(&Endpoint::Unix(socket.clone())).await.unwrap();
        let (services, metrics, deleting, begins) = driver();
        let stop = CancellationToken::new();
        let ended = tokio::spawn(serve(services, listener, stop.clone()));
        Self { metrics, deleting, begins, stop, ended, socket, _folder: folder }
    }

    pub async fn controller(&self) -> ControllerClient<Channel> {
        ControllerClient::new(connect(&self.socket).await.unwrap())
    }
}

pub async fn connect(socket: &Path) -> Result<Channel, tonic::transport::Error> {
    let socket = socket.to_owned();
    let connector = tower::service_fn(move |_| {
        let socket = socket.clone();
        async move { UnixStream::connect(socket).await.map(TokioIo::new) }
    });
    tonic::transport::Endpoint::from_static("http://csi").connect_with_connector(connector).await
}
