//! azure.json: every key, its default, its validation.
//!
//! [`CloudConfig::from_file`] takes the text of the document and the process environment (as a function, so that tests
//! control it) and returns either a configuration with every default, or one error that lists **all** problems, each
//! with key, value and remedy. [`CloudConfig::runnable`] also refuses settings that this release does not support
//! ([`CloudConfig::refusals`]), rather than ignore them. Harmless but probably unintended settings are in
//! [`CloudConfig::warnings`].
//!
//! A file and a Secret are two [`Document`]s, of which one is laid over the other before the keys are read.
//! [`CloudConfig::changed_identity`] says which keys a running program cannot take over from a new document.
//!
//! [`keys::KEYS`] is the table of all keys: the effect of each, or why it has none.
//!
//! User documentation: `docs/resources/azure-json.md`.

mod cloud;
mod config;
mod document;
mod effective;
mod encoding;
mod identity;
pub mod keys;
mod label_selector;
mod multiple_load_balancers;
mod problem;
mod refusals;
mod secret;
mod sources;
mod tags;
mod values;
mod warning;

pub use cloud::{CHINA, CloudEndpoints, PUBLIC, US_GOVERNMENT};
pub use config::{Backoff, CloudConfig, Environment};
pub use encoding::{EncodingError, decode};
pub use label_selector::LabelSelector;
pub use multiple_load_balancers::MultipleStandardLoadBalancerConfiguration;
pub use problem::{ConfigError, Edit, Problem, Remedy};
pub use secret::Secret;
pub use sources::Document;
pub use tags::{Tags, merge_tags, parse_tags};
pub use values::{
    BackendPoolType, ConfigType, HealthProbeMode, LoadBalancerSku, PreConfiguredBackendPools, VmType,
};
pub use warning::Warning;
