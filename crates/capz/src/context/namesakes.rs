//! The relation of a cluster to others of its name: its ID, whether it was taken over, and which other cluster takes
//! precedence.

use std::collections::BTreeSet;
use std::sync::Arc;

use capz_planner::cluster::{CLUSTER_ID, Claim, RESOURCES, SECURITY_RULES, TAGS, rival};
use capz_planner::elsewhere::SUBSCRIPTION;

use crate::context::manager::Manager;
use crate::kubernetes::core;
use crate::kubernetes::kinds::AzureCluster;
use crate::kubernetes::store::key_of;

/// The finalizer by which an AzureCluster waits for the deletion of its resources.
pub(crate) const FINALIZER: &str = "azurecluster.infrastructure.cluster.x-k8s.io";
/// Annotations of the established provider, and of earlier versions of this program, on an AzureCluster that they
/// reconcile.
const MARKS: [&str; 4] = [SECURITY_RULES, TAGS, RESOURCES, SUBSCRIPTION];

/// A cluster that takes precedence over another one.
pub(crate) struct Rival {
    /// Its name, and what to do.
    pub words: String,
    /// Whether it has the same ID: the other one is a copy of it, and no resource with that ID belongs to the copy.
    pub is_original: bool,
}

fn annotation<'a>(object: &'a AzureCluster, key: &str) -> Option<&'a str> {
    object.metadata.annotations.as_ref()?.get(key).map(String::as_str).filter(|text| !text.is_empty())
}

/// The ID of a cluster; `None` before its first resource is created.
pub(crate) fn id(object: &AzureCluster) -> Option<&str> {
    annotation(object, CLUSTER_ID)
}

/// Whether the established provider, or an earlier version of this program, has created resources for it. They bear no
/// ID, and belong to the cluster by their tag.
pub(crate) fn is_taken_over(object: &AzureCluster) -> bool {
    id(object).is_none()
        && (object.metadata.finalizers.iter().flatten().any(|held| held == FINALIZER)
            || MARKS.iter().any(|key| annotation(object, key).is_some())
            || object.status.as_ref().is_some_and(|status| status.ready == Some(true)))
}

impl Manager {
    /// Another cluster of the same name that takes precedence over this one; `None` if no other cluster claims the same
    /// resources.
    pub(crate) fn rival_of(&self, object: &AzureCluster) -> Option<Rival> {
        let own = self.claim(object)?;
        let namesakes = self.namesakes_of(object);
        let others: Vec<Claim<'_>> = namesakes.iter().filter_map(|other| self.claim(other)).collect();
        let first = rival(&own, &others)?;
        Some(Rival { words: first.to_string(), is_original: own.id.is_some() && own.id == first.id })
    }

    /// Wakes clusters with the name of this one: it may have had precedence over them, and be deleted.
    pub(crate) fn wake_namesakes_of(&self, object: &AzureCluster) {
        for other in self.namesakes_of(object) {
            self.clusters.wake(key_of(&*other));
        }
    }

    /// Other AzureClusters whose Clusters have the same name.
    fn namesakes_of(&self, object: &AzureCluster) -> Vec<Arc<AzureCluster>> {
        let Some(name) = core::cluster_name(&object.metadata) else { return Vec::new() };
        let mut all = self.stores.azure_clusters.all();
        all.retain(|other| {
            core::cluster_name(&other.metadata).is_some_and(|it| it.eq_ignore_ascii_case(name))
                && key_of(&**other) != key_of(object)
        });
        all
    }

    /// The claim of an AzureCluster; `None` without an owner Cluster, or if an external tool manages its
    /// infrastructure.
    fn claim<'a>(&'a self, object: &'a AzureCluster) -> Option<Claim<'a>> {
        let metadata = &object.metadata;
        if core::is_managed_elsewhere(metadata) {
            return None;
        }
        let spec = &object.spec;
        let name = metadata.name.as_deref().unwrap_or_default();
        let text = |text: &'a Option<String>| text.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let group = text(&spec.resource_group).unwrap_or(name);
        let network = spec.network_spec.as_ref();
        let network_group = network.and_then(|network| text(&network.vnet.as_ref()?.resource_group));
        Some(Claim {
            namespace: metadata.namespace.as_deref().unwrap_or_default(),
            name,
            uid: metadata.uid.as_deref().unwrap_or_default(),
            cluster: core::cluster_name(metadata)?,
            id: id(object),
            made: annotation(object, RESOURCES).is_some() || is_taken_over(object),
            created: metadata.creation_timestamp.as_ref().map_or(0, |created| created.0.as_second()),
            subscription: text(&spec.subscription_id)
                .or(self.settings.subscription.as_deref())
                .unwrap_or_default(),
            groups: std::iter::once(group)
                .chain(network_group)
                .map(str::to_lowercase)
                .collect::<BTreeSet<_>>(),
        })
    }
}
