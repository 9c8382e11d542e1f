//! The simulators' certificate authority, authorities of clusters, and TLS for their listeners.
//!
//! Real clients insist on HTTPS towards Entra, Resource Manager and Kubernetes, so the simulators bring an authority
//! that clients trust through `SSL_CERT_FILE` or a kubeconfig. It may be stored in a directory, so that clients still
//! trust it after a restart.

mod client;
mod private_key;

use std::fmt;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PublicKeyData as _, date_time_ymd,
};
use rustls::crypto::CryptoProvider;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};

pub use client::ClientCertificate;

/// File in the authority's directory with the certificate that clients trust.
pub const CERTIFICATE_FILE: &str = "ca.crt";
/// File in the authority's directory that holds its private key, readable by the owner alone.
pub const KEY_FILE: &str = "ca.key";

/// Failures with certificates.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A key could not be made or a certificate not be signed.
    #[error("cannot make a certificate for {subject}")]
    MakeCertificate {
        /// The names of the certificate.
        subject: String,
        /// What the certificate library says.
        source: rcgen::Error,
    },
    /// A file of the authority could not be read.
    #[error("cannot read the certificate authority's file {path}")]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file of the authority could not be written.
    #[error("cannot write the certificate authority's file {path}")]
    WriteFile {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The files in the directory are no authority: damaged, or from two different ones.
    #[error("{path} does not hold a usable certificate authority: {reason}; remove it to get a new one")]
    UnusableFiles {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        reason: Unusable,
    },
    /// A certificate and a key that were given are no authority that can sign.
    #[error("the certificate authority cannot be used: {0}")]
    UnusableAuthority(Unusable),
    /// The TLS library refused the certificate.
    #[error("cannot set up TLS for {subject}")]
    Configure {
        /// The names of the certificate.
        subject: String,
        /// What the TLS library says.
        source: rustls::Error,
    },
}

/// Whether clients must have a certificate.
#[derive(Debug, Clone, Copy)]
enum Asks {
    Optional,
    Required,
}

/// Why a certificate and a key cannot be used as an authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// There is a certificate alone.
    #[error("its key is missing")]
    NoKey,
    /// The key cannot be parsed or signed with.
    #[error(
        "its private key cannot be read: RSA of 2048 to 4096 bits and ECDSA with P-256 or P-384 can, as PKCS#8, PKCS#1 or SEC1"
    )]
    Key,
    /// The certificate cannot be parsed.
    #[error("its certificate cannot be parsed")]
    Certificate,
    /// The certificate has another public key.
    #[error("its certificate and its key do not belong together")]
    Mismatch,
}

/// A certificate authority that issues server certificates to the simulator's listeners.
///
/// Its private key cannot be printed.
pub struct CertificateAuthority {
    /// Its own certificate, and those above it where it has them.
    chain: Vec<CertificateDer<'static>>,
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A server certificate with its private key, as PEM texts.
pub struct IssuedCertificate {
    /// The certificate, without the authority's.
    pub certificate_pem: String,
    /// The private key, PKCS#8. A secret.
    pub key_pem: String,
}

impl CertificateAuthority {
    /// Makes a new authority with a fresh key.
    ///
    /// # Errors
    /// The key or the certificate cannot be made.
    pub fn generate() -> Result<Self, TlsError> {
        let made = |source| TlsError::MakeCertificate { subject: AUTHORITY_NAME.into(), source };
        let key = KeyPair::generate().map_err(made)?;
        let certificate = authority_params().self_signed(&key).map_err(made)?;
        Ok(Self {
            certificate_pem: certificate.pem(),
            chain: vec![certificate.into()],
            issuer: Issuer::new(authority_params(), key),
        })
    }

