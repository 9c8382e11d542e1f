//! Tokens of service accounts: JSON Web Tokens that the server signs, as `--service-account-signing-key-file` has them
//! (Kubernetes: "Managing Service Accounts").

use std::collections::BTreeMap;
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

use super::User;
use crate::kubernetes::Kubernetes;
use crate::object::string_at;
use crate::status::ApiError;

/// The issuer: `--service-account-issuer`. It is also the audience of tokens for this server.
pub(super) const ISSUER: &str = "https://kubernetes.default.svc";

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
        if let Some(kept) = path.as_ref().and_then(|path| std::fs::read(path).ok()) {
            return Self::from_pkcs8(&kept).ok_or_else(|| failed("read"));
        }
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let made = made.map_err(|_| failed("made"))?;
        if let Some(path) = path {
            keep(&path, made.as_ref()).map_err(|_| failed("kept"))?;
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
    fn claims(&self, token: &str) -> Option<Value> {
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

/// The OpenID Connect discovery document, which tells verifiers where the keys are.
pub(crate) fn openid_configuration() -> Value {
    json!({
        "issuer": ISSUER,
        "jwks_uri": format!("{ISSUER}/openid/v1/jwks"),
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": ["ES256"],
    })
}

fn keep(path: &Path, document: &[u8]) -> std::io::Result<()> {
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

/// Verifies a token. Returns its user and its audiences among the requested ones. Errors have the API server's
/// messages.
pub(super) fn verify(
    kubernetes: &Kubernetes,
    token: &str,
    audiences: &[String],
) -> Result<(User, Vec<String>), String> {
    const UNKNOWN: &str = "invalid bearer token";
    let refused = |why: &str| format!("[{UNKNOWN}, {why}]");
    let key = kubernetes.signing_key().map_err(|error| error.to_string())?;
    let claims = key.claims(token).ok_or(UNKNOWN)?;
    let now = kubernetes.now().as_second();
    if claims["exp"].as_i64().is_none_or(|end| end <= now) {
        return Err(refused("service account token has expired"));
    }
    let own = [ISSUER.to_owned()];
    let wanted = if audiences.is_empty() { &own } else { audiences };
    let given: Vec<&str> = claims["aud"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let common: Vec<String> =
        wanted.iter().filter(|audience| given.contains(&audience.as_str())).cloned().collect();
    if common.is_empty() {
        return Err(refused(&format!(
            "token audiences {given:?} is invalid for the target audiences {wanted:?}"
        )));
    }
    let about = &claims["kubernetes.io"];
    let namespace = about["namespace"].as_str().unwrap_or_default();
    let named = |kind: &str, member: &str| string_at(about, &[kind, member]).unwrap_or_default().to_owned();
    // A token is valid only as long as the objects that it is bound to exist.
    for kind in ["serviceaccount", "pod", "secret", "node"] {
        if about.get(kind).is_none() {
            continue;
        }
        let plural = format!("{kind}s");
        let (name, uid) = (named(kind, "name"), named(kind, "uid"));
        match kubernetes.get(&plural, namespace, &name) {
            None => return Err(refused(&format!("{plural} {name:?} not found"))),
            Some(object) if object.uid() != uid => {
                return Err(refused(&format!("{kind} UID ({}) does not match claim ({uid})", object.uid())));
            }
            Some(_) => {}
        }
    }
    let mut extra = BTreeMap::new();
    let mut tell = |name: &str, text: String| {
        if !text.is_empty() {
            extra.insert(format!("authentication.kubernetes.io/{name}"), vec![text]);
        }
    };
    tell("credential-id", claims["jti"].as_str().map(|id| format!("JTI={id}")).unwrap_or_default());
    tell("pod-name", named("pod", "name"));
    tell("pod-uid", named("pod", "uid"));
    tell("node-name", named("node", "name"));
    tell("node-uid", named("node", "uid"));
    let (name, uid) = (named("serviceaccount", "name"), named("serviceaccount", "uid"));
    Ok((User::service_account(namespace, &name, &uid, extra), common))
}
