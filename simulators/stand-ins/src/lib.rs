//! The parts of a cluster beside its API server, without machines and containers: kubelets and controllers.
//!
//! All of them use [`kube::Client`] alone, against the simulator or a real kube-apiserver. [`Kubelets`] make machines
//! into nodes. [`NodeMonitor`] marks nodes whose kubelet is silent. [`Controllers`] reconcile workloads and run their
//! pods. [`EndpointSlices`] writes slices of these and of simulated pods. [`answers`] says which probes a node's
//! kube-proxy answers.
//!
//! Each controller is a file with a pure function from the objects of a cluster to the actions that are due; one runner
//! watches, calls all of them, and performs the actions. The head of each file lists what its controller leaves out.

pub mod answers;
mod controllers;
mod daemon_set;
mod deployment;
mod disruption;
mod endpoint_slices;
mod job;
mod kubelet;
pub mod members;
mod node_monitor;
mod objects;
mod pace;
mod pod;
mod protection;
mod replica_set;
mod revision;
mod scheduler;
mod service_endpoints;
mod stateful_set;
#[cfg(test)]
mod tests;

pub use controllers::Controllers;
pub use endpoint_slices::{EndpointSlices, PodPlacement};
pub use node_monitor::NodeMonitor;
pub use pace::Pace;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;
use k8s::api::api::core::v1::Taint;
use k8s::names;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// The current time, for timestamps in objects. Waiting follows tokio's clock.
pub type WallClock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// A machine that becomes a node.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Host name, and so the node's name.
    pub name: String,
    /// The addresses of its first network interface: one, or one of each family.
    pub internal_ips: Vec<IpAddr>,
    /// The provider ID that the kubelet sets itself (`--provider-id`); empty if it leaves that to the cloud provider.
    pub provider_id: String,
    /// Whether an unseen cloud controller manager has initialized it already: then its Node does not wait for one.
    pub initialized: bool,
    /// Whether it runs: the kubelet of a stopped machine is silent.
    pub running: bool,
    /// Labels beside those that every kubelet sets (`--node-labels`).
    pub labels: BTreeMap<String, String>,
    /// Taints beside the one that waits for the cloud provider, as `key=value:effect` has them
    /// (`--register-with-taints`).
    pub taints: Vec<Taint>,
    /// The UUID of the system according to its firmware; empty if it has none.
    pub system_uuid: String,
    /// The version that the kubelet reports.
    pub kubelet_version: String,
    /// Number of processors.
    pub cpus: u32,
    /// Memory in MiB.
    pub memory_mib: u64,
}

impl Machine {
    /// A running machine of two processors and 8 GiB.
    pub fn new(name: impl Into<String>, internal_ip: IpAddr) -> Machine {
        let name = name.into();
        Machine {
            name,
            internal_ips: vec![internal_ip],
            provider_id: String::new(),
            initialized: false,
            running: true,
            labels: BTreeMap::new(),
            taints: Vec::new(),
            system_uuid: String::new(),
            kubelet_version: kubelet::VERSION.to_owned(),
            cpus: 2,
            memory_mib: 8192,
        }
    }

    /// The same machine with the labels and the taint that kubeadm gives a node of the control plane.
    #[must_use]
    pub fn control_plane(mut self) -> Machine {
        for label in [names::LABEL_CONTROL_PLANE, names::LABEL_EXCLUDE_FROM_LOAD_BALANCERS] {
            self.labels.insert(label.to_owned(), String::new());
        }
        self.taints.push(Taint {
            key: names::LABEL_CONTROL_PLANE.to_owned(),
            effect: "NoSchedule".to_owned(),
            ..Taint::default()
        });
        self
    }
}

/// A source of machines: a cloud, simulated or not.
pub trait Machines: Send + Sync {
    /// Returns all machines, stopped ones too.
    fn machines(&self) -> Vec<Machine>;
    /// Changes its value whenever [`Machines::machines`] may return something else.
    fn changed(&self) -> watch::Receiver<u64>;
}

/// The kubelets of all machines.
pub struct Kubelets {
    task: JoinHandle<()>,
}

impl fmt::Debug for Kubelets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kubelets").finish_non_exhaustive()
    }
}

impl Kubelets {
    /// Runs a kubelet for each running machine until `shutdown`.
    ///
    /// Each registers its Node as a kubelet with `--cloud-provider=external` does: labels for host name, operating
    /// system and architecture, the taint `node.cloudprovider.kubernetes.io/uninitialized`, host name and address,
    /// capacity, condition Ready, and a provider ID only if the machine has one. It then renews its Lease in
    /// `kube-node-lease` every 10 s and its status every 5 minutes or after another client changed it. When a machine
    /// stops or goes, its kubelet ends at once; the Node stays, as it does in a cluster. A machine that starts again
    /// registers again if its Node is gone.
    pub fn spawn(
        client: kube::Client,
        machines: Arc<dyn Machines>,
        clock: WallClock,
        shutdown: CancellationToken,
    ) -> Kubelets {
        Kubelets::spawn_at(Pace::default(), client, machines, clock, shutdown)
    }

    /// As [`Kubelets::spawn`], at another pace.
    pub fn spawn_at(
        pace: Pace,
        client: kube::Client,
        machines: Arc<dyn Machines>,
        clock: WallClock,
        shutdown: CancellationToken,
    ) -> Kubelets {
        Kubelets { task: tokio::spawn(follow(pace, client, machines, clock, shutdown)) }
    }

    /// Waits until all kubelets have ended, after the shutdown that was given to [`Kubelets::spawn`].
    pub async fn stopped(self) {
        // The task does not panic, and nothing aborts it.
        let _ = self.task.await;
    }
}

async fn follow(
    pace: Pace,
    client: kube::Client,
    machines: Arc<dyn Machines>,
    clock: WallClock,
    shutdown: CancellationToken,
) {
    let mut running: BTreeMap<String, (Machine, CancellationToken)> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let mut changed = machines.changed();
    loop {
        changed.mark_unchanged();
        let wanted: BTreeMap<String, Machine> = machines
            .machines()
            .into_iter()
            .filter(|machine| machine.running)
            .map(|machine| (machine.name.clone(), machine))
            .collect();
        running.retain(|name, (machine, stop)| {
            let stays = wanted.get(name) == Some(machine);
            if !stays {
                stop.cancel();
            }
            stays
        });
        for (name, machine) in wanted {
            running.entry(name).or_insert_with(|| {
                let stop = shutdown.child_token();
                let kubelet =
                    kubelet::Kubelet::new(pace, client.clone(), machine.clone(), Arc::clone(&clock));
                tasks.spawn(stop.clone().run_until_cancelled_owned(kubelet.run()));
                (machine, stop)
            });
        }
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = tasks.join_next() => {}
            // Without a sender the machines never change again.
            result = changed.changed() => if result.is_err() {
                shutdown.cancelled().await;
                break;
            }
        }
    }
    while tasks.join_next().await.is_some() {}
}

/// Whether the API answered with this status code.
pub(crate) fn is(error: &kube::Error, code: u16) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == code)
}
