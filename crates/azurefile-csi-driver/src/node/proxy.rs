//! The program on the machine that mounts with encryption in transit (the established driver's `azurefile-proxy`): one call over gRPC
//! on a Unix socket.

use std::path::PathBuf;

use async_trait::async_trait;
use csi::endpoint::Endpoint;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Status};
use tonic_prost::ProstCodec;

use super::outside::{Proxy, ProxyMount};

const METHOD: &str = "/MountService/MountAzureFile";

/// What is to be mounted (`MountAzureFileRequest`).
#[derive(Clone, PartialEq, prost::Message)]
struct MountRequest {
    #[prost(string, tag = "1")]
    source: String,
    #[prost(string, tag = "2")]
    target: String,
    #[prost(string, tag = "3")]
    kind: String,
    #[prost(string, repeated, tag = "4")]
    options: Vec<String>,
    #[prost(string, repeated, tag = "5")]
    sensitive_options: Vec<String>,
}

/// It is mounted (`MountAzureFileResponse`).
#[derive(Clone, PartialEq, prost::Message)]
struct MountResponse {}

/// The proxy at its endpoint (`--azurefile-proxy-endpoint`). Each mount makes a connection of its own.
#[derive(Debug, Clone)]
pub struct GrpcProxy(Endpoint);

impl GrpcProxy {
    /// The proxy at this endpoint.
    pub fn new(endpoint: Endpoint) -> Self {
        Self(endpoint)
    }

    async fn channel(&self) -> Result<Channel, tonic::transport::Error> {
        // The name is not used: the socket decides who answers.
        let endpoint = tonic::transport::Endpoint::from_static("http://azurefile-proxy");
        match self.0.clone() {
            Endpoint::Unix(path) => {
                let connect = move |_| unix(path.clone());
                endpoint.connect_with_connector(tower::service_fn(connect)).await
            }
            Endpoint::Tcp(address) => {
                let connect = move |_| tcp(address.clone());
                endpoint.connect_with_connector(tower::service_fn(connect)).await
            }
        }
    }

    async fn call(&self, request: MountRequest) -> Result<(), Status> {
        let unreachable = |error: tonic::transport::Error| {
            Status::unavailable(format!("{} does not answer: {error}", self.0))
        };
        let channel = self.channel().await.map_err(unreachable)?;
        let mut client = tonic::client::Grpc::new(channel);
        client.ready().await.map_err(unreachable)?;
        let codec = ProstCodec::<MountRequest, MountResponse>::default();
        client.unary(Request::new(request), PathAndQuery::from_static(METHOD), codec).await.map(drop)
    }
}

async fn unix(path: PathBuf) -> std::io::Result<TokioIo<UnixStream>> {
    UnixStream::connect(path).await.map(TokioIo::new)
}

async fn tcp(address: String) -> std::io::Result<TokioIo<TcpStream>> {
    TcpStream::connect(address).await.map(TokioIo::new)
}

#[async_trait]
impl Proxy for GrpcProxy {
    async fn mount(&self, mount: &ProxyMount) -> Result<(), String> {
        let request = MountRequest {
            source: mount.source.clone(),
            target: mount.target.display().to_string(),
            kind: mount.kind.clone(),
            options: mount.options.clone(),
            sensitive_options: Vec::new(),
        };
        self.call(request).await.map_err(|status| status.message().to_owned())
    }
}
