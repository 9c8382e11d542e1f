//! A real Kubernetes on this machine, for as long as the value lives: etcd and kube-apiserver on loopback, or a whole cluster with
//! nodes.
//!
//! The programs are those of `KUBEBUILDER_ASSETS`, of any version from 1.21 on, which has EndpointSlices. The bearer of the token
//! is a cluster administrator; authorization is by roles, as in clusters that people have.
//!
//! A cluster with nodes has controllers, a scheduler and kubelets besides, each kubelet with a containerd, an address and the rights
//! of its own node. It needs root and what [`lacks`] names, and runs in namespaces of its own ([`Enclosure`]), so that nothing of it
//! stays. Each node is a network namespace:
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
