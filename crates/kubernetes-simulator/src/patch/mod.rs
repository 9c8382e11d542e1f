//! The four ways to change an object in part: JSON merge patch (RFC 7386), JSON patch (RFC 6902),
//! strategic merge patch and server-side apply, on plain JSON values.
//!
//! Nothing here stores, defaults or validates: the caller does that with the object it gets back.

mod apply;
mod field_set;
mod managed_fields;
mod schema;
mod strategic;

pub use managed_fields::track_update;
pub(crate) use schema::{List as ListRule, join, list as list_rule};

use serde_json::Value;

/// How a patch is to be read: one of the content types that `PATCH` takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PatchType {
    /// `application/merge-patch+json`, RFC 7386.
    Merge,
    /// `application/json-patch+json`, RFC 6902.
    Json,
    /// `application/strategic-merge-patch+json`: lists merge by the keys of the kind's schema.
    Strategic,
    /// `application/apply-patch+yaml`: server-side apply.
    Apply {
        /// Who applies: the `fieldManager` query parameter.
        field_manager: String,
        /// Whether fields of other managers are taken over instead of being refused: `force=true`.
        force: bool,
    },
}

/// Why a patch gives no object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is not well-formed for its type. Servers answer 400.
    #[error("{0}")]
    Invalid(String),
    /// Server-side apply would change fields of other managers, and `force` was not asked for.
    /// Each entry reads `conflict with "manager" using v1: .spec.type`. Servers answer 409.
    #[error("{}", conflict_message(.0))]
    Conflict(Vec<String>),
    /// A well-formed JSON patch does not apply: its `test` failed or a path leads nowhere.
    /// Servers answer 422.
    #[error("{0}")]
    TestFailed(String),
}

fn conflict_message(conflicts: &[String]) -> String {
    match conflicts {
        [one] => format!("Apply failed with 1 conflict: {one}"),
        many => {
            let mut lines = vec![];
            let mut last = "";
            for conflict in many {
                let (manager, path) = conflict.rsplit_once(": ").unwrap_or((conflict, ""));
                if manager != last {
                    lines.push(format!("{}:", manager.replacen("conflict ", "conflicts ", 1)));
                    last = manager;
                }
                lines.push(format!("- {path}"));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    }
}

/// The object that `patch` makes of `current`.
///
/// `kind` chooses the merge rules (see the schema table); kinds without an entry, such as custom
/// resources, have atomic lists. For server-side apply the result carries the new
/// `metadata.managedFields`, and `current` may be `None`: the object is created. For the other
/// types `None` counts as an empty object.
///
/// # Errors
/// See [`PatchError`].
pub fn patch(
    kind: &str,
    current: Option<&Value>,
    patch: &Value,
    how: &PatchType,
) -> Result<Value, PatchError> {
    patch_subresource(kind, None, current, patch, how)
}

/// As [`patch`], for a sub-resource such as `status`.
///
/// It matters to server-side apply alone: a manager's fields of the status are kept apart from its
/// fields of the main resource, and what the addressed part does not cover is ignored.
///
/// # Errors
/// See [`PatchError`].
pub fn patch_subresource(
    kind: &str,
    subresource: Option<&str>,
    current: Option<&Value>,
    patch: &Value,
    how: &PatchType,
) -> Result<Value, PatchError> {
    let object = || current.cloned().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
    match how {
        PatchType::Merge => {
            if !patch.is_object() {
                return Err(PatchError::Invalid("a merge patch of an object must be an object".into()));
            }
            let mut object = object();
            json_patch::merge(&mut object, patch);
            Ok(object)
        }
        PatchType::Json => {
            let operations: json_patch::Patch =
                serde_json::from_value(patch.clone()).map_err(|error| match patch {
                    Value::Array(_) => PatchError::TestFailed(error.to_string()),
                    _ => PatchError::Invalid(format!("a JSON patch is a list of operations: {error}")),
                })?;
            let mut object = object();
            json_patch::patch(&mut object, &operations)
                .map_err(|error| PatchError::TestFailed(error.to_string()))?;
            Ok(object)
        }
        PatchType::Strategic => strategic::merge(kind, object(), patch),
        PatchType::Apply { field_manager, force } => {
            apply::apply(kind, subresource, current, patch, field_manager, *force)
        }
    }
}

#[cfg(test)]
mod tests;
