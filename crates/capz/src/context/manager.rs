//! State that all controllers share.

use std::sync::Arc;
use std::time::Duration;

use capz_api::azure_aso_managed::{
    AzureAsoManagedClusterSpec, AzureAsoManagedControlPlaneSpec, AzureAsoManagedMachinePoolSpec,
};
use capz_api::azure_cluster::AzureClusterSpec;
use capz_api::azure_cluster_identity::AzureClusterIdentitySpec;
use capz_api::azure_machine::{AzureMachineSpec, AzureMachineTemplateSpec};
use capz_api::azure_machine_pool::{AzureMachinePoolMachineSpec, AzureMachinePoolSpec};
use capz_api::azure_managed_cluster::AzureManagedClusterSpec;
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneSpec;
use capz_api::azure_managed_machine_pool::AzureManagedMachinePoolSpec;
use capz_planner::terminal::Terminal;
use capz_planner::{ObservedResources, Plan};
use clock::Clock;
use controllers::{Recorder, Reference};
use kube::Client;
use tokio::sync::SetOnce;

use crate::azure::clients::Azure;
use crate::azure::failure::Failure;
use crate::azure::instances::Instances;
use crate::azure::reads::Reads;
use crate::azure::repeats::RecentWrites;
use crate::azure::skus::SkuCache;
use crate::kubernetes::controller;
use crate::kubernetes::core::{ClusterSpec, MachinePoolSpec, MachineSpec};
use crate::kubernetes::kinds::{Object, ObjectKind};
use crate::kubernetes::operator::Operator;
use crate::kubernetes::patch::PatchError;
use crate::kubernetes::queue::{Outcome, WorkQueue};
use crate::kubernetes::store::{Key, Store};
use crate::kubernetes::workload::Workloads;
use crate::settings::Settings;

/// The objects that watches have shown.
#[derive(Default)]
pub struct Stores {
    /// AzureClusters.
    pub azure_clusters: Store<AzureClusterSpec>,
    /// AzureMachines.
    pub azure_machines: Store<AzureMachineSpec>,
    /// AzureMachineTemplates.
    pub azure_machine_templates: Store<AzureMachineTemplateSpec>,
    /// AzureMachinePools, if machine pools are enabled.
    pub azure_machine_pools: Store<AzureMachinePoolSpec>,
    /// AzureMachinePoolMachines, if machine pools are enabled.
    pub azure_machine_pool_machines: Store<AzureMachinePoolMachineSpec>,
    /// AzureManagedClusters, like all kinds of managed clusters if machine pools are enabled.
    pub managed_clusters: Store<AzureManagedClusterSpec>,
    /// AzureManagedControlPlanes.
    pub managed_control_planes: Store<AzureManagedControlPlaneSpec>,
    /// AzureManagedMachinePools.
    pub managed_pools: Store<AzureManagedMachinePoolSpec>,
    /// AzureASOManagedClusters.
    pub raw_clusters: Store<AzureAsoManagedClusterSpec>,
    /// AzureASOManagedControlPlanes.
    pub raw_control_planes: Store<AzureAsoManagedControlPlaneSpec>,
    /// AzureASOManagedMachinePools.
    pub raw_pools: Store<AzureAsoManagedMachinePoolSpec>,
    /// AzureClusterIdentities.
    pub identities: Store<AzureClusterIdentitySpec>,
    /// Clusters.
    pub clusters: Store<ClusterSpec>,
    /// Machines.
    pub machines: Store<MachineSpec>,
    /// MachinePools, if they are enabled.
    pub machine_pools: Store<MachinePoolSpec>,
}

/// Which kinds have been listed completely since the start. Reconciles wait for that: before, an identity, an owner or
/// a machine that still needs the network would seem to be absent.
#[derive(Default)]
pub(crate) struct CompleteLists {
    /// All kinds that decisions about clusters and their machines need.
    pub clusters: SetOnce<()>,
    /// All kinds that decisions about machine pools need.
    pub pools: SetOnce<()>,
    /// All kinds that decisions about managed clusters need.
    pub managed: SetOnce<()>,
}

/// Queues of the kinds of managed clusters.
pub(crate) struct ManagedQueues {
    pub clusters: Arc<WorkQueue>,
    pub control_planes: Arc<WorkQueue>,
    pub pools: Arc<WorkQueue>,
    pub raw_clusters: Arc<WorkQueue>,
    pub raw_control_planes: Arc<WorkQueue>,
    pub raw_pools: Arc<WorkQueue>,
    /// Managed clusters of Azure Service Operator that are to be adopted.
    pub offered_clusters: Arc<WorkQueue>,
    /// Node pools of Azure Service Operator that are to be adopted.
    pub offered_pools: Arc<WorkQueue>,
}

/// Queues of objects for which SecretQueues are made.
pub(crate) struct SecretQueues {
    pub machines: Arc<WorkQueue>,
    pub templates: Arc<WorkQueue>,
    pub pools: Arc<WorkQueue>,
    pub clusters: Arc<WorkQueue>,
}

/// The reporting component of events about kinds without a controller here.
pub(crate) const MANAGER: &str = "capz-controller-manager";

/// Events about objects. Warnings are logged, too, because events expire after an hour.
pub(crate) struct Events(pub Recorder);

impl Events {
    pub fn normal(&self, about: Reference, reason: &'static str, message: impl Into<String>) {
        self.of(&about).normal(about, reason, message);
    }

