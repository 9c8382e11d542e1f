//! The simulated network as people like to see it: address → rule → pool → nodes, security rules in
//! the order in which they are asked, and what was asked of Azure lately.

mod reading;
mod topology;

pub use reading::services;
pub use topology::*;
