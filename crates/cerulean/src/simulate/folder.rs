//! The folder of a running simulation.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// A folder that one simulation has for itself as long as this lives. The system takes the lock from a process
/// that ends, however it ends, so what a dead one left behind can be taken over.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    _lock: File,
}

impl Folder {
    /// Makes the folder where it is missing, and takes it.
    ///
    /// # Errors
    /// Another simulation runs in it, or it cannot be written to.
    pub fn take(path: &Path) -> anyhow::Result<Self> {
        let path = std::path::absolute(path)?;
        let failed = || format!("--directory {}", path.display());
        std::fs::create_dir_all(&path).with_context(failed)?;
        let name = path.join("lock");
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
        lock.set_len(0).and_then(|()| writeln!(lock, "{}", std::process::id())).with_context(failed)?;
        Ok(Self { path, _lock: lock })
    }

    /// Where it is, from the root on.
    pub fn path(&self) -> &Path {
        &self.path
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
}
