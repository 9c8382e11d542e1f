//! The Secrets and ConfigMaps that Azure Service Operator has written for objects that are taken over. It refuses to
//! write one that its object does not own, so none is left behind that it would write again.

use std::collections::BTreeMap;

use capz_planner::operator::{Export, OperatorObject};
use k8s::api::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Api;
use kube::api::{DeleteParams, DynamicObject, Patch, Preconditions};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;

use crate::kubernetes::core::CLUSTER_NAME;
use crate::kubernetes::operator::{Operator, OperatorError};
use crate::kubernetes::patch::params;

/// The label of the Secrets and ConfigMaps that are written in place of Azure Service Operator. That operator writes none
/// that its object does not own: they are deleted by this label when clusters are handed back.
pub(crate) const EXPORT: &str = "sigs.k8s.io/cluster-api-provider-azure-export";

/// The object of ours that writes the same Secrets and ConfigMaps from now on.
pub(crate) struct Heir {
    /// The name of its Cluster.
    pub cluster: String,
    /// The reference to it.
    pub reference: OwnerReference,
}

impl Operator {
    /// Gives what the operator has written for these objects to the heir, or else deletes it.
    ///
    /// # Errors
    /// The API server refuses a request.
    pub async fn take_exports(
        &self,
        objects: &[OperatorObject],
        heir: Option<&Heir>,
    ) -> Result<(), OperatorError> {
        for object in objects {
            for export in &object.exports {
                self.take_export(object, export, heir).await?;
            }
        }
        Ok(())
    }

    async fn take_export(
        &self,
        object: &OperatorObject,
        export: &Export,
        heir: Option<&Heir>,
    ) -> Result<(), OperatorError> {
        let (kind, plural, name) = match export {
            Export::Secret(name) => ("Secret", "secrets", name),
            Export::ConfigMap(name) => ("ConfigMap", "configmaps", name),
        };
        let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", kind), plural);
        let api: Api<DynamicObject> =
            Api::namespaced_with(self.client().clone(), &object.namespace, &resource);
        let what = |verb: &str| format!("{verb} {kind} {}/{name}", object.namespace);
        let found = api.get_metadata_opt(name).await;
        let Some(found) = found.map_err(|error| OperatorError::refused(what("read"), &error))? else {
            return Ok(());
        };
        let metadata = found.metadata;
        let mut owners = metadata.owner_references.unwrap_or_default();
        if owners.iter().all(|owner| owner.uid != object.uid) {
            return Ok(());
        }
        let (verb, done) = match heir {
            Some(heir) => {
                let labels = metadata.labels.unwrap_or_default();
                let is_controlled = owners.iter().any(|owner| owner.controller == Some(true));
                let is_known = owners.iter().any(|owner| owner.uid == heir.reference.uid);
                let is_labelled =
                    labels.get(CLUSTER_NAME) == Some(&heir.cluster) && labels.contains_key(EXPORT);
                if is_known && is_labelled {
                    return Ok(());
                }
                if !is_known {
                    let controller = (!is_controlled).then_some(true);
                    owners.push(OwnerReference { controller, ..heir.reference.clone() });
                }
                let patch = json!({ "metadata": {
                    "resourceVersion": metadata.resource_version, "ownerReferences": owners,
                    "labels": BTreeMap::from([(CLUSTER_NAME, heir.cluster.as_str()), (EXPORT, "")]) } });
                ("patch", api.patch_metadata(name, &params(), &Patch::Merge(&patch)).await.map(drop))
            }
            None => {
                let preconditions = Some(Preconditions { uid: metadata.uid, resource_version: None });
                let params = DeleteParams { preconditions, ..DeleteParams::default() };
                ("delete", api.delete(name, &params).await.map(drop))
            }
        };
        match done {
            Err(kube::Error::Api(status)) if status.is_not_found() => Ok(()),
            Err(error) => Err(OperatorError::refused(what(verb), &error)),
            Ok(()) => Ok(()),
        }
    }
}
