//! The request to forward ports, and the upgrade of its connection.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use http::header::{CONNECTION, UPGRADE};
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;

use crate::rest::port_forward::ports::{PodPorts, Ports};
use crate::rest::port_forward::session;
use crate::server::handle::Kubernetes;
use crate::status::ApiError;

const SPDY: &str = "SPDY/3.1";
/// The protocol of the streams.
const PROTOCOL: &str = "portforward.k8s.io";
const PROTOCOL_HEADER: &str = "x-stream-protocol-version";

impl Kubernetes {
    /// Sets the servers of all pods' ports. Without them port forwarding is not implemented.
    pub fn answer_at_ports(&self, ports: Arc<dyn PodPorts>) {
        *self.shared.ports.lock() = Ports(Some(ports));
    }

    pub(crate) fn has_ports(&self) -> bool {
        self.shared.ports.lock().0.is_some()
    }

    /// Answers a request to forward ports of a pod, and serves the connection after it.
    ///
    /// # Errors
    /// The client requests another protocol, or the connection cannot be upgraded.
    pub(crate) fn forward_ports(
        &self,
        namespace: &str,
        pod: &str,
        parts: &mut Parts,
    ) -> Result<Response<Body>, ApiError> {
        let says = |name: &str, wanted: &str| {
            let values = parts.headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
            values.flat_map(|value| value.split(',')).any(|value| value.trim().eq_ignore_ascii_case(wanted))
        };
        if !says(UPGRADE.as_str(), SPDY) || !says(PROTOCOL_HEADER, PROTOCOL) {
            return Err(ApiError::bad_request(format!(
                "unable to upgrade: {SPDY} with {PROTOCOL} alone is served"
            )));
        }
        let ports = self.shared.ports.lock().0.clone();
        let upgrade = parts.extensions.remove::<OnUpgrade>();
        let (Some(ports), Some(upgrade)) = (ports, upgrade) else {
            return Err(ApiError::bad_request("unable to upgrade: this connection cannot be"));
        };
        let (namespace, pod) = (namespace.to_owned(), pod.to_owned());
        tokio::spawn(async move {
            match upgrade.await {
                Ok(connection) => {
                    let connect = |port| ports.connect(&namespace, &pod, port);
                    if let Err(error) = session::serve(TokioIo::new(connection), connect).await {
                        tracing::debug!(pod, %error, "port forwarding ended");
                    }
                }
                Err(error) => tracing::debug!(pod, %error, "a connection was not upgraded"),
            }
        });
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static(SPDY));
        headers.insert(PROTOCOL_HEADER, HeaderValue::from_static(PROTOCOL));
        Ok(response)
    }
}