    /// Takes the authority stored in `directory`, or generates one and stores it there, so that clients that trust it
    /// still do after a restart. The directory is created when missing.
    pub fn load_or_generate(directory: &Path) -> Result<Self, TlsError> {
        let (certificate_path, key_path) = (directory.join(CERTIFICATE_FILE), directory.join(KEY_FILE));
        match (read_if_exists(&certificate_path)?, read_if_exists(&key_path)?) {
            (Some(certificate), Some(key)) => Self::from_pem(certificate, &key)
                .map_err(|reason| TlsError::UnusableFiles { path: directory.into(), reason }),
            (Some(_), None) => {
                Err(TlsError::UnusableFiles { path: directory.into(), reason: Unusable::NoKey })
            }
            // A key without a certificate is left by an interrupted first start: no client trusts it yet.
            (None, _) => {
                let authority = Self::generate()?;
                fs::create_dir_all(directory)
                    .map_err(|source| TlsError::WriteFile { path: directory.into(), source })?;
                write_file(&key_path, &authority.issuer.key().serialize_pem(), true)?;
                write_file(&certificate_path, &authority.certificate_pem, false)?;
                Ok(authority)
            }
        }
    }

    fn from_pem(certificate_pem: String, key_pem: &str) -> Result<Self, Unusable> {
        let key = private_key::read(key_pem).ok_or(Unusable::Key)?;
        let chain = CertificateDer::pem_slice_iter(certificate_pem.as_bytes());
        let chain: Vec<CertificateDer<'static>> =
            chain.collect::<Result<_, _>>().map_err(|_| Unusable::Certificate)?;
        let own = chain.first().ok_or(Unusable::Certificate)?;
        let public_key = key.der_bytes();
        if !own.windows(public_key.len()).any(|window| window == public_key) {
            return Err(Unusable::Mismatch);
        }
        let issuer = Issuer::from_ca_cert_der(own, key).map_err(|_| Unusable::Certificate)?;
        Ok(Self { chain, certificate_pem, issuer })
    }

    /// Takes any authority from its certificate and its private key: one that was generated here and stored elsewhere,
    /// one of kubeadm, or a user's. The certificates above it may follow its own.
    ///
    /// # Errors
    /// They cannot be read, or do not belong together.
    pub fn from_kept(certificate_pem: &str, key_pem: &str) -> Result<Self, TlsError> {
        Self::from_pem(certificate_pem.to_owned(), key_pem).map_err(TlsError::UnusableAuthority)
    }

    /// The authority's key as PEM, to be stored. It is a secret.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// The public half of the key as PEM.
    pub fn public_key_pem(&self) -> String {
        self.issuer.key().public_key_pem()
    }

    /// The public half of the key as certificates carry it (`SubjectPublicKeyInfo`, DER), of which kubeadm takes the
    /// hash.
    pub fn public_key_info(&self) -> Vec<u8> {
        self.issuer.key().subject_public_key_info()
    }

    /// The authority's certificate as PEM, followed by the given ones above it: the trust anchor of clients.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The authority's certificate as DER, and the given ones above it.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.chain
    }

