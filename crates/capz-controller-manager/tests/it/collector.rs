//! A collector of OpenTelemetry traces: gRPC, over TLS or in the clear.

use std::collections::HashMap;
use std::sync::Arc;

use certificate_authority::CertificateAuthority;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{Request, Response, Status};

/// The requests so far, over any connection.
#[derive(Clone, Default)]
struct Received(Arc<Mutex<Vec<Sent>>>);

/// The headers of a request, and its content.
type Sent = (HashMap<String, String>, ExportTraceServiceRequest);

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let headers = request.metadata().clone().into_headers();
        let headers =
            headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        self.0.lock().push((headers.collect(), request.into_inner()));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

/// A running collector.
pub struct Collector {
    received: Received,
    pub url: String,
    _stop: DropGuard,
}

impl Collector {
    /// Serves at this port, 0 for any; with a certificate of this authority, or in the clear.
    pub async fn start(port: u16, authority: Option<&CertificateAuthority>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).await.unwrap();
        let tls = authority.map(|authority| authority.server_config(&["127.0.0.1"]).unwrap());
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}", listener.local_addr().unwrap());
        let (received, stop) = (Received::default(), CancellationToken::new());
        let service = TraceServiceServer::new(received.clone());
        let accepting = async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let service = TowerToHyperService::new(service.clone());
                let tls = tls.clone().map(TlsAcceptor::from);
                tokio::spawn(async move {
                    let server = auto::Builder::new(TokioExecutor::new());
                    // Clients disconnect without notice.
                    match tls {
                        None => drop(server.serve_connection(TokioIo::new(stream), service).await),
                        Some(tls) => {
                            let stream = TokioIo::new(tls.accept(stream).await.unwrap());
                            drop(server.serve_connection(stream, service).await);
                        }
                    }
                });
            }
        };
        tokio::spawn(stop.clone().run_until_cancelled_owned(accepting));
        Self { received, url, _stop: stop.drop_guard() }
    }

    /// Headers and content of each request so far.
    pub fn requests(&self) -> Vec<Sent> {
        self.received.0.lock().clone()
    }

    /// All spans so far.
    pub fn spans(&self) -> Vec<Span> {
        let requests = self.requests().into_iter().flat_map(|(_, request)| request.resource_spans);
        requests.flat_map(|resource| resource.scope_spans).flat_map(|scope| scope.spans).collect()
    }
}

/// Attributes as texts.
pub fn texts(attributes: &[KeyValue]) -> HashMap<&str, String> {
    let text = |attribute: &KeyValue| match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => format!("number {number}"),
        other => format!("{other:?}"),
    };
    attributes.iter().map(|attribute| (attribute.key.as_str(), text(attribute))).collect()
}
