//! Reviews of identities and permissions. Every client with access to this server may do everything: there are no
//! roles.

use serde_json::{Value, json};

use super::user::User;
use crate::object::list_at;
use crate::registry::Kind;
use crate::server::handle::Kubernetes;

/// The reason why everything is allowed.
const REASON: &str = "the simulated Kubernetes has no roles: every client with access may do everything";

/// The review with its result in `status`.
pub(crate) fn answer(kubernetes: &Kubernetes, kind: &Kind, mut question: Value, asker: &User) -> Value {
    let status = match kind.kind.as_str() {
        "TokenReview" => token_review(kubernetes, &question),
        "SelfSubjectReview" => json!({ "userInfo": asker.to_value() }),
        "SelfSubjectRulesReview" => json!({
            "incomplete": false,
            "resourceRules": [{ "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"] }],
            "nonResourceRules": [{ "verbs": ["*"], "nonResourceURLs": ["*"] }],
        }),
        _ => json!({ "allowed": true, "reason": REASON }),
    };
    if !question.is_object() {
        question = json!({});
    }
    question["apiVersion"] = kind.api_version().into();
    question["kind"] = kind.kind.clone().into();
    if !question["metadata"].is_object() {
        question["metadata"] = json!({ "creationTimestamp": null });
    }
    question["status"] = status;
    question
}

/// Reviews a token. A server without tokens accepts every token that is not a service account's as the administrator's.
fn token_review(kubernetes: &Kubernetes, question: &Value) -> Value {
    let token = question.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
    let audiences: Vec<String> = list_at(question, &["spec", "audiences"])
        .iter()
        .filter_map(|audience| audience.as_str().map(str::to_owned))
        .collect();
    match kubernetes.bearer(token, &audiences) {
        Ok((user, audiences)) => {
            let mut status = json!({ "authenticated": true, "user": user.to_value() });
            if !audiences.is_empty() {
                status["audiences"] = json!(audiences);
            }
            status
        }
        // A JSON Web Token has dots: it is an invalid token of a service account.
        Err(_) if kubernetes.shared.options.tokens.is_empty() && token.split('.').count() < 3 => {
            json!({ "authenticated": true, "user": User::administrator().to_value() })
        }
        Err(why) => json!({ "user": {}, "error": why }),
    }
}
