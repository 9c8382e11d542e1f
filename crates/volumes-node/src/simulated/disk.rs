//! A disk of a simulated machine.

/// How a file system fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    Clean,
    /// `fsck -a` repairs it.
    Repairable,
    /// `fsck -a` asks for a decision.
    Broken,
}

/// What a disk contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Contents {
    Blank,
    /// A file system, with a number that is unique to its data.
    FileSystem {
        kind: String,
        data: u64,
        health: Health,
    },
    PartitionTable(String),
    /// Only `fsck -n` finds the file system, by a spare superblock.
    SpareSuperblock,
    /// Only `wipefs` finds it.
    Hidden(String),
    /// `blkid` finds signatures that contradict each other.
    Ambivalent,
    /// Bytes without a signature, such as those of a database on a raw device.
    Raw,
}

impl Contents {
    pub fn file_system(kind: &str, data: u64) -> Self {
        Self::FileSystem { kind: kind.to_owned(), data, health: Health::Clean }
    }

    /// The number of the data in it.
    pub fn data(&self) -> Option<u64> {
        match self {
            Self::FileSystem { data, .. } => Some(*data),
            _ => None,
        }
    }
}

/// A disk.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    pub name: String,
    pub lun: u8,
    pub contents: Contents,
    /// What the machine sees.
    pub bytes: u64,
    /// What Azure says.
    pub bytes_in_azure: u64,
    pub file_system_bytes: u64,
    pub is_readable: bool,
}
