//! Mounts of a simulated machine.

use std::path::PathBuf;

use crate::system::MountFlags;

/// What is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mounted {
    /// The file system of this device.
    FileSystem { device: u32, kind: String },
    /// The node of this device.
    Node { device: u32, name: String },
    /// A folder.
    Folder,
    /// What has no device of its own: a share, or an image.
    Share { number: u32, kind: String },
}

/// A mount.
#[derive(Debug, Clone)]
pub(super) struct Mount {
    pub what: Mounted,
    pub point: PathBuf,
    pub source: PathBuf,
    pub flags: MountFlags,
    pub data: String,
    pub is_dead: bool,
}

const WORDS: [(MountFlags, &str); 4] = [
    (MountFlags::NOSUID, "nosuid"),
    (MountFlags::NODEV, "nodev"),
    (MountFlags::NOEXEC, "noexec"),
    (MountFlags::NOATIME, "noatime"),
];

impl Mount {
    /// Its line in the table.
    pub fn line(&self, number: usize) -> String {
        let (device, root, kind) = match &self.what {
            Mounted::FileSystem { device, kind } => (format!("8:{device}"), "/".to_owned(), kind.as_str()),
            Mounted::Node { name, .. } => ("0:5".to_owned(), format!("/{name}"), "devtmpfs"),
            Mounted::Share { number, kind } => (format!("0:{number}"), "/".to_owned(), kind.as_str()),
            Mounted::Folder => ("8:1".to_owned(), self.source.display().to_string(), "ext4"),
        };
        let point = self.point.display().to_string().replace('\\', r"\134").replace(' ', r"\040");
        let source = self.source.display();
        format!("{number} 1 {device} {root} {point} {} shared:1 - {kind} {source} rw\n", self.options())
    }

    pub fn options(&self) -> String {
        let mut words = vec![if self.flags.contains(MountFlags::RDONLY) { "ro" } else { "rw" }];
        words.extend(WORDS.iter().filter(|(flag, _)| self.flags.contains(*flag)).map(|(_, word)| *word));
        words.join(",")
    }
}
