//! Volumes: disks in Azure.

mod create;
mod delete;
mod expand;
mod list;
mod modify;
mod source;
mod validate;

use crate::controller::azure::Azure;
use crate::controller::kubernetes::KubernetesView;
use crate::controller::options::ControllerOptions;
use csi::locks::Locks;

/// Serves calls about volumes.
pub(in crate::controller) struct Volumes {
    pub azure: Azure,
    pub view: KubernetesView,
    pub options: ControllerOptions,
    /// Held by name while a volume is created, by ID while it is changed.
    pub locks: Locks,
}
