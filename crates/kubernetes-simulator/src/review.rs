//! Questions about who somebody is and what they may do. Whoever may speak to this server may do everything:
//! there are no roles.

use serde_json::{Value, json};

use crate::kubernetes::Token;
use crate::registry::Kind;

/// The one user there is.
const USER: &str = "kubernetes-admin";

/// Why everything is allowed.
const REASON: &str = "the simulated Kubernetes has no roles: whoever may speak to it may do everything";

/// The question with its answer in `status`.
pub(crate) fn answer(kind: &Kind, mut question: Value, tokens: &[Token]) -> Value {
    let status = match kind.kind.as_str() {
        "TokenReview" => {
            let given = question.pointer("/spec/token").and_then(Value::as_str).unwrap_or_default();
            if tokens.is_empty() || tokens.iter().any(|token| token.reveal() == given) {
                json!({ "authenticated": true, "user": user() })
            } else {
                json!({ "error": "the token is not known here", "user": {} })
            }
        }
        "SelfSubjectReview" => json!({ "userInfo": user() }),
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

/// The one user there is, as reviews show users.
pub(crate) fn user() -> Value {
    json!({ "username": USER, "groups": ["system:masters", "system:authenticated"] })
}
