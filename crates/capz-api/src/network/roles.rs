//! Roles of subnets.

/// For workers.
pub const NODE: &str = "node";
/// For machines of the control plane.
pub const CONTROL_PLANE: &str = "control-plane";
/// For the bastion.
pub const BASTION: &str = "bastion";
/// For both workers and the control plane.
pub const CLUSTER: &str = "cluster";
