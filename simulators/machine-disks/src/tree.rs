//! Writes and removes the files of a machine.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};

use crate::error::HardwareError;
use crate::layout::Entry;

/// What the node of a disk is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Node<'a> {
    /// A block device with its numbers.
    Block(u32, u32),
    /// Another name of a file.
    File(&'a Path),
    /// The files have no node.
    None,
}

/// Writes files below a folder. One that is there is replaced.
pub(crate) fn write(folder: &Path, entries: &[Entry], node: Node<'_>) -> Result<(), HardwareError> {
    for entry in entries {
        let path = folder.join(entry.path());
        match entry {
            Entry::Folder(_) => fs::create_dir_all(&path).map_err(HardwareError::of_file(path))?,
            Entry::Text(_, text) => fs::write(&path, text).map_err(HardwareError::of_file(path))?,
            Entry::Link(_, target) => {
                absent(&path)?;
                symlink(target, &path).map_err(HardwareError::of_file(path))?;
            }
            Entry::Character(_, major, minor) => {
                make(&path, FileType::CharacterDevice, *major, *minor, 0o666)?
            }
            Entry::Disk(_) => match node {
                Node::Block(major, minor) => make(&path, FileType::BlockDevice, major, minor, 0o660)?,
                Node::File(file) => {
                    absent(&path)?;
                    fs::hard_link(file, &path).map_err(HardwareError::of_file(path))?;
                }
                Node::None => {}
            },
        }
    }
    Ok(())
}

/// Removes such files again, the last one first. Folders that others use stay.
pub(crate) fn remove(folder: &Path, entries: &[Entry]) -> Result<(), HardwareError> {
    for entry in entries.iter().rev() {
        let path = folder.join(entry.path());
        match entry {
            Entry::Folder(_) => drop(fs::remove_dir(&path)),
            _ => absent(&path)?,
        }
    }
    Ok(())
}

fn absent(path: &Path) -> Result<(), HardwareError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(HardwareError::File { path: path.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}

fn make(path: &Path, kind: FileType, major: u32, minor: u32, mode: u32) -> Result<(), HardwareError> {
    absent(path)?;
    let made = mknodat(CWD, path, kind, Mode::from_raw_mode(mode), makedev(major, minor));
    made.map_err(|error| HardwareError::Nodes { path: path.to_owned(), source: error.into() })
}
