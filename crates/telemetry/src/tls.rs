//! TLS of the listeners.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::crypto::{CryptoProvider, ring};
use rustls::server::ResolvesServerCert;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{CipherSuite, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};
use rustls_pki_types::PrivateKeyDer;

use crate::certificate_files::CertificateFiles;
use crate::serve_error::ServeError;

/// The source of the certificate.
#[derive(Debug, Clone)]
pub enum Certificate {
    /// Generated at start and kept in memory, for `localhost`.
    SelfSigned,
    /// PEM files, read again when they change.
    Files {
        /// The certificate and its chain.
        certificate: PathBuf,
        /// The private key.
        key: PathBuf,
    },
}

/// The TLS settings of a port.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    /// Where the certificate comes from.
    pub certificate: Certificate,
    /// Whether TLS 1.2 is refused.
    pub only_tls13: bool,
    /// Whether HTTP/2 is offered.
    pub http2: bool,
    /// The cipher suites of TLS 1.2.
    pub suites: Suites,
}

impl Default for TlsOptions {
    fn default() -> Self {
        Self {
            certificate: Certificate::SelfSigned,
            only_tls13: false,
            http2: true,
            suites: Suites::default(),
        }
    }
}

/// Cipher suites of TLS 1.2. Those of TLS 1.3 are always offered; Go programs cannot choose among them either.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Suites {
    /// The chosen suites; `None` for all secure ones.
    chosen: Option<Vec<CipherSuite>>,
    /// Requested suites without forward secrecy or authenticated encryption, which are never offered.
    pub left_out: Vec<String>,
}

/// Suites that Go programs know by name (`crypto/tls`) and this server does not offer.
const WEAK: [&str; 16] = [
    "TLS_RSA_WITH_RC4_128_SHA",
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA",
    "TLS_RSA_WITH_AES_256_CBC_SHA",
    "TLS_RSA_WITH_AES_128_CBC_SHA256",
    "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256",
    "TLS_ECDHE_RSA_WITH_RC4_128_SHA",
    "TLS_ECDHE_RSA_WITH_3DES_EDE_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA256",
];

impl Suites {
    /// Selects suites by the names in `--tls-cipher-suites`; an empty list selects all secure ones.
    ///
    /// # Errors
    /// The first unknown name.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, String> {
        let mut this = Self::default();
        for name in names {
            if WEAK.contains(&name) {
                this.left_out.push(name.to_owned());
                this.chosen.get_or_insert_default();
                continue;
            }
            // A deprecated Go name.
            let name = match name {
                "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
                "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305" => "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
                name => name,
            };
            let suite = ring::DEFAULT_CIPHER_SUITES.iter().map(SupportedCipherSuite::suite);
            let suite = suite.into_iter().find(|suite| go_name(*suite) == name);
            this.chosen.get_or_insert_default().push(suite.ok_or_else(|| name.to_owned())?);
        }
        Ok(this)
    }

    /// The names of all secure suites.
    pub fn names() -> Vec<String> {
        ring::DEFAULT_CIPHER_SUITES.iter().map(|suite| go_name(suite.suite())).collect()
    }

    fn provider(&self) -> CryptoProvider {
        let mut provider = ring::default_provider();
        if let Some(chosen) = &self.chosen {
            provider.cipher_suites.retain(|suite| suite.tls13().is_some() || chosen.contains(&suite.suite()));
        }
        provider
    }
}

fn go_name(suite: CipherSuite) -> String {
    suite.as_str().unwrap_or_default().replace("TLS13_", "TLS_")
}

/// The configuration of a listener, and its certificate files, which the caller has to watch.
pub(crate) fn server_config(
    tls: &TlsOptions,
) -> Result<(ServerConfig, Option<Arc<CertificateFiles>>), ServeError> {
    let broken = |error: rustls::Error| ServeError::Tls(error.to_string());
    let (resolver, files): (Arc<dyn ResolvesServerCert>, _) = match &tls.certificate {
        Certificate::SelfSigned => (Arc::new(SingleCertAndKey::from(self_signed()?)), None),
        Certificate::Files { certificate, key } => {
            let files = Arc::new(CertificateFiles::read(certificate.clone(), key.clone())?);
            (files.clone(), Some(files))
        }
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(tls.suites.provider()))
        .with_protocol_versions(versions(tls))
        .map_err(broken)?
        .with_no_client_auth()
        .with_cert_resolver(resolver);
    if tls.http2 {
        config.alpn_protocols.push(b"h2".to_vec());
    }
    config.alpn_protocols.push(b"http/1.1".to_vec());
    Ok((config, files))
}

fn versions(tls: &TlsOptions) -> &'static [&'static SupportedProtocolVersion] {
    static ONLY_TLS13: [&SupportedProtocolVersion; 1] = [&rustls::version::TLS13];
    let none_for_tls12 = tls.suites.provider().cipher_suites.iter().all(|suite| suite.tls13().is_some());
    if tls.only_tls13 || none_for_tls12 { &ONLY_TLS13 } else { rustls::DEFAULT_VERSIONS }
}

fn self_signed() -> Result<CertifiedKey, ServeError> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let generated =
        rcgen::generate_simple_self_signed(names).map_err(|error| ServeError::Tls(error.to_string()))?;
    let key = PrivateKeyDer::try_from(generated.signing_key.serialize_der())
        .map_err(|error| ServeError::Tls(error.to_owned()))?;
    CertifiedKey::from_der(vec![generated.cert.der().clone()], key, &ring::default_provider())
        .map_err(|error| ServeError::Tls(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_as_old_and_http_as_new_as_asked_for() {
        let protocols = |http2| {
            let (config, _) = server_config(&TlsOptions { http2, ..TlsOptions::default() }).unwrap();
            config.alpn_protocols
        };
        assert_eq!(protocols(true), [&b"h2"[..], &b"http/1.1"[..]]);
        assert_eq!(protocols(false), [&b"http/1.1"[..]]);
        let only = TlsOptions { only_tls13: true, ..TlsOptions::default() };
        assert_eq!(versions(&only), [&rustls::version::TLS13]);
        assert_eq!(versions(&TlsOptions::default()), [&rustls::version::TLS13, &rustls::version::TLS12]);
    }

    #[test]
    fn chosen_suites_are_offered_and_weak_ones_never() {
        let offered = |names: &[&str]| {
            let suites = Suites::named(names.iter().copied()).unwrap();
            let tls = TlsOptions { suites, ..TlsOptions::default() };
            let suites = tls.suites.provider().cipher_suites;
            let of_tls12 = suites.iter().filter(|suite| suite.tls13().is_none());
            let of_tls12: Vec<String> = of_tls12.map(|suite| go_name(suite.suite())).collect();
            (of_tls12, versions(&tls).len(), tls.suites.left_out)
        };
        assert_eq!(offered(&[]).0.len(), 6);
        let one = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
        assert_eq!(
            offered(&[one, "TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_CBC_SHA"]),
            (vec![one.to_owned()], 2, vec!["TLS_RSA_WITH_AES_128_CBC_SHA".to_owned()])
        );
        // TLS 1.2 is not offered if no suite is left for it.
        assert_eq!(offered(&["TLS_RSA_WITH_AES_128_CBC_SHA"]).1, 1);
        assert_eq!(offered(&["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305"]).0.len(), 1);
        assert_eq!(Suites::named(["TLS_A"]), Err("TLS_A".to_owned()));
    }
}
