//! Clusters that Azure manages (AKS): AzureManagedCluster, AzureManagedControlPlane and AzureManagedMachinePool.

pub mod access;
pub mod cluster;
pub mod kubeconfig;
