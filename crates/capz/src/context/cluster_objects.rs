//! The Cluster and the AzureCluster that an object belongs to.

use std::sync::Arc;

use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use capz_planner::managed_cluster::joined;

use crate::context::manager::Manager;
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::{AzureCluster, AzureManagedControlPlane, Object, ObjectKind, reference};
use crate::kubernetes::store::{Store, key_of};

/// The Cluster and the AzureCluster that an object belongs to.
#[derive(Clone)]
pub(crate) struct ClusterObjects {
    pub cluster: Arc<Cluster>,
    pub azure_cluster: Arc<AzureCluster>,
    /// The managed cluster that the object joins. The AzureCluster is made from it.
    pub managed: Option<Arc<AzureManagedControlPlane>>,
}

impl Manager {
    /// The object of this name beside a dependent one, if a watch has shown it. Without it nothing can be deleted in
    /// Azure: a dependent object that is being deleted reports that the other one is missing, once the store is
    /// complete.
    pub(crate) fn dependency<D: ObjectKind, K: ObjectKind>(
        &self,
        dependent: &Object<D>,
        store: &Store<K>,
        name: &str,
    ) -> Option<Arc<Object<K>>> {
        let object = store.get(&key_of(dependent).beside(name));
        if object.is_none() && store.is_complete() && dependent.metadata.deletion_timestamp.is_some() {
            let kind = K::NAME;
            let words = format!(
                "it waits for the {kind} {name}, which does not exist: create it again, or delete by hand what is left in Azure, and then the finalizer"
            );
            self.recorder.warning(reference(dependent), "OwnerNotFound", words);
        }
        object
    }

    /// The cluster of an object, which its owner names where the object itself does not. `None` if an object is missing,
    /// whose creation wakes the reconcile, or if the cluster is of another kind, which an event reports.
    pub(crate) fn cluster_of<K: ObjectKind>(
        &self,
        object: &Object<K>,
        named_by_owner: &str,
    ) -> Option<ClusterObjects> {
        let cluster = self.owner_cluster(object, named_by_owner)?;
        self.self_managed(object, cluster)
    }

    /// The same for an object that may also join a managed cluster.
    pub(crate) fn cluster_joined_by<K: ObjectKind>(
        &self,
        object: &Object<K>,
        named_by_owner: &str,
    ) -> Option<ClusterObjects> {
        let cluster = self.owner_cluster(object, named_by_owner)?;
        let control_plane = &cluster.spec.control_plane_ref;
        if control_plane.kind != AzureManagedControlPlaneSpec::NAME {
            return self.self_managed(object, cluster);
        }
        let store = &self.stores.managed_control_planes;
        let control_plane = self.dependency(object, store, &control_plane.name)?;
        Some(ClusterObjects::joining(cluster, control_plane))
    }

    fn owner_cluster<K: ObjectKind>(&self, object: &Object<K>, named_by_owner: &str) -> Option<Arc<Cluster>> {
        let name = core::cluster_name(&object.metadata).unwrap_or(named_by_owner);
        self.dependency(object, &self.stores.clusters, name)
    }

    fn self_managed<K: ObjectKind>(
        &self,
        object: &Object<K>,
        cluster: Arc<Cluster>,
    ) -> Option<ClusterObjects> {
        let infrastructure = &cluster.spec.infrastructure_ref;
        if infrastructure.kind != AzureClusterSpec::NAME {
            let words = format!(
                "the infrastructure of its Cluster is the {} {}, not an AzureCluster: it is not served",
                infrastructure.kind, infrastructure.name
            );
            self.recorder.normal(reference(object), "AzureClusterObjectNotFound", words);
            return None;
        }
        let azure_cluster = self.dependency(object, &self.stores.azure_clusters, &infrastructure.name)?;
        Some(ClusterObjects { cluster, azure_cluster, managed: None })
    }
}

impl ClusterObjects {
    /// The objects of a managed cluster that self-managed machines join.
    pub fn joining(cluster: Arc<Cluster>, control_plane: Arc<AzureManagedControlPlane>) -> Self {
        let metadata = control_plane.metadata.clone();
        let spec = joined(&control_plane.spec, metadata.name.as_deref().unwrap_or_default());
        let azure_cluster = AzureCluster { types: None, metadata, spec, status: None };
        Self { cluster, azure_cluster: Arc::new(azure_cluster), managed: Some(control_plane) }
    }

    /// Whether the cluster's network is ready. Cluster API takes the network of a managed cluster for ready before Azure
    /// has created it.
    pub fn has_network(&self) -> bool {
        let is_initialized = |managed: &Arc<AzureManagedControlPlane>| {
            managed.status.as_ref().is_some_and(|status| status.initialized == Some(true))
        };
        self.cluster.status.as_ref().is_some_and(core::ClusterStatus::has_infrastructure)
            && self.managed.as_ref().is_none_or(is_initialized)
    }
}

/// The zones of the cluster's region.
pub(crate) fn zones_of(azure_cluster: &AzureCluster) -> Vec<String> {
    let status = azure_cluster.status.as_ref();
    let domains = status.and_then(|status| status.failure_domains.as_ref());
    domains.into_iter().flat_map(|domains| domains.keys().cloned()).collect()
}
