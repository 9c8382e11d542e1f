//! The kinds of `infrastructure.cluster.x-k8s.io` for clusters on Azure: their types, defaults, validation, and custom
//! resource definitions. All of it consists of functions of values: no client, no clock.
//!
//! ```text
//!  object as sent ──set_defaults(new, Context)──▶ object as stored ──validate(new, old, Context)──▶ FieldErrors
//!        ▲                                                                                            │
//!   webhooks, tests, `cerulean plan`                                            Status with causes ◀──┘
//! ```
//!
//! Members that a type does not name survive, at every level, so that a newer or older manager next to this one loses
//! nothing.

pub mod admission;
pub mod azure_aso_managed;
pub mod azure_cluster;
pub mod azure_cluster_identity;
pub mod azure_machine;
pub mod azure_machine_pool;
pub mod azure_managed_cluster;
pub mod azure_managed_control_plane;
pub mod azure_managed_machine_pool;
mod cloud_provider;
mod common;
mod context;
pub mod crd;
mod deprecated;
mod field_error;
mod immutable;
pub mod machine;
mod names;
pub mod network;
mod object;
mod text;
pub mod webhooks;

pub use cloud_provider::{BackOff, CloudProviderConfigOverrides, RateLimit, RateLimitConfig};
pub use common::{
    ApiEndpoint, Condition, ExtendedLocation, FailureDomain, Future, Initialization, IntOrPercent,
    LabelRequirement, LabelSelector, MetaCondition, ObjectReference, Quantity, SecretReference, Tags,
    TemplateMetadata, V1Beta2Status,
};
pub use context::{ClusterNetwork, Context, Gates, Lookup, Random, SystemPools};
pub use field_error::{FieldError, FieldErrors, Reason};
