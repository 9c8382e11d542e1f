//! What the page is about.

use tokio::sync::watch;

use azure_packets::view::Topology;
use azure_packets::{FlowPlan, FlowReport, Packet, Verdict};

/// What the page is about.
pub trait PageSource: Send + Sync + 'static {
    /// What there is now.
    fn topology(&self) -> Topology;

    /// What becomes of a packet now.
    fn packet(&self, packet: &Packet) -> Verdict;

    /// How many flows spread now, and what would become of them.
    fn flows(&self, plan: &FlowPlan) -> FlowReport;

    /// A number that changes whenever the topology may have.
    fn changed(&self) -> watch::Receiver<u64>;
}
