//! Calls to Azure.

use std::fmt;
use std::sync::Arc;

use arm::{Accepted, ApiVersion, Class, Client, Error, Listing};
use azure_types::ResourceId;
use futures::future::BoxFuture;
use parking_lot::RwLock;
use serde_json::Value;
use tokio::sync::Mutex;
use tonic::Status;
use volume_planner::ClusterPlace;
use volume_planner::azure_error::AzureRequest;

use super::failure::status_of;
use super::size_list::SizeList;

const COMPUTE: &str = "Microsoft.Compute";

/// A client of Azure, and where the cluster keeps its disks: both come from the cloud configuration.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The client.
    pub client: Client,
    /// Where disks are kept unless a class says otherwise.
    pub place: ClusterPlace,
}

/// Makes a connection: reads the configuration and connects.
type Connector = dyn Fn() -> BoxFuture<'static, Result<Connection, String>> + Send + Sync;

/// Azure. Clones share the connection, which changes with the configuration.
#[derive(Clone)]
pub struct Azure {
    inner: Arc<Inner>,
    /// The user agent of a request's class, in place of the program's.
    user_agent: Option<Arc<str>>,
}

struct Inner {
    connection: RwLock<Option<Arc<Connection>>>,
    /// Makes the first connection when it is needed: a node needs none.
    connector: Option<Box<Connector>>,
    connecting: Mutex<()>,
    sizes: parking_lot::Mutex<SizeList>,
}

impl fmt::Debug for Azure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Azure").field(&self.inner.connection.read()).finish()
    }
}

impl Azure {
    /// Without a connection every call is refused: the program runs without a cloud configuration.
    pub fn new(connection: Option<Connection>) -> Self {
        Self::with(connection, None)
    }

    /// Connects with the first call.
    pub fn lazy(
        connector: impl Fn() -> BoxFuture<'static, Result<Connection, String>> + Send + Sync + 'static,
    ) -> Self {
        Self::with(None, Some(Box::new(connector)))
    }

    fn with(connection: Option<Connection>, connector: Option<Box<Connector>>) -> Self {
        let connection = RwLock::new(connection.map(Arc::new));
        let inner = Inner {
            connection,
            connector,
            connecting: Mutex::default(),
            sizes: parking_lot::Mutex::default(),
        };
        Self { inner: Arc::new(inner), user_agent: None }
    }

    /// The same for the calls of one request, whose class may name a user agent.
    pub(crate) fn as_agent(&self, user_agent: Option<&str>) -> Self {
        Self { inner: Arc::clone(&self.inner), user_agent: user_agent.map(Arc::from) }
    }

    /// Makes calls from now on with this connection. Operations in progress go on with theirs.
    pub fn replace(&self, connection: Connection) {
        *self.inner.connection.write() = Some(Arc::new(connection));
    }

    /// The connection.
    ///
    /// # Errors
    /// There is no cloud configuration, or it cannot be used.
    pub(crate) async fn connection(&self) -> Result<Arc<Connection>, Status> {
        if let Some(connection) = self.known() {
            return Ok(connection);
        }
        let Some(connector) = &self.inner.connector else {
            return Err(Status::failed_precondition(
                "the driver has no cloud configuration: name one with --cloud-config-secret-name or \
                 AZURE_CREDENTIAL_FILE",
            ));
        };
        let _one_at_a_time = self.inner.connecting.lock().await;
        if let Some(connection) = self.known() {
            return Ok(connection);
        }
        let connection = connector().await.map_err(Status::failed_precondition)?;
        self.replace(connection);
        self.known().ok_or_else(|| Status::unavailable("the connection to Azure is being replaced; retry"))
    }

    /// What is known of the sizes of machines.
    pub(super) fn sizes(&self) -> &parking_lot::Mutex<SizeList> {
        &self.inner.sizes
    }

    /// The client of calls about disks and snapshots.
    async fn client(&self) -> Result<Client, Status> {
        let client = &self.connection().await?.client;
        Ok(match &self.user_agent {
            Some(user_agent) => client.with_user_agent(user_agent),
            None => client.clone(),
        })
    }

    fn known(&self) -> Option<Arc<Connection>> {
        self.inner.connection.read().clone()
    }

