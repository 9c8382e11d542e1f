//! Connections to the API servers of clusters, by their kubeconfigs.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use kube::Client;

/// Connects to the API server that a kubeconfig leads to; the error is a message without secrets.
type Connect = dyn Fn(Vec<u8>) -> BoxFuture<'static, Result<Client, String>> + Send + Sync;

/// Connects to the API servers of clusters.
#[derive(Clone)]
pub struct Workloads(Arc<Connect>);

impl Workloads {
    /// Connects with this function, which gets the text of a kubeconfig.
    pub fn new(
        connect: impl Fn(Vec<u8>) -> BoxFuture<'static, Result<Client, String>> + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(connect))
    }

    /// One API server behind all kubeconfigs, for simulated worlds.
    pub fn only(client: Client) -> Self {
        Self::new(move |_| {
            let client = client.clone();
            async move { Ok(client) }.boxed()
        })
    }

    /// A client of the API server that this kubeconfig leads to.
    ///
    /// # Errors
    /// The kubeconfig cannot be used.
    pub(crate) async fn connect(&self, kubeconfig: &[u8]) -> Result<Client, String> {
        (self.0)(kubeconfig.to_vec()).await
    }
}
