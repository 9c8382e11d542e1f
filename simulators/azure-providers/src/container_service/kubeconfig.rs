//! Kubeconfigs of a cluster (Azure REST reference, "Managed Clusters - List Cluster Admin Credentials").

use std::fmt;
use std::sync::Arc;

use azure_engine::document::{at, text};
use azure_engine::provider::{AzureState, Record};
use azure_engine::refusal::{Code, Result};
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::certificate;
use super::host::host;

/// The application of AKS itself, the audience of users' tokens.
const SERVER_APPLICATION: &str = "6dae42f8-4368-4678-94ff-3960e28e3630";
/// The application that signs users in.
const CLIENT_APPLICATION: &str = "80faf920-1908-4b52-b5ef-a8e7bedfc67a";

/// A Kubernetes that stands behind a managed cluster, as a kubeconfig has it.
#[derive(Clone)]
pub struct AttachedKubernetes {
    /// The object `cluster`: the URL of the API server, and its certificate authority. Without a URL it is that of the
    /// managed cluster's own host.
    pub cluster: Value,
    /// The object `user`: its credentials.
    pub user: Value,
}

impl fmt::Debug for AttachedKubernetes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AttachedKubernetes")
            .field("server", &self.cluster.get("server"))
            .finish_non_exhaustive()
    }
}

/// Finds the Kubernetes behind a managed cluster by the cluster's id.
type Finds = dyn Fn(&ResourceId) -> Option<AttachedKubernetes> + Send + Sync;

/// Finds the Kubernetes behind a managed cluster: the embedding program attaches it to the state. Without one,
/// kubeconfigs name the cluster's own host, on which no server listens.
#[derive(Clone)]
pub struct KubernetesOfClusters(Arc<Finds>);

impl KubernetesOfClusters {
    /// Uses this function.
    pub fn new(finds: impl Fn(&ResourceId) -> Option<AttachedKubernetes> + Send + Sync + 'static) -> Self {
        Self(Arc::new(finds))
    }
}

impl fmt::Debug for KubernetesOfClusters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KubernetesOfClusters").finish_non_exhaustive()
    }
}

/// The role of a kubeconfig's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    Admin,
    User,
    Monitoring,
}

impl Role {
    const ALL: [Self; 3] = [Self::Admin, Self::User, Self::Monitoring];

    /// Its name in answers and in access profiles.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Admin => "clusterAdmin",
            Self::User => "clusterUser",
            Self::Monitoring => "clusterMonitoringUser",
        }
    }

    /// The role that a name stands for.
    pub(super) fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.name().eq_ignore_ascii_case(name))
    }
}

/// The answer to a request for credentials.
///
/// # Errors
/// The cluster gives no static credentials, or none can be made.
pub(super) fn credentials(azure: &AzureState, cluster: &Record, role: Role) -> Result<Value> {
    let value = STANDARD.encode(kubeconfig(azure, cluster, role)?);
    Ok(json!({ "kubeconfigs": [{ "name": role.name(), "value": value }] }))
}

/// A kubeconfig as YAML.
pub(super) fn kubeconfig(azure: &AzureState, cluster: &Record, role: Role) -> Result<String> {
    let directory = at(&cluster.body, "properties/aadProfile/managed") == Some(&Value::Bool(true));
    let without_local = at(&cluster.body, "properties/disableLocalAccounts") == Some(&Value::Bool(true));
    if without_local && !(directory && role == Role::User) {
        let text =
            "Getting static credential is not allowed because this cluster is set to disable local accounts.";
        return Err(Code::azures(400, "BadRequest").says(text));
    }
    let attached = azure.attachments.get::<KubernetesOfClusters>().and_then(|source| (source.0)(&cluster.id));
    let AttachedKubernetes { cluster: mut server, user } = match attached {
        Some(attached) => attached,
        None => own(azure, cluster)?,
    };
    if at(&server, "server").is_none()
        && let Some(members) = server.as_object_mut()
    {
        members.insert("server".to_owned(), format!("https://{}:443", host(azure, cluster)).into());
    }
    let (name, group) = (cluster.id.name(), cluster.id.group_name().unwrap_or_default());
    let user_name = format!("{}_{group}_{name}", role.name());
    let context = if role == Role::Admin { format!("{name}-admin") } else { name.to_owned() };
    let user = match directory && role == Role::User {
        true => exec(azure.tenant_of(cluster.id.subscription_id())),
        false => user,
    };
    // What is JSON is YAML, too.
    Ok(format!(
        "apiVersion: v1\nclusters:\n- cluster: {server}\n  name: {name}\ncontexts:\n- context:\n    cluster: {name}\n    \
         user: {user_name}\n  name: {context}\ncurrent-context: {context}\nkind: Config\npreferences: {{}}\nusers:\n- name: \
         {user_name}\n  user: {user}\n"
    ))
}

/// The cluster itself, where no Kubernetes is attached.
fn own(azure: &AzureState, cluster: &Record) -> Result<AttachedKubernetes> {
    let certificates = certificate::of(azure, &cluster.id)?;
    let token = azure.seed.guid("cluster token", cluster.id.as_str(), cluster.incarnation).replace('-', "");
    Ok(AttachedKubernetes {
        cluster: json!({
            "certificate-authority-data": STANDARD.encode(&certificates.authority),
        }),
        user: json!({
            "client-certificate-data": STANDARD.encode(&certificates.client),
            "client-key-data": STANDARD.encode(&certificates.client_key),
            "token": token,
        }),
    })
}

/// A user who signs in with Entra through `kubelogin`.
fn exec(tenant: &str) -> Value {
    let arguments = [
        "get-token",
        "--environment",
        "AzurePublicCloud",
        "--server-id",
        SERVER_APPLICATION,
        "--client-id",
        CLIENT_APPLICATION,
        "--tenant-id",
        tenant,
        "--login",
        "devicecode",
    ];
    json!({ "exec": {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "kubelogin",
        "args": arguments,
        "env": null,
        "provideClusterInfo": false,
    } })
}

/// `accessProfiles/{role}`, the older form of the same.
pub(super) fn access_profile(azure: &AzureState, cluster: &Record, role: Role) -> Result<Value> {
    let config = STANDARD.encode(kubeconfig(azure, cluster, role)?);
    Ok(json!({
        "id": format!("{}/accessProfiles/{}", super::protocol::own_spelling(&cluster.id), role.name()),
        "name": role.name(),
        "type": "Microsoft.ContainerService/ManagedClusters/AccessProfiles",
        "location": text(&cluster.body, "location"),
        "properties": { "kubeConfig": config },
    }))
}