    pub fn warning(&self, about: Reference, reason: &'static str, message: impl Into<String>) {
        let message = message.into();
        let Reference { kind, namespace, name, .. } = &about;
        tracing::warn!(kind, object = %format_args!("{namespace}/{name}"), reason, note = %message, "Event occurred");
        self.of(&about).warning(about, reason, message);
    }

    /// Reports resources that other writers have changed and that are not written again, as long as that lasts.
    pub fn changed_by_others(&self, about: &Reference, plan: &Plan, observed: &ObservedResources) {
        for words in plan.changed_by_others(observed) {
            self.warning(about.clone(), "ChangedByOthers", words);
        }
    }

    /// The recorder for an object: the component is the reconciler of its kind, as established installations name it.
    fn of(&self, about: &Reference) -> Recorder {
        let component = controller::of_kind(about.kind).map_or(MANAGER, |controller| controller.component);
        self.0.speaking_for(component)
    }
}

/// State that all controllers share.
pub struct Manager {
    pub(crate) client: Client,
    pub(crate) azure: Azure,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) recorder: Events,
    pub(crate) stores: Stores,
    pub(crate) listed: CompleteLists,
    pub(crate) reads: Reads,
    pub(crate) written: RecentWrites,
    pub(crate) skus: SkuCache,
    pub(crate) operator: Operator,
    /// Serializes writes of identities: clusters share them, and would cause conflicts for each other.
    pub(crate) identity_writes: tokio::sync::Mutex<()>,
    /// Notified when an identity is changed or deleted.
    pub(crate) identities_changed: tokio::sync::Notify,
    pub(crate) clusters: Arc<WorkQueue>,
    pub(crate) machines: Arc<WorkQueue>,
    pub(crate) templates: Arc<WorkQueue>,
    pub(crate) pools: Arc<WorkQueue>,
    pub(crate) pool_machines: Arc<WorkQueue>,
    pub(crate) instances: Instances,
    pub(crate) secrets: SecretQueues,
    pub(crate) managed: ManagedQueues,
    pub(crate) workloads: Workloads,
    pub(crate) core_version: String,
}

/// Why a reconcile ends early.
pub(crate) enum Ended {
    /// There is nothing to do.
    With(Outcome),
    /// The object was not written.
    Unwritten(PatchError),
}

impl From<Outcome> for Ended {
    fn from(outcome: Outcome) -> Self {
        Self::With(outcome)
    }
}

impl From<PatchError> for Ended {
    fn from(error: PatchError) -> Self {
        Self::Unwritten(error)
    }
}

impl Manager {
    /// Returns an object to reconcile; or the outcome if it is deleted, or belongs to another manager.
    pub(crate) fn own<K: ObjectKind>(&self, store: &Store<K>, key: &Key) -> Result<Arc<Object<K>>, Outcome> {
        let object = store.get(key).ok_or(Outcome::Gone)?;
        if self.settings.takes(object.metadata.labels.as_ref()) { Ok(object) } else { Err(Outcome::Idle) }
    }

    /// Records that a kind has been listed completely for the first time: after the last one, reconciles begin.
    pub(crate) fn note_listed(&self) {
        let stores = &self.stores;
        let clusters = stores.identities.is_complete()
            && stores.clusters.is_complete()
            && stores.machines.is_complete()
            && stores.azure_clusters.is_complete()
            && stores.azure_machines.is_complete();
        let pools = stores.machine_pools.is_complete()
            && stores.azure_machine_pools.is_complete()
            && stores.azure_machine_pool_machines.is_complete();
        // It may have been set before.
        if clusters {
            let _ = self.listed.clusters.set(());
        }
        if clusters && pools {
            let _ = self.listed.pools.set(());
        }
        let managed = stores.managed_clusters.is_complete()
            && stores.managed_control_planes.is_complete()
            && stores.managed_pools.is_complete()
            && stores.raw_clusters.is_complete()
            && stores.raw_control_planes.is_complete()
            && stores.raw_pools.is_complete();
        // A cluster of the other kind may claim the same resources.
        if clusters && pools && managed {
            let _ = self.listed.managed.set(());
        }
    }

    /// The outcome after a failure that may pass, which is reported. `Err` is a failure that does not pass.
    pub(crate) fn again<'f>(&self, failure: &'f Failure, about: Reference) -> Result<Outcome, &'f Terminal> {
        match failure {
            Failure::Later { after, words } => {
                tracing::info!(object = %about.name, reason = %words, "retrying later");
                Ok(Outcome::After(*after))
            }
            Failure::Changed => Ok(Outcome::After(Duration::ZERO)),
            Failure::Refused(words) => {
                self.recorder.warning(about, "ReconcileError", words.clone());
                Ok(Outcome::Retry)
            }
            Failure::Terminal(terminal) => Err(terminal),
        }
    }

    /// The outcome of a failed write: another writer was faster, or the API server has to be asked again.
    pub(crate) fn lost(&self, key: &Key, error: &PatchError) -> Outcome {
        if error.is_not_found() {
            return Outcome::Gone;
        }
        if !error.is_conflict() {
            tracing::warn!(object = %key, %error, "an object was not written");
        }
        Outcome::Retry
    }

    /// The current time, in the format of conditions.
    pub(crate) fn now(&self) -> String {
        self.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
    }
}
