//! azure.json: every key, its default, its validation.
//!
//! [`CloudConfig::from_file`] takes the text of the document and the process environment (as a
//! function, so that nothing here reads the environment behind a test's back) and gives either a
//! configuration with every default filled in, or one error that lists **all** problems, each with
//! key, value and remedy. What is valid but not done by this release is listed by
//! [`CloudConfig::unsupported`]: a program refuses to start on it, rather than act on what it does
//! not know. What is harmless but not what the writer meant is in [`CloudConfig::warnings`].
//!
//! Facts: `spec/config-and-cli.md` sections 1 and 3, `spec/load-balancer.md` section 0.3.

mod cloud;
mod config;
mod document;
mod effective;
mod multiple_load_balancers;
mod problem;
mod rate_limit;
mod secret;
mod tags;
mod unsupported;
mod validate;
mod values;

pub use cloud::{CHINA, CloudEndpoints, PUBLIC, US_GOVERNMENT};
pub use config::{AuxiliaryTokenProvider, Backoff, CloudConfig, Environment, Origin};
pub use multiple_load_balancers::MultipleStandardLoadBalancerConfiguration;
pub use problem::{ConfigError, Problem, Unsupported};
pub use rate_limit::{PER_CLIENT_KEYS, RateLimit};
pub use secret::Secret;
pub use tags::{Tags, merge_tags, parse_tags};
pub use values::{
    BackendPoolType, CloudConfigType, HealthProbeMode, LoadBalancerSku, PreConfiguredBackendPools, VmType,
};
