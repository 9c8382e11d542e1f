//! `pods/portforward`: connections to ports of pods through the API server, over SPDY/3.1, as kubectl and Go's clients
//! make them if a server offers no tunnel over WebSockets.
//!
//! Pods have no processes here. The embedding program provides the servers of their ports
//! ([`crate::Kubernetes::answer_at_ports`]).

mod frame;
mod headers;
mod ports;
mod session;
mod upgrade;

pub(crate) use ports::Ports;
pub use ports::{Duplex, PodConnection, PodPorts};
