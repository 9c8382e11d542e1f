//! What may fail with devices.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::lun::Lun;

/// A device cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// No device of the LUN appears.
    #[error(
        "no device for LUN {lun} within {} s: {reasons}; check that the disk is attached to this machine at this LUN, and that \
         the container sees the machine's /dev and /sys",
        waited.as_secs()
    )]
    NotFound {
        /// The LUN.
        lun: Lun,
        /// How long it was waited for.
        waited: Duration,
        /// Each check with what it found.
        reasons: String,
    },
    /// The path leads to no block device.
    #[error("{} is no block device, or the device does not answer", .0.display())]
    NoDevice(PathBuf),
    /// The kernel refuses to read a device's size again.
    #[error("cannot rescan {device}: {source}; check that the container may write to the machine's /sys")]
    Rescan {
        /// The device.
        device: String,
        /// The kernel's words.
        source: io::Error,
    },
    /// A device has not grown.
    #[error(
        "{device} has {has} bytes after a rescan, and {wants} are wanted; the disk has not grown in Azure yet, or the machine \
         does not see it yet: retry"
    )]
    TooSmall {
        /// The device.
        device: String,
        /// Its size in bytes.
        has: u64,
        /// The size that it should have in bytes.
        wants: u64,
    },
    /// A device's size cannot be read.
    #[error("cannot read the size of {device}: {source}")]
    Size {
        /// The device.
        device: String,
        /// The kernel's words.
        source: io::Error,
    },
    /// A setting is not a file of the device.
    #[error(
        "device setting {0} is invalid: expected a path below the block device's folder, such as queue/scheduler"
    )]
    InvalidSetting(String),
    /// A setting cannot be written.
    #[error("cannot set {setting}={value} of {device}: {source}; correct or remove the setting")]
    Setting {
        /// The device.
        device: String,
        /// The path below the device's folder.
        setting: String,
        /// The value.
        value: String,
        /// The kernel's words.
        source: io::Error,
    },
}