    pub(crate) async fn place(&self) -> Result<ClusterPlace, Status> {
        Ok(self.connection().await?.place.clone())
    }

    /// Reads a disk or a snapshot; `None` if Azure says that it does not exist.
    pub(crate) async fn get(
        &self,
        request: AzureRequest,
        id: &ResourceId,
        class: Class,
    ) -> Result<Option<Value>, Status> {
        let client = self.client().await?;
        client.get_optional(id, version(request), class).await.map_err(|error| status_of(request, &error))
    }

    /// All resources of a kind in a group: `disks`, `snapshots`. A group that does not exist has none.
    pub(crate) async fn list(
        &self,
        request: AzureRequest,
        group: &ResourceId,
        kind: &str,
    ) -> Result<Vec<Value>, Status> {
        let client = self.client().await?;
        let listing = Listing::of(group, COMPUTE, kind);
        match client.list(&listing, version(request), &[], Class::Refresh).await {
            Ok(documents) => Ok(documents),
            Err(error) if error.is_not_found() => Ok(Vec::new()),
            Err(error) => Err(status_of(request, &error)),
        }
    }

    /// Creates a resource and waits until Azure has done so; one that was created meanwhile is left as it is. Answers the
    /// document if Azure gave its final state.
    pub(crate) async fn create(
        &self,
        request: AzureRequest,
        id: &ResourceId,
        document: &Value,
    ) -> Result<Option<Value>, Status> {
        let begin =
            async |client: &Client| client.create(id, version(request), document, Class::Create).await;
        match self.write("create", id, begin).await? {
            // It is read and compared.
            Err(error) if error.is_precondition_failed() => Ok(None),
            other => other.map_err(|error| status_of(request, &error)),
        }
    }

    /// Replaces a resource that Azure failed to make.
    pub(crate) async fn replace_failed(
        &self,
        request: AzureRequest,
        id: &ResourceId,
        document: &Value,
    ) -> Result<Option<Value>, Status> {
        let begin =
            async |client: &Client| client.put(id, version(request), document, None, Class::Create).await;
        self.write("replace", id, begin).await?.map_err(|error| status_of(request, &error))
    }

    /// Changes members of a resource and waits until Azure has done so.
    pub(crate) async fn patch(
        &self,
        request: AzureRequest,
        id: &ResourceId,
        document: &Value,
    ) -> Result<Option<Value>, Status> {
        let begin =
            async |client: &Client| client.patch(id, version(request), document, None, Class::Create).await;
        self.write("update", id, begin).await?.map_err(|error| status_of(request, &error))
    }

    /// Begins a write and waits for its operation, if Azure began one. The document is final only without one.
    async fn write(
        &self,
        action: &str,
        id: &ResourceId,
        begin: impl AsyncFnOnce(&Client) -> Result<Accepted<Value>, Error>,
    ) -> Result<Result<Option<Value>, Error>, Status> {
        let client = self.client().await?;
        let written = async {
            let Accepted { body, operation } = begin(&client).await?;
            let Some(operation) = operation else { return Ok(body) };
            client.wait(&operation).await?;
            Ok(None)
        };
        Ok(finished(action, id, written.await))
    }

    /// Deletes a resource and waits until it is gone. One that does not exist counts as deleted.
    pub(crate) async fn delete(&self, request: AzureRequest, id: &ResourceId) -> Result<(), Status> {
        let client = self.client().await?;
        let deleted = client.delete_and_wait(id, version(request), Class::Delete).await;
        finished("delete", id, deleted).map_err(|error| status_of(request, &error))
    }
}

/// Logs a write that has ended.
fn finished<T>(action: &str, id: &ResourceId, result: Result<T, Error>) -> Result<T, Error> {
    match &result {
        Ok(_) => tracing::info!(action, resource = %id, "wrote to Azure"),
        Err(error) => {
            let request_id = error.request_id();
            tracing::warn!(action, resource = %id, %error, request_id, "a write to Azure failed");
        }
    }
    result
}

const fn version(request: AzureRequest) -> ApiVersion {
    match request {
        AzureRequest::Disk | AzureRequest::Snapshot => ApiVersion::DISKS,
        AzureRequest::Machine => ApiVersion::COMPUTE,
        AzureRequest::Storage => ApiVersion::STORAGE,
    }
}
