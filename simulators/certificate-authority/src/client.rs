//! Clients that authenticate by a certificate of the authority.

use rustls_pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// The identity in a client's certificate, as Kubernetes reads it. A server puts it into the extensions of each request
/// on a connection for which the certificate was verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The user: the subject's common name.
    pub user: String,
    /// The user's groups: the subject's organizations.
    pub groups: Vec<String>,
}

impl ClientCertificate {
    /// Reads the subject of a verified certificate. `None` if it has no common name.
    pub fn read(certificate: &CertificateDer<'_>) -> Option<Self> {
        let (_, parsed) = X509Certificate::from_der(certificate).ok()?;
        let subject = parsed.subject();
        let user = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
        let groups =
            subject.iter_organization().filter_map(|name| name.as_str().ok()).map(str::to_owned).collect();
        Some(Self { user, groups })
    }
}
