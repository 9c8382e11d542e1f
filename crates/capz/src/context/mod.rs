//! What reconciles share, and what they know of the cluster whose object they reconcile.

pub mod dependency;
pub mod ending;
pub mod family;
pub mod identity;
pub mod manager;
pub mod namesakes;
pub mod surroundings;
pub mod wake;
