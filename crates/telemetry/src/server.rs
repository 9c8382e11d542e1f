//! Listeners for health checks, metrics and webhooks, with TLS and without.
//!
//! They run before and without leadership, so that standby replicas answer too.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{HeaderMap, StatusCode, header};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::metrics::{Metrics, ScrapeMetrics};
use crate::tls::{TlsOptions, server_config};

pub use crate::serve_error::ServeError;

/// How long a client may take to agree on TLS.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a client may take to send the head of a request; the limit of Kubernetes' own servers.
const HEADER_TIMEOUT: Duration = Duration::from_secs(32);

/// How long a request may take after the stop.
const GRACE: Duration = Duration::from_secs(5);

/// Pause after the operating system refused to accept a connection, so that a process without free file descriptors
/// does not spin.
const ACCEPT_RETRY_INTERVAL: Duration = Duration::from_secs(1);

/// Decides which callers may read protected paths.
#[async_trait]
pub trait Authorizer: Send + Sync {
    /// Whether the bearer of `token` may `get` `path`; `false` if that cannot be determined.
    async fn may_get(&self, token: &str, path: &str) -> bool;
}

/// The clients that may read metrics.
#[derive(Clone)]
pub enum Readers {
    /// All clients that reach the port.
    Everyone,
    /// Callers with a token that this authorizer admits.
    Authorized(Arc<dyn Authorizer>),
}

/// `/metrics` and `/metrics/v2`.
pub fn metrics_router(metrics: Metrics, readers: Readers) -> axum::Router {
    let scrapes = ScrapeMetrics::of(&metrics);
    axum::Router::new()
        .route("/metrics", get(read_metrics))
        .route("/metrics/v2", get(read_metrics))
        .with_state((metrics, scrapes, readers))
}

async fn read_metrics(
    State((metrics, scrapes, readers)): State<(Metrics, ScrapeMetrics, Readers)>,
    headers: HeaderMap,
) -> Response {
    scrapes.received();
    let answer = answer_scrape(metrics, readers, &headers).await;
    scrapes.answered(answer.status().as_u16());
    answer
}

async fn answer_scrape(metrics: Metrics, readers: Readers, headers: &HeaderMap) -> Response {
    if let Readers::Authorized(authorizer) = readers {
        let token = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.strip_prefix("Bearer "));
        let Some(token) = token else { return StatusCode::UNAUTHORIZED.into_response() };
        if !authorizer.may_get(token, "/metrics").await {
            return StatusCode::FORBIDDEN.into_response();
        }
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], metrics.encode()).into_response()
}

/// A running listener.
#[derive(Debug)]
pub struct Listening {
    /// The address, with the port that the system chose if none was requested.
    pub address: SocketAddr,
    tasks: TaskTracker,
}

impl Listening {
    /// Whether it still accepts connections.
    pub fn is_open(&self) -> bool {
        !self.tasks.is_closed()
    }

    /// Waits until the requests that arrived before the stop are answered.
    pub async fn ended(&self) {
        self.tasks.wait().await;
    }
}

/// Serves `router` until `stop`, over HTTPS if `tls` is set; returns once the address is bound. After the stop, pending
/// requests have five seconds to finish.
///
/// # Errors
/// The certificate is unusable, or the address, which `flag` requests, cannot be bound.
pub async fn serve(
    router: axum::Router,
    (address, flag): (SocketAddr, &'static str),
    tls: Option<&TlsOptions>,
    stop: CancellationToken,
) -> Result<Listening, ServeError> {
    let mut acceptor = None;
    if let Some(tls) = tls {
        let (config, files) = server_config(tls)?;
        acceptor = Some(TlsAcceptor::from(Arc::new(config)));
        if let Some(files) = files {
            let stop = stop.clone();
            tokio::spawn(async move { stop.run_until_cancelled(files.watch()).await });
        }
    }
    let refused = |reason| ServeError::Bind { address, flag, reason };
    let listener = process::bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    let (listener, tasks) = (Arc::new(listener), TaskTracker::new());
    let connections = tasks.clone();
    tasks.spawn(async move {
        let accepting = accept_all(
            || {
                let listener = Arc::clone(&listener);
                async move { listener.accept().await.map(|(stream, _peer)| stream) }
            },
            |stream| {
                connections.spawn(serve_connection(stream, acceptor.clone(), router.clone(), stop.clone()));
            },
        );
        stop.run_until_cancelled(accepting).await;
        connections.close();
    });
    Ok(Listening { address: bound, tasks })
}

/// Accepts for ever.
async fn accept_all<S, F>(mut accept: impl FnMut() -> F, mut serve: impl FnMut(S))
where
    F: Future<Output = io::Result<S>>,
{
    loop {
        match accept().await {
            Ok(stream) => serve(stream),
            // The client closed the connection before it was accepted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(error) => {
                tracing::warn!(%error, "cannot accept connections");
                sleep(ACCEPT_RETRY_INTERVAL).await;
            }
        }
    }
}

