//! The parts of a cluster beside its API server, without machines and containers: kubelets and controllers.
//!
//! All of them use [`kube::Client`] alone, against the simulator or a real kube-apiserver. [`Kubelets`] make machines
//! into nodes. [`NodeMonitor`] marks nodes whose kubelet is silent. [`Controllers`] reconcile workloads and run their
//! pods. [`EndpointSlices`] writes slices of these and of simulated pods. [`answers`] says which probes a node's
//! kube-proxy answers.
//!
//! Each controller is a file with a pure function from the objects of a cluster to the actions that are due; one runner
//! watches, calls all of them, and performs the actions. The head of each file lists what its controller leaves out.

pub mod answers;
mod api_error;
mod clock;
mod controllers;
mod daemon_set;
mod deployment;
mod disruption;
mod endpoint_slices;
mod job;
mod kubelet;
mod kubelets;
mod machine;
pub mod members;
mod node_monitor;
mod objects;
mod pace;
mod pod;
mod protection;
mod replica_set;
mod revision;
mod running;
mod scheduler;
mod service_endpoints;
mod stateful_set;
#[cfg(test)]
mod tests;

pub use clock::WallClock;
pub use controllers::Controllers;
pub use endpoint_slices::{EndpointSlices, PodPlacement};
pub use kubelets::Kubelets;
pub use machine::{Machine, Machines};
pub use node_monitor::NodeMonitor;
pub use pace::Pace;
pub use running::Running;
