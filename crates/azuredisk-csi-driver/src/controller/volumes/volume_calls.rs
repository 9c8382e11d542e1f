//! What serves calls about volumes.

use crate::controller::azure::Azure;
use crate::controller::kubernetes::KubernetesView;
use crate::controller::options::ControllerOptions;
use csi::locks::Locks;

/// Serves calls about volumes.
pub(crate) struct Volumes {
    pub azure: Azure,
    pub view: KubernetesView,
    pub options: ControllerOptions,
    /// Held by name while a volume is created, by ID while it is changed.
    pub locks: Locks,
}
