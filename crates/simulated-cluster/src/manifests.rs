//! Kubernetes manifests: read from YAML and applied as `kubectl apply --server-side` does.

use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::discovery::{Scope, pinned_kind};
use kube::{Api, Client};
use serde_json::Value;

/// The name under which fields are owned.
const FIELD_MANAGER: &str = "cerulean";

/// Why manifests could not be read or applied.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// The text is not YAML.
    #[error("{source_name} is not valid YAML: {reason}")]
    Syntax {
        /// Where the text came from.
        source_name: String,
        /// The parser's words.
        reason: String,
    },
    /// A document lacks what every object has.
    #[error("{source_name}, document {number}: {field} is missing")]
    Incomplete {
        /// Where the text came from.
        source_name: String,
        /// Which document, from 1.
        number: usize,
        /// The missing member.
        field: &'static str,
    },
    /// The API refuses an object, or does not know its kind.
    #[error("cannot apply {object}: {source}")]
    Apply {
        /// Kind and name.
        object: String,
        /// What the API said.
        source: Box<kube::Error>,
    },
}

/// Reads all documents of a YAML text; empty ones are skipped.
///
/// # Errors
/// The text is not YAML, or a document lacks `apiVersion`, `kind` or `metadata.name`.
pub fn read(source_name: &str, text: &str) -> Result<Vec<Value>, ManifestError> {
    let syntax = |error: serde_saphyr::Error| ManifestError::Syntax {
        source_name: source_name.to_owned(),
        reason: error.to_string().replace('\n', " "),
    };
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(syntax)?;
    let documents: Vec<Value> = documents.into_iter().filter(|document| !document.is_null()).collect();
    for (index, document) in documents.iter().enumerate() {
        for (field, pointer) in
            [("apiVersion", "/apiVersion"), ("kind", "/kind"), ("metadata.name", "/metadata/name")]
        {
            if document.pointer(pointer).and_then(Value::as_str).is_none_or(str::is_empty) {
                let (source_name, number) = (source_name.to_owned(), index + 1);
                return Err(ManifestError::Incomplete { source_name, number, field });
            }
        }
    }
    Ok(documents)
}

/// Applies objects in their order, server side; those of namespaced kinds without a namespace go to
/// `default`. Returns the objects as the API answered.
///
/// # Errors
/// The first object that the API refuses; earlier ones stay applied.
pub async fn apply(client: &Client, objects: &[Value]) -> Result<Vec<DynamicObject>, ManifestError> {
    let how = PatchParams::apply(FIELD_MANAGER).force();
    let mut applied = Vec::with_capacity(objects.len());
    for object in objects {
        applied.push(send(client, object, &how).await?);
    }
    Ok(applied)
}

/// The object as the API would have it after it was applied: with defaults, allocated ports and a UID.
/// Nothing is stored.
///
/// # Errors
/// The API refuses the object.
pub async fn preview(client: &Client, object: &Value) -> Result<DynamicObject, ManifestError> {
    send(client, object, &PatchParams::apply(FIELD_MANAGER).force().dry_run()).await
}

async fn send(client: &Client, object: &Value, how: &PatchParams) -> Result<DynamicObject, ManifestError> {
    let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let (kind, name) = (text("/kind"), text("/metadata/name"));
    let refused = |source: kube::Error| ManifestError::Apply {
        object: format!("{kind} {name}"),
        source: Box::new(source),
    };
    let (resource, scope) = resource_of(client, text("/apiVersion"), kind).await.map_err(refused)?;
    let api: Api<DynamicObject> = match (scope, text("/metadata/namespace")) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, "") => Api::namespaced_with(client.clone(), "default", &resource),
        (Scope::Namespaced, namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
    };
    api.patch(name, how, &Patch::Apply(object)).await.map_err(refused)
}

async fn resource_of(client: &Client, api_version: &str, kind: &str) -> kube::Result<(ApiResource, Scope)> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let (resource, capabilities) =
        pinned_kind(client, &kube::core::GroupVersionKind::gvk(group, version, kind)).await?;
    Ok((resource, capabilities.scope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_in_their_order() {
        let text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: Service\nmetadata: {name: b}\n";
        let kinds: Vec<String> = read("x", text).unwrap().iter().map(|d| d["kind"].to_string()).collect();
        assert_eq!(kinds, ["\"Namespace\"", "\"Service\""]);
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = read("shop.yaml", "apiVersion: v1\nkind: Service\nmetadata: {}\n").unwrap_err();
        assert_eq!(error.to_string(), "shop.yaml, document 1: metadata.name is missing");
        assert!(
            read("shop.yaml", "a: [").unwrap_err().to_string().starts_with("shop.yaml is not valid YAML")
        );
    }
}
