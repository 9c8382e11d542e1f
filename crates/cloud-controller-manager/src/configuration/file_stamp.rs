//! Changes of files that another program renews, without reading them.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use cloud_config::CloudConfig;

use crate::environment::ProcessEnvironment;

/// The system's bundle of certificate authorities, where `SSL_CERT_FILE` names no other one. The first that exists is
/// used.
const BUNDLES: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// The length of a file and the time of its last change, links followed; `None` while it cannot be read.
type FileStamp = Option<(u64, SystemTime)>;

fn stamp(path: &Path) -> FileStamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.len(), metadata.modified().ok()?))
}

/// The stamps of the files that the connection to Azure is made of: the client certificate and the certificate
/// authorities. The token of a workload identity is not among them, because it is read for each exchange.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileStamps(Vec<(PathBuf, FileStamp)>);

impl FileStamps {
    pub(super) fn of(config: &CloudConfig, environment: &ProcessEnvironment) -> Self {
        let mut paths: Vec<PathBuf> = Vec::new();
        if !config.aad_client_cert_path.is_empty() {
            paths.push(config.aad_client_cert_path.clone().into());
        }
        let (file, folders) = (environment.variable("SSL_CERT_FILE"), environment.variable("SSL_CERT_DIR"));
        match (&file, &folders) {
            (None, None) => paths.extend(BUNDLES.map(PathBuf::from).into_iter().find(|path| path.exists())),
            _ => {
                paths.extend(file.map(PathBuf::from));
                paths.extend(folders.iter().flat_map(std::env::split_paths));
            }
        }
        Self(paths.into_iter().map(|path| (path.clone(), stamp(&path))).collect())
    }
}
