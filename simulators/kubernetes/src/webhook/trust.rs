//! Certificate validation as in Go: a bundle may also contain the server's own certificate, even if it is an
//! authority's.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_name;
use rustls::crypto::CryptoProvider;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

/// Verifies chains, and accepts certificates in the bundle directly.
#[derive(Debug)]
pub(super) struct Bundle {
    chains: Arc<WebPkiServerVerifier>,
    certificates: Vec<CertificateDer<'static>>,
}

impl Bundle {
    /// Trusts these certificates and those that they signed. `None` if one of them is invalid, or if there is none.
    pub(super) fn new(
        certificates: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Option<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots.add(certificate.clone()).ok()?;
        }
        let chains = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        Some(Self { chains: chains.build().ok()?, certificates })
    }
}

/// Whether the only error of a server's certificate is that it is an authority's. Its dates are valid then: webpki
/// checks them first.
fn is_an_authority(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::Other(why)) => why.to_string() == "CaUsedAsEndEntity",
        _ => false,
    }
}

impl ServerCertVerifier for Bundle {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let chain =
            self.chains.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match chain {
            Err(error) if is_an_authority(&error) => {
                if !self.certificates.iter().any(|one| one == end_entity) {
                    return Err(CertificateError::UnknownIssuer.into());
                }
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            judged => judged,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}
