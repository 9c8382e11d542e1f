//! Full resource types, as the journal and faults name them.

/// Load balancers.
pub const LOAD_BALANCERS: &str = "Microsoft.Network/loadBalancers";
/// Public IPs.
pub const PUBLIC_IPS: &str = "Microsoft.Network/publicIPAddresses";
/// Security groups.
pub const SECURITY_GROUPS: &str = "Microsoft.Network/networkSecurityGroups";
/// Scale sets.
pub const SCALE_SETS: &str = "Microsoft.Compute/virtualMachineScaleSets";
/// Interfaces of standalone machines.
pub const INTERFACES: &str = "Microsoft.Network/networkInterfaces";
/// Interfaces of machines of uniform scale sets.
pub const INSTANCE_INTERFACES: &str =
    "Microsoft.Compute/virtualMachineScaleSets/virtualMachines/networkInterfaces";
/// Standalone machines, and those of flexible scale sets.
pub const MACHINES: &str = "Microsoft.Compute/virtualMachines";
/// Machines of scale sets.
pub const INSTANCES: &str = "Microsoft.Compute/virtualMachineScaleSets/virtualMachines";
