//! TokenRequest: the `token` subresource of service accounts.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::token::ISSUER;
use crate::object::rfc3339_seconds;
use crate::object::{list_at, string_at, value_at};
use crate::registry::Kind;
use crate::server::handle::Kubernetes;
use crate::status::ApiError;

/// The default lifetime of a token.
const DEFAULT_SECONDS: i64 = 60 * 60;
/// The shortest lifetime that may be requested.
const MIN_SECONDS: i64 = 10 * 60;
/// The longest lifetime that may be requested.
const MAX_SECONDS: i64 = 1 << 32;

impl Kubernetes {
    /// Answers a TokenRequest for a service account.
    ///
    /// # Errors
    /// The account does not exist, the request is invalid, or the object that the token is bound to does not exist.
    pub(crate) fn request_token(
        &self,
        kind: &Kind,
        namespace: &str,
        name: &str,
        request: Value,
    ) -> Result<Value, ApiError> {
        let account = self.shared.state.lock().get(kind, namespace, name)?;
        let spec = value_at(&request, &["spec"]).cloned().unwrap_or_else(|| json!({}));
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(DEFAULT_SECONDS);
        let problem = match seconds {
            ..MIN_SECONDS => "may not specify a duration less than 10 minutes",
            MIN_SECONDS..=MAX_SECONDS => "",
            _ => "may not specify a duration larger than 2^32 seconds",
        };
        if !problem.is_empty() {
            return Err(invalid(&format!("Invalid value: {seconds}: {problem}")));
        }
        let mut audiences: Vec<&str> =
            list_at(&spec, &["audiences"]).iter().filter_map(Value::as_str).collect();
        if audiences.is_empty() {
            audiences.push(ISSUER);
        }
        let now = self.now();
        let end = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
        let mut about = json!({
            "namespace": namespace,
            "serviceaccount": { "name": name, "uid": account.uid() },
        });
        let bound = value_at(&spec, &["boundObjectRef"]).filter(|bound| bound.is_object());
        if let Some(bound) = bound {
            let (member, claim) = self.bound(namespace, bound)?;
            about[member] = claim;
        }
        let id = self.shared.state.lock().new_uid();
        let claims = json!({
            "aud": audiences,
            "exp": end.as_second(),
            "iat": now.as_second(),
            "iss": ISSUER,
            "jti": id,
            "kubernetes.io": about,
            "nbf": now.as_second(),
            "sub": format!("system:serviceaccount:{namespace}:{name}"),
        });
        Ok(json!({
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "creationTimestamp": rfc3339_seconds(now),
            },
            "spec": {
                "audiences": audiences,
                "expirationSeconds": seconds,
                "boundObjectRef": bound.cloned().unwrap_or_default(),
            },
            "status": {
                "token": self.signing_key()?.sign(&claims)?,
                "expirationTimestamp": rfc3339_seconds(end),
            },
        }))
    }

    /// The claim about the object that a token is bound to.
    fn bound(&self, namespace: &str, bound: &Value) -> Result<(&'static str, Value), ApiError> {
        let text = |member: &str| string_at(bound, &[member]).unwrap_or_default();
        let member = match text("kind") {
            "Pod" => "pod",
            "Secret" => "secret",
            "Node" => "node",
            other => {
                let gvk = format!("{}, Kind={other}", text("apiVersion"));
                let message = format!("cannot bind token for serviceaccount to object of type {gvk}");
                return Err(ApiError::bad_request(message));
            }
        };
        let state = self.shared.state.lock();
        let kind = state.registry.by_type("v1", text("kind")).ok_or_else(ApiError::no_such_resource)?;
        let object = state.get(&kind, namespace, text("name"))?;
        if !text("uid").is_empty() && text("uid") != object.uid() {
            let why = format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The object might have \
                 been deleted and then recreated",
                text("uid")
            );
            return Err(ApiError::conflict(&kind, text("name"), &why));
        }
        Ok((member, json!({ "name": object.name(), "uid": object.uid() })))
    }
}

fn invalid(message: &str) -> ApiError {
    ApiError::invalid_request(
        ("authentication.k8s.io", "TokenRequest"),
        "",
        "spec.expirationSeconds",
        message,
    )
}
