//! A layer: an archive of files, compressed. Entries are sorted, belong to root, and have one date, so that the same files
//! give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::Path;

use flate2::{Compression, GzBuilder};
use tar::{Builder, EntryType, Header};

/// A file of a layer or of an archive, or a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// Its permissions.
    pub mode: u32,
    /// Its contents; none of a link.
    pub bytes: Vec<u8>,
    /// Where a link leads.
    pub target: Option<String>,
}

impl File {
    /// A file that all may read.
    pub fn plain(bytes: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o644, bytes: bytes.into(), target: None }
    }

    /// A file that all may run.
    pub fn program(bytes: impl Into<Vec<u8>>) -> Self {
        Self { mode: 0o755, bytes: bytes.into(), target: None }
    }

    /// A symbolic link.
    pub fn link(target: impl Into<String>) -> Self {
        Self { mode: 0o777, bytes: Vec::new(), target: Some(target.into()) }
    }
}

/// Files by their paths, which are relative and have slashes.
pub type Files = BTreeMap<String, File>;

/// An archive of files and of the folders that hold them, all of the date `seconds` since 1970.
///
/// # Errors
/// A path is too long for an archive.
pub fn archive(files: &Files, seconds: u64) -> io::Result<Vec<u8>> {
    let folders = files.keys().flat_map(|path| Path::new(path).ancestors().skip(1));
    let folders = folders.filter(|folder| !folder.as_os_str().is_empty());
    let folders: BTreeSet<String> = folders.map(|folder| format!("{}/", folder.display())).collect();
    let mut entries: BTreeMap<&str, Option<&File>> =
        folders.iter().map(|path| (path.as_str(), None)).collect();
    entries.extend(files.iter().map(|(path, file)| (path.as_str(), Some(file))));

    let mut builder = Builder::new(Vec::new());
    for (path, file) in entries {
        let mut header = Header::new_ustar();
        let target = file.and_then(|file| file.target.as_ref());
        header.set_entry_type(match (file, target) {
            (None, _) => EntryType::Directory,
            (Some(_), None) => EntryType::Regular,
            (Some(_), Some(_)) => EntryType::Symlink,
        });
        header.set_mode(file.map_or(0o755, |file| file.mode));
        header.set_mtime(seconds);
        header.set_uid(0);
        header.set_gid(0);
        let bytes = file.map_or(&[][..], |file| &file.bytes);
        header.set_size(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        match target {
            Some(target) => builder.append_link(&mut header, path, target)?,
            None => builder.append_data(&mut header, path, bytes)?,
        }
    }
    builder.into_inner()
}

/// The archive, compressed.
///
/// # Errors
/// None in practice: the output is memory.
pub fn compress(archive: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(archive)?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn entries_are_sorted_with_their_folders_and_belong_to_root() {
        let files = Files::from([
            ("usr/local/bin/manager".to_owned(), File::program("program")),
            ("etc/passwd".to_owned(), File::plain("root")),
        ]);
        let bytes = archive(&files, 1_700_000_000).unwrap();
        let mut read = tar::Archive::new(&bytes[..]);
        let entries: Vec<_> = read
            .entries()
            .unwrap()
            .map(|entry| {
                let entry = entry.unwrap();
                let header = entry.header();
                assert_eq!((header.uid().unwrap(), header.gid().unwrap()), (0, 0));
                assert_eq!(header.mtime().unwrap(), 1_700_000_000);
                assert_eq!((header.username().unwrap(), header.groupname().unwrap()), (Some(""), Some("")));
                (entry.path().unwrap().display().to_string(), header.mode().unwrap())
            })
            .collect();
        let expected = [
            ("etc/", 0o755),
            ("etc/passwd", 0o644),
            ("usr/", 0o755),
            ("usr/local/", 0o755),
            ("usr/local/bin/", 0o755),
            ("usr/local/bin/manager", 0o755),
        ];
        assert_eq!(entries, expected.map(|(path, mode)| (path.to_owned(), mode)));
    }
}
