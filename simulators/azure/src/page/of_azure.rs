//! The page of one [`Azure`].

use serde_json::Value;
use tokio::sync::watch;

use super::source::PageSource;
use crate::Azure;
use azure_packets::view::Topology;
use azure_packets::{FlowPlan, FlowReport, Packet, ProbeAnswers, Verdict, flows, trace};

/// How many requests the page shows at most; the journal may hold far more.
const MAX_JOURNAL_ENTRIES: usize = 300;

/// Shows an [`Azure`]; the stand-in nodes answer its health probes.
#[derive(Debug, Clone)]
pub struct AzurePage<P> {
    azure: Azure,
    probes: P,
}

impl<P: ProbeAnswers> AzurePage<P> {
    /// Shows `azure`; `probes` gives the answers of its machines.
    pub fn new(azure: Azure, probes: P) -> Self {
        Self { azure, probes }
    }
}

impl<P: ProbeAnswers + Send + Sync + 'static> PageSource for AzurePage<P> {
    fn topology(&self) -> Topology {
        let tail = self.azure.journal_tail(MAX_JOURNAL_ENTRIES);
        let entries = tail.entries.iter().filter_map(|entry| serde_json::to_value(entry).ok()).collect();
        let counts = serde_json::to_value(&tail.counts).unwrap_or(Value::Null);
        Topology::read(&self.azure, &self.probes).with_journal(entries, counts)
    }

    fn packet(&self, packet: &Packet) -> Verdict {
        trace(&self.azure, &self.probes, packet)
    }

    fn flows(&self, plan: &FlowPlan) -> FlowReport {
        flows(&self.azure, &self.probes, plan)
    }

    fn changed(&self) -> watch::Receiver<u64> {
        self.azure.subscribe()
    }
}
