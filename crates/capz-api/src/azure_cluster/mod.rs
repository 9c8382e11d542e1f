//! AzureCluster: the network of a cluster, and where its API server answers.

mod defaults;
mod immutable;
mod preserved;
mod subnet_defaults;
mod template;
mod types;
mod validation;

pub use defaults::set_defaults;
pub use validation::validate;

pub use template::{
    AzureBastionClass, AzureClusterClassSpec, AzureClusterTemplateResource, AzureClusterTemplateSpec,
    BastionClass, NetworkClass, set_template_defaults, validate_template,
};
pub use types::{
    AzureBastion, AzureClusterSpec, AzureClusterStatus, BastionSpec, LoadBalancerPort, NetworkSpec,
};
