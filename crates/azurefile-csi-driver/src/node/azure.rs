//! Azure for a node: the keys of accounts. The connection is made with the first call that needs it, because most nodes need none.

use std::sync::Arc;
use std::time::Duration;

use arm::{ApiVersion, Class, Client, Credential};
use async_trait::async_trait;
use azure_types::ResourceId;
use cloud_config::CloudConfig;
use manager::driver::Sources;
use program::in_one_line;
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::outside::{AccountName, Azure, CloudPlace, Folder, Key, TokenIdentity};

const STORAGE: ApiVersion = ApiVersion::new("2024-01-01");

/// How long a connection is used until the configuration is read again: a changed credential counts from then on.
const AGE: Duration = Duration::from_secs(600);

#[derive(Debug, Clone)]
struct Connection {
    client: Client,
    config: CloudConfig,
    made: Instant,
}

/// Azure by the cloud configuration, which is read when it is needed.
#[derive(Clone)]
pub struct NodeAzure {
    sources: Sources,
    connection: Arc<Mutex<Option<Connection>>>,
}

impl std::fmt::Debug for NodeAzure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeAzure").finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Listed {
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

impl NodeAzure {
    /// Azure by these sources of the configuration.
    pub fn new(sources: Sources) -> Self {
        Self { sources, connection: Arc::default() }
    }

    async fn connection(&self) -> Result<Connection, String> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref().filter(|connection| connection.made.elapsed() < AGE) {
            return Ok(connection.clone());
        }
        let opened = self.sources.open().await.map_err(|error| in_one_line(&error))?;
        let (reading, client) = opened.ok_or("there is no cloud configuration")?;
        let connection = Connection { client, config: reading.config, made: Instant::now() };
        *held = Some(connection.clone());
        Ok(connection)
    }

    async fn list(
        &self,
        connection: &Connection,
        client: &Client,
        account: &AccountName,
    ) -> Result<Vec<Key>, String> {
        let own = |text: &str, usual: &str| if text.is_empty() { usual.to_owned() } else { text.to_owned() };
        let subscription = own(&account.subscription, &connection.config.subscription_id);
        let group = own(&account.group, &connection.config.resource_group);
        let group = ResourceId::group(&subscription, &group);
        let id = group.resource("Microsoft.Storage", "storageAccounts", &account.name);
        let answer = client.post::<(), Listed>(&id, "listKeys", STORAGE, None, Class::Create).await;
        let answer = answer.map_err(|error| format!("cannot list the keys of {id}: {error}"))?;
        let full =
            |key: &ListedKey| key.permissions.is_empty() || key.permissions.eq_ignore_ascii_case("full");
        let keys = answer.body.map(|listed| listed.keys).unwrap_or_default();
        Ok(keys
            .into_iter()
            .filter(full)
            .map(|key| Key { value: SecretString::from(key.value), created: key.creation_time })
            .collect())
    }
}

#[async_trait]
impl Azure for NodeAzure {
    async fn place(&self) -> CloudPlace {
        // Without a connection it is the public cloud, as for the established driver.
        let Ok(Some((_, reading))) = self.sources.read().await else { return CloudPlace::default() };
        let known = self.connection.lock().await.as_ref().map(|connection| connection.client.cloud().clone());
        let usual = CloudPlace::default();
        CloudPlace {
            identity: reading.config.user_assigned_identity_id.clone(),
            tenant: reading.config.tenant_id.clone(),
            suffix: known.as_ref().map_or(usual.suffix, |cloud| cloud.storage_suffix.clone()),
            authority: known.map_or(usual.authority, |cloud| cloud.authority.to_string()),
            resource: usual.resource,
        }
    }

    async fn keys(&self, account: &AccountName) -> Result<Vec<Key>, String> {
        let connection = self.connection().await?;
        self.list(&connection, &connection.client, account).await
    }

    async fn keys_by_token(
        &self,
        account: &AccountName,
        identity: &TokenIdentity,
    ) -> Result<Vec<Key>, String> {
        let connection = self.connection().await?;
        let transport = self.sources.environment.azure_transport().map_err(|error| error.to_string())?;
        let cloud = connection.client.cloud().clone();
        let tenant = if identity.tenant.is_empty() { &connection.config.tenant_id } else { &identity.tenant };
        let token = cloud_config::Secret::new(identity.token.expose_secret());
        let credential = Credential::service_account(tenant, &identity.client, token, &cloud, &transport);
        let credential = credential.map_err(|error| error.to_string())?;
        let client = Client::builder(cloud, transport, credential).configure(&connection.config);
        let client =
            client.user_agent(&self.sources.user_agent).observer(Arc::clone(&self.sources.observer)).build();
        self.list(&connection, &client, account).await
    }

    async fn create_folder(&self, folder: &Folder) -> Result<(), String> {
        Err(format!("folder {} is not made: the service's data plane is not connected", folder.path))
    }
}
