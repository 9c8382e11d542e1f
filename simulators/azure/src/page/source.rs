//! The source of the page's data.

use tokio::sync::watch;

use azure_packets::view::Topology;
use azure_packets::{FlowPlan, FlowReport, Packet, Verdict};

/// The source of the page's data.
pub trait PageSource: Send + Sync + 'static {
    /// The present topology.
    fn topology(&self) -> Topology;

    /// The present verdict on a packet.
    fn packet(&self, packet: &Packet) -> Verdict;

    /// The present spread of many flows, and what a change would do to them.
    fn flows(&self, plan: &FlowPlan) -> FlowReport;

    /// A number that changes whenever the topology may have.
    fn changed(&self) -> watch::Receiver<u64>;
}
