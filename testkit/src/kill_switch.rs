//! The transport to Azure, which counts calls and may break after any of them.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use arm::Transport;
use axum::body::Body;
use azure_simulator::Azure;
use bytes::Bytes;
use http_body_util::Full;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::tap::{self, Tap};

/// Counts the calls of one start of the controllers, and may cut their connection to Azure.
#[derive(Debug, Clone)]
pub struct KillSwitch {
    calls: Arc<AtomicUsize>,
    last: Option<usize>,
    tripped: CancellationToken,
    tap: Option<Arc<dyn Tap>>,
}

impl KillSwitch {
    /// Only counts.
    pub fn never() -> Self {
        Self { calls: Arc::default(), last: None, tripped: CancellationToken::new(), tap: None }
    }

    /// The call with this number (from 0) is carried out, but its answer never arrives; later calls are not carried
    /// out.
    pub fn after_call(number: usize) -> Self {
        Self { last: Some(number), ..Self::never() }
    }

    /// The same with a tap.
    #[must_use]
    pub(crate) fn with_tap(self, tap: Option<Arc<dyn Tap>>) -> Self {
        Self { tap, ..self }
    }

    /// The number of calls.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::Relaxed)
    }

    /// Whether the fatal call has been carried out.
    pub fn is_tripped(&self) -> bool {
        self.tripped.is_cancelled()
    }

    /// Waits until the fatal call has been carried out.
    pub async fn tripped(&self) {
        self.tripped.cancelled().await;
    }

    /// A transport to this Azure through this switch.
    pub fn transport(&self, azure: &Azure) -> Transport {
        self.transport_to(azure.router())
    }

    /// A transport to this router of an Azure through this switch.
    pub fn transport_to(&self, router: axum::Router) -> Transport {
        Transport::in_process(Wire { router, switch: self.clone() })
    }
}

/// Routes calls of `router` through the switch.
#[derive(Clone)]
struct Wire {
    router: axum::Router,
    switch: KillSwitch,
}

impl tower::Service<http::Request<Full<Bytes>>> for Wire {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Full<Bytes>>) -> Self::Future {
        let number = self.switch.calls.fetch_add(1, Ordering::Relaxed);
        let (router, switch) = (self.router.clone(), self.switch.clone());
        Box::pin(async move {
            if switch.last.is_some_and(|last| number > last) {
                std::future::pending::<()>().await;
            }
            let answer = match &switch.tap {
                Some(tap) => tap::call(tap.as_ref(), router, request).await,
                None => router.oneshot(request).await,
            };
            if switch.last == Some(number) {
                switch.tripped.cancel();
                std::future::pending::<()>().await;
            }
            answer
        })
    }
}
