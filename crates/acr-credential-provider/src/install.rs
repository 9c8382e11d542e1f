//! `--install-to`: puts the program and its configuration into a folder of the node. Its image has no shell that could
//! copy them.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::command_line::Installation;

/// A file that could not be installed.
#[derive(Debug, thiserror::Error)]
#[error("--install-to: {} cannot be put into {}: {source}", .file.display(), .folder.display())]
pub struct InstallError {
    file: PathBuf,
    folder: PathBuf,
    source: io::Error,
}

/// The name of the program in the folder: that of the provider in the kubelet's configuration.
const PROGRAM: &str = "acr-credential-provider";

/// Copies this program, and the files, and returns a line for each. Each appears as a whole: the kubelet may start the
/// program at any time.
///
/// # Errors
/// A file cannot be read, or the folder not be written.
pub fn install(installation: &Installation, this_program: &Path) -> Result<String, InstallError> {
    let folder = &installation.folder;
    let mut text = String::new();
    let files = installation.files.iter().map(|file| (file.as_path(), file.file_name(), 0o644));
    for (file, name, mode) in std::iter::once((this_program, Some(OsStr::new(PROGRAM)), 0o755)).chain(files) {
        let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory));
        let done = name.and_then(|name| put(file, &folder.join(name), mode));
        let line =
            done.map_err(|source| InstallError { file: file.to_owned(), folder: folder.clone(), source })?;
        text += &line;
    }
    Ok(text)
}

fn put(file: &Path, target: &Path, mode: u32) -> io::Result<String> {
    let contents = fs::read(file)?;
    if fs::read(target).is_ok_and(|present| present == contents) {
        fs::set_permissions(target, Permissions::from_mode(mode))?;
        return Ok(format!("{} is there\n", target.display()));
    }
    let mut new = target.as_os_str().to_owned();
    new.push(".new");
    fs::write(&new, contents)?;
    fs::set_permissions(&new, Permissions::from_mode(mode))?;
    fs::rename(&new, target)?;
    Ok(format!("installed {}\n", target.display()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn a_folder_gets_the_program_and_the_files_and_again_nothing() {
        let place = tempfile::tempdir().unwrap();
        let (program, config) = (place.path().join("program"), place.path().join("config.yaml"));
        fs::write(&program, "first").unwrap();
        fs::write(&config, "kind: CredentialProviderConfig").unwrap();
        let folder = place.path().join("node");
        let installation = Installation { folder: folder.clone(), files: vec![config] };
        let missing = install(&installation, &program).unwrap_err().to_string();
        assert!(missing.contains("program cannot be put into") && missing.contains("node"), "{missing}");

        fs::create_dir(&folder).unwrap();
        let text = install(&installation, &program).unwrap();
        assert_eq!(text.matches("installed").count(), 2, "{text}");
        let mode = |name: &str| fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(PROGRAM), mode("config.yaml")), (0o755, 0o644));
        let text = install(&installation, &program).unwrap();
        assert_eq!(text.matches("is there").count(), 2, "{text}");

        fs::write(&program, "second").unwrap();
        install(&installation, &program).unwrap();
        assert_eq!(fs::read(folder.join(PROGRAM)).unwrap(), b"second");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
    }
}
