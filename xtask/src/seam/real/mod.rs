//! The stories with a real API server, the real garbage collector, the real clusterctl, and the rights of the manifests.

mod certificates;
mod clusterctl;
mod counterparts;
mod established;
mod guided;
mod management;
mod pods;
mod stage;
mod steps;
mod story;

pub use counterparts::Counterparts;
pub use story::play;
