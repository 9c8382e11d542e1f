//! What a reconcile knows of the cluster that its object belongs to.

use std::collections::BTreeSet;
use std::sync::Arc;

use azure_types::ResourceId;
use capz_api::azure_cluster::AzureClusterSpec;
use capz_planner::cluster::dns_suffix;
use capz_planner::managed_cluster::as_cluster;
use capz_planner::operator::kept_of;
use capz_planner::sku::Skus;
use capz_planner::{Claimant, ClusterScope, elsewhere};

use crate::azure::clients::{AccessError, AzureAccess, IdentitySecret};
use crate::azure::failure::Failure;
use crate::context::azure_context::AzureContext;
use crate::context::cluster_objects::{ClusterObjects, zones_of};
use crate::context::identity::IdentityError;
use crate::context::manager::Manager;
use crate::context::namesakes;
use crate::kubernetes::core::Cluster;
use crate::kubernetes::kinds::{AzureCluster, AzureClusterIdentity, NO_ENTRIES};
use crate::kubernetes::operator;

/// What a reconcile knows of the cluster that its object belongs to: read once, at its beginning.
pub(crate) struct ClusterContext {
    /// The Cluster.
    pub cluster: Arc<Cluster>,
    /// The AzureCluster.
    pub azure_cluster: Arc<AzureCluster>,
    /// The zones of its region.
    pub zones: Vec<String>,
    /// Its identity.
    pub identity: Arc<AzureClusterIdentity>,
    /// The data of the identity's Secret.
    pub secret: IdentitySecret,
    /// Azure, with the rights of the identity.
    pub access: AzureAccess,
    /// The subscription in effect.
    pub subscription: String,
    /// The cluster's ID; empty before its first resource is created.
    pub id: String,
    /// Why another cluster that claims the same resources takes precedence.
    pub rival: Option<String>,
    /// Resources that are used as they are, whatever their tags say.
    pub kept: BTreeSet<ResourceId>,
    /// The suffix of public DNS names.
    pub dns_suffix: &'static str,
    /// The feature gates.
    gates: capz_api::Gates,
}

impl ClusterContext {
    /// The scope of the cluster's goals, and of those of its machines and pools.
    pub fn scope(&self) -> ClusterScope<'_> {
        self.scope_of(&self.azure_cluster.spec, &self.zones)
    }

    /// The scope of the cluster's goals with a specification and zones that are not stored yet.
    pub fn scope_of<'a>(&'a self, spec: &'a AzureClusterSpec, zones: &'a [String]) -> ClusterScope<'a> {
        ClusterScope {
            cluster: self.name(),
            id: Some(&self.id),
            marked_only: self.rival.is_some(),
            kept: &self.kept,
            namespace: self.namespace(),
            name: self.azure_cluster.metadata.name.as_deref().unwrap_or_default(),
            spec,
            subscription: &self.subscription,
            api_server_port: self.cluster.spec.cluster_network.api_server_port,
            zones,
            dns_suffix: self.dns_suffix,
            gates: self.gates,
        }
    }

    /// The name of the Cluster.
    fn name(&self) -> &str {
        self.cluster.metadata.name.as_deref().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.azure_cluster.metadata.namespace.as_deref().unwrap_or_default()
    }

    /// The sizes of machines in the cluster's region.
    ///
    /// # Errors
    /// Azure does not list them.
    pub async fn skus(&self, manager: &Manager) -> Result<Arc<Skus>, Failure> {
        let location = self.azure_cluster.spec.location.as_deref().unwrap_or_default();
        let skus = manager.skus.get(&self.access, &self.subscription, location).await;
        skus.map_err(|error| Failure::of(&error, manager.settings.timeouts.requeue))
    }
}

impl AzureContext for ClusterContext {
    fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    fn access(&self) -> &AzureAccess {
        &self.access
    }

    fn rival(&self) -> Option<&str> {
        self.rival.as_deref()
    }

    fn claimant<'a>(&'a self, kind: &'static str, name: &'a str) -> Claimant<'a> {
        Claimant { kind, name, ..self.scope().claimant() }
    }
}

impl ClusterObjects {
    /// The context of an object with this provider ID, which must be in the cluster's subscription; once no other
    /// program writes to the cluster's resources.
    pub async fn context_for(
        &self,
        manager: &Manager,
        provider_id: Option<&str>,
    ) -> Result<ClusterContext, Failure> {
        self.check_operator(manager).await?;
        let context = manager.cluster_context(self.clone()).await.map_err(|error| {
            let words = error.to_string();
            if error.may_pass() {
                Failure::Later { after: manager.settings.timeouts.requeue, words }
            } else {
                Failure::Refused(words)
            }
        })?;
        elsewhere::check_provider_id(provider_id, &context.scope().group()).map_err(Failure::Refused)?;
        Ok(context)
    }

    /// Checks that Azure Service Operator no longer writes to the cluster's resources.
    async fn check_operator(&self, manager: &Manager) -> Result<(), Failure> {
        let owner = operator::owner_of(&self.azure_cluster);
        let words = match manager.operator.is_harmless(&owner, operator::lately()).await {
            Ok(true) => return Ok(()),
            Ok(false) => "waiting until Azure Service Operator leaves the cluster alone".to_owned(),
            Err(error) => error.to_string(),
        };
        Err(Failure::Later { after: manager.settings.timeouts.requeue, words })
    }
}

impl Manager {
    /// The subscription of a cluster that declares this one, or none.
    pub(crate) fn subscription_of(&self, declared: Option<&str>) -> Result<String, IdentityError> {
        let declared = declared.filter(|id| !id.is_empty()).or(self.settings.subscription.as_deref());
        declared.map(|id| id.trim().to_owned()).ok_or_else(|| {
            IdentityError::Missing(
                "no subscription is known: set spec.subscriptionID, or AZURE_SUBSCRIPTION_ID of the manager"
                    .into(),
            )
        })
    }

    /// Collects the context of a cluster.
    pub(crate) async fn cluster_context(
        &self,
        ClusterObjects { cluster, azure_cluster, managed }: ClusterObjects,
    ) -> Result<ClusterContext, IdentityError> {
        let object = &*azure_cluster;
        let environment = object.spec.azure_environment.as_deref().unwrap_or_default();
        let dns_suffix =
            dns_suffix(environment).ok_or_else(|| AccessError::UnknownCloud(environment.to_owned()))?;
        let subscription = self.subscription_of(object.spec.subscription_id.as_deref())?;
        let (identity, secret, access) = self.access(object).await?;
        let rival = managed.as_ref().map_or_else(|| self.rival_of(object), |managed| self.rival_of(managed));
        let is_copy = rival.as_ref().is_some_and(|rival| rival.is_original);
        let id = namesakes::id(object).filter(|_| !is_copy).unwrap_or_default().to_owned();
        let annotations = object.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES);
        let context = ClusterContext {
            kept: kept_of(annotations),
            zones: zones_of(object),
            identity,
            secret,
            access,
            subscription,
            id,
            rival: rival.map(|rival| rival.words),
            gates: self.settings.gates.of_admission(),
            cluster,
            azure_cluster: Arc::clone(&azure_cluster),
            dns_suffix,
        };
        // The group of a managed cluster is not that of machines that join it.
        let managed = managed.map(|managed| as_cluster(&managed.spec, context.scope().name));
        let declared = managed.as_ref().unwrap_or(&azure_cluster.spec);
        elsewhere::check_cluster(context.scope_of(declared, &[]), annotations)
            .map_err(IdentityError::Elsewhere)?;
        Ok(context)
    }
}
