//! Access to the API server of a managed cluster: its kubeconfigs as Secrets, and `cluster-info` in the cluster itself.

use std::collections::BTreeMap;
use std::time::Duration;

use arm::{ApiVersion, Class};
use azure_types::ResourceId;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use k8s::api::api::core::v1::ConfigMap;
use k8s::api::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::azure::clients::AzureAccess;
use crate::azure::failure::Failure;
use crate::context::manager::Manager;
use crate::kubernetes::core::CLUSTER_NAME;
use crate::kubernetes::kinds::API_VERSION;
use crate::kubernetes::patch::FIELD_MANAGER;
use crate::kubernetes::queue::Outcome;
use crate::managed::kubeconfig::{Kubeconfig, KubeconfigError};
use crate::secrets::owned_secret::OwnedSecret;

/// The scope of tokens for the API servers of all managed clusters.
pub(crate) const TOKEN_SCOPE: &str = "6dae42f8-4368-4678-94ff-3960e28e3630/.default";
/// How long before its end a token is renewed: as early as credentials renew their own.
const TOKEN_MARGIN: Duration = Duration::from_secs(300);
/// The shortest wait before a token is renewed.
const MIN_RENEWAL: Duration = Duration::from_secs(30);
/// How long a token may take.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(60);
/// The key of a kubeconfig in its Secret.
const VALUE: &str = "value";
/// The private key in the Secret with the certificate authority: Azure keeps the real one. Cluster API looks for the
/// pair, and uses the certificate alone.
const NO_KEY: &[u8] = b"foo";

/// When to reconcile again an object in whose Secret a token is valid for so long: in time to renew it.
pub(crate) fn renewal(left: Duration, sync_period: Duration) -> Outcome {
    let renewal = left.saturating_sub(TOKEN_MARGIN);
    if renewal < sync_period { Outcome::After(renewal.max(MIN_RENEWAL)) } else { Outcome::Rest }
}

/// A managed cluster in Azure, as far as access to it goes.
pub(crate) struct Place<'a> {
    /// The cluster.
    pub id: ResourceId,
    /// The version of Azure's API.
    pub api_version: &'static str,
    /// Whether people sign in with Microsoft Entra ID.
    pub has_directory: bool,
    /// Whether there are no other accounts.
    pub is_without_local_accounts: bool,
    /// The host and port of the API server.
    pub endpoint: (&'a str, i32),
}

/// The owner of the Secrets of a cluster.
#[derive(Clone, Copy)]
pub(crate) struct Owner<'a> {
    /// The kind.
    pub kind: &'static str,
    /// The metadata.
    pub metadata: &'a ObjectMeta,
    /// The name of the Cluster.
    pub cluster: &'a str,
}

impl Owner<'_> {
    /// The reference to it.
    pub fn reference(&self) -> OwnerReference {
        OwnerReference {
            api_version: API_VERSION.to_owned(),
            kind: self.kind.to_owned(),
            name: self.metadata.name.clone().unwrap_or_default(),
            uid: self.metadata.uid.clone().unwrap_or_default(),
            controller: Some(true),
            block_owner_deletion: None,
        }
    }
}

/// The kubeconfigs that Azure gives for a cluster.
pub(crate) struct Credentials {
    /// The kubeconfig for Cluster API.
    pub admin: Kubeconfig,
    /// The kubeconfig with which people sign in, if they sign in with Microsoft Entra ID.
    pub user: Option<Kubeconfig>,
    /// How long the token in the first one is valid, if it holds one.
    pub token_left: Option<Duration>,
}

impl Manager {
    /// Asks Azure for the kubeconfigs of a cluster.
    pub(crate) async fn credentials(
        &self,
        access: &AzureAccess,
        place: &Place<'_>,
    ) -> Result<Credentials, Failure> {
        let user = match place.has_directory || place.is_without_local_accounts {
            true => Some(self.kubeconfig(access, place, "listClusterUserCredential").await?),
            false => None,
        };
        let (admin, token_left) = match &user {
            Some(user) if place.is_without_local_accounts => {
                let (with_token, left) = self.with_token(access, user.clone()).await?;
                (with_token, Some(left))
            }
            _ => (self.kubeconfig(access, place, "listClusterAdminCredential").await?, None),
        };
        Ok(Credentials { admin, user: user.filter(|_| place.has_directory), token_left })
    }

    /// A kubeconfig of people, with a token of the cluster's identity; and how long that is valid.
    pub(crate) async fn with_token(
        &self,
        access: &AzureAccess,
        kubeconfig: Kubeconfig,
    ) -> Result<(Kubeconfig, Duration), Failure> {
        let token = access.credential.token(TOKEN_SCOPE, TOKEN_TIMEOUT).await;
        let token = token.map_err(|error| Failure::of(&error, self.settings.timeouts.requeue))?;
        let left = access.credential.left(TOKEN_SCOPE).unwrap_or_default();
        Ok((kubeconfig.with_token(token.reveal()).map_err(unusable)?, left))
    }

