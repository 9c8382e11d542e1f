//! What the flags decide about the controller.

use std::time::Duration;

/// The options of the controller (section 4.9 of the specification of the drivers).
#[derive(Debug, Clone)]
pub struct ControllerOptions {
    /// The driver's name, such as `file.csi.azure.com`.
    pub driver: String,
    /// How long an account that is marked as full is not looked at again when its shares are deleted.
    pub full_for: Duration,
}

impl Default for ControllerOptions {
    fn default() -> Self {
        Self { driver: "file.csi.azure.com".to_owned(), full_for: Duration::from_secs(30 * 60) }
    }
}
