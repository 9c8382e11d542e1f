//! The members that the status of every reconciled kind has.

use capz_api::azure_aso_managed::{
    AzureAsoManagedClusterStatus, AzureAsoManagedControlPlaneStatus, AzureAsoManagedMachinePoolStatus,
};
use capz_api::azure_cluster::AzureClusterStatus;
use capz_api::azure_machine::AzureMachineStatus;
use capz_api::azure_machine_pool::{AzureMachinePoolMachineStatus, AzureMachinePoolStatus};
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneStatus;
use capz_api::azure_managed_machine_pool::AzureManagedMachinePoolStatus;
use capz_api::{Condition, Future};

/// A status with conditions and operations.
pub trait ReportedStatus {
    /// The conditions.
    fn conditions(&mut self) -> &mut Option<Vec<Condition>>;
    /// Azure's operations that are running.
    fn operations(&mut self) -> &mut Option<Vec<Future>>;
    /// Whether the object is ready.
    fn is_ready(&self) -> bool;
}

macro_rules! reported {
    ($($status:ty),*) => {
        $(impl ReportedStatus for $status {
            fn conditions(&mut self) -> &mut Option<Vec<Condition>> {
                &mut self.conditions
            }

            fn operations(&mut self) -> &mut Option<Vec<Future>> {
                &mut self.long_running_operation_states
            }

            fn is_ready(&self) -> bool {
                self.ready == Some(true)
            }
        })*
    };
}
reported!(
    AzureClusterStatus,
    AzureMachineStatus,
    AzureMachinePoolStatus,
    AzureMachinePoolMachineStatus,
    AzureManagedControlPlaneStatus,
    AzureManagedMachinePoolStatus,
    AzureAsoManagedClusterStatus,
    AzureAsoManagedControlPlaneStatus,
    AzureAsoManagedMachinePoolStatus
);
