//! The facts about a cluster that are needed before its goals, or those of one of its machines, are planned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use azure_types::ResourceId;
use capz_api::azure_cluster::AzureClusterSpec;
use capz_planner::cluster::dns_suffix;
use capz_planner::{Claimant, ClusterScope, elsewhere, operator};
use tokio::time::Instant;

use crate::azure::clients::{Access, Material};
use crate::azure::failure::Failure;
use crate::azure::reach::Reach;
use crate::context::identity::IdentityError;
use crate::context::manager::Manager;
use crate::context::namesakes;
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::AzureCluster;
use crate::kubernetes::store::key_of;

/// The facts about a cluster that are needed before goals are planned.
pub(crate) struct Surroundings {
    /// The Cluster.
    pub cluster: Arc<Cluster>,
    /// Azure.
    pub access: Access,
    /// The credential of the cluster's identity.
    pub material: Material,
    /// The subscription in effect.
    pub subscription: String,
    /// The cluster's ID; empty before its first resource is created.
    pub id: String,
    /// The namespace of its AzureCluster.
    pub namespace: String,
    /// Why another cluster that claims the same resources takes precedence.
    pub rival: Option<String>,
    /// Resources that are used as they are, whatever their tags say.
    pub kept: BTreeSet<ResourceId>,
    /// Whether an external tool manages its infrastructure: it is never ours, whatever its tags say.
    pub managed_elsewhere: bool,
    /// The suffix of public DNS names.
    pub dns_suffix: &'static str,
}

impl Surroundings {
    /// The scope of a cluster's goals.
    pub fn scope<'a>(
        &'a self,
        name: &'a str,
        spec: &'a AzureClusterSpec,
        zones: &'a [String],
        gates: capz_api::Gates,
    ) -> ClusterScope<'a> {
        ClusterScope {
            cluster: self.cluster.metadata.name.as_deref().unwrap_or_default(),
            id: Some(&self.id),
            marked_only: self.rival.is_some(),
            kept: &self.kept,
            namespace: &self.namespace,
            name,
            spec,
            subscription: &self.subscription,
            api_server_port: self.cluster.spec.cluster_network.api_server_port,
            zones,
            dns_suffix: self.dns_suffix,
            gates,
        }
    }

    /// Checks that no other cluster takes precedence over this one.
    ///
    /// # Errors
    /// Another cluster does: names it, and says what to do.
    pub fn check_rival(&self) -> Result<(), Failure> {
        self.rival.clone().map_or(Ok(()), |words| Err(Failure::Refused(words)))
    }

    /// The inputs for reconciling an object in this cluster's subscription, with reads no older than `not_before`.
    pub fn reach<'a>(
        &'a self,
        manager: &'a Manager,
        not_before: Instant,
        (kind, name): (&'static str, &'a str),
    ) -> Reach<'a> {
        Reach {
            client: &self.access.client,
            tenant: &self.access.tenant,
            reads: &manager.reads,
            written: &manager.written,
            claimant: Claimant {
                kind,
                namespace: &self.namespace,
                name,
                cluster: self.cluster.metadata.name.as_deref().unwrap_or_default(),
                id: Some(&self.id),
                marked_only: self.rival.is_some(),
                kept: &self.kept,
            },
            not_before,
            requeue: manager.settings.timeouts.requeue,
        }
    }

    /// Whether an object with these annotations is paused by now, or its cluster deleted.
    pub fn is_paused(&self, manager: &Manager, annotations: Option<&BTreeMap<String, String>>) -> bool {
        let cluster = manager.stores.clusters.get(&key_of(&*self.cluster));
        cluster.is_none_or(|cluster| core::is_paused(&cluster, annotations))
    }
}

impl Manager {
    /// Collects the surroundings of a cluster.
    pub(crate) async fn surroundings(
        &self,
        object: &AzureCluster,
        cluster: Arc<Cluster>,
    ) -> Result<Surroundings, IdentityError> {
        let environment = object.spec.azure_environment.as_deref().unwrap_or_default();
        let dns_suffix = dns_suffix(environment)
            .ok_or_else(|| crate::azure::clients::AccessError::UnknownCloud(environment.to_owned()))?;
        let subscription = object
            .spec
            .subscription_id
            .as_deref()
            .filter(|id| !id.is_empty())
            .or(self.settings.subscription.as_deref())
            .map(|id| id.trim().to_owned())
            .ok_or_else(|| {
                IdentityError::Missing(
                    "no subscription is known: set spec.subscriptionID, or AZURE_SUBSCRIPTION_ID of the manager".into(),
                )
            })?;
        let (access, material) = self.access(object).await?;
        let rival = self.rival_of(object);
        let is_copy = rival.as_ref().is_some_and(|rival| rival.is_original);
        let id = namesakes::id(object).filter(|_| !is_copy).unwrap_or_default();
        let none = BTreeMap::new();
        let annotations = object.metadata.annotations.as_ref().unwrap_or(&none);
        let found = Surroundings {
            kept: operator::kept_of(annotations),
            access,
            material,
            subscription,
            id: id.to_owned(),
            namespace: object.metadata.namespace.clone().unwrap_or_default(),
            rival: rival.map(|rival| rival.words),
            managed_elsewhere: core::is_managed_elsewhere(&object.metadata),
            cluster,
            dns_suffix,
        };
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let scope = found.scope(name, &object.spec, &[], self.settings.gates.of_admission());
        elsewhere::check_cluster(scope, annotations).map_err(IdentityError::Elsewhere)?;
        Ok(found)
    }
}
