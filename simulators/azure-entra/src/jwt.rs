//! JSON Web Tokens: signing our own, checking those of others.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    RSA_PKCS1_2048_8192_SHA256, RSA_PSS_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Why a key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The random source or the key refused to work.
    #[error("cannot make or use the signing key")]
    Sign,
    /// A stored key is something else.
    #[error("this is no P-256 key as PKCS #8 in base64")]
    Kept,
    /// There is no certificate in the text.
    #[error("no X.509 certificate found")]
    NoCertificate,
    /// The key's algorithm is not supported.
    #[error("the public key is neither RSA nor on the curve P-256")]
    UnsupportedKey,
}

/// A public key that verifies signatures of tokens.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey(KeyMaterial);

#[derive(Clone, PartialEq, Eq)]
enum KeyMaterial {
    /// Modulus and exponent, big endian, without leading zeros.
    Rsa { n: Vec<u8>, e: Vec<u8> },
    /// The uncompressed point.
    P256 { point: Vec<u8> },
}

impl PublicKey {
    /// Reads a JSON Web Key of type `RSA` or `EC` with curve `P-256`.
    ///
    /// # Errors
    ///
    /// For any other key and for missing members.
    pub fn from_jwk(jwk: &Value) -> Result<Self, KeyError> {
        let member = |name: &str| {
            let text = jwk.get(name).and_then(Value::as_str).ok_or(KeyError::UnsupportedKey)?;
            URL_SAFE_NO_PAD.decode(text).map_err(|_| KeyError::UnsupportedKey)
        };
        match (jwk.get("kty").and_then(Value::as_str), jwk.get("crv").and_then(Value::as_str)) {
            (Some("RSA"), _) => Ok(Self(KeyMaterial::Rsa { n: member("n")?, e: member("e")? })),
            (Some("EC"), Some("P-256")) => {
                let mut point = vec![4];
                point.extend(member("x")?);
                point.extend(member("y")?);
                Ok(Self(KeyMaterial::P256 { point }))
            }
            _ => Err(KeyError::UnsupportedKey),
        }
    }

    /// Reads a DER `SubjectPublicKeyInfo` (RFC 5280, section 4.1).
    ///
    /// # Errors
    ///
    /// When it is no RSA or P-256 key.
    pub fn from_subject_public_key_info(der: &[u8]) -> Result<Self, KeyError> {
        parse_spki(der).ok_or(KeyError::UnsupportedKey)
    }

    /// Whether `signature` over `message` was made by this key with the algorithm of this JWT name.
    fn verifies(&self, algorithm: &str, message: &[u8], signature: &[u8]) -> bool {
        match (&self.0, algorithm) {
            (KeyMaterial::Rsa { n, e }, "RS256") => RsaPublicKeyComponents { n, e }
                .verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
                .is_ok(),
            (KeyMaterial::Rsa { n, e }, "PS256") => {
                RsaPublicKeyComponents { n, e }.verify(&RSA_PSS_2048_8192_SHA256, message, signature).is_ok()
            }
            (KeyMaterial::P256 { point }, "ES256") => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature).is_ok()
            }
            _ => false,
        }
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            KeyMaterial::Rsa { .. } => "PublicKey(RSA)",
            KeyMaterial::P256 { .. } => "PublicKey(P-256)",
        })
    }
}

const OID_RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const OID_EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const OID_P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const TAG_INTEGER: u8 = 0x02;
const TAG_BIT_STRING: u8 = 0x03;
const TAG_OID: u8 = 0x06;
const TAG_SEQUENCE: u8 = 0x30;

fn parse_spki(der: &[u8]) -> Option<PublicKey> {
    let (info, _) = element(der, TAG_SEQUENCE)?;
    let (algorithm, rest) = element(info, TAG_SEQUENCE)?;
    let (bits, _) = element(rest, TAG_BIT_STRING)?;
    let key = bits.strip_prefix(&[0])?; // no unused bits
    let (oid, parameters) = element(algorithm, TAG_OID)?;
    if oid == OID_RSA {
        let (numbers, _) = element(key, TAG_SEQUENCE)?;
        let (n, rest) = element(numbers, TAG_INTEGER)?;
        let (e, _) = element(rest, TAG_INTEGER)?;
        let unsigned = |number: &[u8]| number.strip_prefix(&[0]).unwrap_or(number).to_vec();
        return Some(PublicKey(KeyMaterial::Rsa { n: unsigned(n), e: unsigned(e) }));
    }
    let (curve, _) = element(parameters, TAG_OID)?;
    (oid == OID_EC && curve == OID_P256).then(|| PublicKey(KeyMaterial::P256 { point: key.to_vec() }))
}

