//! Calls to Azure.

use std::fmt;
use std::sync::Arc;

use arm::{Accepted, ApiVersion, Class, Client, Error, Listing};
use azure_types::ResourceId;
use http::{HeaderName, HeaderValue};
use parking_lot::RwLock;
use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use tonic::Status;
use volume_planner::ClusterPlace;

use super::failure::{is_being_deleted, status_of};
use super::ids::{ACCOUNTS, STORAGE, file_service};

const VERSION: ApiVersion = ApiVersion::STORAGE;
/// The header that names a snapshot of a share.
const SNAPSHOT: HeaderName = HeaderName::from_static("x-ms-snapshot");

/// A client of Azure, and where the cluster keeps its accounts: both come from the cloud configuration.
#[derive(Debug, Clone)]
pub struct Connection {
    /// The client.
    pub client: Client,
    /// Where accounts are unless a class says otherwise.
    pub place: ClusterPlace,
}

impl Connection {
    /// A throttled call ends at once: side-cars repeat it, and a call that waits would hold its lock and outlive their deadline.
    fn impatient(self) -> Self {
        Self { client: self.client.without_waiting(), ..self }
    }
}

/// Azure. Clones share the connection, which changes with the configuration.
#[derive(Clone, Default)]
pub struct Azure(Arc<RwLock<Option<Arc<Connection>>>>);

impl fmt::Debug for Azure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Azure").field(&self.0.read()).finish()
    }
}

/// A key of an account.
pub(crate) struct Key {
    pub value: SecretString,
    pub created: String,
}

#[derive(Deserialize)]
struct ListedKeys {
    #[serde(default)]
    keys: Vec<ListedKey>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedKey {
    value: String,
    #[serde(default)]
    creation_time: String,
    #[serde(default)]
    permissions: String,
}

impl Azure {
    /// Without a connection every call is refused: the program runs without a cloud configuration.
    pub fn new(connection: Option<Connection>) -> Self {
        Self(Arc::new(RwLock::new(connection.map(|it| Arc::new(it.impatient())))))
    }

    /// Makes calls from now on with this connection. Operations in progress go on with theirs.
    pub fn replace(&self, connection: Connection) {
        *self.0.write() = Some(Arc::new(connection.impatient()));
    }

    fn connection(&self) -> Result<Arc<Connection>, Status> {
        self.0.read().clone().ok_or_else(|| {
            Status::failed_precondition(
                "the driver has no cloud configuration: name one with --cloud-config-secret-name or \
                 AZURE_CREDENTIAL_FILE",
            )
        })
    }

    pub(crate) fn place(&self) -> Result<ClusterPlace, Status> {
        Ok(self.connection()?.place.clone())
    }

    /// Reads a resource; `None` if Azure says that it does not exist.
    pub(crate) async fn get(&self, id: &ResourceId, class: Class) -> Result<Option<Value>, Status> {
        let client = &self.connection()?.client;
        client.get_optional(id, VERSION, class).await.map_err(|error| status_of(&error))
    }

    /// All accounts of a group. A group that does not exist is an error: accounts cannot be made in it, either.
    pub(crate) async fn accounts(&self, group: &ResourceId) -> Result<Vec<Value>, Status> {
        let client = &self.connection()?.client;
        let listing = Listing::of(group, STORAGE, ACCOUNTS);
        client.list(&listing, VERSION, &[], Class::Create).await.map_err(|error| status_of(&error))
    }

