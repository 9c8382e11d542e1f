//! `azure-cloud-controller-manager`: flags and wiring, nothing else.
//!
//! The program is a library with a thin `main`, so that the demo runs exactly what production runs.

pub mod azure;
pub mod configuration;
pub mod flags;
pub mod kubernetes;
mod observe;
pub mod pod_routes;
pub mod run;

pub use command_line::last_words;
pub use program::{environment, go_values, in_one_line, kubeconfig};
