//! Block devices of attached disks: found by LUN, measured, and read again after they have grown.

mod device;
mod error;
mod excluded;
mod finder;
mod links;
mod lun;
mod nvme;
mod rescan;
mod scsi;
mod settings;
mod tree;
mod waiting;

pub use device::{Device, Partition};
pub use error::DeviceError;
pub use finder::Devices;
pub use lun::{InvalidLun, Lun};
