//! What disks and snapshots hold: one sparse file for each.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::HardwareError;

/// The files, by the unique IDs of disks and snapshots. A missing file is that of a disk on which nothing was written.
#[derive(Debug)]
pub(crate) struct Contents {
    folder: PathBuf,
}

impl Contents {
    /// Starts with nothing in a folder of its own.
    pub(crate) fn new(folder: PathBuf) -> Result<Self, HardwareError> {
        remove_all(&folder)?;
        fs::create_dir_all(&folder).map_err(HardwareError::of_file(&folder))?;
        Ok(Self { folder })
    }

    pub(crate) fn path(&self, unique: &str) -> PathBuf {
        self.folder.join(format!("{unique}.img"))
    }

    /// The file of a disk, at least this large.
    pub(crate) fn open(&self, unique: &str, bytes: u64) -> Result<PathBuf, HardwareError> {
        let path = self.path(unique);
        let grow = || {
            let file = File::options().create(true).append(true).open(&path)?;
            if file.metadata()?.len() < bytes { file.set_len(bytes) } else { Ok(()) }
        };
        grow().map_err(HardwareError::of_file(&path))?;
        Ok(path)
    }

    /// Copies what one holds to another.
    pub(crate) fn copy(&self, source: &str, target: &str) -> Result<(), HardwareError> {
        let source = self.path(source);
        if source.exists() { copy_sparse(&source, &self.path(target)) } else { Ok(()) }
    }

    /// Moves what a disk holds to a new file. Whatever has the old one open can write to it, and nothing of it reaches the
    /// disk; the old one is empty.
    pub(crate) fn cut_off(&self, unique: &str) -> Result<(), HardwareError> {
        let path = self.path(unique);
        let moved = path.with_extension("moved");
        let old = File::options().write(true).open(&path).map_err(HardwareError::of_file(&path))?;
        copy_sparse(&path, &moved)?;
        fs::rename(&moved, &path).map_err(HardwareError::of_file(&path))?;
        old.set_len(0).map_err(HardwareError::of_file(&path))
    }

    pub(crate) fn remove(&self, unique: &str) -> Result<(), HardwareError> {
        let path = self.path(unique);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(HardwareError::File { path, source: error })
            }
            _ => Ok(()),
        }
    }
}

/// Copies a file without its holes, and by reference where the file system can.
fn copy_sparse(source: &Path, target: &Path) -> Result<(), HardwareError> {
    let mut command = Command::new("cp");
    command.args(["--reflink=auto", "--sparse=always", "--"]).arg(source).arg(target).stdin(Stdio::null());
    let failed = |reason| HardwareError::Program { program: "cp", reason };
    let output = command.output().map_err(|error| failed(error.to_string()))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(String::from_utf8_lossy(&output.stderr).trim().to_owned())),
    }
}

/// Removes a folder if it is there.
pub(crate) fn remove_all(folder: &Path) -> Result<(), HardwareError> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(HardwareError::File { path: folder.to_owned(), source: error })
        }
        _ => Ok(()),
    }
}
