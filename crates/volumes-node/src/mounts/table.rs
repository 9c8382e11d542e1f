//! The table of mounts (proc(5), `/proc/pid/mountinfo`).

use std::path::{Path, PathBuf};

use crate::system::DeviceNumber;

/// A mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountEntry {
    /// The device, or a number without a device.
    pub device: DeviceNumber,
    /// What of the file system is mounted.
    pub root: PathBuf,
    /// Where.
    pub mount_point: PathBuf,
    /// Options of this mount.
    pub options: Vec<String>,
    /// The type of the file system.
    pub file_system: String,
    /// What was given as source.
    pub source: PathBuf,
    /// Options of the file system.
    pub super_options: Vec<String>,
}

impl MountEntry {
    /// Whether nothing can be written there.
    pub fn is_read_only(&self) -> bool {
        [&self.options, &self.super_options].into_iter().flatten().any(|option| option == "ro")
    }

    fn parse(line: &str) -> Option<Self> {
        let (own, of_file_system) = line.split_once(" - ")?;
        let mut own = own.split(' ').skip(2);
        let (major, minor) = own.next()?.split_once(':')?;
        let device = DeviceNumber { major: major.parse().ok()?, minor: minor.parse().ok()? };
        let (root, mount_point) = (unescaped(own.next()?), unescaped(own.next()?));
        let list = |text: &str| text.split(',').map(str::to_owned).collect();
        let options = list(own.next()?);
        let mut rest = of_file_system.split(' ');
        Some(Self {
            device,
            root: root.into(),
            mount_point: mount_point.into(),
            options,
            file_system: unescaped(rest.next()?),
            source: unescaped(rest.next()?).into(),
            super_options: list(rest.next().unwrap_or_default()),
        })
    }
}

/// The kernel writes blanks, tabs, line ends and backslashes as `\` and three octal digits.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let code = (*first == b'\\').then(|| tail.get(..3)).flatten();
        let code = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 8).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// All mounts, in the order in which they were made.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountTable(Vec<MountEntry>);

impl MountTable {
    /// Reads the table. Lines of another form are left out.
    pub fn parse(text: &str) -> Self {
        Self(text.lines().filter_map(MountEntry::parse).collect())
    }

    /// All mounts.
    pub fn entries(&self) -> &[MountEntry] {
        &self.0
    }

    /// The topmost mount at a path.
    pub fn at(&self, path: &Path) -> Option<&MountEntry> {
        self.0.iter().rev().find(|entry| entry.mount_point == path)
    }

    /// The mount that has a path.
    pub fn of(&self, path: &Path) -> Option<&MountEntry> {
        path.ancestors().find_map(|above| self.at(above))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = r"
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw,discard
90 22 8:32 / /var/lib/kubelet/my\040staging rw,noatime shared:50 master:3 - ext4 /dev/sdc rw
91 22 8:32 / /pods/1/mount ro,noatime - ext4 /dev/sdc rw
92 22 0:5 /sdd /pods/2/vol rw,nosuid shared:2 - devtmpfs devtmpfs rw,size=4k
93 22 0:5 /sdd /pods/2/vol ro,nosuid - devtmpfs udev\134x
not a mount
";

    #[test]
    fn the_table_of_the_kernel_is_read() {
        let table = MountTable::parse(TABLE);
        assert_eq!(table.entries().len(), 5);
        let staging = table.at(Path::new("/var/lib/kubelet/my staging")).unwrap();
        assert_eq!(staging.device, DeviceNumber { major: 8, minor: 32 });
        assert_eq!((staging.file_system.as_str(), staging.source.as_path()), ("ext4", Path::new("/dev/sdc")));
        assert_eq!(staging.options, ["rw", "noatime"]);
        assert!(!staging.is_read_only());
        assert!(table.at(Path::new("/pods/1/mount")).unwrap().is_read_only());
        // The last one is on top.
        let block = table.at(Path::new("/pods/2/vol")).unwrap();
        assert_eq!((block.root.as_path(), block.source.to_str()), (Path::new("/sdd"), Some(r"udev\x")));
        assert_eq!(table.of(Path::new("/pods/3")).unwrap().mount_point, Path::new("/"));
        assert!(table.at(Path::new("/pods")).is_none());
    }
}
