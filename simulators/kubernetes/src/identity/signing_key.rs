//! The key that signs tokens of service accounts.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _, UnparsedPublicKey,
};
use serde_json::{Value, json};

use crate::status::ApiError;

/// The file of the key in the folder of the certificate authority.
const KEY_FILE: &str = "service-accounts.key";

/// The key that signs tokens. It cannot be printed.
pub(crate) struct SigningKey {
    pair: EcdsaKeyPair,
    id: String,
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl SigningKey {
    /// Reads the key from the folder, or generates one and writes it there. Without a folder the key is always new.
    pub(crate) fn load_or_generate(folder: Option<&Path>) -> Result<Self, ApiError> {
        let failed =
            |what: &str| ApiError::internal(&format!("the key of service accounts cannot be {what}"));
        let path = folder.map(|folder| folder.join(KEY_FILE));
        if let Some(document) = path.as_ref().and_then(|path| std::fs::read(path).ok()) {
            return Self::from_pkcs8(&document).ok_or_else(|| failed("read"));
        }
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let made = made.map_err(|_| failed("made"))?;
        if let Some(path) = path {
            write_new(&path, made.as_ref()).map_err(|_| failed("kept"))?;
        }
        Self::from_pkcs8(made.as_ref()).ok_or_else(|| failed("made"))
    }

    fn from_pkcs8(document: &[u8]) -> Option<Self> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document, &random).ok()?;
        let id = URL_SAFE_NO_PAD.encode(digest(&SHA256, pair.public_key().as_ref()));
        Some(Self { pair, id })
    }

    pub(super) fn sign(&self, claims: &Value) -> Result<String, ApiError> {
        let header = json!({ "alg": "ES256", "kid": self.id });
        let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", encode(&header), encode(claims));
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes());
        let signature = signature.map_err(|_| ApiError::internal("a token cannot be signed"))?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The claims of a token that this key signed.
    pub(super) fn claims(&self, token: &str) -> Option<Value> {
        let (signed, signature) = token.rsplit_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref());
        key.verify(signed.as_bytes(), &signature).ok()?;
        let (_, claims) = signed.split_once('.')?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }

    /// The public half as a JSON Web Key.
    pub(crate) fn jwk(&self) -> Value {
        // An uncompressed point: a tag, then two coordinates of 32 bytes.
        let point = self.pair.public_key().as_ref().get(1..).unwrap_or_default();
        let (x, y) = point.split_at_checked(32).unwrap_or_default();
        json!({
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": URL_SAFE_NO_PAD.encode(x), "y": URL_SAFE_NO_PAD.encode(y),
        })
    }
}

fn write_new(path: &Path, document: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    options.open(path)?.write_all(document)
}
