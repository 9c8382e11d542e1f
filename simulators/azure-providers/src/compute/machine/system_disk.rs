//! System disks of machines.

use crate::compute::disk::sku as disk_sku;
use azure_engine::document::{Object, integer};
use azure_engine::error::Refusal;

/// Most GiB of a system disk ("Introduction to Azure managed disks", operating system disk).
const MAX_GIB: i64 = 4_095;

/// A system disk has a size that there is.
pub(crate) fn check_size(disk: &Object) -> Result<(), Refusal> {
    match integer(disk, "diskSizeGB")? {
        Some(gib) => disk_sku::check_size("osDisk.diskSizeGB", gib, MAX_GIB),
        None => Ok(()),
    }
}
