//! The servers of pods' ports, which the embedding program provides.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// Both directions of a connection.
pub trait Duplex: AsyncRead + AsyncWrite + Send {}

impl<T: AsyncRead + AsyncWrite + Send> Duplex for T {}

/// A connection to a port of a pod, or the error.
pub type PodConnection = Result<Pin<Box<dyn Duplex>>, String>;

/// The servers of pods' ports.
pub trait PodPorts: Send + Sync {
    /// Connects to a port of an existing pod.
    fn connect(&self, namespace: &str, pod: &str, port: u16) -> BoxFuture<'static, PodConnection>;
}

/// The servers of pods' ports, if there are any.
#[derive(Clone, Default)]
pub(crate) struct Ports(pub(super) Option<Arc<dyn PodPorts>>);

impl fmt::Debug for Ports {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ports").field(&self.0.is_some()).finish()
    }
}
