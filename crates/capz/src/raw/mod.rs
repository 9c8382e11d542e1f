//! Clusters that Azure manages, as whole objects of Azure Service Operator: AzureASOManagedCluster,
//! AzureASOManagedControlPlane and AzureASOManagedMachinePool.

pub mod adoption;
pub mod cluster;
pub mod control_plane;
pub mod exports;
pub mod kinds;
pub mod lookup;
pub mod nodes;
pub mod pool;
pub mod reconcile;
