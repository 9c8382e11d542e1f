//! A replica with leader election, whose connection to Kubernetes may be cut.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use controllers::NoObserver;
use controllers::leader_election::{Config, Elector};
use futures::StreamExt as _;
use kube::Client;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

/// Runs the controllers while this replica leads.
pub(crate) async fn lead<R: Future<Output = ()>>(
    client: Client,
    identity: String,
    clock: controllers::Clock,
    stop: CancellationToken,
    run: impl FnOnce(CancellationToken) -> R,
) {
    let elector = Elector::new(client, Config::new(identity), clock, Arc::new(NoObserver));
    let elector = elector.expect("the usual configuration is sound");
    // A replica that has lost the lease ends, as the program does.
    let _lost = elector.run(stop, run).await;
}

/// The connection to Kubernetes, which may be cut.
#[derive(Clone)]
pub(crate) struct Link {
    router: axum::Router,
    cut: CancellationToken,
}

impl Link {
    /// A client that uses this connection.
    pub(crate) fn client(router: axum::Router, cut: CancellationToken) -> Client {
        Client::new(Self { router, cut }, "default")
    }
}

impl tower::Service<http::Request<kube::client::Body>> for Link {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<kube::client::Body>) -> Self::Future {
        let Self { router, cut } = self.clone();
        Box::pin(async move {
            let Some(answer) = cut.run_until_cancelled(router.oneshot(request)).await else {
                return std::future::pending().await;
            };
            // Watches end, too.
            let watched =
                |body: Body| Body::from_stream(body.into_data_stream().take_until(cut.cancelled_owned()));
            answer.map(|answer| answer.map(watched))
        })
    }
}
