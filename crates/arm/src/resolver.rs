//! Addresses of hosts: configured ones, otherwise the system's.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use tower::Service;

/// Resolves hosts.
#[derive(Clone)]
pub(crate) struct Resolver {
    given: Arc<[(String, IpAddr)]>,
    system: GaiResolver,
}

impl Resolver {
    /// The system's resolver, except for these hosts.
    pub(crate) fn new(given: Vec<(String, IpAddr)>) -> Self {
        Self { given: given.into(), system: GaiResolver::new() }
    }
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.system.poll_ready(context)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let own = self.given.iter().find(|(host, _)| host.eq_ignore_ascii_case(name.as_str()));
        if let Some((_, address)) = own {
            // The connector sets the port.
            let addresses = vec![SocketAddr::new(*address, 0)];
            return Box::pin(async move { Ok(addresses.into_iter()) });
        }
        let addresses = self.system.call(name);
        Box::pin(async move { Ok(addresses.await?.collect::<Vec<_>>().into_iter()) })
    }
}
