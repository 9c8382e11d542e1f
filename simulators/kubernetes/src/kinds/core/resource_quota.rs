//! ResourceQuotas.

use k8s_openapi::api::core::v1::ResourceQuota;

use crate::kinds::prelude::*;

pub(crate) static KIND: BuiltinKind = BuiltinKind {
    short_names: &["quota"],
    status: StatusRule::Subresource,
    deletion_returns_object: true,
    columns: &[
        NAME,
        Column::derived("Request", |object| quota(object, false)),
        Column::derived("Limit", |object| quota(object, true)),
        AGE,
    ],
    validate: |object, causes| amounts(object, "/spec/hard", causes),
    example: r#"{"spec": {"hard": {"configmaps": "20"}}}"#,
    ..BuiltinKind::namespaced::<ResourceQuota>()
};

/// Requests (or limits): used and allowed amounts.
fn quota(object: &Value, limits: bool) -> String {
    let hard = object.pointer("/status/hard").and_then(Value::as_object);
    let shown: Vec<String> = hard
        .into_iter()
        .flatten()
        .filter(|(resource, _)| resource.starts_with("limits.") == limits)
        .map(|(resource, hard)| {
            let used = object.pointer("/status/used").and_then(|used| used.get(resource));
            let used = used.and_then(Value::as_str).unwrap_or("0");
            format!("{resource}: {used}/{}", hard.as_str().unwrap_or_default())
        })
        .collect();
    shown.join(", ")
}
