//! What serves attaches and detaches: the writers of machines' lists.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use azure_types::ResourceId;
use telemetry::metrics::MachineDiskMetrics;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use writer::{Pace, Writer, Writers};

use super::disk_list::DiskList;
use super::lookup::Machines;
use crate::controller::azure::{Azure, Sizes};
use crate::controller::kubernetes::KubernetesView;
use crate::controller::options::ControllerOptions;

/// Serves attaches and detaches.
pub(crate) struct Attachments {
    pub(super) azure: Azure,
    pub(super) view: KubernetesView,
    pub(super) options: ControllerOptions,
    pub(super) machines: Machines,
    sizes: Sizes,
    pub(super) metrics: MachineDiskMetrics,
    writers: Writers<DiskList>,
    arrivals: AtomicU64,
    /// The count of departed nodes when the writers of their machines were ended.
    departures: AtomicU64,
}

impl Attachments {
    /// The writers end when `stop` is cancelled.
    pub(crate) fn new(
        azure: Azure,
        view: KubernetesView,
        options: ControllerOptions,
        metrics: MachineDiskMetrics,
        stop: CancellationToken,
    ) -> Self {
        Self {
            machines: Machines::new(azure.clone(), view.clone()),
            sizes: Sizes::new(azure.clone()),
            writers: Writers::new(PACE, stop),
            arrivals: AtomicU64::default(),
            departures: AtomicU64::default(),
            azure,
            view,
            options,
            metrics,
        }
    }

    /// The writer of a machine's list.
    pub(super) async fn writer(&self, machine: &ResourceId, node: &str) -> Result<Writer<DiskList>, Status> {
        let is_stack = self.azure.place().await?.is_stack;
        self.end_departed();
        let list = || {
            DiskList::new(
                machine.clone(),
                node.to_owned(),
                is_stack,
                self.azure.clone(),
                if self.options.reserves_luns { self.view.clone() } else { KubernetesView::none() },
                self.sizes.clone(),
                self.metrics.clone(),
            )
        };
        Ok(self.writers.of(machine, list))
    }

    /// Ends the writers of machines whose nodes have gone. One that is wanted again is started again.
    fn end_departed(&self) {
        let Some((machines, departures)) = self.view.machines_since(self.departures.load(Ordering::Relaxed))
        else {
            return;
        };
        self.departures.store(departures, Ordering::Relaxed);
        self.writers.keep(|machine| machines.contains(machine));
    }

    /// The number of a request in the order of arrival.
    pub(super) fn arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed)
    }
}

/// A batch waits for requests that have begun and still read their disks: a hundred reads take some seconds where a hundred creations
/// have used the subscription's reads up, and a write of a machine takes fifteen. Where none has begun, nothing waits.
const PACE: Pace = Pace { linger: Duration::from_secs(7), busy: Duration::from_secs(2) };
