//! Webhooks that listen in this process, over TLS, and record their requests.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::routing::post;
use axum::{Json, Router};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use certificate_authority::CertificateAuthority;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// A listening webhook, and its requests.
pub struct Listening {
    pub address: SocketAddr,
    pub authority: CertificateAuthority,
    pub asked: Arc<Mutex<Vec<Value>>>,
    /// Sockets do not follow tokio's clock. While this blocks a thread, a paused clock does not advance.
    _clock: std::sync::mpsc::Sender<()>,
}

impl Listening {
    /// Responds to every request with the first result of `decide`, and records the second.
    pub async fn start(
        decide: impl Fn(Value) -> (Value, Value) + Clone + Send + Sync + 'static,
    ) -> Listening {
        let (clock, until) = std::sync::mpsc::channel::<()>();
        tokio::task::spawn_blocking(move || until.recv());
        let authority = CertificateAuthority::generate().unwrap();
        let acceptor = TlsAcceptor::from(authority.server_config(&["127.0.0.1"]).unwrap());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let notes = Arc::clone(&asked);
        let answer = async move |Json(review): Json<Value>| {
            let (answer, note) = decide(review);
            notes.lock().push(note);
            Json(answer)
        };
        let router = Router::new().fallback(post(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, service) = (acceptor.clone(), TowerToHyperService::new(router.clone()));
                tokio::spawn(async move {
                    let Ok(stream) = acceptor.accept(stream).await else { return };
                    let _ = hyper_util::server::conn::auto::Builder::new(TokioExecutor::new())
                        .serve_connection(TokioIo::new(stream), service)
                        .await;
                });
            }
        });
        Listening { address, authority, asked, _clock: clock }
    }

    /// Its `clientConfig`.
    pub fn client_config(&self) -> Value {
        json!({
            "url": format!("https://{}/ask", self.address),
            "caBundle": BASE64_STANDARD.encode(self.authority.certificate_pem()),
        })
    }
}

/// Waits a moment of the system's time: tokio's clock may be paused.
pub async fn pause() {
    let (_held, nothing) = std::sync::mpsc::channel::<()>();
    let wait = move || nothing.recv_timeout(Duration::from_millis(100));
    tokio::task::spawn_blocking(wait).await.unwrap().unwrap_err();
}
