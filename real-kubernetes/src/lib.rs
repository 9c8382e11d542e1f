//! A real Kubernetes on this machine, which ends with its value: etcd and kube-apiserver on loopback, or a whole
//! cluster with nodes.
//!
//! The programs are those in `KUBEBUILDER_ASSETS`, of any version from 1.21 on, which has EndpointSlices. The token
//! belongs to a cluster administrator; authorization uses RBAC, as in production clusters.
//!
//! A cluster with nodes also has controllers, a scheduler and kubelets. Each kubelet has a containerd, an address and
//! the rights of its own node. Such a cluster needs root and the requirements that [`lacks`] checks, and runs in
//! separate namespaces ([`Enclosure`]), so that nothing of it remains. Each node is a network namespace:
//!
//! ```text
//!                          ┌ 10.240.0.4 containerd, kubelet, pods
//! servers 10.240.0.1 ──────┤
//!                          └ 10.240.0.5 containerd, kubelet, pods
//! ```

mod command;
mod containerd;
mod control_plane;
mod enclosure;
mod error;
mod image;
mod kubeconfig;
mod kubelet;
mod node;
mod program;
mod requirements;

pub use control_plane::RealKubernetes;
pub use enclosure::Enclosure;
pub use error::StartError;
pub use image::{Image, digest};
pub use node::{NodeSettings, RealCluster, RealNode};
pub use requirements::{Lack, install, lacks};
