//! The packet oracle: whether a packet reaches a destination, by which way, and if not, why.
//!
//! It reads only documents of the simulated Azure, and the stand-in nodes answer its health probes, so that a test can
//! check whether traffic arrives instead of the form of some JSON.
//!
//! It covers Azure's network alone. A node may handle a packet before it leaves (kube-proxy short-cuts the cluster's
//! own load balancer addresses) or after it arrived; the oracle does not know of that.

pub(crate) mod balancer;
mod connectivity;
mod delivery;
mod endpoints;
mod fate;
mod filtering;
mod first_packet;
mod flow;
mod flows;
mod health;
mod inbound_nat;
mod interfaces;
pub(crate) mod json;
mod lookup;
pub(crate) mod machine;
pub(crate) mod network;
mod outbound;
mod packet_trace;
mod private_link;
mod probe_answers;
mod protocol;
mod reading;
mod route;
mod routing;
mod security_group;
mod service_tag;
mod spread;
mod trace;
mod verdict;
pub mod view;
mod virtual_network;
mod what_if;

use azure_engine::document::reading::Documents;

pub use balancer::AdminState;
pub use fate::Fate;
pub use first_packet::{Packet, Source};
pub use flows::{FlowChange, FlowFate, FlowPlan, FlowReport, MAX_FLOWS, NodeFlows, Reason, flows};
pub use health::{Health, MemberState, Members};
pub use network::Network;
pub use outbound::{NoOutbound, Outbound, OutboundMeans};
pub use probe_answers::{AlwaysHealthy, ProbeAnswers};
pub use protocol::Protocol;
pub use route::{NextHop, Route};
pub use security_group::{Access, Decision, Direction};
pub use verdict::{Hop, Refusal, Verdict};
pub use what_if::Change;

/// Follows a packet through the simulated network. To follow many, read a [`Network`] once.
pub fn trace(documents: &dyn Documents, probes: &dyn ProbeAnswers, packet: &Packet) -> Verdict {
    Network::read(documents).trace(probes, packet)
}
