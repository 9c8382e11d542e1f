//! What the service asks beside the machine: Kubernetes, Azure, and the proxy for encrypted mounts. Each may be absent.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;

use super::plan::login::SecretName;

/// What a Secret says of an account.
#[derive(Debug, Clone, Default)]
pub struct StoredSecret {
    /// `azurestorageaccountname`; empty if it has none.
    pub account: String,
    /// `azurestorageaccountkey`
    pub key: Option<SecretString>,
    /// `oauthtoken`
    pub token: Option<SecretString>,
}

/// The service account of a pod, and whether it may read a Secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reader {
    /// Its user name for Kubernetes.
    pub user: String,
    /// Whether it may.
    pub may_read: bool,
}

/// Kubernetes. An error is a text that names what was asked.
#[async_trait]
pub trait Cluster: Debug + Send + Sync + 'static {
    /// Reads a Secret; `None` if it does not exist.
    async fn secret(&self, name: &SecretName) -> Result<Option<StoredSecret>, String>;

    /// Asks whether the service account of a pod (namespace, name) may read a Secret.
    async fn reader(&self, pod: &(String, String), secret: &SecretName) -> Result<Reader, String>;

    /// The handler of the runtime class of a pod (namespace, name); empty if it has none.
    async fn runtime_handler(&self, pod: &(String, String)) -> Result<String, String>;

    /// Whether this node has a label.
    async fn has_label(&self, label: &str) -> Result<bool, String>;
}

/// An account in Azure; parts that are empty are the cluster's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountName {
    /// Its subscription.
    pub subscription: String,
    /// Its resource group.
    pub group: String,
    /// Its name.
    pub name: String,
}

/// A key of an account.
#[derive(Debug, Clone)]
pub struct Key {
    /// The key.
    pub value: SecretString,
    /// When it was made, in RFC 3339; empty if that is unknown.
    pub created: String,
}

/// An identity that trusts a pod's service account.
#[derive(Debug, Clone)]
pub struct TokenIdentity {
    /// Its client ID.
    pub client: String,
    /// Its tenant; empty for the cluster's.
    pub tenant: String,
    /// The service account's token.
    pub token: SecretString,
}

/// A folder to make in a share.
#[derive(Debug, Clone)]
pub struct Folder {
    /// The account.
    pub account: String,
    /// Its key.
    pub key: SecretString,
    /// The domain behind `ACCOUNT.file.`.
    pub suffix: String,
    /// The share.
    pub share: String,
    /// The folder, whose parents are made, too.
    pub path: String,
}

/// What the cloud configuration says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloudPlace {
    /// `userAssignedIdentityID`
    pub identity: String,
    /// `tenantId`
    pub tenant: String,
    /// The domain behind `ACCOUNT.file.`.
    pub suffix: String,
    /// Entra's address.
    pub authority: String,
    /// The resource of tokens for storage.
    pub resource: String,
}

impl Default for CloudPlace {
    fn default() -> Self {
        Self {
            identity: String::new(),
            tenant: String::new(),
            suffix: "core.windows.net".to_owned(),
            authority: "https://login.microsoftonline.com/".to_owned(),
            resource: "https://storage.azure.com/".to_owned(),
        }
    }
}

/// Azure. An error is a text that names what was asked.
#[async_trait]
pub trait Azure: Debug + Send + Sync + 'static {
    /// What the cloud configuration says.
    async fn place(&self) -> CloudPlace;

    /// The keys of an account, by the cluster's identity.
    async fn keys(&self, account: &AccountName) -> Result<Vec<Key>, String>;

    /// The keys of an account, by an identity that trusts a pod's service account.
    async fn keys_by_token(
        &self,
        account: &AccountName,
        identity: &TokenIdentity,
    ) -> Result<Vec<Key>, String>;

    /// Makes a folder in a share, unless it is there.
    async fn create_folder(&self, folder: &Folder) -> Result<(), String>;
}

/// A mount for the proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyMount {
    /// What is mounted.
    pub source: String,
    /// Where.
    pub target: PathBuf,
    /// The type, such as `aznfs`.
    pub kind: String,
    /// Options.
    pub options: Vec<String>,
}

/// The program on the machine that mounts with encryption in transit.
#[async_trait]
pub trait Proxy: Debug + Send + Sync + 'static {
    /// Mounts something, and returns when it is mounted.
    async fn mount(&self, mount: &ProxyMount) -> Result<(), String>;
}

/// All that the service asks beside the machine. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    /// Kubernetes.
    pub cluster: Option<Arc<dyn Cluster>>,
    /// Azure.
    pub azure: Option<Arc<dyn Azure>>,
    /// The proxy (`--enable-azurefile-proxy`).
    pub proxy: Option<Arc<dyn Proxy>>,
}
