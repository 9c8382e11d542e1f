//! What is at a path.

/// The number of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceNumber {
    /// The driver's number.
    pub major: u32,
    /// The device's number at its driver.
    pub minor: u32,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A folder.
    Folder,
    /// A block device.
    BlockDevice(DeviceNumber),
    /// A plain file, or anything else.
    File,
}
