//! The way from a client to an API server, request by request.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use futures::StreamExt as _;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use kube::Client;
use kubernetes_simulator::Kubernetes;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt as _};

use super::WorkloadClusters;

/// Where requests go.
#[derive(Clone)]
enum Way {
    /// To whoever answers at an endpoint.
    Endpoint(WorkloadClusters, String),
    /// Past all networks.
    Straight(Kubernetes),
}

/// A service that takes requests to an API server, with a token.
#[derive(Clone)]
pub(super) struct Road {
    way: Way,
    token: String,
}

impl Road {
    pub(super) fn client(clusters: WorkloadClusters, endpoint: String, token: String) -> Client {
        Client::new(Self { way: Way::Endpoint(clusters, endpoint), token }, "default")
    }

    /// The API server, and what is cancelled when it goes.
    fn arrive(&self) -> Result<(Kubernetes, CancellationToken), String> {
        match &self.way {
            Way::Straight(kubernetes) => Ok((kubernetes.clone(), CancellationToken::new())),
            Way::Endpoint(clusters, endpoint) => {
                let from = &clusters.inner.options.management;
                let (_, kubernetes, up) = clusters.api_server(from, &BTreeMap::new(), endpoint)?;
                Ok((kubernetes, up))
            }
        }
    }
}

/// A client past all networks.
pub(super) fn direct(kubernetes: &Kubernetes, token: &str) -> Client {
    Client::new(Road { way: Way::Straight(kubernetes.clone()), token: token.to_owned() }, "default")
}

impl Service<Request<kube::client::Body>> for Road {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<kube::client::Body>) -> Self::Future {
        let road = self.clone();
        Box::pin(async move {
            let (kubernetes, up) =
                road.arrive().map_err(|why| io::Error::new(io::ErrorKind::ConnectionRefused, why))?;
            let token = HeaderValue::from_str(&format!("Bearer {}", road.token));
            request.headers_mut().insert(AUTHORIZATION, token.map_err(io::Error::other)?);
            let cut =
                || io::Error::new(io::ErrorKind::ConnectionReset, "the machine of the API server is gone");
            let answer =
                up.run_until_cancelled(kubernetes.router().oneshot(request)).await.ok_or_else(cut)?;
            let Ok(answer) = answer;
            // What a watch has to say ends, too.
            let watched =
                |body: Body| Body::from_stream(body.into_data_stream().take_until(up.cancelled_owned()));
            Ok(answer.map(watched))
        })
    }
}
