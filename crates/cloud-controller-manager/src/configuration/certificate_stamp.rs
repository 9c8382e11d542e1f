//! Changes of the client certificate's file, which another program renews.

use std::path::Path;
use std::time::SystemTime;

use cloud_config::CloudConfig;

/// The length and the time of the last change of `aadClientCertPath`, links followed; `None` without the key, and while
/// the file cannot be read. Certificate authorities and the token of a workload identity need no such stamp: they are
/// read where they are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CertificateStamp(Option<(u64, SystemTime)>);

impl CertificateStamp {
    pub(super) fn of(config: &CloudConfig) -> Self {
        let path = Path::new(&config.aad_client_cert_path);
        let metadata = std::fs::metadata(path).ok();
        Self(metadata.and_then(|metadata| Some((metadata.len(), metadata.modified().ok()?))))
    }
}
