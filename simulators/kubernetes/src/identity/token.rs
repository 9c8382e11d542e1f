//! Tokens of service accounts: JSON Web Tokens that the server signs, as `--service-account-signing-key-file` has them
//! (Kubernetes: "Managing Service Accounts").

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::signing_key::SigningKey;
use super::user::User;
use crate::object::string_at;
use crate::server::handle::Kubernetes;
use crate::status::ApiError;

/// The issuer: `--service-account-issuer`. It is also the audience of tokens for this server.
pub(super) const ISSUER: &str = "https://kubernetes.default.svc";

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

impl Kubernetes {
    /// The key that signs tokens of service accounts, created at first use.
    pub(crate) fn signing_key(&self) -> Result<Arc<SigningKey>, ApiError> {
        let mut slot = self.shared.signing_key.lock();
        if let Some(key) = &*slot {
            return Ok(Arc::clone(key));
        }
        let folder = self.shared.options.authority_dir.as_deref();
        let made = Arc::new(SigningKey::load_or_generate(folder)?);
        *slot = Some(Arc::clone(&made));
        Ok(made)
    }
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
    let accepted = if audiences.is_empty() { &own } else { audiences };
    let given: Vec<&str> = claims["aud"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let common: Vec<String> =
        accepted.iter().filter(|audience| given.contains(&audience.as_str())).cloned().collect();
    if common.is_empty() {
        return Err(refused(&format!(
            "token audiences {given:?} is invalid for the target audiences {accepted:?}"
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
    let mut add = |name: &str, text: String| {
        if !text.is_empty() {
            extra.insert(format!("authentication.kubernetes.io/{name}"), vec![text]);
        }
    };
    add("credential-id", claims["jti"].as_str().map(|id| format!("JTI={id}")).unwrap_or_default());
    add("pod-name", named("pod", "name"));
    add("pod-uid", named("pod", "uid"));
    add("node-name", named("node", "name"));
    add("node-uid", named("node", "uid"));
    let (name, uid) = (named("serviceaccount", "name"), named("serviceaccount", "uid"));
    Ok((User::service_account(namespace, &name, &uid, extra), common))
}
