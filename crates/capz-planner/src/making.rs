//! The inputs from which machines are created: single ones, and those of pools.

use capz_api::machine::Image;
use cloud_config::Secret;

use crate::sku::{Sku, Skus};

/// The inputs from which a machine is created.
#[derive(Debug, Clone, Copy)]
pub struct Making<'a> {
    /// Its bootstrap data, in base64.
    pub bootstrap: &'a Secret,
    /// A random password, for Windows.
    pub password: &'a Secret,
    /// The image.
    pub image: &'a Image,
    /// The size.
    pub size: &'a Sku,
    /// All sizes of the region.
    pub skus: &'a Skus,
}
