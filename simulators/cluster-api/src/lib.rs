//! A stand-in for Cluster API: its core, and its kubeadm providers for bootstrap and control planes.
//!
//! It speaks through [`kube::Client`] alone, to the simulated Kubernetes or to a real kube-apiserver, and knows
//! no cloud: an infrastructure provider works beside it as beside the real one, by the contract `v1beta1` or `v1beta2`.
//!
//! [`install`] applies the definitions of its kinds, [`conversion_router`] answers for their versions, and [`ClusterApi`] is
//! the controllers. Each is a file with a pure function from what is known of a cluster to what is to be done next;
//! one runner watches, asks all of them about the clusters that changed, and does it. What a controller leaves out stands at
//! the head of its file. No kubeadm runs: the simulated machines read the bootstrap data, and [`Workloads`] leads to
//! the clusters that come of it.

mod authorities;
mod clone;
mod cloud_init;
mod cluster;
mod contract;
mod control_plane;
mod conversion;
mod definitions;
mod health_check;
mod kubeadm_config;
mod machine;
mod machine_deployment;
mod machine_pool;
mod machine_set;
pub mod names;
mod objects;
mod perform;
mod round;
mod runner;
mod workloads;

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use kube::Client;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use authorities::administrator_token;
pub use conversion::{conversion_router, convert};
pub use definitions::{ConversionWebhook, definitions, install, install_parts};
pub use workloads::{ByKubeconfig, Workloads};

/// What time it is, for the times that stand in objects. Waiting follows tokio's clock.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A part of Cluster API that can be played, or left to the real program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Clusters, machines, their sets, deployments, pools and health checks.
    Core,
    /// Bootstrap data by kubeadm.
    Bootstrap,
    /// Control planes by kubeadm.
    ControlPlane,
}

impl Part {
    /// All of it.
    pub const ALL: &'static [Part] = &[Part::Core, Part::Bootstrap, Part::ControlPlane];

    /// What it is called on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Part::Core => "core",
            Part::Bootstrap => "bootstrap",
            Part::ControlPlane => "control-plane",
        }
    }
}

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
    /// Kinds of providers are found by the labels of their definitions, whenever these come. Names are drawn from `seed`.
    pub fn start(
        client: Client,
        workloads: Arc<dyn Workloads>,
        clock: WallClock,
        seed: u64,
        shutdown: CancellationToken,
    ) -> ClusterApi {
        Self::start_parts(Part::ALL, client, workloads, clock, seed, shutdown)
    }

    /// The same for these parts alone: the others are the real programs'. All kinds must be there.
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

    /// Waits until all has ended, after the shutdown that was given to [`ClusterApi::start`].
    pub async fn stopped(self) {
        // The task does not panic, and is not aborted.
        let _ = self.task.await;
    }
}
