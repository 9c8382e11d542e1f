//! `azure-cloud-controller-manager`: flags and wiring, nothing else.

pub mod flags;
pub mod go_values;
