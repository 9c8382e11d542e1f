//! Checks of the variables that name certificate authorities (`SSL_CERT_FILE`, `SSL_CERT_DIR`). One without readable
//! certificates is not an error by itself, because the other one may have some; but an error about an unknown authority
//! should mention it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

/// The variables that name a file, and folders.
pub(crate) const FILE: &str = "SSL_CERT_FILE";
const FOLDERS: &str = "SSL_CERT_DIR";

/// The system's bundles of authorities, by distribution. The first that exists is used where neither variable is set.
const BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The files and folders that the authorities come from.
pub(crate) fn files(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    match (variable(FILE), variable(FOLDERS)) {
        (None, None) => {
            BUNDLES.map(PathBuf::from).into_iter().find(|path| path.exists()).into_iter().collect()
        }
        (file, folders) => {
            let folders = folders.iter().flat_map(std::env::split_paths).collect::<Vec<_>>();
            file.map(PathBuf::from).into_iter().chain(folders).collect()
        }
    }
}

/// Why variables, which are read from the environment by name, provide no authority.
pub(crate) fn problems(variable: impl Fn(&str) -> Option<OsString>) -> Vec<String> {
    let unreadable = |variable: &str, path: &Path, error: std::io::Error| {
        format!("{variable}={} cannot be read: {error}; correct or unset it", path.display())
    };
    let mut problems = Vec::new();
    if let Some(file) = variable(FILE) {
        let path = Path::new(&file);
        match std::fs::read(path) {
            // It differs from unset.
            _ if file.is_empty() => problems.push(format!("{FILE} is empty: unset it, or name a PEM bundle")),
            Err(error) => problems.push(unreadable(FILE, path, error)),
            Ok(pem) if CertificateDer::pem_slice_iter(&pem).any(|certificate| certificate.is_ok()) => {}
            Ok(_) => problems
                .push(format!("{FILE}={} holds no PEM certificate; correct or unset it", path.display())),
        }
    }
    for folder in variable(FOLDERS).iter().flat_map(std::env::split_paths) {
        if !folder.as_os_str().is_empty()
            && let Err(error) = std::fs::read_dir(&folder)
        {
            problems.push(unreadable(FOLDERS, &folder, error));
        }
    }
    problems
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
