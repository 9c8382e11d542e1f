//! AzureMachinePool: a scale set, and AzureMachinePoolMachine, an instance of one.

mod defaults;
mod instance;
mod types;
mod validation;

pub use defaults::set_defaults;
pub use instance::{AzureMachinePoolMachineSpec, AzureMachinePoolMachineStatus, validate_instance};
pub use types::{
    AzureMachinePoolInstance, AzureMachinePoolMachineTemplate, AzureMachinePoolSpec, AzureMachinePoolStatus,
    DeploymentStrategy, RollingUpdate,
};
pub use validation::validate;
