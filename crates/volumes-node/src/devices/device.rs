//! A block device, and its partitions.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::system::System;

/// The number of a partition, from 1 on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Partition(pub u32);

/// A block device that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its node, with all links followed.
    pub node: PathBuf,
    /// The link of udev that led to it, if one did.
    pub(super) link: Option<PathBuf>,
}

impl Device {
    /// A device at its node.
    pub(super) fn at(node: PathBuf) -> Self {
        Self { node, link: None }
    }

    /// The paths at which a partition of the device may be, the link first: udev makes it, the kernel makes the others.
    pub(super) fn partition_paths(&self, Partition(number): Partition) -> Vec<PathBuf> {
        let with = |path: &Path, suffix: &str| {
            let mut path = path.as_os_str().to_owned();
            path.push(suffix);
            PathBuf::from(path)
        };
        let link = self.link.iter().map(|link| with(link, &format!("-part{number}")));
        let ends_in_digit = self.node.to_string_lossy().ends_with(|last: char| last.is_ascii_digit());
        let separator = if ends_in_digit { "p" } else { "" };
        link.chain([with(&self.node, &format!("{separator}{number}"))]).collect()
    }

    /// Its size in bytes.
    ///
    /// # Errors
    /// It cannot be opened.
    pub async fn size(&self, system: &dyn System) -> std::io::Result<u64> {
        system.size(&self.node).await
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.node.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 3.14, step 5, FIX: partitions of devices that no link leads to.
    #[test]
    fn a_partition_is_named_as_its_device() {
        let device =
            |node: &str, link: Option<&str>| Device { node: node.into(), link: link.map(PathBuf::from) };
        for (device, expected) in [
            (device("/dev/sdc", None), vec!["/dev/sdc1"]),
            (device("/dev/sdaa", None), vec!["/dev/sdaa1"]),
            (device("/dev/nvme0n3", None), vec!["/dev/nvme0n3p1"]),
            (device("/dev/loop7", None), vec!["/dev/loop7p1"]),
            (
                device("/dev/sdc", Some("/dev/disk/azure/scsi1/lun0")),
                vec!["/dev/disk/azure/scsi1/lun0-part1", "/dev/sdc1"],
            ),
        ] {
            let expected: Vec<_> = expected.into_iter().map(PathBuf::from).collect();
            assert_eq!(device.partition_paths(Partition(1)), expected, "{device}");
        }
    }
}
