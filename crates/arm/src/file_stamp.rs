//! Whether a file has changed, without reading it.

use std::fs::Metadata;
use std::path::Path;
use std::time::SystemTime;

/// The state of a file: another program that writes or replaces it changes the stamp. Links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileStamp(Option<State>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct State {
    length: u64,
    modified: SystemTime,
    /// Clocks of file systems have ticks: two files that replace each other within one may otherwise look alike.
    identity: u64,
}

impl FileStamp {
    /// The stamp of a file as it is now; all files that cannot be read have the same.
    pub fn of(path: &Path) -> Self {
        let state = |metadata: Metadata| {
            let modified = metadata.modified().ok()?;
            Some(State { length: metadata.len(), modified, identity: identity(&metadata) })
        };
        Self(std::fs::metadata(path).ok().and_then(state))
    }
}

#[cfg(unix)]
fn identity(metadata: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(metadata)
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_replaces_another_of_its_length_at_once_has_another_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let (path, next) = (folder.path().join("file"), folder.path().join("next"));
        let absent = FileStamp::of(&path);
        let mut last = absent;
        for number in 0..10 {
            std::fs::write(&next, number.to_string()).unwrap();
            std::fs::rename(&next, &path).unwrap();
            let stamp = FileStamp::of(&path);
            assert_ne!(stamp, last);
            assert_eq!(stamp, FileStamp::of(&path));
            last = stamp;
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(FileStamp::of(&path), absent);
    }
}
