//! TLS to the Kubernetes API: trusted authorities and client certificates.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use arm::RenewedAuthorities;
use kube::Config;
use kube::config::AuthInfo;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use secrecy::ExposeSecret as _;

use crate::kubeconfig::data_or_file;

/// A certificate and its key.
pub(super) type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// TLS as configured, version 1.2 or later, with this client certificate or the configured one.
///
/// # Errors
/// Authorities, certificate or key cannot be used.
pub(super) fn config_of(config: &Config, certificate: Option<Identity>) -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = if config.accept_invalid_certs {
        Arc::new(AnyServer(Arc::clone(&provider)))
    } else if let Some(path) = &config.root_cert_file {
        Arc::new(of_file(path.clone(), Arc::clone(&provider))?)
    } else {
        let roots = roots(authorities(config)?).map_err(anyhow::Error::msg)?;
        let builder = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        builder.build().map_err(|error| anyhow!("the certificate authority cannot be used: {error}"))?
    };
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .context("TLS cannot be set up")?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let identity = match certificate {
        Some(identity) => Some(identity),
        None => identity_of(&config.auth_info)?,
    };
    Ok(match identity {
        Some((certificates, key)) => builder
            .with_client_auth_cert(certificates, key)
            .map_err(|error| anyhow!("client-certificate and client-key cannot be used: {error}"))?,
        None => builder.with_no_client_auth(),
    })
}

/// The configured authorities, or else the system's.
fn authorities(config: &Config) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    match &config.root_cert {
        Some(named) => Ok(named.iter().map(|one| CertificateDer::from(one.clone())).collect()),
        None => Ok(rustls_native_certs::load_native_certs().certs),
    }
}

fn roots(authorities: Vec<CertificateDer<'static>>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(authorities);
    if roots.is_empty() {
        return Err(
            "there is no certificate authority to judge the API server by: name one in the kubeconfig"
                .to_owned(),
        );
    }
    Ok(roots)
}

/// The authorities in a file that the cluster renews.
fn of_file(path: PathBuf, provider: Arc<CryptoProvider>) -> anyhow::Result<RenewedAuthorities> {
    let file = path.clone();
    let load = move || {
        let failed = |what: String| format!("certificate authority {}: {what}", file.display());
        let pem = std::fs::read(&file).map_err(|error| failed(format!("cannot be read: {error}")))?;
        let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
        let certificates = certificates.map_err(|error| failed(format!("is not PEM: {error}")))?;
        roots(certificates).map_err(failed)
    };
    Ok(RenewedAuthorities::new(vec![path], provider, Box::new(load))?)
}

/// The certificate and key of a user of a kubeconfig.
fn identity_of(user: &AuthInfo) -> anyhow::Result<Option<Identity>> {
    let key = user.client_key_data.as_ref().map(|data| data.expose_secret());
    let certificate = data_or_file(
        "client-certificate",
        user.client_certificate_data.as_deref(),
        user.client_certificate.as_deref(),
    )?;
    let key = data_or_file("client-key", key, user.client_key.as_deref())?;
    match (certificate, key) {
        (Some(certificate), Some(key)) => Ok(Some(identity(&certificate, &key)?)),
        (None, None) => Ok(None),
        (Some(_), None) => bail!("the user has a client-certificate and no client-key"),
        (None, Some(_)) => bail!("the user has a client-key and no client-certificate"),
    }
}

/// A certificate with its chain, and its key, both in PEM.
///
/// # Errors
/// One of them is missing or unreadable; the text contains nothing of the key.
pub(super) fn identity(certificates: &[u8], key: &[u8]) -> anyhow::Result<Identity> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates).collect();
    let certificates = certificates.map_err(|error| anyhow!("the client certificate is not PEM: {error}"))?;
    if certificates.is_empty() {
        bail!("client-certificate holds no certificate");
    }
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| anyhow!("client-key holds no key in PEM"))?;
    Ok((certificates, key))
}

/// Accepts any certificate, as `insecure-skip-tls-verify` demands.
struct AnyServer(Arc<CryptoProvider>);

impl fmt::Debug for AnyServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyServer")
    }
}

impl ServerCertVerifier for AnyServer {
    fn verify_server_cert(
        &self,
        _certificate: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use certificate_authority::CertificateAuthority;

    use super::*;

    /// The cluster changes the file while the pod runs; a half-written or missing file changes nothing.
    #[test]
    fn node_285_authorities_are_read_again_when_their_file_changes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ca.crt");
        let all = [CertificateAuthority::generate().unwrap(), CertificateAuthority::generate().unwrap()];
        // As kubelets replace a file.
        let write = |text: &str| {
            let next = folder.path().join("next");
            std::fs::write(&next, text).unwrap();
            std::fs::rename(next, &path).unwrap();
        };
        write(all[0].certificate_pem());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let file = of_file(path.clone(), provider).unwrap();
        let trusts = |authority: &CertificateAuthority| {
            let pem = authority.issue(&["kube.example"]).unwrap().certificate_pem;
            let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
            let name = ServerName::try_from("kube.example").unwrap();
            file.verify_server_cert(&certificate, &[], &name, &[], UnixTime::now()).is_ok()
        };
        assert_eq!(all.each_ref().map(trusts), [true, false]);
        write(all[1].certificate_pem());
        assert_eq!(all.each_ref().map(trusts), [false, true]);
        for text in ["-----BEGIN CERTIFICATE-----\nhalf", ""] {
            write(text);
            assert_eq!(all.each_ref().map(trusts), [false, true], "{text}");
        }
    }
}
