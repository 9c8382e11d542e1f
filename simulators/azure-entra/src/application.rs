//! Registered applications and the credentials by which they prove themselves.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;

use super::jwt::{KeyError, PublicKey};

/// An application that may sign in, to every tenant of the directory if it is not bound to one.
#[derive(Debug, Clone)]
pub struct Application {
    client_id: String,
    object_id: String,
    name: Option<String>,
    secrets: Vec<ClientSecret>,
    certificates: Vec<RegisteredCertificate>,
    federated: Vec<FederatedCredential>,
    tenant: Option<String>,
}

/// A client secret. Only its hash is kept, so it can neither be printed nor read back.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSecret([u8; 32]);

/// A certificate whose private key an application signs assertions with.
#[derive(Clone)]
pub struct RegisteredCertificate {
    sha1_thumbprint: String,
    sha256_thumbprint: String,
    key: PublicKey,
}

/// Trust in tokens of another issuer, such as a Kubernetes cluster: a token of this issuer for this subject signs the
/// application in.
#[derive(Debug, Clone)]
pub struct FederatedCredential {
    /// The token's `iss`, compared exactly.
    pub issuer: String,
    /// The token's `sub`, compared exactly, such as `system:serviceaccount:kube-system:cloud`.
    pub subject: String,
    /// The token's `aud`; Azure's default is [`FederatedCredential::AUDIENCE`].
    pub audience: String,
    /// Keys of the issuer. The signature must verify by one of them; without any key signatures are
    /// not checked, for issuers whose keys the simulator cannot know.
    pub keys: Vec<PublicKey>,
}

impl FederatedCredential {
    /// The audience that workload identity tokens carry.
    pub const AUDIENCE: &str = "api://AzureADTokenExchange";
}

impl Application {
    /// An application without credentials. `object_id` is the id of its service principal.
    pub fn new(client_id: impl Into<String>, object_id: impl Into<String>) -> Self {
        Self {
            client_id: client_id.into(),
            object_id: object_id.into(),
            name: None,
            secrets: Vec::new(),
            certificates: Vec::new(),
            federated: Vec::new(),
            tenant: None,
        }
    }

    /// Sets its display name; the default is the client id.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Adds a client secret.
    #[must_use]
    pub fn with_secret(mut self, secret: &str) -> Self {
        self.secrets.push(ClientSecret::new(secret));
        self
    }

    /// Adds a certificate.
    #[must_use]
    pub fn with_certificate(mut self, certificate: RegisteredCertificate) -> Self {
        self.certificates.push(certificate);
        self
    }

    /// Adds trust in another issuer's tokens.
    #[must_use]
    pub fn with_federated(mut self, credential: FederatedCredential) -> Self {
        self.federated.push(credential);
        self
    }

    /// Lets it sign in to this tenant alone.
    #[must_use]
    pub fn in_tenant(mut self, tenant: impl Into<String>) -> Self {
        self.tenant = Some(tenant.into());
        self
    }

    /// Whether it is known in a tenant.
    pub(super) fn is_in(&self, tenant: &str) -> bool {
        self.tenant.as_ref().is_none_or(|own| own.eq_ignore_ascii_case(tenant))
    }

    /// The application (client) id.
    pub fn client_id(&self) -> &str {
        &self.client_id
    }

    /// The object id of the service principal.
    pub fn object_id(&self) -> &str {
        &self.object_id
    }

    /// The display name.
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.client_id)
    }

    pub(super) fn has_secret(&self, offered: &str) -> bool {
        self.secrets.contains(&ClientSecret::new(offered))
    }

    pub(super) fn certificate(&self, thumbprint: &str) -> Option<&RegisteredCertificate> {
        // Libraries write them padded or not, in either alphabet of Base64.
        let plain = thumbprint.trim_end_matches('=').replace('+', "-").replace('/', "_");
        self.certificates
            .iter()
            .find(|known| known.sha1_thumbprint == plain || known.sha256_thumbprint == plain)
    }

    pub(super) fn federated(&self) -> &[FederatedCredential] {
        &self.federated
    }
}

impl ClientSecret {
    /// Keeps the hash of a secret.
    pub fn new(secret: &str) -> Self {
        let mut hash = [0; 32];
        for (byte, hashed) in hash.iter_mut().zip(digest(&SHA256, secret.as_bytes()).as_ref()) {
            *byte = *hashed;
        }
        Self(hash)
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSecret(..)")
    }
}

impl RegisteredCertificate {
    /// Takes the first certificate of a PEM text.
    ///
    /// # Errors
    ///
    /// There is no certificate, or its key is neither RSA nor on the curve P-256.
    pub fn from_pem(pem: &str) -> Result<Self, KeyError> {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| KeyError::NoCertificate)?;
        Self::from_der(&der)
    }

    /// Takes a certificate in DER.
    ///
    /// # Errors
    ///
    /// When it cannot be parsed, or its key is neither RSA nor on the curve P-256.
    pub fn from_der(der: &[u8]) -> Result<Self, KeyError> {
        let certificate = CertificateDer::from(der);
        let parsed =
            rustls::server::ParsedCertificate::try_from(&certificate).map_err(|_| KeyError::NoCertificate)?;
        let key = PublicKey::from_subject_public_key_info(&parsed.subject_public_key_info())?;
        let thumbprint = |algorithm| URL_SAFE_NO_PAD.encode(digest(algorithm, der));
        Ok(Self {
            // Entra names certificates by their SHA-1 hash; that is a name here, not a proof.
            sha1_thumbprint: thumbprint(&SHA1_FOR_LEGACY_USE_ONLY),
            sha256_thumbprint: thumbprint(&SHA256),
            key,
        })
    }

    pub(super) fn key(&self) -> &PublicKey {
        &self.key
    }
}

impl fmt::Debug for RegisteredCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredCertificate")
            .field("thumbprint", &self.sha1_thumbprint)
            .finish_non_exhaustive()
    }
}
