//! AzureMachine: one virtual machine; and AzureMachineTemplate, from which machines are created.

mod defaults;
mod immutable;
mod template;
mod types;
mod validation;

pub use defaults::set_defaults;
pub use template::{
    AzureMachineTemplateResource, AzureMachineTemplateSpec, AzureMachineTemplateStatus, NodeInfo,
    set_template_defaults, validate_template,
};
pub use types::{AzureMachineSpec, AzureMachineStatus, NodeAddress};
pub use validation::validate;
