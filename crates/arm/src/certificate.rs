//! Client certificates: a PKCS#12 or PEM file becomes signed assertions.
//!
//! The library's own certificate credential needs OpenSSL and signs with an outdated hash; this one
//! signs PS256 with `ring` and sends the chain (`x5c`), so that the authority can check the issuer too.

use std::fmt;

use async_trait::async_trait;
use azure_core::error::ErrorKind;
use azure_core::http::ClientMethodOptions;
use azure_identity::ClientAssertion;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use clock::Clock;
use p12_keystore::{KeyStore, Pkcs12ImportPolicy};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PSS_SHA256, RsaKeyPair};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// How long an assertion is valid.
const VALIDITY_SECONDS: u64 = 600;

/// A certificate and its key, ready to sign.
pub(crate) struct Certificate {
    key: RsaKeyPair,
    /// The leaf first.
    chain: Vec<Vec<u8>>,
    client_id: String,
    /// The token endpoint.
    audience: String,
    clock: Clock,
}

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificate(of client {})", self.client_id)
    }
}

impl Certificate {
    /// Parses a file's content. The error is half a sentence.
    pub(crate) fn read(
        content: &[u8],
        password: &str,
        client_id: &str,
        audience: &str,
        clock: Clock,
    ) -> Result<Self, String> {
        let pem = content.windows(11).any(|window| window == b"-----BEGIN ");
        let (key, mut chain) = if pem { read_pem(content)? } else { read_pkcs12(content, password)? };
        leaf_first(&key, &mut chain)?;
        Ok(Self { key, chain, client_id: client_id.to_owned(), audience: audience.to_owned(), clock })
    }

    /// A signed assertion of the client's identity.
    fn assertion(&self) -> Result<String, String> {
        let leaf = self.chain.first().ok_or("the certificate file holds no certificate")?;
        let thumbprint = ring::digest::digest(&ring::digest::SHA256, leaf);
        let header = serde_json::json!({
            "alg": "PS256",
            "typ": "JWT",
            "x5t#S256": URL_SAFE_NO_PAD.encode(thumbprint),
            "x5c": self.chain.iter().map(|certificate| STANDARD.encode(certificate)).collect::<Vec<_>>(),
        });
        let now = self.clock.since_1970().as_secs();
        let claims = serde_json::json!({
            "aud": self.audience,
            "iss": self.client_id,
            "sub": self.client_id,
            "jti": uuid::Uuid::new_v4().to_string(),
            "iat": now,
            "nbf": now,
            "exp": now + VALIDITY_SECONDS,
        });
        let mut token = format!(
            "{}.{}",
            URL_SAFE_NO_PAD.encode(header.to_string()),
            URL_SAFE_NO_PAD.encode(claims.to_string())
        );
        let mut signature = vec![0; self.key.public().modulus_len()];
        self.key
            .sign(&RSA_PSS_SHA256, &SystemRandom::new(), token.as_bytes(), &mut signature)
            .map_err(|_| "the assertion cannot be signed")?;
        token.push('.');
        token.push_str(&URL_SAFE_NO_PAD.encode(signature));
        Ok(token)
    }
}

#[async_trait]
impl ClientAssertion for Certificate {
    async fn secret(&self, _: Option<ClientMethodOptions<'_>>) -> azure_core::Result<String> {
        self.assertion().map_err(|reason| azure_core::Error::with_message(ErrorKind::Credential, reason))
    }
}

type KeyAndChain = (RsaKeyPair, Vec<Vec<u8>>);

/// Moves the certificate of this key to the front, where the authority expects it; the others keep their order. Files
/// may have any order: Azure's own tools sort them, too.
fn leaf_first(key: &RsaKeyPair, chain: &mut [Vec<u8>]) -> Result<(), String> {
    // A certificate contains its public key in exactly the form that `ring` returns: no parser is needed.
    let public = key.public().as_ref();
    let holds = |certificate: &Vec<u8>| certificate.windows(public.len()).any(|window| window == public);
    match chain.iter().position(holds) {
        Some(leaf) => {
            chain[..=leaf].rotate_right(1);
            Ok(())
        }
        None if chain.is_empty() => Err("holds no certificate".to_owned()),
        None => Err("holds no certificate that belongs to its private key".to_owned()),
    }
}

fn read_pem(content: &[u8]) -> Result<KeyAndChain, String> {
    let chain: Vec<Vec<u8>> = CertificateDer::pem_slice_iter(content)
        .map(|certificate| certificate.map(|certificate| certificate.as_ref().to_vec()))
        .collect::<Result<_, _>>()
        .map_err(|error| format!("holds a certificate that is no PEM: {error}"))?;
    let key = match PrivateKeyDer::from_pem_slice(content) {
        Ok(PrivateKeyDer::Pkcs8(key)) => RsaKeyPair::from_pkcs8(key.secret_pkcs8_der()),
        Ok(PrivateKeyDer::Pkcs1(key)) => RsaKeyPair::from_der(key.secret_pkcs1_der()),
        Ok(_) => return Err("holds a key that is not RSA".to_owned()),
        Err(_) => return Err("holds no unencrypted private key".to_owned()),
    };
    let key = key.map_err(|error| format!("holds a key that cannot be used: {error}"))?;
    Ok((key, chain))
}

fn read_pkcs12(content: &[u8], password: &str) -> Result<KeyAndChain, String> {
    let store = KeyStore::from_pkcs12(content, password, Pkcs12ImportPolicy::Relaxed)
        .map_err(|_| "is neither PEM nor a PKCS#12 file that this password opens".to_owned())?;
    let (_, chain) = store.private_key_chain().ok_or("holds no private key")?;
    let key = RsaKeyPair::from_pkcs8(chain.key().as_der())
        .map_err(|error| format!("holds a key that cannot be used: {error}"))?;
    let certificates: Vec<Vec<u8>> =
        chain.certs().iter().map(|certificate| certificate.as_der().to_vec()).collect();
    Ok((key, certificates))
}
