//! The Secret with a cluster's credential for Azure Service Operator. This program does not read it. It serves users
//! who run that operator beside this program, with resources of their own that name the Secret
//! (`serviceoperator.azure.com/credential-from`), and is kept up to date for them. Where the operator's kinds are not
//! served and the Secret does not exist, it is not created: an unused credential should not exist.

use std::collections::BTreeMap;
use std::sync::Arc;

use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::azure_cluster_identity::AzureClusterIdentitySpec;
use capz_planner::azure_json::owner_label;
use k8s::api::api::core::v1::Secret as KubernetesSecret;
use kube::Api;
use tokio::time::Instant;

use crate::azure::clients::{AccessError, IdentitySecret, certificate, kind_of};
use crate::context::cluster_objects::ClusterObjects;
use crate::context::identity::IdentityError;
use crate::context::manager::{Ended, Manager};
use crate::kubernetes::core;
use crate::kubernetes::kinds::{ObjectKind, reference};
use crate::kubernetes::queue::Outcome;
use crate::kubernetes::store::Key;
use crate::secrets::owned_secret::OwnedSecret;

/// A group that the operator always serves.
const GROUP: &str = "resources.azure.com";
/// The reason of the event for a failure.
const FAILED: &str = "Error reconciling ASO secret";

impl Manager {
    /// Reconciles the Secret of an AzureCluster.
    pub(crate) async fn reconcile_aso_secret(
        self: Arc<Self>,
        key: Key,
        _: Instant,
    ) -> Result<Outcome, Ended> {
        let object = self.own(&self.stores.azure_clusters, &key)?;
        let annotations = object.metadata.annotations.as_ref();
        if annotations.is_some_and(|annotations| annotations.contains_key(core::MANAGED_BY)) {
            return Ok(Outcome::Idle);
        }
        let Some(name) = core::owner(&object.metadata, "Cluster") else {
            self.recorder.normal(reference(&object), "OwnerRefNotFound", "waiting for its owner Cluster");
            return Ok(Outcome::Idle);
        };
        let cluster = self.working_cluster(&key, name, &object.metadata).ok_or(Outcome::Idle)?;
        let secret_name = format!("{name}-aso-secret");
        match self.is_secret_wanted(&key.namespace, &secret_name).await {
            Ok(true) => {}
            Ok(false) => return Ok(Outcome::Rest),
            Err(error) => return Ok(self.after_refusal(&secret_name, &error)),
        }
        let cluster = ClusterObjects { azure_cluster: Arc::clone(&object), ..cluster };
        let data = async {
            let context = self.cluster_context(cluster).await?;
            let data = contents(&context.subscription, &context.identity.spec, &context.secret);
            Ok::<_, IdentityError>(data?)
        };
        let data = data.await.map_err(|error| {
            self.recorder.warning(reference(&object), FAILED, error.to_string());
            Outcome::Retry
        })?;
        let (kind, owner) = (AzureClusterSpec::NAME, &object.metadata);
        let secret = OwnedSecret {
            name: secret_name,
            label: owner_label(name),
            kind,
            owner,
            data,
            is_shared: false,
            is_export: false,
        };
        Ok(self.keep_or_report(&secret, FAILED).await)
    }

    async fn is_secret_wanted(&self, namespace: &str, name: &str) -> Result<bool, kube::Error> {
        let secrets: Api<KubernetesSecret> = Api::namespaced(self.client.clone(), namespace);
        if secrets.get_metadata_opt(name).await?.is_some() {
            return Ok(true);
        }
        let served = self.client.list_api_groups().await?;
        Ok(served.groups.iter().any(|group| group.name == GROUP))
    }
}

/// The data of the Secret. Contents of files and Secrets are copied unchanged.
fn contents(
    subscription: &str,
    identity: &AzureClusterIdentitySpec,
    secret: &IdentitySecret,
) -> Result<BTreeMap<String, Vec<u8>>, AccessError> {
    let text = |text: &Option<String>| text.as_deref().unwrap_or_default().trim().as_bytes().to_owned();
    let mut data = BTreeMap::from([
        ("AZURE_SUBSCRIPTION_ID", subscription.as_bytes().to_owned()),
        ("AZURE_TENANT_ID", text(&identity.tenant_id)),
        ("AZURE_CLIENT_ID", text(&identity.client_id)),
    ]);
    match kind_of(identity) {
        "WorkloadIdentity" => {
            data.insert("AUTH_MODE", b"workloadidentity".to_vec());
        }
        "UserAssignedMSI" => {
            data.insert("AUTH_MODE", b"podidentity".to_vec());
        }
        "ServicePrincipal" | "ManualServicePrincipal" => {
            let secret = secret.secret_text().unwrap_or_default();
            data.insert("AZURE_CLIENT_SECRET", secret.reveal().as_bytes().to_owned());
        }
        "ServicePrincipalCertificate" => {
            let (certificate, password) = certificate(identity, secret)?;
            data.insert("AZURE_CLIENT_CERTIFICATE", certificate);
            data.insert("AZURE_CLIENT_CERTIFICATE_PASSWORD", password.reveal().as_bytes().to_owned());
        }
        // The operator supports no other kind of credential.
        _ => {}
    }
    Ok(data.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cloud_config::Secret;
    use serde_json::json;

    #[test]
    fn each_kind_of_identity_gives_what_the_operator_reads() {
        let secret = IdentitySecret {
            client_secret: Some(b"hunter2\n".to_vec()),
            certificate: Some(vec![1, 255]),
            password: Some(Secret::new("horse")),
        };
        for (kind, wanted) in [
            ("WorkloadIdentity", vec![("AUTH_MODE", &b"workloadidentity"[..])]),
            ("UserAssignedMSI", vec![("AUTH_MODE", b"podidentity")]),
            ("ServicePrincipal", vec![("AZURE_CLIENT_SECRET", b"hunter2")]),
            ("ManualServicePrincipal", vec![("AZURE_CLIENT_SECRET", b"hunter2")]),
            (
                "ServicePrincipalCertificate",
                vec![
                    ("AZURE_CLIENT_CERTIFICATE", &[1, 255][..]),
                    ("AZURE_CLIENT_CERTIFICATE_PASSWORD", b"horse"),
                ],
            ),
            ("UserAssignedIdentityCredential", vec![]),
        ] {
            let identity = json!({ "type": kind, "tenantID": "t\n", "clientID": "c" });
            let identity = serde_json::from_value(identity).unwrap();
            let data = contents("123", &identity, &secret).ok().unwrap();
            let mut expected: BTreeMap<&str, &[u8]> = wanted.into_iter().collect();
            let who: [(&str, &[u8]); 3] =
                [("AZURE_SUBSCRIPTION_ID", b"123"), ("AZURE_TENANT_ID", b"t"), ("AZURE_CLIENT_ID", b"c")];
            expected.extend(who);
            let data: BTreeMap<&str, &[u8]> =
                data.iter().map(|(name, it)| (name.as_str(), &it[..])).collect();
            assert_eq!(data, expected, "{kind}");
        }
    }
}
