//! The inputs from which machines are created: single ones, and those of pools.

use std::sync::Arc;

use capz_api::machine::Image;
use cloud_config::Secret;

use crate::sku::{Sku, Skus};

/// The inputs from which a machine is created. They cannot be printed in full: secrets stay hidden.
#[derive(Debug, Clone)]
pub struct MachineInputs {
    /// Its bootstrap data, in base64.
    pub bootstrap: Secret,
    /// A random password, for Windows.
    pub password: Secret,
    /// The image.
    pub image: Image,
    /// The size.
    pub size: Sku,
    /// All sizes of the region.
    pub skus: Arc<Skus>,
}
