//! `azure-cloud-controller-manager`: flags and wiring, nothing else.
//!
//! The program is a library with a thin `main`, so that the demo runs exactly what production runs.

pub mod azure;
pub mod flags;
pub mod kubernetes;
mod observe;
pub mod pod_routes;
pub mod refusal;
pub mod run;
pub mod settings;

pub use program::{go_values, in_one_line, kubeconfig, surroundings};

/// What the process says when it ends with an error: a list of refusals with a line for each, anything else on
/// one line.
pub fn last_words(error: &anyhow::Error) -> String {
    match error.downcast_ref::<refusal::Refused>() {
        Some(refused) => refused.to_string(),
        None => in_one_line(error),
    }
}
