//! AzureManagedMachinePool: a node pool of a cluster that Azure manages; and AzureManagedMachinePoolTemplate, from which
//! such pools are created.

mod node_config;
mod template;
mod types;

pub use node_config::{KubeletConfig, LinuxOsConfig, Sysctls};
pub use template::{AzureManagedMachinePoolTemplateResource, AzureManagedMachinePoolTemplateSpec};
pub use types::{AzureManagedMachinePoolSpec, AzureManagedMachinePoolStatus, PoolScaling, PoolTaint};
