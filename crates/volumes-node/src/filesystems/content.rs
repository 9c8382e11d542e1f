//! What a device contains, by `blkid`.

use std::path::Path;
use std::time::Duration;

use super::error::FileSystemError;
use crate::system::{Command, Output, System};

/// How long a program may take that only reads signatures.
const LIMIT: Duration = Duration::from_secs(60);

/// `blkid`: no signature. It says the same of a device that it cannot read.
const NOTHING: i32 = 2;

/// What a device contains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// No signature that `blkid` knows.
    Blank,
    /// A file system, or anything else that has a type.
    FileSystem(String),
    /// A table of partitions: data about which nothing else is known.
    PartitionTable(String),
}

/// Reads what `blkid -o export` says: lines `KEY=value`.
fn parse(text: &str) -> Content {
    let value = |key: &str| {
        let values = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        values.map(str::trim).find(|value| !value.is_empty()).map(str::to_owned)
    };
    match (value("TYPE"), value("PTTYPE")) {
        (_, Some(table)) => Content::PartitionTable(table),
        (Some(kind), None) => Content::FileSystem(kind),
        (None, None) => Content::Blank,
    }
}

/// Whether a device begins with zeros alone.
pub(super) async fn starts_with_zeros(system: &dyn System, device: &Path) -> Result<bool, FileSystemError> {
    let unreadable = |source| FileSystemError::Unreadable { device: device.to_owned(), source };
    system.starts_with_zeros(device).await.map_err(unreadable)
}

/// What a device contains. To `blkid`, one that cannot be read is blank.
pub(super) async fn read(system: &dyn System, device: &Path) -> Result<Content, FileSystemError> {
    let command = Command::new("blkid", LIMIT)
        .arguments(["-p", "-s", "TYPE", "-s", "PTTYPE", "-o", "export"])
        .argument(device);
    let output = system.run(&command).await?;
    match output.code {
        Some(0) => Ok(parse(&output.stdout)),
        Some(NOTHING) => Ok(Content::Blank),
        // Among others, several signatures that contradict each other.
        _ => Err(FileSystemError::program("the check of the content by blkid", &command, &output)),
    }
}

/// Whether `wipefs`, which knows signatures at any place, finds one. Returns its name.
pub(super) async fn hidden_signature(
    system: &dyn System,
    device: &Path,
) -> Result<Option<String>, FileSystemError> {
    let command = Command::new("wipefs", LIMIT)
        .arguments(["--no-act", "--output", "TYPE", "--noheadings"])
        .argument(device);
    let output = system.run(&command).await?;
    let Output { code: Some(0), stdout, stderr } = &output else {
        return Err(FileSystemError::program("the second check for signatures by wipefs", &command, &output));
    };
    let text = [stdout.trim(), stderr.trim()].join(" ");
    Ok(Some(text.split_whitespace().collect::<Vec<_>>().join(" ")).filter(|text| !text.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Section 3.14, step 6: a table of partitions counts as unknown data.
    #[test]
    fn the_answer_of_blkid_is_read() {
        let kind = |name: &str| Content::FileSystem(name.to_owned());
        for (text, expected) in [
            ("DEVNAME=/dev/sdc\nTYPE=ext4\n", kind("ext4")),
            ("DEVNAME=/dev/sdc\nTYPE=LVM2_member\n", kind("LVM2_member")),
            ("DEVNAME=/dev/sdc\nPTTYPE=gpt\n", Content::PartitionTable("gpt".into())),
            ("DEVNAME=/dev/sdc\nTYPE=ext4\nPTTYPE=dos\n", Content::PartitionTable("dos".into())),
            ("DEVNAME=/dev/sdc\nTYPE=\n", Content::Blank),
            ("", Content::Blank),
        ] {
            assert_eq!(parse(text), expected, "{text}");
        }
    }
}
