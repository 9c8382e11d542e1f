//! ConfigMaps that are written for a managed cluster into its namespace.

use std::collections::BTreeMap;

use k8s::api::api::core::v1::ConfigMap;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Api;
use kube::api::{Patch, PostParams};
use serde_json::json;

use crate::azure::failure::Failure;
use crate::context::manager::Manager;
use crate::kubernetes::core::CLUSTER_NAME;
use crate::kubernetes::operator_exports::EXPORT;
use crate::kubernetes::patch::params;
use crate::managed::access::Owner;
use crate::secrets::owned_secret::is_ours;

/// The key of an issuer's URL in its ConfigMap.
const ISSUER_URL: &str = "oidc-issuer-profile-url";

impl Manager {
    /// Writes the ConfigMap with the URL of the issuer of the cluster's service account tokens, for users who federate
    /// identities with it.
    pub(crate) async fn keep_issuer(&self, owner: Owner<'_>, url: &str) -> Result<(), Failure> {
        let name = format!("{}-aso-oidc-issuer-profile", owner.cluster);
        self.keep_config_map(owner, &name, [(ISSUER_URL.to_owned(), url.to_owned())].into()).await
    }

    /// Writes keys of a ConfigMap to which Azure Service Operator would export. Other keys are other objects' of the cluster,
    /// and stay. An existing ConfigMap that is not ours is a user's, and stays as it is.
    pub(crate) async fn keep_config_map(
        &self,
        owner: Owner<'_>,
        name: &str,
        data: BTreeMap<String, String>,
    ) -> Result<(), Failure> {
        let cluster = owner.cluster;
        let namespace = owner.metadata.namespace.as_deref().unwrap_or_default();
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), namespace);
        let failed = |error: kube::Error| Failure::Later {
            after: self.settings.timeouts.requeue,
            words: format!("ConfigMap {name} is not written: {}", controllers::answer(&error)),
        };
        let labels = BTreeMap::from([
            (CLUSTER_NAME.to_owned(), cluster.to_owned()),
            (EXPORT.to_owned(), String::new()),
        ]);
        let Some(existing) = maps.get_opt(name).await.map_err(failed)? else {
            let metadata = ObjectMeta {
                name: Some(name.to_owned()),
                labels: Some(labels),
                owner_references: Some(vec![owner.reference()]),
                ..ObjectMeta::default()
            };
            let map = ConfigMap { metadata, data: Some(data), ..ConfigMap::default() };
            let field_manager = params().field_manager;
            let params = PostParams { field_manager, ..PostParams::default() };
            return maps.create(&params, &map).await.map(drop).map_err(failed);
        };
        if !is_ours(&existing.metadata, (CLUSTER_NAME, cluster), owner.metadata) {
            return Err(Failure::Refused(format!(
                "ConfigMap {name} exists already and lacks the label {CLUSTER_NAME}={cluster}: delete it, or give it the label"
            )));
        }
        let labelled = existing.metadata.labels.unwrap_or_default();
        let is_labelled = labels.iter().all(|(key, value)| labelled.get(key) == Some(value));
        let known = existing.data.unwrap_or_default();
        if is_labelled && data.iter().all(|(key, value)| known.get(key) == Some(value)) {
            return Ok(());
        }
        let patch = Patch::Merge(json!({ "metadata": { "labels": labels }, "data": data }));
        maps.patch(name, &params(), &patch).await.map(drop).map_err(failed)
    }
}