    /// All shares of an account with their snapshots and metadata; `None` if there is no such account.
    pub(crate) async fn shares_and_snapshots(
        &self,
        account: &ResourceId,
    ) -> Result<Option<Vec<Value>>, Status> {
        let client = &self.connection()?.client;
        let listing = Listing::children(&file_service(account), "shares");
        match client.list(&listing, VERSION, &[("$expand", "snapshots,metadata")], Class::Create).await {
            Ok(all) => Ok(Some(all)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(status_of(&error)),
        }
    }

    /// Creates or replaces a resource, and waits until Azure has done so.
    pub(crate) async fn put(&self, id: &ResourceId, document: &Value) -> Result<Result<(), Error>, Status> {
        let client = &self.connection()?.client;
        let begun = client.put::<_, Value>(id, VERSION, document, None, Class::Create).await;
        Ok(finished("create", id, ended(client, begun).await.map(drop)))
    }

    /// Changes members of a resource, and waits until Azure has done so.
    pub(crate) async fn patch(&self, id: &ResourceId, document: &Value) -> Result<(), Status> {
        let client = &self.connection()?.client;
        let begun = client.patch::<_, Value>(id, VERSION, document, None, Class::Create).await;
        let written = finished("update", id, ended(client, begun).await);
        written.map(drop).map_err(|error| status_of(&error))
    }

    /// Takes a snapshot of a share; answers its document.
    pub(crate) async fn snapshot(
        &self,
        share: &ResourceId,
        document: &Value,
    ) -> Result<Option<Value>, Status> {
        let client = &self.connection()?.client;
        let query = [("$expand", "snapshots")];
        let begun = client.put_with::<_, Value>(share, VERSION, &query, document, Class::Create).await;
        let taken = finished("take a snapshot of", share, ended(client, begun).await);
        taken.map_err(|error| status_of(&error))
    }

    /// Deletes a share without snapshots; one with snapshots is refused. One that does not exist, or that Azure is deleting, counts as
    /// deleted.
    pub(crate) async fn delete_share(&self, share: &ResourceId) -> Result<(), Status> {
        let client = &self.connection()?.client;
        // By default Azure deletes the snapshots, too.
        let alone = [("$include", "none")];
        let begun = client.delete_with(share, VERSION, &alone, None, Class::Delete).await;
        match finished("delete", share, gone(client, begun).await) {
            Err(error) if is_being_deleted(&error) => Ok(()),
            other => other.map_err(|error| status_of(&error)),
        }
    }

    /// Deletes a snapshot of a share. One that does not exist counts as deleted.
    pub(crate) async fn delete_snapshot(&self, share: &ResourceId, time: &str) -> Result<(), Status> {
        let client = &self.connection()?.client;
        let time = HeaderValue::from_str(time).map_err(|_| Status::invalid_argument("snapshot ID"))?;
        let begun = client.delete_part(share, VERSION, (SNAPSHOT, time), Class::Delete).await;
        finished("delete a snapshot of", share, gone(client, begun).await).map_err(|error| status_of(&error))
    }

    /// The keys of an account that allow everything, as Azure lists them.
    pub(crate) async fn keys(&self, account: &ResourceId) -> Result<Vec<Key>, Status> {
        let client = &self.connection()?.client;
        let answer = client.post::<(), ListedKeys>(account, "listKeys", VERSION, None, Class::Create).await;
        let listed = answer.map_err(|error| status_of(&error))?.body.map(|body| body.keys);
        let is_full =
            |key: &ListedKey| key.permissions.is_empty() || key.permissions.eq_ignore_ascii_case("full");
        let keys = listed.unwrap_or_default().into_iter().filter(is_full);
        Ok(keys.map(|key| Key { value: key.value.into(), created: key.creation_time }).collect())
    }
}

/// Waits for the operation that a write has begun. The document is final only without one.
async fn ended(client: &Client, begun: Result<Accepted<Value>, Error>) -> Result<Option<Value>, Error> {
    let Accepted { body, operation } = begun?;
    let Some(operation) = operation else { return Ok(body) };
    client.wait(&operation).await?;
    Ok(None)
}

/// Waits for the operation that a deletion has begun.
async fn gone(client: &Client, begun: Result<Accepted<()>, Error>) -> Result<(), Error> {
    match begun?.operation {
        Some(operation) => client.wait(&operation).await,
        None => Ok(()),
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