    /// Issues a server certificate for DNS names and IP addresses.
    pub fn issue(&self, names: &[&str]) -> Result<IssuedCertificate, TlsError> {
        let (certificate, key) = self.issue_leaf(names, COMMON_NAME)?;
        Ok(IssuedCertificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }

    /// TLS for a listener that is reached under these DNS names and IP addresses, offering HTTP/2 and
    /// HTTP/1.1.
    pub fn server_config(&self, names: &[&str]) -> Result<Arc<ServerConfig>, TlsError> {
        self.server_config_for(names, COMMON_NAME, WebPkiClientVerifier::no_client_auth())
    }

    /// The same for a listener that also accepts clients' certificates of this authority, but does not require them. The common
    /// name of its own certificate is that of `program`.
    pub fn server_config_with_clients(
        &self,
        names: &[&str],
        program: &str,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        self.server_config_for(names, program, self.client_verifier(Asks::Optional)?)
    }

    /// The same for a listener that requires clients' certificates of this authority.
    pub fn server_config_for_clients(&self, names: &[&str]) -> Result<Arc<ServerConfig>, TlsError> {
        self.server_config_for(names, COMMON_NAME, self.client_verifier(Asks::Required)?)
    }

    fn server_config_for(
        &self,
        names: &[&str],
        common_name: &str,
        clients: Arc<dyn ClientCertVerifier>,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let refused = |source| TlsError::Configure { subject: names.join(", "), source };
        let (certificate, key) = self.issue_leaf(names, common_name)?;
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let mut chain = vec![certificate.into()];
        chain.extend(self.chain.iter().cloned());
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(refused)?
            .with_client_cert_verifier(clients)
            .with_single_cert(chain, key)
            .map_err(refused)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn client_verifier(&self, asks: Asks) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let refused = |why: &dyn fmt::Display| TlsError::Configure {
            subject: "its clients".into(),
            source: rustls::Error::General(why.to_string()),
        };
        let roots = Arc::new(self.roots().map_err(|error| refused(&error))?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
        let verifier = match asks {
            Asks::Optional => verifier.allow_unauthenticated(),
            Asks::Required => verifier,
        };
        let verifier: Arc<dyn ClientCertVerifier> = verifier.build().map_err(|error| refused(&error))?;
        Ok(verifier)
    }

    /// The identity of a client with these certificates, its own first, at this time.
    ///
    /// # Errors
    /// They are not of this authority, not for clients, or not valid at that time.
    pub fn client(
        &self,
        certificates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertificate, TlsError> {
        let refused = |source| TlsError::Configure { subject: "a client's certificate".into(), source };
        let missing = || refused(rustls::Error::NoCertificatesPresented);
        let (own, above) = certificates.split_first().ok_or_else(missing)?;
        self.client_verifier(Asks::Required)?.verify_client_cert(own, above, now).map_err(refused)?;
        ClientCertificate::read(own).ok_or_else(missing)
    }

    fn roots(&self) -> Result<RootCertStore, rustls::Error> {
        let mut roots = RootCertStore::empty();
        for certificate in &self.chain {
            roots.add(certificate.clone())?;
        }
        Ok(roots)
    }

    /// TLS for a client that trusts this authority and no other. ALPN is left to the client.
    pub fn client_config(&self) -> Result<ClientConfig, TlsError> {
        let refused = |source| TlsError::Configure { subject: AUTHORITY_NAME.into(), source };
        let roots = self.roots().map_err(refused)?;
        Ok(ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(refused)?
            .with_root_certificates(roots)
            .with_no_client_auth())
    }

    fn issue_leaf(
        &self,
        names: &[&str],
        common_name: &str,
    ) -> Result<(rcgen::Certificate, KeyPair), TlsError> {
        let names_owned: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut subject = DistinguishedName::new();
        subject.push(DnType::CommonName, common_name);
        self.sign(names_owned, subject, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Issues a client's certificate with its user and groups.
    pub fn issue_client(&self, client: &ClientCertificate) -> Result<IssuedCertificate, TlsError> {
        let mut subject = DistinguishedName::new();
        client.groups.iter().for_each(|group| subject.push(DnType::OrganizationName, group.as_str()));
        subject.push(DnType::CommonName, client.user.as_str());
        let (certificate, key) = self.sign(Vec::new(), subject, ExtendedKeyUsagePurpose::ClientAuth)?;
        Ok(IssuedCertificate { certificate_pem: certificate.pem(), key_pem: key.serialize_pem() })
    }

    fn sign(
        &self,
        names: Vec<String>,
        subject: DistinguishedName,
        purpose: ExtendedKeyUsagePurpose,
    ) -> Result<(rcgen::Certificate, KeyPair), TlsError> {
        let about = names.join(", ");
        let made = |source| TlsError::MakeCertificate { subject: about.clone(), source };
        let mut params = CertificateParams::new(names).map_err(made)?;
        params.distinguished_name = subject;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![purpose];
        params.not_before = date_time_ymd(VALID_FROM_YEAR, 1, 1);
        params.not_after = date_time_ymd(VALID_TO_YEAR, 1, 1);
        let key = KeyPair::generate().map_err(made)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(made)?;
        Ok((certificate, key))
    }
}

impl fmt::Debug for CertificateAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificateAuthority").finish_non_exhaustive()
    }
}

impl fmt::Debug for IssuedCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IssuedCertificate")
            .field("certificate_pem", &self.certificate_pem)
            .finish_non_exhaustive()
    }
}

/// What servers are called that have no name of their own.
const COMMON_NAME: &str = "Cerulean simulator";
const AUTHORITY_NAME: &str = "Cerulean simulator authority";
// Fixed dates keep certificates independent of the clock. Years from 2050 on need another encoding,
// which some clients do not read.
const VALID_FROM_YEAR: i32 = 2020;
const VALID_TO_YEAR: i32 = 2049;

/// The authority's name and extensions; equal for every authority, only the key differs.
fn authority_params() -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Cerulean");
    params.distinguished_name.push(DnType::CommonName, AUTHORITY_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages =
        vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
    params.not_before = date_time_ymd(VALID_FROM_YEAR, 1, 1);
    params.not_after = date_time_ymd(VALID_TO_YEAR, 1, 1);
    params
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn read_if_exists(path: &Path) -> Result<Option<String>, TlsError> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TlsError::ReadFile { path: path.into(), source }),
    }
}

