//! The relation of a cluster to others of its name: its ID, whether it was taken over, and which other cluster takes
//! precedence.

use std::sync::Arc;

use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use capz_planner::cluster::{CLUSTER_ID, Claim, RESOURCES, SECURITY_RULES, TAGS, rival};
use capz_planner::elsewhere::SUBSCRIPTION;

use crate::context::manager::Manager;
use crate::context::reconcile::Reconciled;
use crate::kubernetes::core;
use crate::kubernetes::kinds::{Object, ObjectKind as _};
use crate::kubernetes::status::ReportedStatus as _;
use crate::kubernetes::store::key_of;

/// The finalizer by which an AzureCluster waits for the deletion of its resources.
pub(crate) const FINALIZER: &str = "azurecluster.infrastructure.cluster.x-k8s.io";
/// Annotations of the established provider, and of earlier versions of this program, on an AzureCluster that they
/// reconcile.
const MARKS: [&str; 4] = [SECURITY_RULES, TAGS, RESOURCES, SUBSCRIPTION];

/// A kind of clusters, whose resources are known by the name of the Cluster.
pub(crate) trait Claims: Reconciled {
    /// The subscription; the manager's unless it is set.
    fn subscription(&self) -> Option<&str>;
    /// The resource group; the name of the object unless it is set.
    fn group(&self) -> Option<&str>;
    /// The resource group of the network; the cluster's unless it is set.
    fn network_group(&self) -> Option<&str>;
}

impl Claims for AzureClusterSpec {
    fn subscription(&self) -> Option<&str> {
        self.subscription_id.as_deref()
    }

    fn group(&self) -> Option<&str> {
        self.resource_group.as_deref()
    }

    fn network_group(&self) -> Option<&str> {
        self.network_spec.as_ref()?.vnet.as_ref()?.resource_group.as_deref()
    }
}

impl Claims for AzureManagedControlPlaneSpec {
    fn subscription(&self) -> Option<&str> {
        self.subscription_id.as_deref()
    }

    fn group(&self) -> Option<&str> {
        self.resource_group_name.as_deref()
    }

    fn network_group(&self) -> Option<&str> {
        self.virtual_network.as_ref()?.resource_group.as_deref()
    }
}

/// A cluster that takes precedence over another one.
pub(crate) struct Rival {
    /// Its name, and what to do.
    pub words: String,
    /// Whether it has the same ID: the other one is a copy of it, and no resource with that ID belongs to the copy.
    pub is_original: bool,
}

fn annotation<'a, K: Claims>(object: &'a Object<K>, key: &str) -> Option<&'a str> {
    object.metadata.annotations.as_ref()?.get(key).map(String::as_str).filter(|text| !text.is_empty())
}

/// The ID of a cluster; `None` before its first resource is created.
pub(crate) fn id<K: Claims>(object: &Object<K>) -> Option<&str> {
    annotation(object, CLUSTER_ID)
}

/// Whether the established provider, or an earlier version of this program, has created resources for it. They bear no
/// ID, and belong to the cluster by their tag.
pub(crate) fn is_taken_over<K: Claims>(object: &Object<K>) -> bool {
    id(object).is_none()
        && (object.metadata.finalizers.iter().flatten().any(|held| held == K::FINALIZER)
            || MARKS.iter().any(|key| annotation(object, key).is_some())
            || object.status.as_ref().is_some_and(|status| status.is_ready()))
}

/// Other clusters whose Clusters have the same name.
struct Namesakes {
    self_managed: Vec<Arc<Object<AzureClusterSpec>>>,
    managed: Vec<Arc<Object<AzureManagedControlPlaneSpec>>>,
}

impl Manager {
    /// Another cluster of the same name that takes precedence over this one; `None` if no other cluster claims the same
    /// resources.
    pub(crate) fn rival_of<K: Claims>(&self, object: &Object<K>) -> Option<Rival> {
        let own = self.claim(object)?;
        let Namesakes { self_managed, managed } = self.namesakes_of(object);
        let self_managed: Vec<Claim<'_>> =
            self_managed.iter().filter_map(|other| self.claim(other)).collect();
        let managed: Vec<Claim<'_>> = managed.iter().filter_map(|other| self.claim(other)).collect();
        let others: Vec<Claim<'_>> = self_managed.iter().chain(&managed).cloned().collect();
        let first = rival(&own, &others)?;
        let kind = match self_managed.contains(first) {
            true => AzureClusterSpec::NAME,
            false => AzureManagedControlPlaneSpec::NAME,
        };
        let is_original = own.id.is_some() && own.id == first.id;
        Some(Rival { words: first.refusal(kind, K::NAME), is_original })
    }

    /// Wakes clusters with the name of this one: it may have had precedence over them, and be deleted.
    pub(crate) fn wake_namesakes_of<K: Claims>(&self, object: &Object<K>) {
        let Namesakes { self_managed, managed } = self.namesakes_of(object);
        for other in self_managed {
            self.clusters.wake(key_of(&*other));
        }
        for other in managed {
            self.managed.control_planes.wake(key_of(&*other));
        }
    }

    fn namesakes_of<K: Claims>(&self, object: &Object<K>) -> Namesakes {
        Namesakes {
            self_managed: self.with_name_of::<K, AzureClusterSpec>(object),
            managed: self.with_name_of::<K, AzureManagedControlPlaneSpec>(object),
        }
    }

    /// Other clusters of a kind whose Clusters have the same name.
    fn with_name_of<K: Claims, O: Claims>(&self, object: &Object<K>) -> Vec<Arc<Object<O>>> {
        let Some(name) = core::cluster_name(&object.metadata) else { return Vec::new() };
        let mut all = O::store(&self.stores).all();
        all.retain(|other| {
            core::cluster_name(&other.metadata).is_some_and(|it| it.eq_ignore_ascii_case(name))
                && (K::NAME, key_of(object)) != (O::NAME, key_of(&**other))
        });
        all
    }

    /// The claim of a cluster; `None` without an owner Cluster, or if an external tool manages its infrastructure.
    fn claim<'a, K: Claims>(&'a self, object: &'a Object<K>) -> Option<Claim<'a>> {
        let metadata = &object.metadata;
        if core::is_managed_elsewhere(metadata) {
            return None;
        }
        let spec = &object.spec;
        let name = metadata.name.as_deref().unwrap_or_default();
        let text = |text: Option<&'a str>| text.map(str::trim).filter(|text| !text.is_empty());
        let group = text(spec.group()).unwrap_or(name);
        Some(Claim {
            namespace: metadata.namespace.as_deref().unwrap_or_default(),
            name,
            uid: metadata.uid.as_deref().unwrap_or_default(),
            cluster: core::cluster_name(metadata)?,
            id: id(object),
            made: annotation(object, RESOURCES).is_some() || is_taken_over(object),
            created: metadata.creation_timestamp.as_ref().map_or(0, |created| created.0.as_second()),
            subscription: text(spec.subscription())
                .or(self.settings.subscription.as_deref())
                .unwrap_or_default(),
            groups: [Some(group), text(spec.network_group())]
                .into_iter()
                .flatten()
                .map(str::to_lowercase)
                .collect(),
        })
    }
}
