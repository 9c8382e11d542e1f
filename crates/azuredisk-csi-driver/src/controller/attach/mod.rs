//! Which machines have a disk: attach and detach, through one writer for each machine's list.

mod disk_list;
mod intent;
mod lookup;
mod observed;
mod publish;
mod unpublish;
mod waiting;

pub(in crate::controller) use lookup::node_name_of;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use azure_types::ResourceId;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use writer::{Pace, Writer, Writers};

use self::disk_list::DiskList;
use self::lookup::Machines;
use crate::controller::azure::{Azure, Sizes};
use crate::controller::kubernetes::KubernetesView;
use crate::controller::options::ControllerOptions;

/// Serves attaches and detaches.
pub(in crate::controller) struct Attachments {
    azure: Azure,
    view: KubernetesView,
    options: ControllerOptions,
    machines: Machines,
    sizes: Sizes,
    writers: Writers<DiskList>,
    arrivals: AtomicU64,
}

impl Attachments {
    /// The writers end when `stop` is cancelled.
    pub(in crate::controller) fn new(
        azure: Azure,
        view: KubernetesView,
        options: ControllerOptions,
        stop: CancellationToken,
    ) -> Self {
        Self {
            machines: Machines::new(azure.clone(), view.clone()),
            sizes: Sizes::new(azure.clone()),
            writers: Writers::new(PACE, stop),
            arrivals: AtomicU64::default(),
            azure,
            view,
            options,
        }
    }

    /// The writer of a machine's list.
    async fn writer(&self, machine: &ResourceId, node: &str) -> Result<Writer<DiskList>, Status> {
        let is_stack = self.azure.place().await?.is_stack;
        let list = || {
            DiskList::new(
                machine.clone(),
                node.to_owned(),
                is_stack,
                self.azure.clone(),
                if self.options.reserves_luns { self.view.clone() } else { KubernetesView::none() },
                self.sizes.clone(),
            )
        };
        Ok(self.writers.of(machine, list))
    }

    /// The number of a request in the order of arrival.
    fn arrival(&self) -> u64 {
        self.arrivals.fetch_add(1, Ordering::Relaxed)
    }
}

/// A batch waits for requests that have begun and still read their disks: a hundred reads take some seconds where a hundred creations
/// have used the subscription's reads up, and a write of a machine takes fifteen. Where none has begun, nothing waits.
const PACE: Pace = Pace { linger: Duration::from_secs(7), busy: Duration::from_secs(2) };
