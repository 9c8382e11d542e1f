//! The members that the status of every reconciled kind has.

use capz_api::azure_aso_managed::{
    AzureAsoManagedClusterStatus, AzureAsoManagedControlPlaneStatus, AzureAsoManagedMachinePoolStatus,
};
use capz_api::azure_cluster::AzureClusterStatus;
use capz_api::azure_machine::AzureMachineStatus;
use capz_api::azure_machine_pool::{AzureMachinePoolMachineStatus, AzureMachinePoolStatus};
use capz_api::azure_managed_control_plane::AzureManagedControlPlaneStatus;
use capz_api::azure_managed_machine_pool::AzureManagedMachinePoolStatus;
use capz_api::{Condition, Future, Initialization, V1Beta2Status};

/// A status with conditions and operations.
pub trait ReportedStatus {
    /// The conditions.
    fn conditions(&mut self) -> &mut Option<Vec<Condition>>;
    /// Azure's operations that are running.
    fn operations(&mut self) -> &mut Option<Vec<Future>>;
    /// Whether the object is ready.
    fn is_ready(&self) -> bool;
    /// What Cluster API's contract v1beta2 asks.
    fn contract(&mut self) -> Contract<'_>;
}

/// The members of a status that Cluster API's contract v1beta2 asks for.
pub struct Contract<'a> {
    /// What is complete.
    pub initialization: &'a mut Option<Initialization>,
    /// Conditions in the form of that contract.
    pub v1beta2: &'a mut Option<V1Beta2Status>,
    /// Whether the object is a control plane.
    pub is_control_plane: bool,
}

macro_rules! reported {
    ($($status:ty: $is_control_plane:literal),* $(,)?) => {
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

            fn contract(&mut self) -> Contract<'_> {
                Contract {
                    initialization: &mut self.initialization,
                    v1beta2: &mut self.v1beta2,
                    is_control_plane: $is_control_plane,
                }
            }
        })*
    };
}
reported!(
    AzureClusterStatus: false,
    AzureMachineStatus: false,
    AzureMachinePoolStatus: false,
    AzureMachinePoolMachineStatus: false,
    AzureManagedControlPlaneStatus: true,
    AzureManagedMachinePoolStatus: false,
    AzureAsoManagedClusterStatus: false,
    AzureAsoManagedControlPlaneStatus: true,
    AzureAsoManagedMachinePoolStatus: false,
);
