//! Checks of the variables that name certificate authorities (`SSL_CERT_FILE`, `SSL_CERT_DIR`). One without readable
//! certificates is not an error by itself, because the other one may have some; but an error about an unknown authority
//! should mention it.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// The variables that name a file, and folders.
pub(crate) const FILE: &str = "SSL_CERT_FILE";
const FOLDERS: &str = "SSL_CERT_DIR";

/// A variable that provides no authority.
#[derive(Debug)]
pub(crate) enum Problem {
    /// It is set and empty, which differs from unset.
    Empty { variable: &'static str },
    /// Its file or folder cannot be read.
    Unreadable { variable: &'static str, path: PathBuf, error: std::io::Error },
    /// The file has no certificates.
    WithoutCertificates { variable: &'static str, path: PathBuf },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { variable } => write!(f, "{variable} is empty: unset it, or name a PEM bundle"),
            Self::Unreadable { variable, path, error } => {
                write!(f, "{variable}={} cannot be read: {error}; correct or unset it", path.display())
            }
            Self::WithoutCertificates { variable, path } => {
                write!(f, "{variable}={} holds no PEM certificate; correct or unset it", path.display())
            }
        }
    }
}

/// The problems of the variables, which are read from the environment by name.
pub(crate) fn problems(variable: impl Fn(&str) -> Option<OsString>) -> Vec<Problem> {
    let mut problems = Vec::new();
    if let Some(file) = variable(FILE) {
        problems.extend(judge_file(Path::new(&file)));
    }
    for folder in variable(FOLDERS).iter().flat_map(std::env::split_paths) {
        if folder.as_os_str().is_empty() {
            continue;
        }
        if let Err(error) = std::fs::read_dir(&folder) {
            problems.push(Problem::Unreadable { variable: FOLDERS, path: folder, error });
        }
    }
    problems
}

fn judge_file(path: &Path) -> Option<Problem> {
    if path.as_os_str().is_empty() {
        return Some(Problem::Empty { variable: FILE });
    }
    match std::fs::read(path) {
        Err(error) => Some(Problem::Unreadable { variable: FILE, path: path.to_owned(), error }),
        Ok(pem) => {
            let has_any = CertificateDer::pem_slice_iter(&pem).any(|certificate| certificate.is_ok());
            (!has_any).then(|| Problem::WithoutCertificates { variable: FILE, path: path.to_owned() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_leads_to_no_authority_is_named_with_its_path() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let other = folder.join("Cargo.toml");
        let said = |file: Option<&Path>, folders: Option<&Path>| {
            let variable = |name: &str| {
                let path = if name == FILE { file } else { folders };
                path.map(|path| path.as_os_str().to_owned())
            };
            problems(variable).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let absent = folder.join("absent");
        let [file, folders] = &said(Some(&absent), Some(&absent))[..] else { panic!() };
        assert!(
            file.starts_with(&format!("SSL_CERT_FILE={} cannot be read: No such", absent.display())),
            "{file}"
        );
        assert!(
            folders.starts_with(&format!("SSL_CERT_DIR={} cannot be read", absent.display())),
            "{folders}"
        );
        assert!(said(Some(&other), Some(folder))[0].contains("holds no PEM certificate"));
        assert_eq!(
            said(Some(Path::new("")), None),
            ["SSL_CERT_FILE is empty: unset it, or name a PEM bundle"]
        );
        assert_eq!(said(None, Some(folder)), Vec::<String>::new());
        assert_eq!(said(None, None), Vec::<String>::new());
    }
}
