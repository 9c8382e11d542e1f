//! The folder of a running simulation.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// A folder that one simulation locks while this value lives. The system releases the lock when a process ends in any
/// way, so a dead process's folder can be taken over. An orderly end removes the lock file, and the folder if the
/// simulation created it and it is empty.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    /// Whether this simulation created it.
    is_new: bool,
    _lock: File,
}

/// The name of the lock file.
const LOCK: &str = "lock";

impl Folder {
    /// Creates the folder if it is missing, and locks it.
    ///
    /// # Errors
    /// Another simulation runs in it, or it cannot be written to.
    pub fn take(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        let failed = || format!("--directory {}", path.display());
        let is_new = !path.exists();
        let name = path.join(LOCK);
        loop {
            std::fs::create_dir_all(&path).with_context(failed)?;
            let mut lock =
                OpenOptions::new().create(true).read(true).append(true).open(&name).with_context(failed)?;
            match lock.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => {
                    let owner = std::fs::read_to_string(&name).unwrap_or_default();
                    bail!(
                        "--directory {}: another simulation (process {}) runs there, and its files would be \
                         overwritten; stop it, or name another folder",
                        path.display(),
                        owner.trim()
                    );
                }
                Err(TryLockError::Error(error)) => return Err(error).with_context(failed),
            }
            // The previous process may have removed the file in between: then another process locks a new one.
            let locked = lock.metadata().with_context(failed)?.ino();
            if std::fs::metadata(&name).is_ok_and(|there| there.ino() == locked) {
                lock.set_len(0)
                    .and_then(|()| writeln!(lock, "{}", std::process::id()))
                    .with_context(failed)?;
                return Ok(Self { path, is_new, _lock: lock });
            }
        }
    }

    /// Its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _not_there = std::fs::remove_file(self.path.join(LOCK));
        if self.is_new {
            // Fails if the folder is not empty, as intended.
            let _in_use = std::fs::remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_simulation_keeps_its_folder_and_an_ended_one_leaves_it() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("new");
        let first = Folder::take(&folder).unwrap();
        let problem = Folder::take(&folder).unwrap_err().to_string();
        assert!(problem.contains(&format!("process {})", std::process::id())), "{problem}");
        drop(first);
        Folder::take(&folder).unwrap();
    }

    #[test]
    fn nothing_is_left_behind_but_what_others_put_there() {
        let parent = tempfile::tempdir().unwrap();
        let left = |folder: &Path| {
            std::fs::read_dir(folder)
                .map(|entries| entries.map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>())
        };
        let folder = parent.path().join("new");
        drop(Folder::take(&folder).unwrap());
        assert!(left(&folder).is_err(), "an empty folder that was made is gone");
        let taken = Folder::take(&folder).unwrap();
        std::fs::write(folder.join("ca.pem"), "x").unwrap();
        drop(taken);
        assert_eq!(left(&folder).unwrap(), ["ca.pem"]);
        let mine = parent.path().join("mine");
        std::fs::create_dir(&mine).unwrap();
        drop(Folder::take(&mine).unwrap());
        assert!(left(&mine).unwrap().is_empty(), "a folder that was there stays");
    }
}
