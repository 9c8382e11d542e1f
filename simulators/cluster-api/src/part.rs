//! The parts of Cluster API.

/// A part of Cluster API that can be run here, or left to the real program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Clusters, Machines, MachineSets, MachineDeployments, MachinePools and MachineHealthChecks.
    Core,
    /// The kubeadm bootstrap provider.
    Bootstrap,
    /// The kubeadm control plane provider.
    ControlPlane,
}

impl Part {
    /// All parts.
    pub const ALL: &'static [Part] = &[Part::Core, Part::Bootstrap, Part::ControlPlane];

    /// The name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Part::Core => "core",
            Part::Bootstrap => "bootstrap",
            Part::ControlPlane => "control-plane",
        }
    }
}
