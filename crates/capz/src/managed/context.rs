//! What a reconcile knows of the managed cluster that its object belongs to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use azure_types::ResourceId;
use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use capz_planner::cluster::{Memory, dns_suffix};
use capz_planner::managed_cluster::{ManagedScope, as_cluster};
use capz_planner::operator::kept_of;
use capz_planner::{Claimant, ClusterScope, custom_headers, elsewhere};

use crate::azure::clients::{AccessError, AzureAccess};
use crate::azure::failure::Failure;
use crate::context::azure_context::AzureContext;
use crate::context::identity::IdentityError;
use crate::context::manager::Manager;
use crate::context::namesakes;
use crate::kubernetes::core::{self, Cluster};
use crate::kubernetes::kinds::{AzureManagedControlPlane, NO_ENTRIES, Object, ObjectKind, reference};
use crate::kubernetes::operator;
use crate::kubernetes::store::key_of;

/// The Cluster and the AzureManagedControlPlane that an object belongs to.
#[derive(Clone)]
pub(crate) struct ManagedObjects {
    pub cluster: Arc<Cluster>,
    pub control_plane: Arc<AzureManagedControlPlane>,
}

/// What a reconcile knows of its managed cluster: read once, at its beginning.
pub(crate) struct ManagedContext {
    /// The Cluster.
    pub cluster: Arc<Cluster>,
    /// The AzureManagedControlPlane.
    pub control_plane: Arc<AzureManagedControlPlane>,
    /// Azure, with the rights of its identity.
    pub access: AzureAccess,
    /// The cluster's ID; empty before its first resource is created.
    pub id: String,
    /// The subscription in effect.
    pub subscription: String,
    /// Why another cluster that claims the same resources takes precedence.
    pub rival: Option<String>,
    kept: BTreeSet<ResourceId>,
    dns_suffix: &'static str,
    gates: capz_api::Gates,
    /// Its groups and network.
    network: AzureClusterSpec,
    /// The custom headers of its writes.
    headers: BTreeMap<String, String>,
}

impl ManagedContext {
    /// The scope of the goals of the cluster and of its pools.
    pub fn scope(&self) -> ManagedScope<'_> {
        let network = &self.cluster.spec.cluster_network;
        let status = self.control_plane.status.as_ref();
        ManagedScope {
            cluster: ClusterScope {
                cluster: self.cluster.metadata.name.as_deref().unwrap_or_default(),
                id: Some(&self.id),
                marked_only: self.rival.is_some(),
                kept: &self.kept,
                namespace: self.control_plane.metadata.namespace.as_deref().unwrap_or_default(),
                name: self.control_plane.metadata.name.as_deref().unwrap_or_default(),
                spec: &self.network,
                subscription: &self.subscription,
                api_server_port: network.api_server_port,
                zones: &[],
                dns_suffix: self.dns_suffix,
                gates: self.gates,
            },
            spec: &self.control_plane.spec,
            service_ranges: &network.services.cidr_blocks,
            pod_ranges: &network.pods.cidr_blocks,
            headers: &self.headers,
            auto_upgrade_version: status.and_then(|status| status.auto_upgrade_version.as_deref()),
        }
    }

    /// What the cluster has recorded.
    pub fn memory(&self) -> Memory {
        Memory::of(self.control_plane.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES))
    }
}

impl AzureContext for ManagedContext {
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

impl Manager {
    /// The managed cluster of an object, which its owner names where the object itself does not. `None` if an object is
    /// missing, whose creation wakes the reconcile, or if the cluster is of another kind, which an event reports.
    pub(crate) fn managed_cluster_of<K: ObjectKind>(
        &self,
        object: &Object<K>,
        named_by_owner: &str,
    ) -> Option<ManagedObjects> {
        let name = core::cluster_name(&object.metadata).unwrap_or(named_by_owner);
        let cluster = self.dependency(object, &self.stores.clusters, name)?;
        let control_plane = &cluster.spec.control_plane_ref;
        if control_plane.kind != AzureManagedControlPlaneSpec::NAME {
            let words = format!(
                "the control plane of its Cluster is the {} {}, not an AzureManagedControlPlane",
                control_plane.kind, control_plane.name
            );
            self.recorder.normal(reference(object), "AzureManagedControlPlaneNotFound", words);
            return None;
        }
        let stores = &self.stores;
        let control_plane = self.dependency(object, &stores.managed_control_planes, &control_plane.name)?;
        Some(ManagedObjects { cluster, control_plane })
    }

