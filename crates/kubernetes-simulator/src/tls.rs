//! The server's own certificate authority and certificates.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls_pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Why certificates could not be made or kept.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A key or certificate could not be made.
    #[error("making a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// A key or certificate was not accepted by the TLS library.
    #[error("using a certificate: {0}")]
    Use(#[from] rustls::Error),
    /// A kept file could not be read.
    #[error("reading {path}: {source}; remove the folder to get a new certificate authority")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file could not be written.
    #[error("writing {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// A certificate authority: signs the server's certificates; clients trust its certificate.
pub struct Authority {
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

const CERTIFICATE_FILE: &str = "ca.crt";
const KEY_FILE: &str = "ca.key";

impl Authority {
    /// A new authority that nobody else has.
    ///
    /// # Errors
    /// When the key or certificate cannot be made.
    pub fn generate() -> Result<Self, TlsError> {
        Self::from_key(KeyPair::generate()?, None)
    }

    /// The authority kept in a folder as `ca.crt` and `ca.key`; made and kept there when it is not yet.
    ///
    /// # Errors
    /// When the files cannot be read, understood or written.
    pub fn in_dir(dir: &Path) -> Result<Self, TlsError> {
        let (certificate, key) = (dir.join(CERTIFICATE_FILE), dir.join(KEY_FILE));
        if key.exists() && certificate.exists() {
            let read = |path: &Path| {
                std::fs::read_to_string(path)
                    .map_err(|source| TlsError::Read { path: path.to_owned(), source })
            };
            return Self::from_key(KeyPair::from_pem(&read(&key)?)?, Some(read(&certificate)?));
        }
        let pair = KeyPair::generate()?;
        let key_pem = pair.serialize_pem();
        let authority = Self::from_key(pair, None)?;
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| TlsError::Write { path, source }
        };
        std::fs::create_dir_all(dir).map_err(failed(dir))?;
        write_private(&key, &key_pem).map_err(failed(&key))?;
        std::fs::write(&certificate, &authority.certificate_pem).map_err(failed(&certificate))?;
        Ok(authority)
    }

    fn from_key(key: KeyPair, certificate_pem: Option<String>) -> Result<Self, TlsError> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "cerulean simulated Kubernetes");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate_pem = match certificate_pem {
            Some(pem) => pem,
            None => params.self_signed(&key)?.pem(),
        };
        Ok(Self { certificate_pem, issuer: Issuer::new(params, key) })
    }

    /// The authority's certificate, in PEM: what clients trust.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// A server configuration with a new certificate for this address, the names of every API server and
    /// `further` ones, offering HTTP/2 and HTTP/1.1.
    pub(crate) fn server_config(
        &self,
        address: IpAddr,
        further: &[String],
    ) -> Result<ServerConfig, TlsError> {
        let mut names: Vec<String> =
            ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "127.0.0.1", "::1"]
                .map(str::to_owned)
                .to_vec();
        let bound = address.to_string();
        if !address.is_unspecified() && !names.contains(&bound) {
            names.push(bound);
        }
        names.extend_from_slice(further);
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], private)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(config)
    }
}

#[cfg(unix)]
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;
    let mut file =
        std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(not(unix))]
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    std::fs::write(path, text)
}
