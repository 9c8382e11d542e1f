//! AzureManagedMachinePool: a node pool of a cluster that Azure manages; and AzureManagedMachinePoolTemplate, from which
//! such pools are created.

mod defaults;
mod deletion;
mod immutable;
mod node_config;
mod node_validation;
mod template;
mod types;
mod validation;

pub(crate) use defaults::label_mode;
pub use defaults::set_defaults;
pub(crate) use deletion::may_be_last;
pub use deletion::{MODE_LABEL, SYSTEM, validate_deletion};
pub use node_config::{KubeletConfig, LinuxOsConfig, Sysctls};
pub use template::{
    AzureManagedMachinePoolTemplateResource, AzureManagedMachinePoolTemplateSpec, set_template_defaults,
    validate_template,
};
pub use types::{AzureManagedMachinePoolSpec, AzureManagedMachinePoolStatus, PoolScaling, PoolTaint};
pub use validation::validate;
