//! The objects around a machine or a pool.

use std::sync::Arc;

use capz_planner::elsewhere;
use controllers::Reference;

use crate::azure::failure::Failure;
use crate::context::dependency::About;
use crate::context::manager::Manager;
use crate::context::surroundings::Surroundings;
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::{API_VERSION, AzureCluster};
use crate::kubernetes::operator;

/// The owner of the infrastructure, and its cluster.
pub(crate) struct Family<O> {
    pub owner: Arc<O>,
    pub cluster: Arc<Cluster>,
    pub azure_cluster: Arc<AzureCluster>,
}

impl<O> Family<O> {
    /// The family of an object with this owner, which names its cluster where the object itself does not. `None` if an
    /// object is missing, whose creation wakes the reconcile, or if the cluster is of another kind, which an event
    /// reports.
    pub fn of(
        manager: &Manager,
        about: About<'_>,
        owner: Arc<O>,
        cluster: impl Fn(&O) -> &str,
    ) -> Option<Self> {
        let stores = &manager.stores;
        let cluster = core::cluster_name(about.metadata).unwrap_or_else(|| cluster(&owner));
        let cluster = about.needs(manager, "Cluster", &stores.clusters, cluster)?;
        let infrastructure = &cluster.spec.infrastructure_ref;
        if infrastructure.kind != "AzureCluster" {
            let words = format!(
                "the infrastructure of its Cluster is the {} {}, not an AzureCluster: it is not served",
                infrastructure.kind, infrastructure.name
            );
            let about = Reference::of(API_VERSION, about.kind, about.metadata);
            manager.recorder.normal(about, "AzureClusterObjectNotFound", words);
            return None;
        }
        let (store, name) = (&stores.azure_clusters, &infrastructure.name);
        let azure_cluster = about.needs(manager, "AzureCluster", store, name)?;
        Some(Self { owner, cluster, azure_cluster })
    }

    /// Whether the cluster's network is ready.
    pub fn has_network(&self) -> bool {
        self.cluster.status.as_ref().is_some_and(core::ClusterStatus::has_infrastructure)
    }

    /// The zones of the cluster's region.
    pub fn zones(&self) -> Vec<String> {
        let status = self.azure_cluster.status.as_ref();
        let domains = status.and_then(|status| status.failure_domains.as_ref());
        domains.into_iter().flat_map(|domains| domains.keys().cloned()).collect()
    }

    /// The surroundings of the cluster, once no other program writes to its resources.
    pub async fn surroundings(&self, manager: &Manager) -> Result<Surroundings, Failure> {
        self.check_operator(manager).await?;
        let found = manager.surroundings(&self.azure_cluster, Arc::clone(&self.cluster)).await;
        found.map_err(|error| {
            let words = error.to_string();
            if error.may_pass() {
                Failure::Later { after: manager.settings.timeouts.requeue, words }
            } else {
                Failure::Refused(words)
            }
        })
    }

    /// Checks that Azure Service Operator no longer writes to the cluster's resources.
    async fn check_operator(&self, manager: &Manager) -> Result<(), Failure> {
        let owner = self.azure_cluster.metadata.uid.as_deref().unwrap_or_default();
        let words = match manager.operator.is_harmless(owner, operator::lately()).await {
            Ok(true) => return Ok(()),
            Ok(false) => "waiting until Azure Service Operator leaves the cluster alone".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(Failure::Later { after: manager.settings.timeouts.requeue, words })
    }

    /// Returns the surroundings of an object with this provider ID, which must be in the cluster's subscription.
    pub async fn surroundings_of(
        &self,
        manager: &Manager,
        provider_id: Option<&str>,
    ) -> Result<Surroundings, Failure> {
        let found = self.surroundings(manager).await?;
        let (name, spec) = (self.azure_cluster.metadata.name.as_deref(), &self.azure_cluster.spec);
        let gates = manager.settings.gates.of_admission();
        let group = found.scope(name.unwrap_or_default(), spec, &[], gates).group();
        elsewhere::check_provider_id(provider_id, &group).map_err(Failure::Refused)?;
        Ok(found)
    }
}
