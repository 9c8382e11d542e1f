//! The identity that a cluster uses, whether it may use it, and the finalizers that protect it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use capz_api::ObjectReference;
use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::azure_cluster_identity::is_allowed;
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use cloud_config::Secret;
use k8s::api::api::core::v1::{Namespace, Secret as KubernetesSecret};
use kube::Api;
use kube::api::ListParams;
use sha2::{Digest, Sha224};

use crate::azure::clients::{AccessError, AzureAccess, IdentitySecret, has_client_secret, kind_of};
use crate::context::manager::Manager;
use crate::kubernetes::kinds::{AzureClusterIdentity, Object, ObjectKind};
use crate::kubernetes::patch::{Edited, PatchError};
use crate::kubernetes::store::{Key, key_of};

/// A kind of clusters, whose objects name the identity with which their resources are made.
pub(crate) trait UsesIdentity: ObjectKind {
    /// The prefix of the finalizer by which an object protects its identity from deletion.
    const IDENTITY_FINALIZER: &'static str;

    /// The reference to the identity.
    fn identity_ref(&self) -> Option<&ObjectReference>;

    /// The name of the Azure cloud; empty for the public one.
    fn environment(&self) -> &str;
}

impl UsesIdentity for AzureClusterSpec {
    const IDENTITY_FINALIZER: &'static str = "azurecluster.infrastructure.cluster.x-k8s.io";

    fn identity_ref(&self) -> Option<&ObjectReference> {
        self.identity_ref.as_ref()
    }

    fn environment(&self) -> &str {
        self.azure_environment.as_deref().unwrap_or_default()
    }
}

impl UsesIdentity for AzureManagedControlPlaneSpec {
    const IDENTITY_FINALIZER: &'static str = "azuremanagedcontrolplane.infrastructure.cluster.x-k8s.io";

    fn identity_ref(&self) -> Option<&ObjectReference> {
        self.identity_ref.as_ref()
    }

    fn environment(&self) -> &str {
        self.azure_environment.as_deref().unwrap_or_default()
    }
}

/// Why a cluster has no client.
#[derive(Debug, thiserror::Error)]
pub enum IdentityError {
    /// It names no identity, or one that does not exist.
    #[error("spec.identityRef: {0}")]
    Missing(String),
    /// Its namespace may not use the identity.
    #[error(
        "AzureClusterIdentity {identity} does not allow clusters in namespace {namespace}: add it to spec.allowedNamespaces"
    )]
    NotAllowed {
        /// The identity.
        identity: Key,
        /// The namespace of the cluster.
        namespace: String,
    },
    /// Kubernetes' API did not answer.
    #[error("{what} cannot be read: {}", controllers::answer(source))]
    Kubernetes {
        /// The request.
        what: String,
        /// The answer.
        source: Box<kube::Error>,
    },
    /// The identity is being deleted, and the API server accepts no new finalizers.
    #[error(
        "AzureClusterIdentity {0} is being deleted, and no cluster can begin to use it: name another one in spec.identityRef, or create it again once it is gone"
    )]
    Leaving(Key),
    /// The cluster's resources are in another subscription than its spec says.
    #[error("{0}")]
    Elsewhere(String),
    /// No client can be created with it.
    #[error(transparent)]
    Access(#[from] AccessError),
}

impl IdentityError {
    fn unread(what: String, source: kube::Error) -> Self {
        Self::Kubernetes { what, source: Box::new(source) }
    }

    /// Whether the failure may pass without a change by the user.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Kubernetes { source, .. } => {
                !matches!(source.as_ref(), kube::Error::Api(status) if status.is_not_found())
            }
            Self::Missing(_)
            | Self::NotAllowed { .. }
            | Self::Leaving(_)
            | Self::Elsewhere(_)
            | Self::Access(_) => false,
        }
    }
}

