//! The kinds with raw resources, and what their objects have in common.

use std::collections::BTreeMap;

use capz_api::azure_aso_managed::{
    AzureAsoManagedClusterSpec, AzureAsoManagedClusterStatus, AzureAsoManagedControlPlaneSpec,
    AzureAsoManagedControlPlaneStatus, AzureAsoManagedMachinePoolSpec, AzureAsoManagedMachinePoolStatus,
    RawResource, ResourceStatus,
};

use capz_planner::operator::OperatorObject;
use capz_planner::raw::record_taken_over;

use crate::context::manager::Stores;
use crate::context::reconcile::Reconciled;
use crate::kubernetes::status::ReportedStatus;
use crate::kubernetes::store::Store;

/// The condition of the resources.
pub(crate) const RESOURCES_READY: &str = "ResourcesReady";

/// The status of a kind with raw resources.
pub(crate) trait RawStatus: ReportedStatus {
    /// The state of each resource.
    fn resources(&self) -> &Option<Vec<ResourceStatus>>;
    /// The same, to be set.
    fn resources_mut(&mut self) -> &mut Option<Vec<ResourceStatus>>;
    /// Whether the object is ready.
    fn ready_mut(&mut self) -> &mut Option<bool>;
}

/// A kind with raw resources.
pub(crate) trait RawKind: Reconciled<Status: RawStatus> {
    /// `spec.resources`.
    fn resources(&self) -> &[RawResource];
}

macro_rules! raw_kinds {
    ($($spec:ty, $status:ty, $store:ident, $finalizer:literal;)*) => {$(
        impl RawStatus for $status {
            fn resources(&self) -> &Option<Vec<ResourceStatus>> {
                &self.resources
            }

            fn resources_mut(&mut self) -> &mut Option<Vec<ResourceStatus>> {
                &mut self.resources
            }

            fn ready_mut(&mut self) -> &mut Option<bool> {
                &mut self.ready
            }
        }

        impl Reconciled for $spec {
            const FINALIZER: &'static str = $finalizer;
            const RUNNING: &'static str = RESOURCES_READY;
            const HAS_EXPORTS: bool = true;

            fn take(annotations: &mut BTreeMap<String, String>, objects: &[OperatorObject]) {
                record_taken_over(annotations, objects);
            }

            fn store(stores: &Stores) -> &Store<Self> {
                &stores.$store
            }
        }

        impl RawKind for $spec {
            fn resources(&self) -> &[RawResource] {
                self.resources.as_deref().unwrap_or_default()
            }
        }
    )*};
}

raw_kinds! {
    AzureAsoManagedClusterSpec, AzureAsoManagedClusterStatus, raw_clusters, "cluster.cluster.x-k8s.io";
    AzureAsoManagedControlPlaneSpec, AzureAsoManagedControlPlaneStatus, raw_control_planes,
        "azureasomanagedcontrolplane.infrastructure.cluster.x-k8s.io";
    AzureAsoManagedMachinePoolSpec, AzureAsoManagedMachinePoolStatus, raw_pools, "cluster.cluster.x-k8s.io";
}
