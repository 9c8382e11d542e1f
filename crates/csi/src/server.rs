//! A driver's three services on one listener.

use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::{self, Server};

use crate::identity::Plugin;
use crate::listener::Listener;
use crate::observed::{Observed, Observer};
use crate::v1::controller_server::{Controller, ControllerServer};
use crate::v1::identity_server::IdentityServer;
use crate::v1::node_server::{Node, NodeServer};

/// How long calls may take after the stop: a pod is given thirty seconds unless it asks for more.
const GRACE: Duration = Duration::from_secs(25);

/// A driver's services. Without a listener they serve clients of the same process.
pub type Services = Observed<Routes>;

/// The services of a driver, whose calls are logged, counted and traced.
pub fn services(
    plugin: Plugin,
    controller: impl Controller,
    node: impl Node,
    observer: Observer,
) -> Services {
    let routes = Routes::new(IdentityServer::new(plugin))
        .add_service(ControllerServer::new(controller))
        .add_service(NodeServer::new(node))
        .prepare();
    Observed::new(routes, observer)
}

/// Serves until `stop`. Then no connection is accepted, and the calls in progress have 25 seconds to end; what is not
/// done by then ends with the process, and its caller repeats it.
///
/// A call ends when its caller goes or has waited as long as it wanted to.
///
/// # Errors
/// The server cannot run; no call causes that.
pub async fn serve(
    services: Services,
    listener: Listener,
    stop: CancellationToken,
) -> Result<(), transport::Error> {
    let ended =
        Server::builder().serve_with_incoming_shutdown(services, listener.connections(), stop.cancelled());
    tokio::select! {
        ended = ended => ended,
        () = async { stop.cancelled().await; sleep(GRACE).await } => Ok(()),
    }
}
