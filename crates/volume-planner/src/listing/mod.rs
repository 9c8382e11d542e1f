//! Lists of volumes and snapshots, in pages.

pub mod page;
pub mod snapshots;
pub mod volumes;
