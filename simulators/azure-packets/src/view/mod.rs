//! A view of the simulated network for people: address → rule → pool → nodes, security rules in the order of
//! evaluation, and the latest requests to Azure.

mod reading;
mod topology;

pub use reading::services;
pub use topology::*;
