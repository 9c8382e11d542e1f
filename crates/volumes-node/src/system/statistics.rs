//! Space and inodes of a file system.

/// How much of something there is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// All of it.
    pub total: u64,
    /// What a program without privileges may still take.
    pub available: u64,
    /// What is taken.
    pub used: u64,
}

/// Space and inodes of a file system.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// In bytes.
    pub space: Amount,
    /// Inodes; all zero for file systems without a fixed number of them.
    pub inodes: Amount,
}
