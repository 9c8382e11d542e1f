//! A stand-in for Cluster API: its core, and its kubeadm providers for bootstrap and control planes.
//!
//! It uses only [`kube::Client`], against the simulated Kubernetes or a real kube-apiserver, and is independent of
//! clouds: an infrastructure provider works with it as with the real one, by the contract `v1beta1` or `v1beta2`.
//!
//! [`install`] applies the definitions of its kinds, [`conversion_router`] serves their conversion webhook, and
//! [`ClusterApi`] runs the controllers. Each controller is a file with a pure function from the observed state of a
//! cluster to actions; one runner watches, calls all controllers for each changed cluster, and performs the actions.
//! The head of each file lists what its controller leaves out. No kubeadm runs: the simulated machines read the
//! bootstrap data, and [`Workloads`] connects to the resulting clusters.

mod authorities;
mod clone;
mod cloud_init;
mod cluster;
mod contract;
mod control_plane;
mod conversion;
mod conversion_webhook;
mod definitions;
mod health_check;
mod kubeadm_config;
mod machine;
mod machine_deployment;
mod machine_pool;
mod machine_set;
pub mod names;
mod objects;
mod part;
mod perform;
mod round;
mod runner;
mod workloads;

use std::fmt;
use std::sync::Arc;

use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use authorities::administrator_token;
pub use conversion::convert;
pub use conversion_webhook::conversion_router;
pub use definitions::{ConversionWebhook, definitions, install, install_parts};
pub use part::Part;
pub use runner::WallClock;
pub use workloads::{ByKubeconfig, Workloads};

/// The controllers of Cluster API.
pub struct ClusterApi {
    task: JoinHandle<()>,
}

impl fmt::Debug for ClusterApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClusterApi").finish_non_exhaustive()
    }
}

impl ClusterApi {
    /// Runs all controllers against the API behind `client`, whose kinds are installed ([`install`]), until `shutdown`.
    /// Providers' kinds are found by the labels of their definitions, also if these are added later. Random names
    /// derive from `seed`.
    pub fn start(
        client: Client,
        workloads: Arc<dyn Workloads>,
        clock: WallClock,
        seed: u64,
        shutdown: CancellationToken,
    ) -> ClusterApi {
        Self::start_parts(Part::ALL, client, workloads, clock, seed, shutdown)
    }

    /// Like [`ClusterApi::start`], but runs only these parts: the real programs run the others. All kinds must be
    /// installed.
    pub fn start_parts(
        parts: &[Part],
        client: Client,
        workloads: Arc<dyn Workloads>,
        clock: WallClock,
        seed: u64,
        shutdown: CancellationToken,
    ) -> ClusterApi {
        let runner = runner::Runner::new(client, parts, workloads, clock, seed);
        ClusterApi {
            task: tokio::spawn(async move {
                shutdown.run_until_cancelled(runner.run()).await;
            }),
        }
    }

    /// Waits for the end, after the shutdown that was passed to [`ClusterApi::start`].
    pub async fn stopped(self) {
        // The task does not panic, and is not aborted.
        let _ = self.task.await;
    }
}
