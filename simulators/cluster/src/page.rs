//! The page of an Azure, with what a cluster adds to it.

use azure_simulator::packet::{FlowPlan, FlowReport, Packet, ProbeAnswers, Verdict};
use azure_simulator::page::{AzurePage, PageSource};
use azure_simulator::view::Topology;
use tokio::sync::watch;

/// The page's view of Azure and of a cluster.
pub(crate) struct ClusterPage<A> {
    azure: AzurePage<A>,
    extend: Box<dyn Fn(Topology) -> Topology + Send + Sync>,
    changed: watch::Receiver<u64>,
}

impl<A> ClusterPage<A> {
    /// The view of `azure`, to which `extend` adds the cluster. It is new whenever `changed` changes.
    pub(crate) fn new(
        azure: AzurePage<A>,
        extend: impl Fn(Topology) -> Topology + Send + Sync + 'static,
        changed: watch::Receiver<u64>,
    ) -> Self {
        Self { azure, extend: Box::new(extend), changed }
    }
}

impl<A: ProbeAnswers + Send + Sync + 'static> PageSource for ClusterPage<A> {
    fn topology(&self) -> Topology {
        (self.extend)(self.azure.topology())
    }

    fn packet(&self, packet: &Packet) -> Verdict {
        self.azure.packet(packet)
    }

    fn flows(&self, plan: &FlowPlan) -> FlowReport {
        self.azure.flows(plan)
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.changed.clone()
    }
}
