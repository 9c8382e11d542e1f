//! What machines are made from: single ones, and those of pools.

use capz_api::machine::Image;
use cloud_config::Secret;

use crate::sku::{Sku, Skus};

/// What a machine is made from.
#[derive(Debug, Clone, Copy)]
pub struct Making<'a> {
    /// What it does when it starts, in base64.
    pub bootstrap: &'a Secret,
    /// A password drawn at random, for Windows.
    pub password: &'a Secret,
    /// The image.
    pub image: &'a Image,
    /// The size.
    pub size: &'a Sku,
    /// All sizes of the region.
    pub skus: &'a Skus,
}
