//! The file systems that can be made.

use std::fmt;
use std::str::FromStr;

/// A file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystem {
    /// ext2, which does not grow.
    Ext2,
    /// ext3.
    Ext3,
    /// ext4, which is the default.
    Ext4,
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
}

/// The name is that of no file system that can be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("file system {0} is not supported: expected ext2, ext3, ext4, xfs or btrfs")]
pub struct UnknownFileSystem(String);

impl FileSystem {
    const ALL: [Self; 5] = [Self::Ext2, Self::Ext3, Self::Ext4, Self::Xfs, Self::Btrfs];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
        }
    }

    /// Arguments of the program that makes it. `-F` and `-f` answer questions: the device has been proven empty before. `-m0`
    /// keeps no blocks for the superuser.
    pub(super) const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Ext3 | Self::Ext4 => &["-F", "-m0"],
            Self::Xfs => &["-f"],
            Self::Ext2 | Self::Btrfs => &[],
        }
    }
}

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for FileSystem {
    type Err = UnknownFileSystem;

    /// Reads a name in any case.
    fn from_str(text: &str) -> Result<Self, UnknownFileSystem> {
        let found = Self::ALL.into_iter().find(|kind| kind.name().eq_ignore_ascii_case(text));
        found.ok_or_else(|| UnknownFileSystem(text.to_owned()))
    }
}
