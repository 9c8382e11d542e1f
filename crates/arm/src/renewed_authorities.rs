//! Certificate authorities in files that another program renews: each new connection is verified by the files as they are.

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};

use crate::Error;
use crate::file_stamp::FileStamp;

/// Reads the authorities.
type Load = Box<dyn Fn() -> Result<RootCertStore, String> + Send + Sync>;

/// Verifies servers by authorities that are read again whenever one of their files has changed. Connections that exist
/// stay.
pub struct RenewedAuthorities {
    load: Load,
    files: Vec<PathBuf>,
    provider: Arc<CryptoProvider>,
    /// The files as they were last read, and what was read when they could be.
    latest: Mutex<(Vec<FileStamp>, Arc<WebPkiServerVerifier>)>,
}

impl RenewedAuthorities {
    /// The authorities that `load` reads from `files`. An error of `load` is a text.
    ///
    /// # Errors
    /// That of `load`, or there is no authority.
    pub fn new(files: Vec<PathBuf>, provider: Arc<CryptoProvider>, load: Load) -> Result<Self, Error> {
        let stamps = files.iter().map(|file| FileStamp::of(file)).collect();
        let first = load().and_then(|roots| verifier(roots, &provider));
        let latest = Mutex::new((stamps, first.map_err(|reason| Error::Configuration { reason })?));
        Ok(Self { load, files, provider, latest })
    }

    fn current(&self) -> Arc<WebPkiServerVerifier> {
        let stamps: Vec<FileStamp> = self.files.iter().map(|file| FileStamp::of(file)).collect();
        let mut latest = self.latest.lock();
        if latest.0 != stamps {
            // Reported once for each change.
            latest.0 = stamps;
            match (self.load)().and_then(|roots| verifier(roots, &self.provider)) {
                Ok(verifier) => {
                    tracing::info!("Read the changed certificate authorities");
                    latest.1 = verifier;
                }
                Err(error) => tracing::warn!(
                    error,
                    "The certificate authorities have changed and cannot be used; the previous ones stay in use"
                ),
            }
        }
        Arc::clone(&latest.1)
    }
}

fn verifier(
    roots: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, String> {
    let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
    builder.build().map_err(|error| format!("the certificate authorities cannot be used: {error}"))
}

impl std::fmt::Debug for RenewedAuthorities {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RenewedAuthorities").field("files", &self.files).finish_non_exhaustive()
    }
}

impl ServerCertVerifier for RenewedAuthorities {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.current().verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.current().verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.current().verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use certificate_authority::CertificateAuthority;
    use rustls_pki_types::pem::PemObject as _;

    use super::*;

    /// NODE-290.
    #[test]
    fn node_290_a_changed_bundle_counts_for_the_next_connection() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bundle.pem");
        let all = [CertificateAuthority::generate().unwrap(), CertificateAuthority::generate().unwrap()];
        let write = |text: &str| {
            let next = folder.path().join("next");
            std::fs::write(&next, text).unwrap();
            std::fs::rename(next, &path).unwrap();
        };
        write(all[0].certificate_pem());
        let file = path.clone();
        let load = move || {
            let mut roots = RootCertStore::empty();
            let pem = std::fs::read(&file).unwrap_or_default();
            roots.add_parsable_certificates(CertificateDer::pem_slice_iter(&pem).flatten());
            Ok(roots)
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let authorities = RenewedAuthorities::new(vec![path.clone()], provider, Box::new(load)).unwrap();
        let trusts = |authority: &CertificateAuthority| {
            let pem = authority.issue(&["azure.example"]).unwrap().certificate_pem;
            let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            let name = ServerName::try_from("azure.example").unwrap();
            authorities.verify_server_cert(&certificate, &[], &name, &[], UnixTime::now()).is_ok()
        };
        assert_eq!(all.each_ref().map(trusts), [true, false]);
        write(&format!("{}\n{}", all[0].certificate_pem(), all[1].certificate_pem()));
        assert_eq!(all.each_ref().map(trusts), [true, true]);
        write(all[1].certificate_pem());
        assert_eq!(all.each_ref().map(trusts), [false, true]);
        for text in ["-----BEGIN CERTIFICATE-----\nhalf", ""] {
            write(text);
            assert_eq!(all.each_ref().map(trusts), [false, true], "{text}");
        }
        std::fs::remove_file(&path).unwrap();
        assert_eq!(all.each_ref().map(trusts), [false, true], "no file");
    }
}