async fn serve_connection(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    router: axum::Router,
    stop: CancellationToken,
) {
    let Some(acceptor) = acceptor else { return serve_requests(stream, router, stop).await };
    let agreed = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream));
    let Some(Ok(Ok(stream))) = stop.run_until_cancelled(agreed).await else { return };
    serve_requests(stream, router, stop).await;
}

async fn serve_requests(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: axum::Router,
    stop: CancellationToken,
) {
    let mut builder = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    builder.http2().timer(TokioTimer::new()).keep_alive_interval(HEADER_TIMEOUT);
    let service = TowerToHyperService::new(router);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // The client sees the outcome in any case.
    tokio::select! {
        _ended = connection.as_mut() => return,
        () = stop.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    let _ended = timeout(GRACE, connection).await;
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::Request;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;
    use tower::ServiceExt;

    use super::*;
    use crate::tls::Certificate;

    struct OnlyPrometheus;

    #[async_trait]
    impl Authorizer for OnlyPrometheus {
        async fn may_get(&self, token: &str, _path: &str) -> bool {
            token == "prometheus"
        }
    }

    async fn status(readers: &Readers, token: Option<&str>) -> u16 {
        let mut request = Request::get("/metrics");
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        let router = metrics_router(Metrics::default(), readers.clone());
        router.oneshot(request.body(Body::empty()).unwrap()).await.unwrap().status().as_u16()
    }

    #[tokio::test]
    async fn metrics_are_for_those_who_may_read_them() {
        let readers = Readers::Authorized(Arc::new(OnlyPrometheus));
        assert_eq!(status(&readers, None).await, 401);
        assert_eq!(status(&readers, Some("someone")).await, 403);
        assert_eq!(status(&readers, Some("prometheus")).await, 200);
        assert_eq!(status(&Readers::Everyone, None).await, 200);
    }

    #[tokio::test]
    async fn a_taken_port_is_said_in_one_line_with_the_remedy() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = taken.local_addr().unwrap();
        let asked = (address, "--secure-port or --bind-address");
        let error = serve(axum::Router::new(), asked, None, CancellationToken::new()).await.unwrap_err();
        assert!(
            std::error::Error::source(&error).is_none(),
            "the cause is in the text, and would be said twice"
        );
        let error = error.to_string();
        assert!(error.contains(&address.to_string()) && error.contains("--secure-port"), "{error}");
        assert!(!error.contains('\n'));
    }

    #[tokio::test]
    async fn an_unreadable_certificate_is_named() {
        let certificate =
            Certificate::Files { certificate: "/nowhere/tls.crt".into(), key: "/nowhere/tls.key".into() };
        let tls = TlsOptions { certificate, ..TlsOptions::default() };
        let any = (([127, 0, 0, 1], 0).into(), "--port");
        let error = serve(axum::Router::new(), any, Some(&tls), CancellationToken::new())
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("/nowhere/tls.crt"), "{error}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_without_free_file_descriptors_does_not_spin() {
        let (asked, mut served) = (std::cell::Cell::new(0), 0);
        let accept = || {
            asked.set(asked.get() + 1);
            let number = asked.get();
            async move {
                match number {
                    // EMFILE, "Too many open files".
                    1..=60 => Err(io::Error::from_raw_os_error(24)),
                    61..=70 => Ok(()),
                    _ => std::future::pending().await,
                }
            }
        };
        let began = tokio::time::Instant::now();
        let _ended = timeout(Duration::from_secs(100), accept_all(accept, |()| served += 1)).await;
        assert_eq!((asked.get(), served), (71, 10));
        assert!(began.elapsed() >= 60 * ACCEPT_RETRY_INTERVAL);
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_never_agrees_on_tls_is_let_go() {
        let stop = CancellationToken::new();
        let any = (([127, 0, 0, 1], 0).into(), "--port");
        let tls = TlsOptions::default();
        let listening = serve(axum::Router::new(), any, Some(&tls), stop.clone()).await.unwrap();
        let mut silent = TcpStream::connect(listening.address).await.unwrap();
        let mut byte = [0];
        // Without a handshake timeout this would wait for ever.
        let read = silent.read(&mut byte);
        assert_eq!(timeout(10 * HANDSHAKE_TIMEOUT, read).await.unwrap().unwrap(), 0);
    }

    #[tokio::test]
    async fn a_request_that_has_come_is_answered_after_the_stop() {
        let (stop, come) = (CancellationToken::new(), Arc::new(tokio::sync::Notify::new()));
        let (router, arrived) = (axum::Router::new(), come.clone());
        let router = router.route(
            "/",
            get(move || async move {
                arrived.notify_one();
                sleep(Duration::from_millis(50)).await;
                "answered"
            }),
        );
        let any = (([127, 0, 0, 1], 0).into(), "--port");
        let listening = serve(router, any, None, stop.clone()).await.unwrap();
        let mut client = TcpStream::connect(listening.address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        come.notified().await;
        assert!(listening.is_open());
        stop.cancel();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("answered"), "{answer}");
        listening.ended().await;
        assert!(!listening.is_open() && TcpStream::connect(listening.address).await.is_err());
    }
}
