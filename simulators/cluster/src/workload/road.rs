//! The connection from a client to an API server, request by request.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use certificate_authority::CertificateAuthority;
use futures::StreamExt as _;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response};
use kube::Client;
use kubernetes_simulator::Kubernetes;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, UnixTime};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower::{Service, ServiceExt as _};

use super::state::WorkloadClusters;

/// The destination of requests.
#[derive(Clone)]
enum Way {
    /// The API server behind an endpoint.
    Endpoint(WorkloadClusters, String),
    /// A Kubernetes, bypassing all networks.
    Straight(Kubernetes),
}

/// A client's credentials.
#[derive(Clone)]
pub(super) enum Proof {
    Token(String),
    /// A certificate and its chain. The key stays with the client: nothing is encrypted here.
    Certificates(Vec<CertificateDer<'static>>),
}

impl Proof {
    /// The credentials of a user in a kubeconfig.
    pub(super) fn of_user(user: &Value) -> Option<Self> {
        if let Some(token) = user["token"].as_str() {
            return Some(Self::Token(token.to_owned()));
        }
        let pem = STANDARD.decode(user["client-certificate-data"].as_str()?).ok()?;
        let chain = CertificateDer::pem_slice_iter(&pem).collect::<Result<Vec<_>, _>>().ok()?;
        Some(Self::Certificates(chain))
    }
}

/// A service that sends requests to an API server, with the client's credentials.
#[derive(Clone)]
pub(super) struct Road {
    way: Way,
    proof: Proof,
}

/// An API server that was reached.
struct Arrival {
    kubernetes: Kubernetes,
    /// The authority whose client certificates it accepts; `None` when networks are bypassed.
    authority: Option<Arc<CertificateAuthority>>,
    /// Cancelled when it goes.
    up: CancellationToken,
}

impl Road {
    pub(super) fn client(clusters: WorkloadClusters, endpoint: String, proof: Proof) -> Client {
        Client::new(Self { way: Way::Endpoint(clusters, endpoint), proof }, "default")
    }

    fn arrive(&self) -> Result<Arrival, String> {
        match &self.way {
            Way::Straight(kubernetes) => {
                let kubernetes = kubernetes.clone();
                Ok(Arrival { kubernetes, authority: None, up: CancellationToken::new() })
            }
            Way::Endpoint(clusters, endpoint) => {
                let from = &clusters.inner.options.management;
                let (at, kubernetes, up) = clusters.api_server(from, &BTreeMap::new(), endpoint)?;
                let authority = clusters.authority(&at).map(|(authority, _)| authority);
                Ok(Arrival { kubernetes, authority, up })
            }
        }
    }

    /// Adds the credentials to a request.
    fn show(&self, arrival: &Arrival, request: &mut Request<kube::client::Body>) -> io::Result<()> {
        match &self.proof {
            Proof::Token(token) => {
                let token = HeaderValue::from_str(&format!("Bearer {token}")).map_err(io::Error::other)?;
                request.headers_mut().insert(AUTHORIZATION, token);
            }
            Proof::Certificates(chain) => {
                let refused = || io::Error::other("the API server asks for no certificates");
                let authority = arrival.authority.as_ref().ok_or_else(refused)?;
                let now = arrival.kubernetes.now().as_second().unsigned_abs();
                let now = UnixTime::since_unix_epoch(Duration::from_secs(now));
                let client = authority.client(chain, now).map_err(io::Error::other)?;
                request.extensions_mut().insert(client);
            }
        }
        Ok(())
    }
}

/// A client that bypasses all networks.
pub(super) fn direct(kubernetes: &Kubernetes, token: &str) -> Client {
    let proof = Proof::Token(token.to_owned());
    Client::new(Road { way: Way::Straight(kubernetes.clone()), proof }, "default")
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
            let arrival =
                road.arrive().map_err(|why| io::Error::new(io::ErrorKind::ConnectionRefused, why))?;
            road.show(&arrival, &mut request)?;
            let Arrival { kubernetes, up, .. } = arrival;
            let cut =
                || io::Error::new(io::ErrorKind::ConnectionReset, "the machine of the API server is gone");
            let answer =
                up.run_until_cancelled(kubernetes.router().oneshot(request)).await.ok_or_else(cut)?;
            let Ok(answer) = answer;
            // Watches end, too.
            let watched =
                |body: Body| Body::from_stream(body.into_data_stream().take_until(up.cancelled_owned()));
            Ok(answer.map(watched))
        })
    }
}
