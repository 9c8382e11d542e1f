//! Machines that become nodes, and their source.

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s::api::api::core::v1::Taint;
use k8s::names;
use tokio::sync::watch;

/// The kubelet version of a stand-in, unless its machine has another one.
const KUBELET_VERSION: &str = "v1.33.0";

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
            kubelet_version: KUBELET_VERSION.to_owned(),
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
