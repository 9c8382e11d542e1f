//! azure.json: every key, its default, its validation.
//!
//! [`CloudConfig::from_file`] takes the text of the document and the process environment (as a
//! function, so that nothing here reads the environment behind a test's back) and gives either a
//! configuration with every default filled in, or one error that lists **all** problems, each with
//! key, value and remedy. [`CloudConfig::runnable`] also refuses what this release cannot run on
//! ([`CloudConfig::refusals`]), rather than act on what it does not know. What is harmless but not what
//! the writer meant is in [`CloudConfig::warnings`].
//!
//! [`keys::KEYS`] is the table of all keys: what each does, or why it does nothing.
//!
//! What users read of it: `docs/resources/azure-json.md`.

mod cloud;
mod config;
mod document;
mod effective;
pub mod keys;
mod label_selector;
mod multiple_load_balancers;
mod problem;
mod refusals;
mod secret;
mod tags;
mod values;
mod warning;

pub use cloud::{CHINA, CloudEndpoints, PUBLIC, US_GOVERNMENT};
pub use config::{Backoff, CloudConfig, Environment};
pub use label_selector::LabelSelector;
pub use multiple_load_balancers::MultipleStandardLoadBalancerConfiguration;
pub use problem::{ConfigError, Edit, Problem, Remedy};
pub use secret::Secret;
pub use tags::{Tags, merge_tags, parse_tags};
pub use values::{BackendPoolType, HealthProbeMode, LoadBalancerSku, PreConfiguredBackendPools, VmType};
pub use warning::Warning;