/// The content of the DER element with this tag at the front, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (found, rest) = der.split_first()?;
    let (first, rest) = rest.split_first()?;
    if *found != tag {
        return None;
    }
    if *first < 0x80 {
        return rest.split_at_checked(usize::from(*first));
    }
    let digits = usize::from(*first & 0x7f);
    let (length, rest) = rest.split_at_checked(digits)?;
    let length = (digits <= 4)
        .then(|| length.iter().fold(0_usize, |length, digit| (length << 8) | usize::from(*digit)))?;
    rest.split_at_checked(length)
}

/// A parsed token; its signature has not been checked yet.
pub struct Jwt<'a> {
    /// Its header.
    pub header: Header,
    /// Its claims.
    pub claims: Value,
    signed: &'a str,
    signature: Vec<u8>,
}

/// The header of a token: how it is signed, and with which key.
#[derive(Debug, Deserialize)]
pub struct Header {
    /// The algorithm.
    #[serde(default)]
    pub alg: String,
    /// The key's id.
    #[serde(default)]
    pub kid: Option<String>,
    /// SHA-1 thumbprint of the certificate.
    #[serde(default)]
    pub x5t: Option<String>,
    /// SHA-256 thumbprint of the certificate.
    #[serde(default, rename = "x5t#S256")]
    pub x5t_s256: Option<String>,
}

impl<'a> Jwt<'a> {
    /// Parses a compact serialisation; `None` if it is invalid.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let header = URL_SAFE_NO_PAD.decode(header).ok()?;
        let claims = URL_SAFE_NO_PAD.decode(claims).ok()?;
        Some(Self {
            header: serde_json::from_slice(&header).ok()?,
            claims: serde_json::from_slice(&claims).ok()?,
            signed,
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
        })
    }

    /// Whether the signature was made by this key.
    pub fn is_signed_by(&self, key: &PublicKey) -> bool {
        key.verifies(&self.header.alg, self.signed.as_bytes(), &self.signature)
    }
}

/// The key that signs access tokens.
pub struct SigningKey {
    pair: EcdsaKeyPair,
    public: PublicKey,
    id: String,
    random: SystemRandom,
}

impl SigningKey {
    /// Makes a key. Keys are secrets and come from the system's random source, not from a seed.
    ///
    /// # Errors
    ///
    /// The system's random source gives none.
    pub fn generate() -> Result<Self, KeyError> {
        Self::from_text(&Self::generate_text()?)
    }

    /// Generates a key as text, PKCS #8 in base64, to be stored: tokens that it has signed stay valid as long. It is a
    /// secret.
    ///
    /// # Errors
    ///
    /// The system's random source gives none.
    pub fn generate_text() -> Result<String, KeyError> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        Ok(STANDARD.encode(made.map_err(|_| KeyError::Sign)?))
    }

    /// The key that [`Self::generate_text`] generated.
    ///
    /// # Errors
    ///
    /// The text is not such a key.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let random = SystemRandom::new();
        let document = STANDARD.decode(text.trim()).map_err(|_| KeyError::Kept)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &document, &random)
            .map_err(|_| KeyError::Kept)?;
        let point = pair.public_key().as_ref().to_vec();
        let id = URL_SAFE_NO_PAD.encode(ring::digest::digest(&ring::digest::SHA256, &point));
        Ok(Self { pair, public: PublicKey(KeyMaterial::P256 { point }), id, random })
    }

    /// Signs claims as a compact token.
    pub fn sign(&self, claims: &impl Serialize) -> Result<String, KeyError> {
        let header = json!({ "typ": "JWT", "alg": "ES256", "kid": self.id });
        let claims = serde_json::to_vec(claims).map_err(|_| KeyError::Sign)?;
        let mut token = URL_SAFE_NO_PAD.encode(header.to_string());
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(claims, &mut token);
        let signature = self.pair.sign(&self.random, token.as_bytes()).map_err(|_| KeyError::Sign)?;
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature.as_ref(), &mut token);
        Ok(token)
    }

    /// The public half.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// The id that headers name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The public half as a JSON Web Key.
    pub fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        // An uncompressed P-256 point: a tag, then two coordinates of 32 bytes.
        let (x, y) = point.get(1..).unwrap_or_default().split_at_checked(32).unwrap_or_default();
        json!({
            "kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id,
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        })
    }
}