    /// Collects the context of a managed cluster.
    pub(crate) async fn managed_context(
        &self,
        ManagedObjects { cluster, control_plane }: ManagedObjects,
    ) -> Result<ManagedContext, IdentityError> {
        let object = &*control_plane;
        let environment = object.spec.azure_environment.as_deref().unwrap_or_default();
        let dns_suffix =
            dns_suffix(environment).ok_or_else(|| AccessError::UnknownCloud(environment.to_owned()))?;
        let subscription = self.subscription_of(object.spec.subscription_id.as_deref())?;
        let (_, _, access) = self.access(object).await?;
        let rival = self.rival_of(object);
        let is_copy = rival.as_ref().is_some_and(|rival| rival.is_original);
        let id = namesakes::id(object).filter(|_| !is_copy).unwrap_or_default().to_owned();
        let annotations = object.metadata.annotations.as_ref().unwrap_or(&NO_ENTRIES);
        let infrastructure = key_of(&*cluster).beside(&cluster.spec.infrastructure_ref.name);
        let infrastructure = self.stores.managed_clusters.get(&infrastructure);
        let of_infrastructure = infrastructure.as_ref().and_then(|it| it.metadata.annotations.as_ref());
        let name = object.metadata.name.as_deref().unwrap_or_default();
        let mut context = ManagedContext {
            kept: kept_of(annotations),
            network: as_cluster(&object.spec, name),
            headers: custom_headers::of(of_infrastructure.into_iter().chain([annotations])),
            access,
            id,
            subscription,
            rival: rival.map(|rival| rival.words),
            dns_suffix,
            gates: self.settings.gates.of_admission(),
            cluster,
            control_plane: Arc::clone(&control_plane),
        };
        elsewhere::check_cluster(context.scope().cluster, annotations).map_err(IdentityError::Elsewhere)?;
        if context.rival.is_none() {
            context.rival = self.rival_by_declaration(&context);
        }
        Ok(context)
    }
}

impl Manager {
    /// Why the managed cluster is another object's, which declares it as a whole resource. In Azure nothing shows that.
    fn rival_by_declaration(&self, context: &ManagedContext) -> Option<String> {
        let id = context.scope().managed_cluster();
        let has = context.memory().has(&id);
        let owner = self.rival_by_record(&id, &context.control_plane.metadata, has)?;
        Some(format!(
            "{owner} comes first, which has recorded {id}: nothing is done in Azure for this one. Give it another name, or another \
             resource group (spec.resourceGroupName)"
        ))
    }
}

impl ManagedObjects {
    /// The context of an object of this cluster, once no other program writes to the cluster's resources.
    pub async fn context(&self, manager: &Manager) -> Result<ManagedContext, Failure> {
        let after = manager.settings.timeouts.requeue;
        let owner = operator::owner_of(&self.control_plane);
        let words = match manager.operator.is_harmless(&owner, operator::lately()).await {
            Ok(true) => None,
            Ok(false) => Some("waiting until Azure Service Operator leaves the cluster alone".to_owned()),
            Err(error) => Some(error.to_string()),
        };
        if let Some(words) = words {
            return Err(Failure::Later { after, words });
        }
        manager.managed_context(self.clone()).await.map_err(|error| match error.may_pass() {
            true => Failure::Later { after, words: error.to_string() },
            false => Failure::Refused(error.to_string()),
        })
    }
}
