//! The file of `--state`: the state at the start, and where it is saved at the end.

use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use serde::Serialize;
use serde_json::Value;

/// A file for the state.
#[derive(Debug)]
pub struct StateFile(PathBuf);

impl StateFile {
    /// The file at this path, which need not exist.
    ///
    /// # Errors
    /// The state could not be saved there. This is checked at the start, because at the end it is too late.
    pub fn at(path: &Path) -> anyhow::Result<Self> {
        if path.is_dir() {
            bail!("--state {}: this is a folder; name a file in it", path.display());
        }
        let this = Self(path.to_owned());
        let beside = this.beside();
        std::fs::write(&beside, "").and_then(|()| std::fs::remove_file(&beside)).with_context(|| {
            format!("--state {}: the state could not be saved there at the end", path.display())
        })?;
        Ok(this)
    }

    /// Its contents; `None` if it does not exist.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn read(&self) -> anyhow::Result<Option<Value>> {
        let text = match std::fs::read_to_string(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("--state {}", self.0.display())),
        };
        serde_json::from_str(&text).map(Some).with_context(|| self.remedy())
    }

    /// What to do about a file with other contents.
    pub fn remedy(&self) -> String {
        format!(
            "--state {} holds no state that can be restored here; name another file, or move this one away",
            self.0.display()
        )
    }

    /// Writes a temporary file first, so that a crash leaves the old state intact.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(&self, state: &impl Serialize) -> anyhow::Result<()> {
        let text = serde_json::to_string(state)?;
        let beside = self.beside();
        let mut options = std::fs::OpenOptions::new();
        // It may contain secrets: only its owner may read it.
        options.write(true).create(true).truncate(true).mode(0o600);
        let written = options.open(&beside).and_then(|mut file| file.write_all(text.as_bytes()));
        written
            .and_then(|()| std::fs::rename(&beside, &self.0))
            .with_context(|| format!("--state {}", self.0.display()))
    }

    /// The path of the temporary file, which then replaces the old one.
    fn beside(&self) -> PathBuf {
        let mut beside = self.0.as_os_str().to_owned();
        beside.push(".new");
        beside.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_that_could_not_be_saved_is_refused_at_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let file = StateFile::at(&folder.path().join("state.json")).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
        assert!(file.read().unwrap().is_none());
        file.write(&1).unwrap();
        assert_eq!(file.read().unwrap(), Some(Value::from(1)));
        let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&file.0).unwrap());
        assert_eq!(mode & 0o077, 0, "it is for its owner alone");
        let problem = format!("{:#}", StateFile::at(&folder.path().join("absent/state.json")).unwrap_err());
        assert!(problem.contains("absent/state.json: the state could not be saved"), "{problem}");
        assert!(StateFile::at(folder.path()).unwrap_err().to_string().contains("is a folder"));
    }
}
