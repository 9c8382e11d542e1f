//! The Cluster and the AzureCluster that an object belongs to.

use std::sync::Arc;

use controllers::Reference;
use k8s::api::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::context::manager::Manager;
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::{API_VERSION, AzureCluster, Object};
use crate::kubernetes::store::{Key, Store};

/// The Cluster and the AzureCluster that an object belongs to.
#[derive(Clone)]
pub(crate) struct ClusterObjects {
    pub cluster: Arc<Cluster>,
    pub azure_cluster: Arc<AzureCluster>,
}

impl Manager {
    /// The object of this name beside a dependent one, if a watch has shown it. Without it nothing can be deleted in
    /// Azure: a dependent object that is being deleted reports that the other one is missing, once the store is
    /// complete.
    pub(crate) fn dependency<S: Clone, T: Clone>(
        &self,
        dependent: (&'static str, &ObjectMeta),
        kind: &str,
        store: &Store<S, T>,
        name: &str,
    ) -> Option<Arc<Object<S, T>>> {
        let (dependent_kind, metadata) = dependent;
        let namespace = metadata.namespace.clone().unwrap_or_default();
        let found = store.get(&Key { namespace, name: name.to_owned() });
        if found.is_none() && store.is_complete() && metadata.deletion_timestamp.is_some() {
            let about = Reference::of(API_VERSION, dependent_kind, metadata);
            let words = format!(
                "it waits for the {kind} {name}, which does not exist: create it again, or delete by hand what is left in Azure, and then the finalizer"
            );
            self.recorder.warning(about, "OwnerNotFound", words);
        }
        found
    }

    /// The cluster of an object, which its owner names where the object itself does not. `None` if an object is missing,
    /// whose creation wakes the reconcile, or if the cluster is of another kind, which an event reports.
    pub(crate) fn cluster_of(
        &self,
        object: (&'static str, &ObjectMeta),
        named_by_owner: &str,
    ) -> Option<ClusterObjects> {
        let (kind, metadata) = object;
        let name = core::cluster_name(metadata).unwrap_or(named_by_owner);
        let cluster = self.dependency(object, "Cluster", &self.stores.clusters, name)?;
        let infrastructure = &cluster.spec.infrastructure_ref;
        if infrastructure.kind != "AzureCluster" {
            let words = format!(
                "the infrastructure of its Cluster is the {} {}, not an AzureCluster: it is not served",
                infrastructure.kind, infrastructure.name
            );
            let about = Reference::of(API_VERSION, kind, metadata);
            self.recorder.normal(about, "AzureClusterObjectNotFound", words);
            return None;
        }
        let (store, name) = (&self.stores.azure_clusters, &infrastructure.name);
        let azure_cluster = self.dependency(object, "AzureCluster", store, name)?;
        Some(ClusterObjects { cluster, azure_cluster })
    }
}

impl ClusterObjects {
    /// Whether the cluster's network is ready.
    pub fn has_network(&self) -> bool {
        self.cluster.status.as_ref().is_some_and(core::ClusterStatus::has_infrastructure)
    }
}

/// The zones of the cluster's region.
pub(crate) fn zones_of(azure_cluster: &AzureCluster) -> Vec<String> {
    let status = azure_cluster.status.as_ref();
    let domains = status.and_then(|status| status.failure_domains.as_ref());
    domains.into_iter().flat_map(|domains| domains.keys().cloned()).collect()
}