    /// One kubeconfig of a cluster.
    async fn kubeconfig(
        &self,
        access: &AzureAccess,
        place: &Place<'_>,
        action: &str,
    ) -> Result<Kubeconfig, Failure> {
        // The command with which people sign in is one that kubectl still supports.
        let query: &[(&str, &str)] = match action {
            "listClusterUserCredential" => &[("format", "exec")],
            _ => &[],
        };
        let version = ApiVersion::new(place.api_version);
        let answer = access
            .client
            .post_with::<Value, Value>(&place.id, action, version, query, None, Class::Refresh)
            .await
            .map_err(|error| Failure::of(&error, self.settings.timeouts.requeue))?;
        let encoded = answer.body.as_ref().and_then(|body| body["kubeconfigs"][0]["value"].as_str());
        let text = encoded.and_then(|text| STANDARD.decode(text).ok());
        let text = text.ok_or_else(|| {
            Failure::Refused(format!("Azure's answer to {action} of {} has no kubeconfig", place.id))
        })?;
        Kubeconfig::read(text).map_err(unusable)
    }

    /// Writes the Secrets of a managed cluster, and `cluster-info` in the cluster.
    pub(crate) async fn keep_access(
        &self,
        credentials: &Credentials,
        place: &Place<'_>,
        owner: Owner<'_>,
    ) -> Result<(), Failure> {
        let cluster = owner.cluster;
        self.keep_kubeconfig(owner, &format!("{cluster}-kubeconfig"), &credentials.admin).await?;
        if let Some(user) = &credentials.user {
            self.keep_kubeconfig(owner, &format!("{cluster}-kubeconfig-user"), user).await?;
        }
        let authority = credentials.admin.authority().map_err(unusable)?;
        let pair = [("tls.crt".to_owned(), authority), ("tls.key".to_owned(), NO_KEY.to_owned())];
        self.keep(owner, &format!("{cluster}-ca"), pair.into()).await?;
        let (host, port) = place.endpoint;
        let info = credentials.admin.cluster_info(host, port).map_err(unusable)?;
        self.keep_cluster_info(&credentials.admin, &info).await
    }

    /// Writes a kubeconfig as a Secret.
    pub(crate) async fn keep_kubeconfig(
        &self,
        owner: Owner<'_>,
        name: &str,
        kubeconfig: &Kubeconfig,
    ) -> Result<(), Failure> {
        self.keep(owner, name, [(VALUE.to_owned(), kubeconfig.text().to_owned())].into()).await
    }

    /// Writes keys of a Secret. Other keys are other objects' of the cluster, and stay.
    async fn keep(
        &self,
        owner: Owner<'_>,
        name: &str,
        data: BTreeMap<String, Vec<u8>>,
    ) -> Result<(), Failure> {
        self.keep_as(owner, name, data, false).await
    }

    /// The same with a Secret to which Azure Service Operator would export.
    pub(crate) async fn keep_export(
        &self,
        owner: Owner<'_>,
        name: &str,
        data: BTreeMap<String, Vec<u8>>,
    ) -> Result<(), Failure> {
        self.keep_as(owner, name, data, true).await
    }

    async fn keep_as(
        &self,
        owner: Owner<'_>,
        name: &str,
        data: BTreeMap<String, Vec<u8>>,
        is_export: bool,
    ) -> Result<(), Failure> {
        let label = (CLUSTER_NAME, owner.cluster);
        let secret = OwnedSecret {
            name: name.to_owned(),
            label,
            kind: owner.kind,
            owner: owner.metadata,
            data,
            is_shared: true,
            is_export,
        };
        match self.keep_secret(&secret).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::Refused(format!(
                "Secret {name} exists already and lacks the label {CLUSTER_NAME}={}: delete it, or give it the label",
                owner.cluster
            ))),
            Err(error) => Err(Failure::Later {
                after: self.settings.timeouts.requeue,
                words: format!("Secret {name} is not written: {}", controllers::answer(&error)),
            }),
        }
    }

    /// Writes the ConfigMap in a managed cluster by which it is found, unless it is as it should be.
    async fn keep_cluster_info(&self, kubeconfig: &Kubeconfig, info: &str) -> Result<(), Failure> {
        let later = |words: String| Failure::Later {
            after: self.settings.timeouts.requeue,
            words: format!("the API server of the managed cluster cannot be used: {words}"),
        };
        let client = self.workloads.connect(kubeconfig.text()).await.map_err(later)?;
        let client = controllers::watch::with_answer_timeout(&client);
        write_cluster_info(client, info).await.map_err(|error| later(controllers::answer(&error)))
    }
}

async fn write_cluster_info(client: Client, info: &str) -> Result<(), kube::Error> {
    const NAME: &str = "cluster-info";
    let maps: Api<ConfigMap> = Api::namespaced(client, "kube-public");
    let content = BTreeMap::from([("kubeconfig".to_owned(), info.to_owned())]);
    match maps.get_opt(NAME).await? {
        Some(map)
            if map.data.as_ref().and_then(|data| data.get("kubeconfig")).is_some_and(|it| it == info) =>
        {
            Ok(())
        }
        Some(_) => {
            let patch = Patch::Merge(json!({ "data": content }));
            let params =
                PatchParams { field_manager: Some(FIELD_MANAGER.to_owned()), ..PatchParams::default() };
            maps.patch(NAME, &params, &patch).await.map(drop)
        }
        None => {
            let metadata = ObjectMeta { name: Some(NAME.to_owned()), ..ObjectMeta::default() };
            let map = ConfigMap { metadata, data: Some(content), ..ConfigMap::default() };
            maps.create(&PostParams::default(), &map).await.map(drop)
        }
    }
}

fn unusable(error: KubeconfigError) -> Failure {
    Failure::Refused(error.to_string())
}