/// Writes through a new file, so that a reader never sees half of it.
fn write_file(path: &Path, text: &str, private: bool) -> Result<(), TlsError> {
    let failed = |source| TlsError::WriteFile { path: path.into(), source };
    let fresh = path.with_extension("new");
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(if private { 0o600 } else { 0o644 });
    }
    #[cfg(not(unix))]
    let _ = private;
    let mut file = options.open(&fresh).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.sync_all().map_err(failed)?;
    fs::rename(&fresh, path).map_err(failed)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn verify(authority: &CertificateAuthority, leaf_pem: &str, name: &str) -> Result<(), rustls::Error> {
        use rustls::client::danger::ServerCertVerifier as _;
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificates().first().unwrap().clone()).unwrap();
        let verifier =
            rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
                .build()
                .unwrap();
        let leaf = CertificateDer::from_pem_slice(leaf_pem.as_bytes()).unwrap();
        let at = rustls_pki_types::UnixTime::since_unix_epoch(std::time::Duration::from_secs(1_800_000_000));
        verifier
            .verify_server_cert(&leaf, &[], &name.to_owned().try_into().unwrap(), &[], at)
            .map(|_verified| ())
    }

    #[test]
    fn a_leaf_is_valid_for_its_names_and_addresses_only() {
        let authority = CertificateAuthority::generate().unwrap();
        let leaf = authority.issue(&["management.azure.example", "127.0.0.1", "::1"]).unwrap();
        for name in ["management.azure.example", "127.0.0.1", "::1"] {
            verify(&authority, &leaf.certificate_pem, name).unwrap();
        }
        verify(&authority, &leaf.certificate_pem, "login.azure.example").unwrap_err();
        let other = CertificateAuthority::generate().unwrap();
        verify(&other, &leaf.certificate_pem, "127.0.0.1").unwrap_err();
    }

    #[test]
    fn an_authority_survives_a_restart() {
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("deep/pki");
        let first = CertificateAuthority::load_or_generate(&kept).unwrap();
        let second = CertificateAuthority::load_or_generate(&kept).unwrap();
        assert_eq!(first.certificate_pem(), second.certificate_pem());
        // What the second signs, a client that trusts the first accepts.
        verify(&first, &second.issue(&["localhost"]).unwrap().certificate_pem, "localhost").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = fs::metadata(kept.join(KEY_FILE)).unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "the key is for its owner alone");
        }
    }

    #[test]
    fn mixed_up_or_damaged_files_are_refused_with_the_remedy() {
        let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        CertificateAuthority::load_or_generate(one.path()).unwrap();
        CertificateAuthority::load_or_generate(other.path()).unwrap();
        fs::copy(other.path().join(KEY_FILE), one.path().join(KEY_FILE)).unwrap();
        let error = CertificateAuthority::load_or_generate(one.path()).unwrap_err().to_string();
        assert!(error.contains("do not belong together") && error.contains("remove it"), "{error}");
        fs::write(one.path().join(KEY_FILE), "nonsense").unwrap();
        CertificateAuthority::load_or_generate(one.path()).unwrap_err();
        fs::remove_file(one.path().join(KEY_FILE)).unwrap();
        CertificateAuthority::load_or_generate(one.path()).unwrap_err();
    }

    #[test]
    fn private_keys_cannot_be_printed() {
        let authority = CertificateAuthority::generate().unwrap();
        let leaf = authority.issue(&["localhost"]).unwrap();
        let printed = format!("{authority:?} {leaf:?}");
        assert!(!printed.contains("PRIVATE"), "{printed}");
    }
}
