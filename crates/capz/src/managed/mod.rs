//! Clusters that Azure manages (AKS): AzureManagedCluster, AzureManagedControlPlane and AzureManagedMachinePool.

pub mod access;
pub mod cluster;
pub mod config_map;
pub mod context;
pub mod control_plane;
pub mod kubeconfig;
pub mod pool;