/// The finalizer by which a cluster protects its identity from deletion.
fn finalizer<K: UsesIdentity>(cluster: &Key) -> String {
    let digest = Sha224::digest(format!("{}-{}", cluster.namespace, cluster.name).as_bytes());
    digest.iter().fold(format!("{}/", K::IDENTITY_FINALIZER), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The finalizer as a few old releases wrote it. It is too long for some names, so it is removed wherever it is found.
fn older_finalizer<K: UsesIdentity>(cluster: &Key) -> String {
    format!("{}/{}-{}", K::IDENTITY_FINALIZER, cluster.namespace, cluster.name)
}

/// The key of the identity that a cluster names.
pub fn key<K: UsesIdentity>(cluster: &Object<K>) -> Result<Key, IdentityError> {
    let reference = cluster.spec.identity_ref();
    let key = reference.and_then(|it| referenced(key_of(cluster), &it.name, &it.namespace));
    key.ok_or_else(|| IdentityError::Missing("name an AzureClusterIdentity".into()))
}

/// The key in a reference; its namespace is that of the object with the reference unless it names another one.
fn referenced(own: Key, name: &Option<String>, namespace: &Option<String>) -> Option<Key> {
    let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    Some(Key { name: text(name)?, namespace: text(namespace).unwrap_or(own.namespace) })
}

/// The Secret with the credential of an identity; `None` for types that need none.
pub fn secret_of(identity: &AzureClusterIdentity) -> Option<Key> {
    let spec = &identity.spec;
    let has_file = spec.cert_path.as_deref().is_some_and(|path| !path.trim().is_empty());
    let reads = has_client_secret(spec) || kind_of(spec) == "ServicePrincipalCertificate" && !has_file;
    let reference = spec.client_secret.as_ref().filter(|_| reads)?;
    referenced(key_of(identity), &reference.name, &reference.namespace)
}

impl Manager {
    /// The identity of a cluster with the data of its Secret, and its client; the identity must allow the namespace.
    /// Secrets are read each time, and a change of one wakes the objects that use it, so that a rotated Secret takes effect
    /// at once.
    pub(crate) async fn access<K: UsesIdentity>(
        &self,
        cluster: &Object<K>,
    ) -> Result<(Arc<AzureClusterIdentity>, IdentitySecret, AzureAccess), IdentityError> {
        let identity = self.identity_of(cluster)?;
        self.check_allowed(cluster, &identity).await?;
        let secret = self.secret_data(&identity).await?;
        let access = self.azure.access(cluster.spec.environment(), &identity.spec, &secret)?;
        Ok((identity, secret, access))
    }

    /// The data of an identity's Secret; empty for types that need none.
    async fn secret_data(&self, identity: &AzureClusterIdentity) -> Result<IdentitySecret, IdentityError> {
        let Some(key) = secret_of(identity) else { return Ok(IdentitySecret::default()) };
        let secrets: Api<KubernetesSecret> = Api::namespaced(self.client.clone(), &key.namespace);
        let secret = secrets.get(&key.name).await;
        let secret = secret.map_err(|error| IdentityError::unread(format!("Secret {key}"), error))?;
        let mut data = secret.data.unwrap_or_default();
        let mut bytes = |key: &str| data.remove(key).map(|bytes| bytes.0);
        Ok(IdentitySecret {
            client_secret: bytes("clientSecret"),
            certificate: bytes("certificate"),
            password: bytes("password").map(|it| Secret::new(String::from_utf8_lossy(&it).trim_end())),
        })
    }

    pub(crate) fn identity_of<K: UsesIdentity>(
        &self,
        cluster: &Object<K>,
    ) -> Result<Arc<AzureClusterIdentity>, IdentityError> {
        let key = key(cluster)?;
        self.stores.identities.get(&key).ok_or_else(|| {
            IdentityError::Missing(format!("there is no AzureClusterIdentity {key}: create it"))
        })
    }

    /// Whether a cluster protects its identity, or can still add its finalizer.
    pub(crate) fn check_can_hold<K: UsesIdentity>(&self, cluster: &Object<K>) -> Result<(), IdentityError> {
        let identity = self.identity_of(cluster)?;
        let metadata = &identity.metadata;
        let own = key_of(cluster);
        let names = [finalizer::<K>(&own), older_finalizer::<K>(&own)];
        let is_held = metadata.finalizers.iter().flatten().any(|known| names.contains(known));
        if metadata.deletion_timestamp.is_some() && !is_held {
            return Err(IdentityError::Leaving(key_of(&*identity)));
        }
        Ok(())
    }

    /// Adds a cluster's finalizer to its identity while the cluster has work in Azure, and removes it afterwards.
    pub(crate) async fn hold_identity<K: UsesIdentity>(
        &self,
        cluster: &Object<K>,
        hold: bool,
    ) -> Result<(), PatchError> {
        let _one_at_a_time = self.identity_writes.lock().await;
        let Ok(identity) = self.identity_of(cluster) else { return Ok(()) };
        let own = key_of(cluster);
        let (finalizer, older) = (finalizer::<K>(&own), older_finalizer::<K>(&own));
        let has = |wanted: &str| identity.metadata.finalizers.iter().flatten().any(|known| known == wanted);
        let is_settled = has(&finalizer) == hold && !has(&older);
        // The API server accepts no new finalizer on an object that is being deleted; the older finalizer protects it
        // as well.
        if is_settled || (hold && identity.metadata.deletion_timestamp.is_some()) {
            return Ok(());
        }
        let mut edited = Edited::of(&self.client, &identity)?;
        let finalizers = edited.object.metadata.finalizers.get_or_insert_default();
        finalizers.retain(|known| *known != finalizer && *known != older);
        if hold {
            finalizers.push(finalizer);
        }
        edited.save().await?;
        edited.keep_in(&self.stores.identities);
        Ok(())
    }

    /// Whether the cluster's namespace may use its identity.
    async fn check_allowed<K: UsesIdentity>(
        &self,
        cluster: &Object<K>,
        identity: &AzureClusterIdentity,
    ) -> Result<(), IdentityError> {
        let namespace = key_of(cluster).namespace;
        let allowed = identity.spec.allowed_namespaces.as_ref();
        let needs_labels = allowed.is_some_and(|allowed| allowed.selector.is_some());
        let labels = if needs_labels {
            let namespaces: Api<Namespace> = Api::all(self.client.clone());
            // The role of established installations permits to list namespaces, not to get one.
            let this = ListParams::default().fields(&format!("metadata.name={namespace}"));
            let listed = namespaces.list(&this).await;
            let listed =
                listed.map_err(|error| IdentityError::unread(format!("Namespace {namespace}"), error))?;
            listed.items.into_iter().next().and_then(|it| it.metadata.labels).unwrap_or_default()
        } else {
            BTreeMap::new()
        };
        if is_allowed(allowed, &namespace, &labels) {
            return Ok(());
        }
        Err(IdentityError::NotAllowed { identity: key_of(identity), namespace })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// CAPZ-081.
    #[test]
    fn finalizers_are_hashes_of_who_holds_on() {
        let cluster = Key { namespace: "default".into(), name: "my-cluster".into() };
        assert_eq!(
            finalizer::<AzureClusterSpec>(&cluster),
            "azurecluster.infrastructure.cluster.x-k8s.io/aef4d1943ba7de2a3172b3f464fbdf6c3704309cd7e151dec01836cc"
        );
        assert_eq!(
            older_finalizer::<AzureClusterSpec>(&cluster),
            "azurecluster.infrastructure.cluster.x-k8s.io/default-my-cluster"
        );
    }

    /// CAPZ-159.
    #[test]
    fn an_identity_is_in_the_clusters_namespace_unless_another_is_named() {
        for (reference, expected) in [
            (json!({ "name": "i" }), Some("team/i")),
            (json!({ "name": "i", "namespace": "" }), Some("team/i")),
            (json!({ "name": "i", "namespace": "shared" }), Some("shared/i")),
            (json!({}), None),
            (json!(null), None),
        ] {
            let object = json!({
                "apiVersion": "v", "kind": "k", "metadata": { "name": "c", "namespace": "team" },
                "spec": { "identityRef": reference },
            });
            let object: crate::kubernetes::kinds::AzureCluster = serde_json::from_value(object).unwrap();
            assert_eq!(key(&object).ok().map(|key| key.to_string()).as_deref(), expected);
        }
    }
}
