//! Read access to the simulated Azure without HTTP: for the packet oracle, the topology page, instance metadata and
//! tests.

use azure_types::ResourceId;
use serde_json::Value;

/// Read access to the documents of a simulated Azure, as a `GET` at this moment would show them:
/// with etags, provisioning states, back-references, allocated addresses and, for machines, the
/// instance view.
pub trait Documents {
    /// The document of one resource, child resource (a backend pool, a subnet, a security rule) or
    /// read-only view with an id of its own (a scale set instance's network interface and its
    /// `ipConfigurations`). Case of the id does not matter. Absent resources give `None`.
    fn document(&self, id: &ResourceId) -> Option<Value>;

    /// Every document of a full resource type such as `Microsoft.Network/loadBalancers`,
    /// `Microsoft.Network/virtualNetworks/subnets` or
    /// `Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces`, ordered by id.
    /// Case of the type does not matter; unknown types give an empty list.
    fn of_type(&self, resource_type: &str) -> Vec<Value>;

    /// Lets `read` see documents of one moment: between two of its reads nothing changes. It must not use this source
    /// in another way meanwhile.
    fn at_once(&self, read: &mut dyn FnMut(&dyn Documents));
}
